"""inference-perf: seconds, labels of failures, tokens by whom, moments of frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError

from .written import all_of, laid, run_of, slugs

SUMMARY: dict[str, Any] = {
    "benchmark_time_seconds": 10.0,
    "load_summary": {"count": 12, "requested_rate": 1.2},
    "successes": {
        "count": 10,
        "latency": {
            "time_to_first_token": {"mean": 0.2, "median": 0.19, "p90": 0.25, "p99": 0.3},
            "time_per_output_token": {"mean": 0.02, "median": 0.02},
            "request_latency": {"mean": 2.0, "median": 1.9, "p95": 2.4},
            "inter_token_latency": {"mean": 0.02, "median": 0.0},
        },
        "throughput": {"output_tokens_per_sec": 100.0, "input_tokens_per_sec": 500.0, "requests_per_sec": 1.0},
        "output_len": {"mean": 100.0, "median": 100.0},
    },
    "failures": {
        "count": 2,
        "by_label": {"429 - Rate Limit": {"count": 1, "messages": []}, "Timeout": {"count": 1, "messages": []}},
    },
}


def test_figures_are_in_seconds_and_its_itl_is_none(tmp_path: Path) -> None:
    run = run_of(tmp_path, SUMMARY)
    latency = run.summary.latency_ms
    assert (latency["ttft"].p50, latency["tpot"].p50, latency["e2e"].p95) == (190.0, 20.0, 2400.0)
    assert "itl" not in latency
    assert (run.summary.requests.error, run.summary.requests.errors) == (2, {"http_429": 1})
    assert (run.spec.load.rate_per_s, run.spec.load.concurrency, run.summary.window.end_s) == (1.2, None, 10.0)
    assert {"import_not_mapped", "import_tokens_own", "import_start_unknown"} <= slugs(run)


def test_the_servers_count_replaces_its_own(tmp_path: Path) -> None:
    good = SUMMARY["successes"] | {"output_tokens": {"total": 500.0, "mean": 50.0, "median": 50.0}}
    summary = run_of(tmp_path, SUMMARY | {"successes": good}).summary
    assert "tpot" not in summary.latency_ms
    assert (summary.throughput.output_tokens_per_s, summary.lengths.output.mean) == (50.0, 50.0)


def test_an_older_file_has_its_duration_in_its_rate(tmp_path: Path) -> None:
    older = {name: value for name, value in SUMMARY.items() if name != "benchmark_time_seconds"}
    assert run_of(tmp_path, older).summary.window.end_s == 10.0


def entry(start: float, **more: Any) -> dict[str, Any]:
    told = {
        "request_metrics": {"text": {"input_tokens": 30}},
        "response_metrics": {"output_tokens": 9, "chunk_times": [start + 0.2, start + 0.3, start + 0.4], **more},
    }
    return {"start_time": start, "end_time": start + 0.5, "request": "", "info": told, "error": None}


def test_requests_by_their_frames_and_the_servers_count(tmp_path: Path) -> None:
    failed = entry(101.0) | {"error": {"error_type": "HTTP Error 500", "error_msg": "no"}}
    usage = {"server_usage": {"prompt_tokens": 25, "completion_tokens": 5}}
    (one,) = all_of(tmp_path, [entry(100.0, **usage), failed])
    first, second = one.records
    assert (first.sent_ns, first.first_token_ns, len(first.frames)) == (0, 200_000_000, 3)
    assert (first.output_tokens, first.prompt_tokens, first.token_source) == (5, 25, "usage")
    assert (second.outcome, second.error, second.output_tokens) == ("error", "http_5xx", None)
    assert one.run.summary.latency_ms["tpot"].p50 == pytest.approx(50.0)
    assert one.run.summary.latency_ms["itl"].n == 0  # five tokens in three frames


def test_moments_of_tokens_stand_for_frames_where_there_are_none(tmp_path: Path) -> None:
    """All tokens of a frame have one moment: three frames."""
    bare = entry(100.0)
    told = bare["info"]["response_metrics"]
    told["output_token_times"] = [100.2, 100.2, 100.3, 100.4, 100.4]
    del told["chunk_times"]
    (one,) = all_of(tmp_path, [bare])
    assert len(one.records[0].frames) == 3
    assert one.records[0].token_source == "local_tokenizer"


def test_the_only_stage_beside_it_tells_the_load(tmp_path: Path) -> None:
    stage = SUMMARY | {"load_summary": {"count": 12, "requested_rate": 16.0, "concurrency": 4}}
    laid(tmp_path, "stage_0_lifecycle_metrics.json", stage)
    (one,) = all_of(tmp_path, [entry(100.0)])
    assert one.run.spec.load.concurrency == 4
    laid(tmp_path, "stage_1_lifecycle_metrics.json", stage)
    (one,) = all_of(tmp_path, [entry(100.0)])
    assert one.run.spec.load.concurrency is None


def test_a_request_without_its_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as fault:
        all_of(tmp_path, [entry(100.0), entry(101.0) | {"start_time": None}])
    assert (fault.value.slug, fault.value.params["field"]) == ("result_field", "[1].start_time")
