"""Flag > TOML > default; what cannot be is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from nilometer.cli.spec_options import (
    API,
    GUIDE,
    extra_body,
    headers_given,
    resolve,
    spec_options,
)
from nilometer.core.errors import SpecError
from nilometer.core.spec import Http, Load, Spec, to_tree, without_secrets
from nilometer.wire.dialects import DIALECTS

URL = "http://127.0.0.1:8000"


def toml(folder: Path, text: str) -> str:
    path = folder / "spec.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_defaults_are_the_specs_own_with_one_in_flight() -> None:
    spec = resolve(URL, {})
    assert spec.load.concurrency == 1
    assert spec.load.warmup_s == 60
    assert spec.prompts.input_tokens == "512"
    assert spec.stream


def test_flag_over_file_over_default(tmp_path: Path) -> None:
    file = toml(tmp_path, f'target = "{URL}"\n[load]\nconcurrency = 4\nwarmup_s = 5.0\n')
    spec = resolve(file, {"concurrency": 9, "temperature": "none", "stream": False, "ramp": "auto"})
    assert spec.target == URL
    assert spec.load.concurrency == 9
    assert spec.load.warmup_s == 5
    assert spec.load.duration_s == 180
    assert spec.sampling.temperature == "none"
    assert not spec.stream


def test_a_flag_chooses_the_loop_over_the_files_other_kind(tmp_path: Path) -> None:
    file = toml(tmp_path, f'target = "{URL}"\n[load]\nconcurrency = 4\n')
    assert resolve(file, {"rate": 2.0}).load.concurrency is None
    with pytest.raises(SpecError) as refused:
        resolve(URL, {"rate": 2.0, "concurrency": 3})
    assert refused.value.slug == "two_loops"


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        *(({"arrivals": kind}, "arrivals_without_rate") for kind in ("constant", "poisson", "gamma:3")),
        ({"arrivals": "gamma:3", "concurrency": 2}, "arrivals_without_rate"),
        *(
            ({"replay": "f.toml", "arrivals": kind}, "replay_arrivals")
            for kind in ("constant", "poisson", "gamma:3", "ramp:1,2,3s", "steps:1@1s")
        ),
        ({"speed": 2.0}, "speed_without_replay"),
        ({"speed": 1.0}, "speed_without_replay"),
        ({"speed": 2.0, "rate": 3.0}, "speed_without_replay"),
        ({"speed": 2.0, "workload": "f.toml"}, "speed_without_replay"),
        ({"ramp": 2.0, "rate": 3.0}, "ramp_open"),
        ({"ramp": 2.0, "arrivals": "ramp:1,2,3s"}, "ramp_open"),
        ({"ramp": 2.0, "replay": "f.toml"}, "ramp_open"),
    ],
)
def test_a_flag_that_the_loop_has_no_use_for_is_refused(given: dict[str, Any], slug: str) -> None:
    with pytest.raises(SpecError) as refused:
        resolve(URL, given)
    assert refused.value.slug == slug


@pytest.mark.parametrize(
    ("lines", "slug"),
    [
        ('arrivals = "gamma:3"', "arrivals_without_rate"),
        ('concurrency = 2\narrivals = "constant"', "arrivals_without_rate"),
        ("speed = 2.0", "speed_without_replay"),
        ("rate_per_s = 2.0\nramp_s = 1.0", "ramp_open"),
    ],
)
def test_a_key_that_the_loop_has_no_use_for_is_refused(tmp_path: Path, lines: str, slug: str) -> None:
    file = toml(tmp_path, f'target = "{URL}"\n[load]\n{lines}\n')
    with pytest.raises(SpecError) as refused:
        resolve(file, {})
    assert refused.value.slug == slug


def test_a_loop_chosen_by_flag_takes_out_what_belongs_to_the_other() -> None:
    rated = Spec(target=URL, load=Load(rate_per_s=2.0, arrivals="gamma:3"))
    assert resolve("", {"concurrency": 2}, rated).load == Load(concurrency=2)
    replayed = Spec(target=URL, load=Load(arrivals="recorded", speed=2.0))
    assert resolve("", {"speed": 3.0}, replayed).load.speed == 3
    assert resolve("", {"rate": 2.0}, replayed).load == Load(rate_per_s=2.0)
    ramped = Spec(target=URL, load=Load(concurrency=2, ramp_s=3.0))
    assert resolve("", {"rate": 2.0}, ramped).load == Load(rate_per_s=2.0)
    assert resolve(URL, {"rate": 2.0, "ramp": 0.0}).load.ramp_s == 0, "no ramp is what an open loop has"


def test_guide_sets_its_three_values() -> None:
    base = Spec(target=URL, load=Load(concurrency=2, requests=100, warmup_s=1.0))
    for load in (resolve(URL, {"procedure": "guide"}).load, resolve("", {"procedure": "guide"}, base).load):
        assert (load.warmup_s, load.duration_s, load.window) == tuple(GUIDE.values())
        assert load.requests is None


@pytest.mark.parametrize(
    "option", [{"warmup": 1.0}, {"duration": 200.0}, {"window": "auto"}, {"window": "60..170"}, {"requests": 100}]
)
def test_what_contradicts_the_guide_is_refused_by_name(option: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as refused:
        resolve(URL, {"procedure": "guide", **option})
    assert refused.value.slug == "procedure_contradicted"
    assert refused.value.params == {"option": f"--{next(iter(option))}"}


def test_what_the_guide_asks_for_too_is_no_contradiction() -> None:
    same = {"warmup": 60.0, "duration": 180.0}
    assert resolve(URL, {"procedure": "guide", **same}) == resolve(URL, {"procedure": "guide"})


def flags(*words: str) -> dict[str, Any]:
    """What click makes of the words, with all options of a spec."""
    with click.command()(spec_options(lambda **_: None)).make_context("measure", list(words)) as context:
        return context.params


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("stream", lambda spec: spec.stream),
        ("probe", lambda spec: spec.probe),
        ("insecure", lambda spec: spec.http.insecure),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_a_flag_turns_what_a_file_or_a_run_says_either_way(
    tmp_path: Path, name: str, of: Callable[[Spec], bool], before: bool
) -> None:
    key = f"[http]\n{name}" if name == "insecure" else name
    file = toml(tmp_path, f'target = "{URL}"\n{key} = {str(before).lower()}\n')
    like = resolve(file, {})
    for words, wanted in (((), before), ((f"--{name}",), True), ((f"--no-{name}",), False)):
        given = flags(*words)
        assert of(resolve(file, given)) is wanted
        assert of(resolve("", given, like)) is wanted


@pytest.mark.parametrize(
    ("text", "slug", "told"),
    [
        ("target = \n[load]\n", "toml_invalid", "line 1"),
        ('target = "x"\n[load]\nparallel = 4\n', "toml_key", "parallel"),
        ('target = "x"\n[load]\nconcurrency = "four"\n', "toml_key", "$.load.concurrency"),
        ("[load]\n", "toml_key", "target"),
    ],
)
def test_a_bad_file_is_refused_by_file_and_place(tmp_path: Path, text: str, slug: str, told: str) -> None:
    file = toml(tmp_path, text)
    with pytest.raises(SpecError) as refused:
        resolve(file, {})
    assert refused.value.slug == slug
    assert refused.value.params["file"] == file
    assert told in str(refused.value.params["detail"])


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        resolve("/nowhere/spec.toml", {})
    assert refused.value.slug == "file_unreadable"


def test_extra_body_from_text_and_file(tmp_path: Path) -> None:
    assert extra_body('{"min_p": 0.1}') == {"min_p": 0.1}
    (tmp_path / "b.json").write_text('{"a": [1]}')
    assert extra_body(f"@{tmp_path / 'b.json'}") == {"a": [1]}
    for bad in ("{", "[1]", "3"):
        with pytest.raises(SpecError) as refused:
            extra_body(bad)
        assert refused.value.slug == "extra_body_invalid"


def test_header_values_reach_the_load_and_not_the_spec(tmp_path: Path) -> None:
    file = toml(tmp_path, f'target = "{URL}"\n[http.headers]\nX-Two = "canary-two"\n')
    given: dict[str, Any] = {"headers": (("X-One", "canary-one"),), "api_key_env": "KEY"}
    spec = resolve(file, given)
    headers = dict(headers_given(spec, given, {"KEY": "canary-key"}))
    assert headers == {"X-One": "canary-one", "X-Two": "canary-two", "Authorization": "Bearer canary-key"}
    assert "canary" not in str(to_tree(without_secrets(spec)))
    with pytest.raises(SpecError) as refused:
        headers_given(spec, given, {})
    assert refused.value.slug == "api_key_missing"


def test_a_header_that_was_stored_without_its_value_must_be_given_again() -> None:
    base = Spec(target=URL, http=Http(headers={"X-Key": "***"}))
    with pytest.raises(SpecError) as refused:
        headers_given(resolve("", {}, base), {}, {})
    assert (refused.value.slug, refused.value.params) == ("header_masked", {"header": "X-Key"})
    assert headers_given(base, {"headers": (("X-Key", "new"),)}, {}) == (("X-Key", "new"),)


@pytest.mark.parametrize(
    ("given", "again", "option"),
    [
        ({}, {"target": "http://u:new@h"}, "TARGET"),
        ({"proxy": "http://u:canary@p:1"}, {"proxy": "http://u:new@p:1"}, "--proxy"),
        ({"extra_body": '{"user_token": "canary"}'}, {"extra_body": '{"user_token": "new"}'}, "--extra-body"),
        ({"extra_body": '{"a": [{"api_key": "canary"}]}'}, {"extra_body": "{}"}, "--extra-body"),
    ],
)
def test_what_was_stored_without_its_secret_must_be_given_again(
    given: dict[str, Any], again: dict[str, Any], option: str
) -> None:
    base = without_secrets(resolve("http://u:canary@h" if option == "TARGET" else URL, given))
    with pytest.raises(SpecError) as refused:
        resolve("", {}, base)
    assert (refused.value.slug, refused.value.params) == ("value_masked", {"where": option})
    assert "***" not in str(to_tree(resolve(again.pop("target", ""), again, base)))


def test_stars_that_stand_for_no_secret_are_sent_and_a_label_is_never_sent() -> None:
    given = {"extra_body": '{"stop": ["***"]}', "labels": (("api_key", "canary"),)}
    base = without_secrets(resolve(URL, given))
    assert base.labels.extra == {"api_key": "***"}
    assert resolve("", {}, base) == base


def test_a_duration_and_an_auto_ramp_go_over_what_they_replace() -> None:
    base = Spec(target=URL, load=Load(concurrency=2, requests=100, ramp_s=5.0))
    load = resolve("", {"duration": 30.0, "ramp": "auto"}, base).load
    assert (load.requests, load.duration_s, load.ramp_s) == (None, 30.0, None)


def test_like_repeats_a_spec_on_another_target_and_load() -> None:
    base = Spec(target=URL, model="m", slo="ttft_p95<=1s")
    spec = resolve("http://other:1", {"concurrency": 32}, base)
    assert (spec.target, spec.model, spec.slo, spec.load.concurrency) == ("http://other:1", "m", "ttft_p95<=1s", 32)


def test_the_help_names_every_api() -> None:
    option = click.command()(API(lambda api: None)).params[0]
    assert isinstance(option, click.Option)
    names = (option.help or "").partition(", or a FILE.toml")[0].split(", ")
    assert names == ["auto", *DIALECTS]


PROTOCOL = """
path = "/p"
key_header = "X-Reed: {key}"
headers = { X-Client = "file" }
body = { q = "{prompt}" }
whole = { text = "t" }
"""


def test_a_protocol_file_is_taken_into_the_spec_and_its_headers_among_the_others(tmp_path: Path) -> None:
    file = tmp_path / "reed.toml"
    file.write_text(PROTOCOL)
    spec = resolve(URL, {"api": str(file)})
    assert (spec.api, spec.protocol["path"], spec.http.headers) == (str(file), "/p", {"X-Client": "file"})
    file.unlink()
    assert resolve("", {}, base=spec).protocol == spec.protocol
    other = resolve("", {"api": "chat"}, base=spec)
    assert (other.api, other.protocol) == ("chat", {})


def test_a_spec_file_may_name_a_protocol_file(tmp_path: Path) -> None:
    file = tmp_path / "reed.toml"
    file.write_text(PROTOCOL)
    spec = resolve(toml(tmp_path, f'target = "{URL}"\napi = "{file}"\n'), {})
    assert spec.protocol["body"] == {"q": "{prompt}"}


@pytest.mark.parametrize(
    ("target", "api", "header"),
    [
        (URL, "auto", ("Authorization", "Bearer k")),
        (URL, "chat", ("Authorization", "Bearer k")),
        (URL, "anthropic", ("x-api-key", "k")),
        (URL, "gemini", ("x-goog-api-key", "k")),
        ("https://h/openai/deployments/d?api-version=1", "auto", ("api-key", "k")),
    ],
)
def test_a_key_goes_where_the_api_wants_it(target: str, api: str, header: tuple[str, str]) -> None:
    spec = resolve(target, {"api": api, "api_key_env": "K"})
    assert headers_given(spec, {}, {"K": "k"}) == (header,)


@pytest.mark.parametrize(("given", "option"), [({"like": "x"}, "--like"), ({"like": "x", "resume": "g"}, "--resume")])
def test_a_file_beside_a_run_that_is_repeated_is_not_passed_over(
    given: dict[str, Any], option: str, tmp_path: Path
) -> None:
    file = tmp_path / "spec.toml"
    file.write_text('target = "http://other:1"\n')
    with pytest.raises(SpecError) as caught:
        resolve(str(file), given, resolve("http://x:1", {}))
    assert (caught.value.slug, caught.value.params["option"]) == ("spec_twice", option)
