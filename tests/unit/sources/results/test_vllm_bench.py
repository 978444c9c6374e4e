"""`vllm bench serve`: loads, lists with and without a clock, what versions lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError
from nilometer.core.summary import Distribution

from .written import VLLM, all_of, finding, run_of, slugs

LISTS: dict[str, Any] = {
    "ttfts": [0.5, 0.6, 0.0, 0.7],
    "itls": [[0.02] * 4, [0.03] * 4, [], [0.04] * 4],
    "output_lens": [5, 5, 0, 5],
    "input_lens": [100, 100, 100, 100],
    "errors": ["", "", "Too Many Requests", ""],
}
DETAILED = VLLM | {"completed": 3, "failed": 1} | LISTS


@pytest.mark.parametrize(
    ("load", "concurrency", "rate", "arrivals", "slug"),
    [
        ({"request_rate": "inf", "max_concurrency": 2}, 2, None, "poisson", None),
        ({"request_rate": "inf", "max_concurrency": None}, 4, None, "poisson", "import_all_at_once"),
        ({"request_rate": 2.5, "max_concurrency": None}, None, 2.5, "poisson", None),
        ({"request_rate": 2.5, "burstiness": 0.25}, None, 2.5, "gamma:2", "import_rate_capped"),
    ],
)
def test_the_load(
    load: dict[str, Any], concurrency: int | None, rate: float | None, arrivals: str, slug: str | None, tmp_path: Path
) -> None:
    """A burstiness of 0.25 is a gamma shape: its gaps have a coefficient of variation of 1 / sqrt(0.25)."""
    run = run_of(tmp_path, VLLM | load)
    asked = run.spec.load
    assert (asked.concurrency, asked.rate_per_s, asked.arrivals) == (concurrency, rate, arrivals)
    assert slugs(run) & {"import_all_at_once", "import_rate_capped"} == ({slug} if slug else set())


def test_figures_without_lists(tmp_path: Path) -> None:
    summary = run_of(tmp_path, VLLM).summary
    assert (summary.requests.ok, summary.requests.error, summary.requests.started) == (4, 0, 4)
    ttft = summary.latency_ms["ttft"]
    assert (ttft.n, ttft.p50, ttft.p95, ttft.p99) == (4, 590.0, None, 700.0)
    assert summary.latency_ms["tpot"] == Distribution()
    assert summary.lengths.input.mean == 100.0
    assert summary.throughput.input_tokens_per_s == 40.0


def test_before_failed_was_counted_it_is_what_was_asked_and_not_answered(tmp_path: Path) -> None:
    older = {name: value for name, value in VLLM.items() if name != "failed"} | {"completed": 3}
    assert run_of(tmp_path, older).summary.requests.error == 1


def test_lists_without_start_times_give_what_each_request_has_by_itself(tmp_path: Path) -> None:
    (one,) = all_of(tmp_path, DETAILED)
    summary = one.run.summary
    assert one.records == []
    assert summary.latency_ms["ttft"].p50 == 600.0
    assert summary.latency_ms["tpot"].p50 == pytest.approx(30.0)
    assert summary.latency_ms["e2e"].p50 == pytest.approx(720.0)
    assert summary.throughput.output_tokens_per_s == 8.0
    assert summary.requests.errors == {"http_429": 1}
    assert (summary.window.end_s, summary.window.steady) == (10.0, None)


def test_lists_with_start_times_are_requests(tmp_path: Path) -> None:
    """Sent at 5, 5, 5 and 5.6 s of the client's clock."""
    starts = {"start_times": [5.0, 5.0, 5.0, 5.6], "latencies": [0.58, 0.72, 0.0, 0.86]}
    (one,) = all_of(tmp_path, DETAILED | starts)
    assert [record.sent_ns for record in one.records] == [0, 0, 0, 600_000_000]
    assert [record.outcome for record in one.records] == ["ok", "ok", "error", "ok"]
    assert one.records[2].end_ns is None
    assert one.run.phases.end_ns == 10_000_000_000
    assert one.run.summary.window.end_s == pytest.approx(1.46)
    assert one.run.summary.throughput.output_tokens_per_s == pytest.approx(15 / 1.46)


def test_a_failure_without_a_word_is_known_by_its_zeros(tmp_path: Path) -> None:
    lists = DETAILED | {"errors": ["", "", "", ""]}
    assert run_of(tmp_path, lists).summary.requests.error == 1
    assert finding(run_of(tmp_path, lists), "import_failed_zeros").params["n"] == 1


def test_answers_that_were_not_streamed_have_no_first_token(tmp_path: Path) -> None:
    whole = {"ttfts": [0.9, 0.9, 0.0, 0.9], "itls": [[], [], [], []], "latencies": [0.9, 0.9, 0.0, 0.9]}
    run = run_of(tmp_path, DETAILED | whole)
    assert (run.summary.latency_ms["ttft"].n, run.spec.stream) == (0, False)
    assert run.summary.latency_ms["e2e"].p50 == pytest.approx(900.0)


def test_where_all_failed_zeros_are_no_figures(tmp_path: Path) -> None:
    zeros = {"completed": 0, "failed": 4, "mean_ttft_ms": 0.0, "median_ttft_ms": 0.0, "p99_ttft_ms": 0.0}
    run = run_of(tmp_path, VLLM | zeros)
    assert run.summary.latency_ms == {}
    assert {"import_all_failed", "no_ok_requests"} <= slugs(run)
    assert run.verdict == "inadmissible"


def test_several_runs_appended(tmp_path: Path) -> None:
    found = all_of(tmp_path, VLLM, VLLM | {"model_id": "org/n"})
    assert [one.run.spec.model for one in found] == ["org/m", "org/n"]
    assert len({one.run.id for one in found}) == 2


def test_acceptance_is_a_share(tmp_path: Path) -> None:
    told = {"spec_decode_acceptance_rate": 65.0, "spec_decode_acceptance_length": 2.6}
    assert run_of(tmp_path, VLLM | told).summary.server == {"spec_accept_rate": 0.65, "spec_accept_length": 2.6}


def test_lists_of_unequal_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="result_field"):
        all_of(tmp_path, DETAILED | {"ttfts": [0.5]})
