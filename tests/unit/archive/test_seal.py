"""The last guard: no secret passes, and a run without one passes unchanged."""

from __future__ import annotations

from msgspec.structs import replace

from nilometer.archive.seal import seal_group, seal_run
from nilometer.core.environment import EngineFacts, Environment
from nilometer.core.group import Group, parted, with_plan
from nilometer.core.spec import Http, Spec, from_toml, to_toml

from .samples import make_run

CANARY = "canary-7f3a"


def test_a_clean_run_passes_unchanged() -> None:
    assert seal_run(make_run()) == make_run()


def test_header_values_and_url_secrets_become_stars() -> None:
    spec = Spec(
        target=f"https://u:{CANARY}@host/v1?api_key={CANARY}&version=2",
        http=Http(headers={"Authorization": f"Bearer {CANARY}"}, proxy=f"http://u:{CANARY}@proxy:3128"),
    )
    sealed = seal_run(make_run(spec=spec)).spec
    assert sealed.target == "https://***@host/v1?api_key=***&version=2"
    assert sealed.http == Http(headers={"Authorization": "***"}, proxy="http://***@proxy:3128")


def test_engine_flags_that_name_a_secret_lose_its_value_and_others_keep_theirs() -> None:
    flags = ["--api-key", CANARY, "--hf-token=" + CANARY, "--max-tokens", "128", "--api-key", "--port", "80"]
    environment = Environment(engine=EngineFacts(flags=flags))
    sealed = seal_run(make_run(environment=environment)).environment.engine.flags
    assert sealed == ["--api-key", "***", "--hf-token=***", "--max-tokens", "128", "--api-key", "--port", "80"]


def test_the_toml_of_a_group_is_sealed_where_it_holds_a_secret() -> None:
    clean = Group(id="g", type="repeat", started_wall_ns=1, spec=to_toml(Spec(target="embedded")) + "# kept\n")
    assert seal_group(clean) == clean
    leaky = replace(clean, spec=to_toml(Spec(target="embedded", http=Http(headers={"X": CANARY}))))
    sealed = seal_group(leaky).spec
    assert sealed is not None
    assert from_toml(sealed).http.headers == {"X": "***"}


def test_a_plan_beside_the_spec_of_a_sweep_hides_no_secret_and_stays() -> None:
    toml = to_toml(Spec(target="embedded", http=Http(headers={"X": CANARY})))
    sealed = seal_group(
        Group(id="g", type="sweep", started_wall_ns=1, spec=with_plan(toml, "sweep", {"levels": [2.0]}))
    ).spec
    assert sealed is not None
    tree, plan = parted(sealed, "sweep")
    assert (tree["http"]["headers"], plan) == ({"X": "***"}, {"levels": [2.0]})


def test_a_group_without_a_spec_or_with_other_text_stays() -> None:
    for spec in (None, "no toml ["):
        group = Group(id="g", type="repeat", started_wall_ns=1, spec=spec)
        assert seal_group(group) == group
