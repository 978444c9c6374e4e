"""guidellm: what is TPOT and what is not, warm-up, sampled requests, versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError

from .written import all_of, finding, run_of, slugs

T = 1_767_600_000.0


def spread(median: float, count: int = 4) -> dict[str, Any]:
    shares = {"p50": median, "p90": median * 2, "p95": median * 3, "p99": median * 4, "p999": median * 9}
    zeros = {"mean": 0.0, "median": 0.0, "count": 4, "percentiles": dict.fromkeys(shares, 0.0)}
    held = {"mean": median, "median": median, "std_dev": 0.0, "count": count, "percentiles": shares}
    return {"successful": held, "errored": zeros, "total": zeros}


def benchmark(**change: Any) -> dict[str, Any]:
    metrics = {
        "request_totals": {"successful": 4, "errored": 1, "incomplete": 0, "total": 5},
        "request_latency": spread(2.0),
        "time_to_first_token_ms": spread(250.0),
        "time_per_output_token_ms": spread(20.0),
        "inter_token_latency_ms": spread(17.5, 400),
        "output_token_count": spread(100.0),
        "output_tokens_per_second": spread(195.0),
    }
    whole = {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": "concurrent", "streams": 4},
            "backend": {"target": "http://h", "model": "org/m"},
        },
        "scheduler_metrics": {"measure_start_time": T + 60, "measure_end_time": T + 240},
        "metrics": metrics,
        "requests": {"successful": [], "errored": [], "incomplete": []},
    }
    return whole | change


def report(*benchmarks: dict[str, Any], version: int = 2) -> dict[str, Any]:
    return {"metadata": {"version": version, "guidellm_version": "0.8.1"}, "benchmarks": list(benchmarks)}


def request(start: float, outcome: str = "ok", **more: Any) -> dict[str, Any]:
    times: dict[str, Any] = {"request_start": T + start}
    if outcome == "ok":
        times |= {"first_token_iteration": T + start + 0.25, "last_token_iteration": T + start + 1.25}
        times |= {"request_end": T + start + 1.5}
        more = {"output_tokens": 11, "prompt_tokens": 20, "output_metrics": {"total_tokens": 11}} | more
    return {"info": {"timings": times, "error": None if outcome == "ok" else outcome}, **more}


def test_the_time_per_token_with_the_first_in_it_is_no_tpot(tmp_path: Path) -> None:
    run = run_of(tmp_path, report(benchmark()))
    latency = run.summary.latency_ms
    assert (latency["tpot"].p50, latency["tpot"].p95, latency["tpot"].n) == (17.5, 52.5, 400)
    assert (latency["e2e"].p50, latency["ttft"].p99) == (2000.0, 1000.0)
    assert finding(run, "import_not_mapped").params["fields"] == "time_per_output_token_ms"
    assert run.summary.throughput.output_tokens_per_s == 195.0


def test_a_branch_in_which_nothing_was_counted_is_nothing(tmp_path: Path) -> None:
    metrics = benchmark()["metrics"] | {"time_to_first_token_ms": spread(0.0, 0)}
    run = run_of(tmp_path, report(benchmark(metrics=metrics)))
    assert (run.summary.latency_ms["ttft"].n, run.spec.stream) == (0, False)


def test_each_benchmark_is_a_run(tmp_path: Path) -> None:
    steady = {"strategy": {"type_": "constant", "rate": 2.5}}
    one = {"strategy": {"type_": "synchronous"}}
    runs = [each.run for each in all_of(tmp_path, report(benchmark(), benchmark(config=steady), benchmark(config=one)))]
    loads = [(run.spec.load.concurrency, run.spec.load.rate_per_s, run.spec.load.arrivals) for run in runs]
    assert loads == [(4, None, "poisson"), (None, 2.5, "constant"), (1, None, "poisson")]


def test_requests_give_the_figures_of_those_that_start_in_its_window(tmp_path: Path) -> None:
    """Two start in the warm-up of a minute, two behind it; one second for ten tokens after the first."""
    requests = {
        "successful": [request(at) for at in (0.0, 30.0, 61.0, 62.0)],
        "errored": [request(63.0, "HTTPStatusError(\"Server error '503 Service Unavailable' for url 'x'\")")],
        "incomplete": [],
    }
    (one,) = all_of(tmp_path, report(benchmark(requests=requests)))
    summary = one.run.summary
    assert (summary.requests.ok, summary.requests.error, summary.requests.errors) == (2, 1, {"http_5xx": 1})
    assert (summary.run_requests.ok, len(one.records)) == (4, 5)
    assert (summary.window.start_s, summary.window.end_s) == (0.0, 180.0)
    assert one.run.spec.load.warmup_s == pytest.approx(60.0)
    assert summary.latency_ms["tpot"].p50 == pytest.approx(100.0)
    assert summary.throughput.output_tokens_per_s == pytest.approx(22 / 180)
    assert {"import_weighted_by_tokens"} & slugs(one.run) == set()


def test_a_sample_of_the_requests_is_not_taken_for_all(tmp_path: Path) -> None:
    requests = {"successful": [request(61.0)], "errored": [], "incomplete": []}
    (one,) = all_of(tmp_path, report(benchmark(requests=requests)))
    assert finding(one.run, "import_requests_sampled").params["n"] == 1
    assert (one.records, one.run.summary.latency_ms["tpot"].p50) == ([], 17.5)


def test_requests_that_the_tool_cut_are_no_failures(tmp_path: Path) -> None:
    """Sixty of 160: still no error."""
    totals = {"successful": 100, "errored": 0, "incomplete": 60, "total": 160}
    run = run_of(tmp_path, report(benchmark(metrics=benchmark()["metrics"] | {"request_totals": totals})))
    assert (run.summary.requests.incomplete, run.verdict) == (60, "marked")
    assert "import_cut_by_tool" in slugs(run)


def test_frames_counted_as_tokens_are_an_estimate(tmp_path: Path) -> None:
    requests = {"successful": [request(61.0, output_metrics={"total_tokens": None})], "errored": [], "incomplete": []}
    totals = {"successful": 1, "errored": 0, "incomplete": 0, "total": 1}
    metrics = benchmark()["metrics"] | {"request_totals": totals}
    (one,) = all_of(tmp_path, report(benchmark(requests=requests, metrics=metrics)))
    assert one.records[0].token_source == "estimated"
    assert "tokens_estimated" in slugs(one.run)


def test_the_oldest_files(tmp_path: Path) -> None:
    """0.2 and 0.3: no metadata, arguments in the benchmark, totals beside the metrics."""
    old = {
        "type_": "generative_benchmark",
        "args": {"strategy": {"type_": "concurrent", "streams": 8}, "max_number": 100},
        "worker": {"backend_target": "http://h", "backend_model": "org/m"},
        "metrics": {name: value for name, value in benchmark()["metrics"].items() if name != "request_totals"},
        "request_totals": {"successful": 90, "errored": 2, "incomplete": 0, "total": 92},
        "start_time": T,
        "end_time": T + 10,
        "requests": {"successful": []},
    }
    run = run_of(tmp_path, {"benchmarks": [old]})
    assert (run.spec.model, run.spec.target, run.tool_version) == ("org/m", "http://h", "")
    assert (run.spec.load.concurrency, run.spec.load.requests) == (8, 100)
    assert (run.summary.requests.ok, run.summary.window.end_s) == (90, 10.0)


def test_a_later_version_and_a_file_without_benchmarks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="result_newer"):
        all_of(tmp_path, report(benchmark(), version=3))
    with pytest.raises(DataError, match="result_unknown"):
        all_of(tmp_path, report())
