"""A Spec in TOML: there and back, and what is refused with which file, line and path."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from nilometer.core.errors import SpecError
from nilometer.core.mask import Mask
from nilometer.core.spec import (
    Http,
    Labels,
    Load,
    Prompts,
    Sampling,
    Spec,
    Timeouts,
    from_toml,
    from_tree,
    secrets_of,
    to_toml,
    to_tree,
    without_secrets,
)

FULL = """\
target = "http://h:1"
model = "m"
api = "chat"
stream = false
slo = "ttft_p95<=500ms"

[load]
concurrency = 8
warmup_s = 5
duration_s = 12.5
window = "0..10"

[prompts]
input_tokens = "uniform:64,256"
seed = 7

[sampling]
temperature = "none"
extra_body = {top_k = 4, stop = ["a", "b"]}

[timeouts]
connect_s = 3
idle_s = "none"

[http]
headers = {X-Team = "***"}
insecure = true

[labels]
service = "chat"
extra = {ticket = "42"}
"""


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as seen:
        from_toml(text, "x.toml")
    assert seen.value.exit_code == 2
    return seen.value


def test_every_section_is_read() -> None:
    spec = from_toml(FULL)
    assert (spec.target, spec.model, spec.api, spec.stream, spec.probe) == ("http://h:1", "m", "chat", False, True)
    assert spec.load == Load(concurrency=8, warmup_s=5.0, duration_s=12.5, window="0..10")
    assert spec.prompts == Prompts(input_tokens="uniform:64,256", seed=7)
    assert spec.sampling == Sampling(temperature="none", extra_body={"top_k": 4, "stop": ["a", "b"]})
    assert spec.timeouts == Timeouts(connect_s=3.0, idle_s="none")
    assert spec.http == Http(headers={"X-Team": "***"}, insecure=True)
    assert (spec.labels.service, spec.labels.extra) == ("chat", {"ticket": "42"})


def test_what_is_not_said_has_the_defaults_of_the_contract() -> None:
    spec = from_toml('target = "t"')
    assert spec == Spec(target="t")
    assert (spec.load.warmup_s, spec.load.duration_s, spec.load.window, spec.load.drain_s) == (60, 180, "auto", 60)
    assert (spec.prompts.input_tokens, spec.prompts.output_tokens, spec.sampling.temperature) == ("512", "128", 0)
    limits = spec.timeouts
    assert (limits.connect_s, limits.first_s, limits.idle_s, limits.total_s) == (10, "none", 120, 600)
    assert (spec.load.max_error_rate, spec.load.workers, spec.load.arrivals) == (0.01, None, "poisson")


def test_a_spec_comes_back_from_its_toml() -> None:
    spec = from_toml(FULL)
    assert from_toml(to_toml(spec)) == spec
    assert from_tree(to_tree(spec)) == spec


def test_what_may_be_none_may_be_left_out_for_toml_has_no_null() -> None:
    """The law behind `to_toml`, held for every field there is."""

    def check(struct: type[msgspec.Struct]) -> None:
        for field in msgspec.structs.fields(struct):
            kind: Any = field.type
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                check(kind)
            elif type(None) in getattr(kind, "__args__", ()):
                assert field.default is None, field.name

    check(Spec)


def test_syntax_is_refused_with_file_and_line() -> None:
    fault = refusal('target = "t"\n\n[load\nconcurrency = 1\n')
    assert (fault.slug, fault.params["file"]) == ("toml_invalid", "x.toml")
    assert "line 3" in str(fault.params["detail"])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('target = "t"\nmodel_name = "m"\n', 2, ("unknown field `model_name`",)),
        ('target = "t"\n[load]\nwarmup_s = 1\nparallel_ = 1\n', 4, ("unknown field `parallel_`", "$.load")),
        ('target = "t"\n[load]\nconcurrency = "eight"\n', 3, ("int", "str", "$.load.concurrency")),
        ('load.concurrency = 1.5\ntarget = "t"\n', 1, ("int", "float", "$.load.concurrency")),
        ('target = "t"\nload = {concurrency = 1, wrong = 2}\n', 2, ("unknown field `wrong`", "$.load")),
        ('target = "t"\n# [load]\n[ "load" ]\n"rate_per_s"= true\n', 4, ("bool", "$.load.rate_per_s")),
        ('target = "t"\n[timeouts]\nidle_s = "never"\n', 3, ("never", "$.timeouts.idle_s")),
        ('target = "t"\n[http.headers]\nX-A = 1\n', 2, ("str", "int", "$.http.headers")),
        ("target = 7\n", 1, ("str", "int", "$.target")),
        ('target = "t"\n[loads]\nx = 1\n', 2, ("unknown field `loads`",)),
    ],
)
def test_a_wrong_key_is_refused_with_file_line_and_path(text: str, line: int, words: tuple[str, ...]) -> None:
    fault = refusal(text)
    assert (fault.slug, fault.params["file"]) == ("toml_key", "x.toml")
    assert str(fault.params["detail"]).endswith(f" (at line {line})")
    assert all(word in str(fault.params["detail"]) for word in words)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("load.concurrency", "0"),
        ("load.concurrency", "-3"),
        ("load.rate_per_s", "0"),
        ("load.rate_per_s", "-1"),
        ("load.warmup_s", "-1"),
        ("load.warmup_s", "nan"),
        ("load.duration_s", "inf"),
        ("load.requests", "0"),
        ("load.max_error_rate", "1.5"),
        ("load.workers", "0"),
        ("prompts.shared_prefix_tokens", "-1"),
        ("sampling.top_p", "2"),
        ("timeouts.total_s", "-0.5"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_as_well(key: str, value: str) -> None:
    fault = refusal(f'target = "t"\n{key} = {value}\n')
    assert (fault.slug, fault.params["file"]) == ("toml_key", "x.toml")
    assert f"`$.{key}` (at line 2)" in str(fault.params["detail"])


def test_without_a_target_there_is_no_line_to_name() -> None:
    fault = refusal("[load]\nconcurrency = 1\n")
    assert fault.params["file"] == "x.toml"
    assert "target" in str(fault.params["detail"])
    assert "line" not in str(fault.params["detail"])


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"target": "u", "labels": {"service": "a\0b"}}, "labels.service"),
        ({"target": "u", "labels": {"extra": {"k": "a\0"}}}, "labels.extra.k"),
        ({"target": "u", "sampling": {"extra_body": {"stop": ["x", "\0"]}}}, "sampling.extra_body.stop[1]"),
    ],
)
def test_text_with_a_nul_is_refused_where_it_stands(tree: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError, match="NUL") as refused:
        from_tree(tree, "a.toml")
    assert f"`$.{path}`" in str(refused.value.params["detail"])


def test_a_tree_is_refused_by_its_source() -> None:
    with pytest.raises(SpecError) as seen:
        from_tree({"target": "t", "load": {"x": 1}}, "options")
    assert (seen.value.slug, seen.value.params["file"]) == ("toml_key", "options")


def test_a_null_in_the_extra_body_is_kept_in_the_tree_and_refused_in_toml() -> None:
    spec = Spec(target="t", sampling=Sampling(extra_body={"stop": None, "deep": [{"x": None}]}))
    assert from_tree(to_tree(spec)) == spec
    for body, path in (({"stop": None}, "extra_body.stop"), ({"a": [1, {"x": None}]}, "extra_body.a[1].x")):
        with pytest.raises(SpecError) as seen:
            to_toml(Spec(target="t", sampling=Sampling(extra_body=body)))
        assert seen.value.slug == "toml_key"
        assert path in str(seen.value.params["detail"])


def test_toml_is_plain() -> None:
    tree = tomllib.loads(to_toml(Spec(target="t", load=Load(concurrency=3))))
    assert tree["load"]["concurrency"] == 3
    assert "rate_per_s" not in tree["load"]


def test_what_a_protocol_names_secret_is_not_stored() -> None:
    protocol = {"path": "/p", "body": {"api_key": "s3cret", "max_tokens": "{max_tokens}"}}
    kept = without_secrets(Spec(target="t", protocol=protocol)).protocol
    assert kept == {"path": "/p", "body": {"api_key": "***", "max_tokens": "{max_tokens}"}}


SECRETIVE = Spec(
    target="http://user:canary-1@h/v1?api_key=canary-2&n=1",
    http=Http(headers={"X-Team": "canary-3"}, proxy="http://user:canary-4@p:1"),
    sampling=Sampling(extra_body={"auth": {"token": "canary-5"}, "top_k": 4}),
    labels=Labels(extra={"password": "canary-6", "team": "blue"}),
)


def test_a_spec_is_stored_without_its_secrets() -> None:
    stored = without_secrets(SECRETIVE)
    assert stored.target == "http://***@h/v1?api_key=***&n=1"
    assert stored.http == Http(headers={"X-Team": "***"}, proxy="http://***@p:1")
    assert stored.sampling.extra_body == {"auth": "***", "top_k": 4}
    assert stored.labels.extra == {"password": "***", "team": "blue"}
    assert without_secrets(stored) == stored


def test_a_spec_without_secrets_is_stored_as_it_is() -> None:
    plain = Spec(target="embedded", sampling=Sampling(extra_body={"stop": ["***"], "max_tokens": 8}))
    assert without_secrets(plain) == plain


def test_every_secret_of_a_spec_and_of_the_headers_sent_is_known() -> None:
    mask = Mask(secrets_of(SECRETIVE, [("X-Team", "canary-3"), ("Authorization", "Bearer canary-7")]))
    assert "canary" not in mask(to_toml(SECRETIVE) + " canary-7")
    engine = Spec(target="llama-server:--api-key canary-8")
    assert "canary-8" in secrets_of(engine, [])
