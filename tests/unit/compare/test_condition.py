from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from nilometer.compare.condition import (
    CHANGES,
    FIELDS,
    Difference,
    condition_hash,
    differences,
    length_distance,
    parse_changes,
    refusing,
    require_alike,
)
from nilometer.core.errors import ConditionError, SpecError
from nilometer.core.run import Run
from nilometer.core.spec import Scenario
from nilometer.core.summary import Length

from .made import changed, run

INPUT, OUTPUT = "summary.lengths.input", "summary.lengths.output"

DIFFER: list[tuple[str, Any, str, set[str]]] = [
    ("spec.labels.service", "other", "service", {"service"}),
    ("environment.model.id", "qwen-awq", "model.id", {"model", "quantisation"}),
    ("environment.model.file_sha256", "cd" * 32, "model.file_sha256", {"model", "quantisation"}),
    ("spec.labels.quantisation", "Q4_0", "quantisation", {"quantisation"}),
    ("environment.model.precision", "Q4_0", "model.precision", {"quantisation"}),
    ("environment.engine.name", "vllm", "engine.name", {"engine"}),
    ("environment.engine.version", "b7001", "engine.version", {"service-version", "engine"}),
    ("environment.engine.build", "clang", "engine.build", {"service-version", "engine"}),
    ("environment.engine.flags", ["-np", "4"], "engine.flags", {"flags", "engine"}),
    ("spec.load.concurrency", 8, "load.concurrency", {"load"}),
    ("spec.load.warmup_s", 61.0, "load.warmup_s", {"load"}),
    ("spec.load.requests", 500, "load.requests", {"load"}),
    ("spec.load.window", "guide", "load.window", {"load"}),
    ("spec.load.duration_s", 400.0, "load.duration_s", {"load"}),
    ("spec.prompts.input_tokens", "uniform:1,1000", "prompts.input_tokens", {"lengths"}),
    ("spec.prompts.ignore_eos", False, "prompts.ignore_eos", {"lengths"}),
    (INPUT, Length(p50=400.0, p95=600.0), "lengths.input.p50", {"lengths"}),
    (OUTPUT, Length(p50=128.0, p95=160.0), "lengths.output.p95", {"lengths"}),
    ("spec.prompts.workload_sha256", "ef" * 32, "prompts.workload_sha256", {"prompts"}),
    ("spec.prompts.shared_prefix_tokens", 64, "prompts.shared_prefix_tokens", {"prompts"}),
    ("spec.prompts.turns", "3", "prompts.turns", {"prompts"}),
    ("spec.prompts.scenarios", (Scenario(name="short"),), "prompts.scenarios", {"prompts"}),
    (
        "summary.server",
        {"prefix_hit_ratio": 0.08},
        "prefix_hit_ratio",
        {"prompts", "flags", "engine", "service-version"},
    ),
    ("spec.sampling.temperature", 0.7, "sampling.temperature", {"sampling"}),
    ("spec.sampling.extra_body", {"min_p": 0.1}, "sampling.extra_body", {"sampling"}),
    ("spec.api", "completions", "api", {"api"}),
    ("spec.stream", False, "stream", {"api"}),
    ("spec.slo", "ttft_p95<=1s", "slo", {"slo"}),
    ("environment.client.nilometer", "0.2.0", "client.nilometer", {"client"}),
    ("definitions", 2, "definitions", set()),
    ("tool", "other", "client.tool", {"client"}),
    ("origin", "simulated", "client.origin", {"client"}),
    ("summary.generator.verdict", "limited", "generator.verdict", {"client"}),
    ("environment.machine.cpu_model", "Xeon", "host.cpu_model", {"host"}),
    ("environment.machine.cpu_count", 4, "host.cpu_count", {"host"}),
    ("environment.machine.cpu_governor", "powersave", "host.cpu_governor", {"host"}),
    ("environment.machine.container_cpu_limit", None, "host.container_cpu_limit", {"host"}),
    ("environment.machine.container_memory_limit_bytes", 10**9, "host.container_memory_limit_bytes", {"host"}),
    ("environment.machine.devices", ["H200"], "host.devices", {"host"}),
]


def test_a_run_is_like_itself() -> None:
    assert differences([run("a")], [run("b")]) == []
    assert differences([run(str(i)) for i in range(3)], [run("b")] * 2) == []
    require_alike([])


