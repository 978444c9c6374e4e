"""aiperf: both files, both shapes of its configuration, whose tokens were counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError
from nilometer.core.summary import Distribution

from .written import all_of, finding, laid, run_of, slugs

START_NS = 1_767_600_000_000_000_000
OLD_CONFIG = {
    "endpoint": {"model_names": ["org/m"], "url": "localhost:8000", "type": "chat"},
    "loadgen": {"request_rate": 4},
}
FIGURES: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 2.0},
    "request_latency": {"unit": "ms", "avg": 2000.0, "p50": 1950.0},
    "request_count": {"unit": "requests", "avg": 10.0},
    "time_to_first_token": {"unit": "ms", "avg": 200.0, "p50": 190.0},
    "inter_token_latency": {"unit": "ms", "avg": 18.0, "p50": 17.9},
    "output_sequence_length": {"unit": "tokens", "avg": 100.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 200.0},
    "was_cancelled": False,
    "error_summary": [],
    "start_time": "2026-01-05T08:00:00",
    "input_config": OLD_CONFIG,
}


def line(start_ms: int, metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = {"request_start_ns": START_NS + start_ms * 10**6, "benchmark_phase": "profiling", "was_cancelled": False}
    meta |= more.pop("metadata", {})
    return {
        "metadata": meta,
        "metrics": {name: {"unit": "ms", "value": value} for name, value in metrics.items()},
        **more,
    }


def test_the_older_shape(tmp_path: Path) -> None:
    run = run_of(tmp_path, FIGURES)
    assert (run.spec.model, run.spec.target, run.spec.load.rate_per_s) == ("org/m", "localhost:8000", 4.0)
    assert (run.summary.requests.ok, run.summary.requests.error, run.summary.window.end_s) == (10, 0, 5.0)
    assert run.summary.latency_ms["tpot"].p50 == 17.9
    assert {"import_tokens_own", "import_date_without_zone"} <= slugs(run)


def test_failures_are_counted_where_they_are_summed_up(tmp_path: Path) -> None:
    failed = [
        {"error_details": {"code": 503, "type": "x", "message": "y"}, "count": 3},
        {"error_details": {"type": "ClientConnectorError"}, "count": 2},
    ]
    counts = run_of(tmp_path, FIGURES | {"error_summary": failed}).summary.requests
    assert (counts.error, counts.started, counts.errors) == (5, 15, {"http_5xx": 3, "connect": 2})


def test_tokens_of_another_tokenizer_give_no_tpot(tmp_path: Path) -> None:
    usage = {
        "usage_completion_tokens": {"unit": "tokens", "avg": 50.0},
        "total_usage_completion_tokens": {"unit": "tokens", "avg": 500.0},
        "benchmark_duration": {"unit": "sec", "avg": 5.0},
    }
    summary = run_of(tmp_path, FIGURES | usage).summary
    assert "tpot" not in summary.latency_ms
    assert (summary.throughput.output_tokens_per_s, summary.lengths.output.mean) == (100.0, 50.0)
    same = usage | {"usage_completion_tokens": {"unit": "tokens", "avg": 100.5}}
    assert run_of(tmp_path, FIGURES | same).summary.latency_ms["tpot"].p50 == 17.9


def test_a_run_that_was_cancelled_is_marked_so(tmp_path: Path) -> None:
    assert "interrupted" in slugs(run_of(tmp_path, FIGURES | {"was_cancelled": True}))


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="result_newer"):
        run_of(tmp_path, FIGURES | {"schema_version": "2.0"})


REQUEST = {"request_latency": 250.0, "time_to_first_token": 100.0, "inter_chunk_latency": [50.0, 100.0]}
TOKENS = {"output_sequence_length": 9, "usage_completion_tokens": 4, "input_sequence_length": 20}


def test_requests_by_the_servers_count(tmp_path: Path) -> None:
    """Four tokens by usage: 150 ms over three steps. Nine by its own tokenizer would be 18.75."""
    (one,) = all_of(tmp_path, line(0, REQUEST | TOKENS), line(400, REQUEST | TOKENS), name="profile_export.jsonl")
    (first, second) = one.records
    assert one.run.summary.latency_ms["tpot"].p50 == 50.0
    assert (first.output_tokens, first.token_source, first.prompt_tokens) == (4, "usage", 20)
    assert (first.sent_ns, second.sent_ns, second.end_ns) == (0, 400_000_000, 650_000_000)
    assert one.run.phases.started_wall_ns == START_NS
    assert "import_load_unknown" in slugs(one.run)


def test_without_usage_its_own_count_is_named_so(tmp_path: Path) -> None:
    tokens = {"output_sequence_length": 4}
    (one,) = all_of(tmp_path, line(0, REQUEST | tokens), name="profile_export.jsonl")
    assert one.records[0].token_source == "local_tokenizer"


def test_connecting_is_taken_out_of_its_times(tmp_path: Path) -> None:
    (one,) = all_of(tmp_path, line(0, REQUEST | TOKENS | {"http_req_connection_overhead": 30.0}))
    latency = one.run.summary.latency_ms
    assert (latency["ttft"].p50, latency["e2e"].p50, latency["connect"].p50) == (70.0, 220.0, 30.0)


def test_warm_up_failures_and_cancelled_ones(tmp_path: Path) -> None:
    (one,) = all_of(
        tmp_path,
        line(0, REQUEST | TOKENS, metadata={"benchmark_phase": "warmup"}),
        line(1000, REQUEST | TOKENS),
        line(1100, {}, error={"code": 429, "type": "Too Many Requests", "message": "quota"}),
        line(1200, {}, metadata={"was_cancelled": True}),
    )
    counts = one.run.summary.requests
    assert (counts.ok, counts.error, counts.cancelled, counts.errors) == (1, 1, 1, {"http_429": 1})
    assert one.run.spec.load.warmup_s == pytest.approx(1.0)
    assert one.records[2].error_detail == "Too Many Requests quota"


def test_the_figures_beside_it_tell_model_and_load(tmp_path: Path) -> None:
    new = {"models": {"items": [{"name": "org/m"}]}, "endpoint": {"urls": ["http://u:pw@h"], "type": "chat"}}
    new |= {"phases": [{"kind": "warmup", "concurrency": 1}, {"kind": "profiling", "concurrency": 8, "requests": 20}]}
    laid(tmp_path, "profile_export_aiperf.json", FIGURES | {"aiperf_version": "0.13.0", "input_config": new})
    (one,) = all_of(tmp_path, line(0, REQUEST | TOKENS), name="profile_export.jsonl")
    spec = one.run.spec
    assert (spec.model, spec.load.concurrency, spec.load.requests, one.run.tool_version) == ("org/m", 8, 20, "0.13.0")
    assert spec.target == "http://***@h"


def test_an_error_that_quotes_the_address_does_not_keep_its_password(tmp_path: Path) -> None:
    laid(tmp_path, "profile_export_aiperf.json", FIGURES | {"input_config": {"endpoint": {"url": "http://u:s3cret@h"}}})
    failed = line(0, {}, error={"type": "ClientError", "message": "http://u:s3cret@h refused"})
    (one,) = all_of(tmp_path, failed, name="profile_export.jsonl")
    assert "s3cret" not in (one.records[0].error_detail or "")


def test_a_request_without_its_start_is_refused_with_its_line(tmp_path: Path) -> None:
    good = line(0, REQUEST)
    bad = {"metadata": {"benchmark_phase": "profiling"}, "metrics": {}}
    with pytest.raises(DataError) as fault:
        all_of(tmp_path, good, bad)
    assert (fault.value.slug, fault.value.params["line"]) == ("result_field_line", 2)


def test_the_requests_beside_its_figures_are_pointed_at(tmp_path: Path) -> None:
    assert "import_detail_beside" not in slugs(run_of(tmp_path, FIGURES))
    laid(tmp_path, "profile_export.jsonl", line(0, REQUEST))
    assert finding(run_of(tmp_path, FIGURES), "import_detail_beside").params["name"] == "profile_export.jsonl"
    assert Distribution() not in run_of(tmp_path, FIGURES).summary.latency_ms.values()
