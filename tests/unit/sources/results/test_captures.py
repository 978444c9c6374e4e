"""Files that the tools really wrote, held against what the server that they measured really did."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any, NamedTuple

import pytest

from nilometer.core.summary import Distribution
from nilometer.sources.results.formats import read_results
from nilometer.sources.results.told import Imported

CAPTURES = Path(__file__).parents[3] / "captures" / "results"
LAG_MS = 20.0
"""How much later than the server a busy client may see things; never earlier."""


class File(NamedTuple):
    """`has`: the latencies that can be had from it by our definitions. `records`: whether it holds the requests."""

    name: str
    tool: str
    has: set[str]
    records: bool = True
    failed: int | None = 4
    kinds: bool = True
    version: str = ""


ALL = {"ttft", "tpot", "e2e", "frame_gap"}
FILES = [
    File("vllm-0.32.0-completions/detailed.json", "vllm bench serve", ALL),
    File("vllm-0.32.0-chat/detailed.json", "vllm bench serve", ALL),
    File("sglang-0.5.23/details.jsonl", "sglang bench_serving", ALL, records=False),
    File("genai-perf-0.0.16/profile_export.json", "genai-perf", {"ttft", "e2e", "frame_gap"}, failed=0),
    File("genai-perf-0.0.16/profile_export_genai_perf.json", "genai-perf", ALL - {"frame_gap"}, False, None),
    File("aiperf-0.13.0/profile_export.jsonl", "aiperf", ALL, version="0.13.0"),
    File("aiperf-0.13.0/profile_export_aiperf.json", "aiperf", ALL - {"tpot"}, False, version="0.13.0"),
    File("guidellm-0.3.1/benchmarks.json", "guidellm", ALL - {"frame_gap"}, failed=0),
    File("guidellm-0.4.0/benchmarks.json", "guidellm", ALL - {"frame_gap"}),
    File("guidellm-0.8.1/benchmarks.json", "guidellm", ALL - {"frame_gap"}, version="0.8.1"),
    File("inference-perf-0.7.0/per_request_lifecycle_metrics.json", "inference-perf", ALL),
    File("inference-perf-0.7.0/stage_0_lifecycle_metrics.json", "inference-perf", {"ttft", "e2e"}, False),
    File("evalscope-1.14.1/benchmark_data.db", "evalscope", ALL, kinds=False),
    File("evalscope-1.14.1/benchmark_summary.json", "evalscope", ALL, False, kinds=False),
]


def imported(name: str) -> Imported:
    (one,) = read_results(CAPTURES / name, Random(1))
    return one


def truth(name: str) -> list[dict[str, Any]]:
    lines = (CAPTURES / name).with_name("truth.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _figures(ok: list[dict[str, Any]]) -> dict[str, float]:
    """Medians as the server saw them, ms; TPOT and gaps do not depend on when it saw the request."""
    spans = [[ns for ns, _ in one["writes"]] for one in ok]
    return {
        "ttft": median(at[0] - one["read_ns"] for one, at in zip(ok, spans, strict=True)) / 1e6,
        "tpot": median((at[-1] - at[0]) / (one["output_tokens"] - 1) for one, at in zip(ok, spans, strict=True)) / 1e6,
        "e2e": median(one["end_ns"] - one["read_ns"] for one in ok) / 1e6,
        "frame_gap": fmean(later - earlier for at in spans for earlier, later in pairwise(at)) / 1e6,
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_figures_are_those_of_the_server(file: File) -> None:
    """Only what a definition agrees with is there, and what is there is right."""
    one, rows = imported(file.name), truth(file.name)
    ok = [row for row in rows if row["outcome"] == "ok"]
    told, right = one.run.summary.latency_ms, _figures(ok)
    there = {name for name in ALL if told.get(name, Distribution()) != Distribution()}
    assert there == file.has
    for name in there & {"ttft", "e2e"}:
        assert right[name] - 0.5 <= (told[name].p50 or 0) <= right[name] + LAG_MS
    if "tpot" in there:
        assert told["tpot"].p50 == pytest.approx(right["tpot"], abs=0.3)
    if "frame_gap" in there:
        assert told["frame_gap"].mean == pytest.approx(right["frame_gap"], abs=0.3)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_requests_are_counted_as_they_ended(file: File) -> None:
    one, rows = imported(file.name), truth(file.name)
    counts, lengths = one.run.summary.requests, one.run.summary.lengths
    ok = [row for row in rows if row["outcome"] == "ok"]
    assert (one.run.tool, one.run.tool_version) == (file.tool, file.version)
    assert counts.ok == len(ok)
    assert counts.error == file.failed
    if file.failed and file.kinds:
        assert counts.errors == {"http_5xx": file.failed}
    assert len(one.records) == (len(rows) if file.records else 0)
    if "profile_export.json" not in file.name.split("/"):  # no usage there: estimated
        assert lengths.output.mean == fmean(row["output_tokens"] for row in ok)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_rate_is_what_was_made_in_its_time(file: File) -> None:
    one, rows = imported(file.name), truth(file.name)
    made = sum(row["output_tokens"] for row in rows if row["outcome"] == "ok")
    first, last = min(row["read_ns"] for row in rows), max(row["end_ns"] or row["read_ns"] for row in rows)
    rate = one.run.summary.throughput.output_tokens_per_s
    if "estimated" in one.run.summary.lengths.token_source:
        return
    assert rate is not None
    assert 0.8 < rate / (made / (last - first) * 1e9) < 1.05


@pytest.mark.parametrize("file", [file for file in FILES if "genai" not in file.name], ids=lambda file: file.name)
def test_the_load_is_told(file: File) -> None:
    run = imported(file.name).run
    assert (run.spec.load.concurrency, run.spec.load.rate_per_s) == (4, None)
    assert (run.origin, run.verdict) == ("imported", "inadmissible" if file.failed else "marked")
    assert run.summary.generator.verdict == "unknown"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("vllm-0.32.0-chat/detailed.json", "import_role_frame_left_out"),
        ("vllm-0.32.0-plain/plain.json", "import_first_frame_may_be_empty"),
        ("sglang-0.5.23/details.jsonl", "import_tokens_disagree"),
        ("aiperf-0.13.0/profile_export_aiperf.json", "import_tokens_own_off"),
        ("aiperf-0.13.0/profile_export_aiperf.json", "import_detail_beside"),
        ("guidellm-0.8.1/benchmarks.json", "import_not_mapped"),
        ("inference-perf-0.7.0/stage_0_lifecycle_metrics.json", "import_tokens_own_off"),
        ("inference-perf-0.7.0/per_request_lifecycle_metrics.json", "import_load_not_kept"),
        ("evalscope-1.14.1/benchmark_summary.json", "import_percentiles_occurred"),
    ],
)
def test_what_is_not_the_same_is_said(name: str, slug: str) -> None:
    one = imported(name)
    assert slug in {warned.slug for warned in one.warnings}
    assert slug in {finding.slug for finding in one.run.findings}


def test_a_rate_without_lists() -> None:
    """Its own figures, and E2E from the one list that it always writes."""
    run = imported("vllm-0.32.0-plain/plain.json").run
    ok = [row for row in truth("vllm-0.32.0-plain/plain.json") if row["outcome"] == "ok"]
    assert (run.spec.load.rate_per_s, run.spec.load.concurrency, run.spec.load.arrivals) == (40.0, None, "poisson")
    assert run.summary.latency_ms["e2e"].p50 == pytest.approx(_figures(ok)["e2e"], abs=LAG_MS)
    assert run.summary.latency_ms["ttft"].p50 == pytest.approx(41.64, abs=0.01)  # the role frame's, and said so
    assert run.summary.latency_ms["frame_gap"].n is None


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv"])
def test_llama_bench_in_each_of_its_formats(suffix: str) -> None:
    runs = [one.run for one in read_results(CAPTURES / "llama-bench-b11434" / f"out.{suffix}", Random(1))]
    assert [run.level for run in runs] == ["pp64", "tg16", "pp32+tg8"]
    prefill, decode, both = (run.summary for run in runs)
    assert prefill.throughput.input_tokens_per_s == pytest.approx(950, rel=0.1)
    assert (prefill.throughput.output_tokens_per_s, prefill.latency_ms) == (None, {})
    speed, tpot = decode.throughput.output_tokens_per_s, decode.latency_ms["tpot"]
    assert tpot.mean == pytest.approx(1000 / (speed or 1), rel=0.03)
    assert tpot.n == (None if suffix == "csv" else 2)
    assert (both.throughput.input_tokens_per_s, both.throughput.output_tokens_per_s) == (None, None)
    model = runs[0].environment.model
    assert (model.precision, model.file, model.file_bytes) == ("Q4_0", "reed.gguf", 89_941_248)
