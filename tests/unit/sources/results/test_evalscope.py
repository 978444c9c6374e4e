"""evalscope: its database of every age, its summaries, what must never be read."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nilometer.core.errors import DataError
from nilometer.sources.results.formats import read_results
from nilometer.sources.results.told import Imported

from .written import finding, laid, run_of, slugs

NEW = (
    "request, start_time, inter_token_latencies, success, response_messages, completed_time, latency,"
    " first_chunk_latency, prompt_tokens, completion_tokens, is_stream"
)
OLD = "request, start_time, chunk_times, success, response_messages, completed_time, latency, first_chunk_latency,"
OLD += " n_chunks, chunk_time, prompt_tokens, completion_tokens"
ARGUMENTS = {
    "model": "org/m",
    "url": "http://h/v1/chat/completions",
    "api_key": "s3cret",
    "parallel": 4,
    "number": 9,
    "rate": -1,
}


def database(folder: Path, columns: str, rows: Sequence[Sequence[Any]]) -> Imported:
    path = folder / "benchmark_data.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE result ({columns})")
        db.executemany(f"INSERT INTO result VALUES ({', '.join('?' * len(rows[0]))})", rows)
        db.commit()
    (one,) = read_results(path, Random(1))
    return one


class Trap:
    """What runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle of the file was read",))


def test_requests_of_a_database(tmp_path: Path) -> None:
    pickled = pickle.dumps([Trap()])
    laid(tmp_path, "benchmark_args.json", ARGUMENTS)
    rows = [
        ("{}", 100.0, "[0.02, 0.04]", 1, pickled, 100.5, 0.5, 0.2, 30, 3, 1),
        ("{}", 101.0, "[]", 0, pickled, 101.1, None, None, None, None, 1),
        ("{}", 102.0, "[]", 1, pickled, 102.9, 0.9, 0.9, 30, 3, 0),
    ]
    one = database(tmp_path, NEW, rows)
    first, failed, whole = one.records
    assert (first.sent_ns, first.first_token_ns, first.last_token_ns) == (0, 200_000_000, 260_000_000)
    assert (failed.outcome, failed.end_ns) == ("error", 1_100_000_000)
    assert (whole.first_token_ns, whole.end_ns) == (None, 2_900_000_000)
    assert one.run.summary.latency_ms["tpot"].p50 == pytest.approx(30.0)
    assert (one.run.spec.model, one.run.spec.load.concurrency, one.run.spec.load.requests) == ("org/m", 4, 9)
    assert "s3cret" not in repr(one.run)


def test_an_older_database_keeps_the_moments_of_all_frames(tmp_path: Path) -> None:
    """A role frame 50 ms before the first of three tokens, a finish frame behind them."""
    chunks = json.dumps([100.1, 100.15, 100.17, 100.21, 100.2105])
    one = database(tmp_path, OLD, [("x", 100.0, chunks, 1, "y", 100.22, 0.22, 0.1, 3, 0.1, 30, 3)])
    latency = one.run.summary.latency_ms
    assert latency["ttft"].p50 == pytest.approx(150.0)
    assert latency["tpot"].p50 == pytest.approx(30.0)
    assert "import_role_frame_left_out" in slugs(one.run)


@pytest.mark.parametrize("value", ["many", b"\xff", -5, 1e30])
def test_a_cell_that_cannot_be_is_left_out(value: Any, tmp_path: Path) -> None:
    one = database(tmp_path, NEW, [("{}", 100.0, "[0.02]", 1, "", 100.5, value, 0.2, 30, 2, 1)])
    assert one.records[0].end_ns is None
    assert "import_impossible" in slugs(one.run)


def test_another_database_is_unknown_and_a_broken_one_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="result_unknown"):
        database(tmp_path, "a, b", [(1, 2)])
    path = tmp_path / "cut.db"
    path.write_bytes((tmp_path / "benchmark_data.db").read_bytes()[:1000])
    with pytest.raises(DataError):
        read_results(path, Random(1))


SUMMARY = {
    "Test Duration (s)": 10.0,
    "Concurrency": 4,
    "Total Requests": 12,
    "Success Requests": 10,
    "Failed Requests": 2,
    "Req Throughput (req/s)": 1.0,
    "Avg Latency (s)": 2.0,
    "Output Throughput (tok/s)": 100.0,
    "Avg TTFT (ms)": 200.0,
    "Avg TPOT (ms)": 20.0,
    "Avg ITL (ms)": 19.0,
    "Avg Input Tokens": 500.0,
    "Avg Output Tokens": 100.0,
}


def test_a_summary_with_its_percentiles_beside_it(tmp_path: Path) -> None:
    rows = [{"Percentiles": "50%", "TTFT (ms)": 190.0, "Latency (s)": 1.9}, {"Percentiles": "99%", "TTFT (ms)": 300.0}]
    laid(tmp_path, "benchmark_percentile.json", rows)
    run = run_of(tmp_path, SUMMARY, name="benchmark_summary.json")
    ttft, e2e = run.summary.latency_ms["ttft"], run.summary.latency_ms["e2e"]
    assert (ttft.n, ttft.mean, ttft.p50, ttft.p95, ttft.p99) == (10, 200.0, 190.0, None, 300.0)
    assert (e2e.mean, e2e.p50) == (2000.0, 1900.0)
    assert (run.summary.requests.error, run.spec.load.concurrency) == (2, 4)
    assert {"import_percentiles_occurred", "import_itl_of_frames"} <= slugs(run)


def test_an_older_summary_means_another_thing_by_time_per_token(tmp_path: Path) -> None:
    older = {
        "Time taken for tests (s)": 10.0,
        "Number of concurrency": 4,
        "Total requests": 10,
        "Succeed requests": 10,
        "Failed requests": 0,
        "Throughput(average tokens/s)": 100.0,
        "Average QPS": 1.0,
        "Average latency (s)": 2.0,
        "Average time to first token (s)": 0.2,
        "Average time per output token (s)": 0.01,
    }
    run = run_of(tmp_path, older)
    latency = run.summary.latency_ms
    assert (latency["ttft"].mean, latency["e2e"].mean, latency["tpot"].n) == (200.0, 2000.0, 0)
    assert run.summary.throughput.output_tokens_per_s == 100.0
    assert finding(run, "import_not_mapped").params["fields"] == "Average time per output token (s)"
    assert "import_first_frame_may_be_empty" in slugs(run)


def test_what_it_could_not_compute_is_minus_one(tmp_path: Path) -> None:
    run = run_of(tmp_path, SUMMARY | {"Avg TTFT (ms)": -1, "Avg TPOT (ms)": -1.0})
    assert (run.summary.latency_ms["ttft"].n, run.summary.latency_ms["tpot"].n) == (0, 0)
    none = run_of(tmp_path, SUMMARY | {"Success Requests": 0, "Avg TTFT (ms)": -1})
    assert (none.summary.latency_ms, none.verdict) == ({}, "inadmissible")


def test_a_rate_in_its_arguments(tmp_path: Path) -> None:
    laid(tmp_path, "benchmark_args.json", ARGUMENTS | {"rate": 2.5, "stream": False})
    run = run_of(tmp_path, SUMMARY, name="benchmark_summary.json")
    assert (run.spec.load.rate_per_s, run.spec.load.concurrency, run.spec.stream) == (2.5, None, False)