@pytest.mark.parametrize(("path", "value", "field", "words"), DIFFER, ids=[path for path, *_ in DIFFER])
def test_each_difference_is_named_and_refused_until_it_is_declared(
    path: str, value: Any, field: str, words: set[str]
) -> None:
    found = differences([run()], [changed(run(), path, value)])
    assert [(one.field, one.state, set(one.changes)) for one in found] == [(field, "differs", words)]
    assert refusing(found) == found
    for word in CHANGES:
        assert (refusing(found, [word]) == []) == (word in words)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.target", "http://127.0.0.1:9000"),
        ("spec.load.duration_s", 90.0),
        ("spec.load.duration_s", 360.0),
        ("spec.load.drain_s", 5.0),
        ("spec.prompts.seed", 7),
        ("spec.sampling.temperature", 0),
        (INPUT, Length(p50=500.0, p95=560.0)),
        (OUTPUT, Length(p50=130.0, p95=126.0)),
        ("summary.server", {"prefix_hit_ratio": 0.07}),
        ("environment.model.file", "/elsewhere/qwen.gguf"),
        ("environment.machine.load_average_1m", 3.0),
        ("environment.engine.flags", ["-m", "/elsewhere/qwen.gguf", "-np", "8", "--port=8001", "--host", "127.0.0.1"]),
    ],
)
def test_what_moves_no_figure_is_no_difference(path: str, value: Any) -> None:
    assert differences([run()], [changed(run(), path, value)]) == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("environment.engine.build", "engine.build"),
        ("environment.model.precision", "model.precision"),
        ("spec.labels.quantisation", "quantisation"),
        ("environment.engine.flags", "engine.flags"),
        ("environment.machine.cpu_governor", "host.cpu_governor"),
    ],
)
def test_what_one_side_does_not_know_is_listed_and_refuses_nothing(path: str, field: str) -> None:
    found = differences([changed(run(), path, None)], [run()])
    assert [(one.field, one.state, one.a, len(one.b)) for one in found] == [(field, "unknown", (), 1)]
    assert refusing(found) == []
    assert differences([changed(run(), path, None)], [changed(run(), path, None)]) == []


def test_a_service_that_was_quantised_needs_one_word() -> None:
    """Other weights of the same model: the label, the measured precision, the file and often the name are other."""
    b = changed(run(), "environment.model.file_sha256", "cd" * 32)
    b = changed(b, "environment.model.precision", "Q4_0")
    b = changed(b, "environment.model.id", "qwen-q4")
    b = changed(b, "spec.labels.quantisation", "Q4_0")
    found = differences([run()], [b])
    assert len(found) == 4
    assert refusing(found, ["quantisation"]) == []
    assert {one.field for one in refusing(found, ["model"])} == {"quantisation", "model.precision"}


def test_a_declared_change_excuses_nothing_beside_it() -> None:
    b = changed(changed(run(), "environment.engine.flags", ["-np", "4"]), "spec.load.concurrency", 8)
    found = differences([run()], [b])
    assert [one.field for one in refusing(found, ["flags"])] == ["load.concurrency"]
    with pytest.raises(ConditionError) as refused:
        require_alike(found, ["flags"])
    assert (refused.value.slug, refused.value.exit_code) == ("conditions_differ", 4)
    assert refused.value.params == {"fields": "load.concurrency: 16 | 8", "changes": "load"}
    require_alike(found, ["flags", "load"])


def test_a_side_that_is_mixed_is_no_side_whatever_is_declared() -> None:
    odd = changed(run("odd"), "environment.engine.version", "b7001")
    found = differences([run(), odd], [run()])
    assert found == [
        Difference(
            field="engine.version",
            state="mixed",
            a=("b7000", "b7001"),
            b=("b7000",),
            changes=("service-version", "engine"),
        )
    ]
    assert refusing(found, CHANGES) == found


def test_an_unknown_value_among_known_ones_does_not_mix_a_side() -> None:
    unknown = changed(run(), "environment.engine.build", None)
    assert differences([run(), unknown], [run()]) == []


def test_no_runs_have_no_differences() -> None:
    assert differences([], [run()]) == []


def test_lengths_are_held_against_each_other_whole_where_they_are_at_hand() -> None:
    """The same middle, another spread: the percentiles of the Summaries would not tell."""
    narrow, wide = [100] * 200, [50] * 100 + [150] * 100
    (found,) = differences([run()], [run()], {"input": (narrow, wide), "output": (narrow, narrow)})
    assert (found.field, found.state, found.b, found.changes) == ("lengths.input.ks", "differs", (0.5,), ("lengths",))
    assert differences([run()], [run()], {"input": (narrow, [])}) == []


