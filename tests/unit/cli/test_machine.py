"""The machine form of a run: the contract's keys in the contract's order, null for what was not measured."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.unit.archive.samples import make_run, make_summary

from nilometer import __version__
from nilometer.cli.machine import group_object, rfc3339, run_object
from nilometer.core.spec import Spec
from nilometer.core.summary import Counts, Distribution, Generator

TOP = (
    "nilometer format kind definitions run group role origin started verdict findings spec environment window "
    "requests run_requests latency_from latency_ms throughput lengths generator memory server"
)
LATENCIES = "ttft ttfa tpot itl frame_gap e2e start_lag connect refill ttft_from_sent e2e_from_sent"
NESTED = {
    "window": "start_s end_s warmup_cut_s rule steady",
    "requests": "started ok error incomplete cancelled censored errors",
    "throughput": "output_tokens_per_s input_tokens_per_s requests_per_s goodput_requests_per_s tokens_lost",
    "lengths": "input output asked_input asked_output tokens_per_frame token_source",
    "generator": "verdict cpu_share loop_lag_ms shared_reads_share achieved_over_asked stamp_source",
    "memory": "server_rss_peak_bytes device_used_peak_bytes kv_used_peak_ratio source",
}
FINDING = "slug class severity confidence metric level evidence against missing rivals experiment remedies"


def machine(**fields: Any) -> dict[str, Any]:
    """As a script sees it: through JSON."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(run_object(make_run(**fields))))
    return found


def in_order(keys: str, found: dict[str, Any]) -> bool:
    """Whether all `keys` are there in this order; others may stand between."""
    return [key for key in found if key in keys.split()] == keys.split()


def test_the_contracts_keys_stand_first_and_in_order() -> None:
    found = machine()
    assert list(found)[: len(TOP.split())] == TOP.split()
    assert list(found["latency_ms"]) == LATENCIES.split()
    assert {part for part, keys in NESTED.items() if not in_order(keys, found[part])} == set()
    assert in_order(FINDING, found["findings"][0])


def test_the_head_and_the_names_of_the_run() -> None:
    found = machine(group="g", role="a", level="16", order=2, origin="simulated", verdict="marked")
    assert (found["nilometer"], found["format"], found["kind"], found["definitions"]) == (__version__, 1, "run", 1)
    assert (found["run"], found["group"], found["role"], found["origin"]) == ("k3v9c2mq7x1d", "g", "a", "simulated")
    assert (found["verdict"], found["level"], found["order"]) == ("marked", "16", 2)
    assert found["started"] == "2026-08-06T07:06:40.123Z"


def test_figures_are_those_of_the_summary() -> None:
    found = machine()
    assert found["latency_ms"]["ttft"]["p95"] == 480.125
    assert found["latency_ms"]["ttft"]["marked"] == ["p99"]
    assert found["requests"]["errors"] == {"http_5xx": 3}
    assert found["server"] == {"kv_usage": 0.41, "preemptions": None}
    assert found["spec"]["target"] == "http://127.0.0.1:8000/v1"
    assert found["environment"]["machine"]["cpu_count"] == 2


def test_what_was_not_measured_is_null() -> None:
    found = machine(summary=make_summary(None))
    assert found["latency_ms"]["ttft"] is None
    assert found["latency_ms"]["itl"] is None
    assert found["latency_ms"]["ttfa"] is None
    assert found["throughput"]["requests_per_s"] is None


def test_a_loop_lag_that_was_not_seen_is_null() -> None:
    summary = msgspec.structs.replace(make_summary(), generator=Generator())
    assert machine(summary=summary)["generator"]["loop_lag_ms"] is None
    assert machine()["generator"]["loop_lag_ms"]["n"] == 1800


def test_a_latency_the_contract_does_not_name_follows_the_others() -> None:
    later = make_summary().latency_ms | {"tail": Distribution(n=1, p50=2.0)}
    found = machine(summary=msgspec.structs.replace(make_summary(), latency_ms=later))
    assert list(found["latency_ms"]) == [*LATENCIES.split(), "tail"]


def test_a_finding_is_in_the_words_of_the_contract() -> None:
    (finding,) = machine()["findings"]
    assert (finding["slug"], finding["class"], finding["params"]["limit"]) == ("errors_over_limit", "validity", 0.01)
    assert finding["evidence"][0]["name"] == "error"


@pytest.mark.parametrize(
    ("wall_ns", "told"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_786_000_000_999_999_999, "2026-08-06T07:06:40.999Z"),
        (1_786_000_000_000_000_000, "2026-08-06T07:06:40.000Z"),
    ],
)
def test_moments_are_utc_and_never_rounded_up(wall_ns: int, told: str) -> None:
    assert rfc3339(wall_ns) == told


def test_a_group_holds_its_runs_with_level_and_order() -> None:
    runs = [make_run("a", level="1", order=0), make_run("b", level="4", order=1)]
    found = group_object("g", "quickstart", runs, make_run().findings)
    assert list(found)[:6] == ["nilometer", "format", "kind", "group", "type", "runs"]
    assert (found["kind"], found["type"]) == ("group", "quickstart")
    told: Any = found["runs"]
    assert [(run["run"], run["level"], run["order"]) for run in told] == [("a", "1", 0), ("b", "4", 1)]
    assert (found["knee"], found["greatest_load"]) == (None, None)
    findings: Any = found["findings"]
    assert findings[0]["class"] == "validity"


def test_each_bound_of_the_slo_stands_beside_its_value() -> None:
    spec = Spec(target="http://t:1", slo="ttft_p95<=1us, error_rate<=100%,tpot_p95<=5ms")
    summary = msgspec.structs.replace(
        make_summary(),
        latency_ms={"ttft": Distribution(n=9, p95=812.5)},
        requests=Counts(started=4, ok=3, error=1),
    )
    found = machine(spec=spec, summary=summary)
    assert found["slo"] == [
        {"bound": "ttft_p95<=1us", "value": 812.5, "unit": "ms", "met": False},
        {"bound": "error_rate<=100%", "value": 0.25, "unit": "share", "met": True},
        {"bound": "tpot_p95<=5ms", "value": None, "unit": "ms", "met": None},
    ]
    assert machine(spec=Spec(target="http://t:1"))["slo"] == []
