"""genai-perf: units, telemetry, and perf_analyzer's responses read as a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nilometer.core.errors import DataError

from .written import all_of, finding, run_of, slugs

FIGURES: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 2.0},
    "request_latency": {"unit": "ms", "avg": 2000.0, "p50": 1950.0},
    "request_count": {"unit": "count", "avg": 10.0},
    "inter_token_latency": {"unit": "ms", "avg": 18.0, "p50": 17.9},
    "input_config": {"model_names": ["org/m"], "perf_analyzer": {"stimulus": {"request_rate": 2.5}}},
}


@pytest.mark.parametrize(("unit", "value"), [("ns", 18e6), ("us", 18e3), ("ms", 18.0), ("sec", 0.018)])
def test_every_figure_is_read_in_its_unit(unit: str, value: float, tmp_path: Path) -> None:
    run = run_of(tmp_path, FIGURES | {"inter_token_latency": {"unit": unit, "avg": value}})
    assert run.summary.latency_ms["tpot"].mean == pytest.approx(18.0)


def test_a_unit_that_nobody_knows_is_left_out_and_said(tmp_path: Path) -> None:
    run = run_of(tmp_path, FIGURES | {"inter_token_latency": {"unit": "jiffies", "avg": 1.8}})
    assert run.summary.latency_ms["tpot"].n == 0
    assert finding(run, "import_unit_unknown").params["fields"] == "inter_token_latency (jiffies)"


def test_load_length_and_what_is_not_told(tmp_path: Path) -> None:
    run = run_of(tmp_path, FIGURES)
    assert (run.spec.load.rate_per_s, run.spec.stream, run.summary.window.end_s) == (2.5, False, 5.0)
    assert run.summary.requests.error is None
    assert "import_failed_unknown" in slugs(run)


def test_devices_at_their_peaks(tmp_path: Path) -> None:
    used = {"unit": "GB", "gpu0": {"avg": 1.0, "max": 2.0}, "gpu1": {"max": 3.5}}
    run = run_of(tmp_path, FIGURES | {"telemetry_stats": {"gpu_memory_used": used}})
    assert run.summary.memory.device_used_peak_bytes == 5_500_000_000


def sse(delta: dict[str, Any], finish: str | None = None) -> dict[str, str]:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return {"response": f"data: {json.dumps(chunk)}"}


USED = {"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
RAW: dict[str, Any] = {
    "version": "1.2.0",
    "service_kind": "openai",
    "endpoint": "v1/chat/completions",
    "experiments": [
        {
            "experiment": {"mode": "concurrency", "value": 2},
            "requests": [
                {
                    "timestamp": 1_767_600_000_000_000_000,
                    "response_timestamps": [
                        1_767_600_000_000_000_000 + ms * 10**6 for ms in (20, 60, 70, 80, 81, 82, 83)
                    ],
                    "response_outputs": [
                        sse({"role": "assistant", "content": ""}),
                        sse({"content": "Mud"}),
                        sse({"content": " rose"}),
                        sse({"content": "."}),
                        sse({}, "stop"),
                        {"response": f"data: {json.dumps(USED)}\n\n"},
                        {"response": "data: [DONE]\n\n"},
                    ],
                }
            ],
        }
    ],
}


def test_responses_are_read_as_our_own_reader_reads_them(tmp_path: Path) -> None:
    """The role frame at 20 ms is none: first token at 60, last at 80, three tokens, end at 83."""
    (one,) = all_of(tmp_path, RAW)
    latency = one.run.summary.latency_ms
    assert (latency["ttft"].p50, latency["tpot"].p50, latency["e2e"].p50) == (60.0, 10.0, 83.0)
    (record,) = one.records
    assert (record.prompt_tokens, record.output_tokens, record.token_source, record.outcome) == (9, 3, "usage", "ok")
    assert one.run.phases.started_wall_ns == 1_767_600_000_000_000_000
    assert one.run.spec.load.concurrency == 2


def test_a_response_that_ends_early_is_incomplete_and_an_error_in_it_an_error(tmp_path: Path) -> None:
    whole = RAW["experiments"][0]["requests"][0]
    cut = whole | {
        "response_timestamps": whole["response_timestamps"][:3],
        "response_outputs": whole["response_outputs"][:3],
    }
    failed = cut | {"response_outputs": [{"response": 'data: {"error": {"message": "no"}}'}] * 3}
    experiment = RAW["experiments"][0] | {"requests": [whole, cut, failed]}
    (one,) = all_of(tmp_path, RAW | {"experiments": [experiment]})
    counts = one.run.summary.requests
    assert (counts.ok, counts.incomplete, counts.error, counts.errors) == (1, 1, 1, {"stream_error": 1})


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"version": "2.0"}, "result_newer"),
        ({"service_kind": "triton"}, "result_broken"),
        ({"endpoint": "rerank"}, "result_broken"),
        ({"experiments": []}, "result_without_runs"),
    ],
)
def test_what_is_not_known_is_refused(change: dict[str, Any], slug: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=slug):
        all_of(tmp_path, RAW | change)