def test_few_lengths_may_differ_by_chance() -> None:
    """Of 20 a side a distance of 0.5 comes by chance more often than in 1 of 1,000 cases: 1.95 * sqrt(0.1) = 0.62."""
    few = {"input": ([100] * 20, [50] * 10 + [150] * 10)}
    assert differences([run()], [run()], few) == []


def test_the_distance_of_lengths_by_hand() -> None:
    assert length_distance([10, 20, 30, 40], [10, 20, 30, 40]) == 0
    assert length_distance([10, 20], [30, 40]) == 1
    assert length_distance([10, 20, 30, 40], [30, 40, 50, 60]) == 0.5
    assert length_distance([50, 50, 50], [50]) == 0
    assert length_distance([10, 20, 30, 40], [10, 20, 30, 100]) == 0.25


def test_one_token_more_in_every_prompt_is_no_other_mix() -> None:
    assert length_distance([512] * 300, [514] * 300) == 0
    assert length_distance([512] * 300, [620] * 300) == 1


def test_words_of_change() -> None:
    assert parse_changes(" quantisation, flags") == {"quantisation", "flags"}
    for text in ("", "colour", "flags,"):
        with pytest.raises(SpecError) as refused:
            parse_changes(text)
        assert refused.value.slug == "change_unknown"


def test_the_hash_is_of_what_was_asked_and_of_nothing_else() -> None:
    plain = condition_hash(run())
    assert len(plain) == 64
    assert condition_hash(run("other")) == plain
    for path, value in (
        ("environment.engine.version", "b9"),
        ("spec.labels.service_version", "2"),
        ("spec.target", "http://h"),
        ("spec.load.duration_s", 99.0),
        ("spec.sampling.temperature", 0),
    ):
        assert condition_hash(changed(run(), path, value)) == plain, path
    seen = {
        condition_hash(changed(run(), path, value))
        for path, value in (
            ("spec.load.concurrency", 8),
            ("spec.prompts.input_tokens", "513"),
            ("spec.sampling.extra_body", {"min_p": 0.1}),
            ("spec.stream", False),
        )
    }
    assert len(seen | {plain}) == 5


def test_the_hash_stays_what_it_is() -> None:
    """It stands in archives: rows of the table may come, but then histories of old begin anew, on purpose."""
    asked = {
        "api": "chat", "load.arrivals": "poisson", "load.concurrency": 16, "load.rate_per_s": "none",
        "load.requests": "none", "load.speed": 1, "load.warmup_s": 60, "load.window": "auto",
        "prompts.ignore_eos": True, "prompts.input_tokens": "512", "prompts.output_tokens": "128",
        "prompts.scenarios": "[]", "prompts.shared_prefix_share": 1, "prompts.shared_prefix_tokens": 0,
        "prompts.text": "en", "prompts.think_s": "0", "prompts.turns": "1", "prompts.unique": True,
        "prompts.workload_sha256": "none", "protocol": "{}", "sampling.extra_body": "{}",
        "sampling.temperature": 0, "sampling.top_p": "none", "stream": True,
    }  # fmt: skip
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    assert condition_hash(run()) == hashlib.sha256(text.encode()).hexdigest()


def test_an_open_loop_is_told_from_a_closed_one_by_both_its_figures() -> None:
    b = changed(changed(run(), "spec.load.concurrency", None), "spec.load.rate_per_s", 4.0)
    found = differences([run()], [b])
    assert [(one.field, one.a, one.b) for one in found] == [
        ("load.concurrency", (16,), ("none",)),
        ("load.rate_per_s", ("none",), (4,)),
    ]


def test_a_run_of_another_tool_that_tells_nothing_of_its_machine() -> None:
    bare = Run(**{**{f: getattr(run(), f) for f in Run.__struct_fields__}, "environment": type(run().environment)()})
    found = differences([run()], [bare])
    assert {one.state for one in found} == {"unknown"}
    assert {one.field for one in found} >= {"host.devices", "host.container_cpu_limit", "client.nilometer"}


def test_every_row_has_a_name_of_its_own_and_a_word() -> None:
    assert len({row.name for row in FIELDS}) == len(FIELDS)
    assert [row.name for row in FIELDS if not row.changes] == ["definitions"], "no word declares these alike"
    assert set(CHANGES) == {
        "service", "service-version", "model", "quantisation", "engine", "flags", "load", "lengths", "prompts",
        "sampling", "api", "slo", "client", "host",
    }  # fmt: skip


def test_other_definitions_are_refused_whatever_is_declared() -> None:
    found = differences([run()], [run("other", definitions=2)])
    with pytest.raises(ConditionError) as caught:
        require_alike(found, CHANGES)
    assert caught.value.slug == "definitions_differ"
