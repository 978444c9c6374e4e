"""SGLang's bench_serving: what its lines leave out, and its lists without a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from .written import SGLANG, all_of, run_of, slugs


def test_a_line_is_a_run_and_says_nothing_of_failures(tmp_path: Path) -> None:
    first, second = (
        one.run for one in all_of(tmp_path, SGLANG, SGLANG | {"request_rate": float("inf"), "max_concurrency": 16})
    )
    assert (first.spec.load.rate_per_s, first.spec.load.concurrency) == (4.0, None)
    assert (second.spec.load.rate_per_s, second.spec.load.concurrency) == (None, 16)
    assert (first.summary.requests.ok, first.summary.requests.error) == (100, None)
    assert {"import_failed_unknown", "import_start_unknown", "import_tpot_to_end"} <= slugs(first)


def test_a_replayed_trace_is_no_rate(tmp_path: Path) -> None:
    load = run_of(tmp_path, SGLANG | {"request_rate": "trace"}).spec.load
    assert (load.arrivals, load.rate_per_s, load.is_open) == ("recorded", None, True)


def test_the_server_names_the_model(tmp_path: Path) -> None:
    told = {"server_info": {"model_path": "org/m", "version": "0.5.23"}}
    run = run_of(tmp_path, SGLANG | told)
    assert (run.spec.model, run.environment.engine.version) == ("org/m", "0.5.23")


def test_lists_tell_failures_and_tpot_to_the_last_token(tmp_path: Path) -> None:
    """Three tokens: 30 ms between the first and the last, whatever came behind."""
    lists = {
        "ttfts": [0.1, 0.0],
        "itls": [[0.01, 0.02], []],
        "output_lens": [3, 0],
        "input_lens": [8, 8],
        "errors": ["", "Service Unavailable: busy"],
        "mean_e2e_latency_ms": 140.0,
        "median_e2e_latency_ms": 140.0,
    }
    (one,) = all_of(tmp_path, SGLANG | {"completed": 1} | lists)
    summary = one.run.summary
    assert summary.latency_ms["tpot"].p50 == pytest.approx(15.0)
    assert summary.latency_ms["e2e"].p50 == 140.0
    assert (summary.requests.error, summary.requests.errors) == (1, {"http_5xx": 1})
    assert "import_tpot_to_end" not in slugs(one.run)
    assert one.records == []


def test_counts_of_two_tokenizers_that_differ_are_said(tmp_path: Path) -> None:
    assert "import_tokens_disagree" not in slugs(run_of(tmp_path, SGLANG))
    assert "import_tokens_disagree" in slugs(run_of(tmp_path, SGLANG | {"total_output_tokens_retokenized": 6000}))


def test_where_none_was_answered_there_are_no_figures(tmp_path: Path) -> None:
    run = run_of(tmp_path, SGLANG | {"completed": 0})
    assert (run.summary.latency_ms, run.verdict) == ({}, "inadmissible")
