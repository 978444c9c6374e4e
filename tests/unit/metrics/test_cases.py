"""The project's own cases on percentiles, windows and failures, each held to its expected file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nilometer.metrics.quantiles import distribution, percentile
from nilometer.metrics.slo import error_rate
from nilometer.metrics.validity import judge

from .made import answered, failed, health, phases, spec, summary

STATS = Path(__file__).parents[2] / "cases" / "stats"


def case(name: str) -> tuple[Any, Any]:
    return (
        json.loads((STATS / f"{name}.json").read_text()),
        json.loads((STATS / f"{name}.json.expected.json").read_text()),
    )


@pytest.mark.parametrize("name", ["five", "two", "one", "none", "ties"])
def test_percentiles_are_type_7(name: str) -> None:
    given, expected = case("t01_percentiles")
    samples = np.sort(np.array(given["samples"][name], dtype=np.float64))
    for percent in given["ask"]:
        assert percentile(samples, percent) == expected[name][str(percent)]


def test_percentiles_of_a_distribution_are_the_same() -> None:
    given, expected = case("t01_percentiles")
    made = distribution(np.array(given["samples"]["five"], dtype=np.int64) * 1_000_000)
    assert [made.p50, made.p90, made.p95, made.p99] == [expected["five"][p] for p in ("50", "90", "95", "99")]
    assert made.marked == ["p50", "p90", "p95", "p99"]


def test_latency_by_start_and_tokens_by_arrival() -> None:
    given, expected = case("t02_steady_window")
    records = [
        answered(r["sent_s"], r["token_s"], r["end_s"], id=r["id"], phase=phase_of(r["sent_s"], given))
        if r["status"] == "ok"
        else failed(r["sent_s"], r["end_s"], id=r["id"])
        for r in given["requests"]
    ]
    start, end = given["window_s"]
    made = summary(records, phases(given["warmup_s"], end, 205), spec(window=f"0..{end - start:.0f}"))

    assert (made.window.start_s, made.window.end_s) == (0.0, end - start)
    assert made.requests.ok == len(expected["latency_ids"])
    assert made.requests.error == expected["failed_in_window"]
    assert made.throughput.output_tokens_per_s == pytest.approx(expected["output_tps"], rel=1e-12)
    ttft, tpot = made.latency_ms["ttft"], made.latency_ms["tpot"]
    assert (ttft.n, ttft.mean, ttft.min, ttft.max) == (4, 2000.0, 1000.0, 4000.0)
    assert (tpot.n, tpot.min, tpot.max) == (4, 1000.0, 1000.0)
    assert made.latency_ms["e2e"].max == 30_000.0, "the request that ends after the window is among them"
    tokens_per_second = {second.at_s: second.output_tokens for second in made.timeline}
    in_window = sum(tokens for at_s, tokens in tokens_per_second.items() if 0 <= at_s < end - start)
    assert in_window == pytest.approx(expected["tokens_in_window"])


def phase_of(sent_s: float, given: Any) -> str:
    return "warmup" if sent_s < given["warmup_s"] else "measured"


def test_failures_do_not_read_as_fast() -> None:
    given, expected = case("t04_failures_fast")
    records = []
    for r in given["requests"]:
        if r["status"] == "ok":
            first, last, gaps = r["sent_s"] + r["ttft_s"], r["end_s"], r["output_tokens"] - 1
            stamps = [first + (last - first) * i / gaps for i in range(gaps + 1)]
            records.append(answered(r["sent_s"], stamps, r["end_s"]))
        else:
            records.append(failed(r["sent_s"], r["end_s"], r["status"]))
    borders, asked = phases(0, given["duration_s"]), spec()
    made = summary(records, borders, asked)

    assert made.requests.ok == expected["requests_ok"]
    assert made.requests.error == expected["requests_failed"]
    assert made.requests.errors == expected["by_kind"]
    assert error_rate(made.requests) == pytest.approx(1 - expected["success_ratio"])
    assert made.latency_ms["ttft"].p50 == pytest.approx(expected["ttft_ms"]["p50"])
    assert made.latency_ms["ttft"].p95 == pytest.approx(expected["ttft_ms"]["p95"])
    assert made.latency_ms["tpot"].p50 == pytest.approx(expected["tpot_ms"]["p50"])
    assert made.latency_ms["e2e"].p50 == pytest.approx(expected["e2e_ms"]["p50"])
    assert made.throughput.requests_per_s == pytest.approx(expected["request_throughput_ok"])
    verdict, findings = judge(made, asked, borders, health([]))
    assert verdict == "inadmissible"
    assert "errors_over_limit" in [finding.slug for finding in findings]
