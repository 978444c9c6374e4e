"""guidellm: `benchmarks.json`, one run for each benchmark in it; files of 0.2 to 0.8.

Written by `guidellm/benchmark/schemas` of vllm-project/guidellm, read at 0.3.1, 0.4.0, 0.6.0 and 0.8.1 (a file of 0.2
or 0.3 has neither metadata nor arguments). `time_per_output_token_ms` = (last token - start) / tokens contains the
first token: no TPOT. `inter_token_latency_ms` = (last - first) / (tokens - 1) is TPOT, but its distribution is weighted
by tokens and its percentiles are values that occurred. `request_latency` is in seconds. The stamps are wall-clock time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from nilometer.core.record import Outcome
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Length, Lengths, Throughput

from .fields import Fields
from .figures import length, of
from .opened import Members, Opened
from .request import Seen, error_kind, record
from .stamps import seconds_ns
from .told import Notes, Told

_KNOWN = 2
"""The version of its file that this knows."""
_STATS = {"mean": "mean", "p50": "median", "sd": "std_dev", "min": "min", "max": "max"}
_SHARES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_LATENCIES = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "ttfa": ("time_to_first_output_token_ms", 1.0),
    "tpot": ("inter_token_latency_ms", 1.0),
    "e2e": ("request_latency", 1e3),
}
"""Latency of ours -> (metric of the tool, ms in its unit)."""
_OUTCOMES: tuple[tuple[str, Outcome], ...] = (("successful", "ok"), ("errored", "error"), ("incomplete", "incomplete"))
"""Its word -> ours. Incomplete are those that it cut itself, when its time was over."""


def claims(opened: Opened) -> bool:
    """A list of benchmarks whose first is one of its own."""
    if opened.shape != "object" or "benchmarks" not in opened.names:
        return False
    return b"generative_benchmark" in bytes(opened.first["benchmarks"])[:4096]


def read(opened: Opened) -> Iterator[Told]:
    """One run for each benchmark."""
    for _, members in opened.objects():
        report = Fields(opened.path, members, Notes())
        version = report.under("metadata").whole("version")
        if version is not None and version > _KNOWN:
            raise opened.newer("guidellm", str(version), str(_KNOWN))
        held: list[Members] = report.take("benchmarks", list[Members]) or []
        for place, benchmark in enumerate(held):
            notes = Notes()
            yield _run(report, Fields(opened.path, benchmark, notes, path=f"benchmarks[{place}]"), notes)


def _run(report: Fields, benchmark: Fields, notes: Notes) -> Told:
    config, args = benchmark.under("config"), benchmark.under("args")
    times = benchmark.under("scheduler_metrics")
    start = times.first(("measure_start_time",), times.number) or benchmark.number("start_time")
    end = times.first(("measure_end_time",), times.number) or benchmark.number("end_time")
    backend = config.under("backend") or benchmark.under("worker")
    told = Told(
        notes=notes,
        version=report.under("metadata").text("guidellm_version") or "",
        started_ns=seconds_ns(start),
        model=backend.first(("model", "backend_model"), backend.text) or report.under("args").text("model"),
        target=backend.first(("target", "backend_target"), backend.text) or report.under("args").text("target"),
        load=_load(config.under("strategy") or args.under("strategy"), _most(config, args)),
        duration_s=end - start if start is not None and end is not None and end > start else None,
        counts=_counts(benchmark),
        cut_requests=True,
    )
    metrics = benchmark.under("metrics")
    told.throughput = Throughput(
        output_tokens_per_s=_successful(metrics, "output_tokens_per_second").number("mean"),
        input_tokens_per_s=_successful(metrics, "prompt_tokens_per_second").number("mean"),
        requests_per_s=_successful(metrics, "requests_per_second").number("mean"),
        goodput_requests_per_s=_successful(metrics, "request_goodput").number("mean"),
    )
    told.lengths = Lengths(input=_length(metrics, "prompt_token_count"), output=_length(metrics, "output_token_count"))
    if not _by_request(told, benchmark.under("requests"), start):
        told.latency_ms = {name: _figures(metrics, *where) for name, where in _LATENCIES.items()}
        told.stream = told.latency_ms["ttft"] != Distribution()
        notes.add("import_weighted_by_tokens", "tpot")
        notes.add("import_percentiles_occurred")
    if told.counts is not None and told.counts.incomplete:
        notes.add("import_cut_by_tool", n=told.counts.incomplete)
    notes.add("import_not_mapped", "tpot", fields="time_per_output_token_ms")
    notes.add("import_wall_clock")
    return told


def _counts(benchmark: Fields) -> Counts:
    """How many ended how, wherever its version keeps that."""
    found = [
        benchmark.under("metrics").under("request_totals"),
        benchmark.under("request_totals"),
        benchmark.under("scheduler_metrics").under("requests_made"),
        benchmark.under("run_stats").under("requests_made"),
    ]
    totals = next((one for one in found if one), found[0])
    ok, error, cut = (totals.whole(name) for name in ("successful", "errored", "incomplete"))
    known = ok is not None and error is not None and cut is not None
    return Counts(
        started=(ok or 0) + (error or 0) + (cut or 0) if known else None,
        ok=ok,
        error=error,
        incomplete=cut,
        cancelled=0 if known else None,
        censored=0 if known else None,
    )


def _figures(metrics: Fields, name: str, factor: float) -> Distribution:
    """The branch of the requests that were answered; one of which nothing was counted holds zeros."""
    told = _successful(metrics, name)
    n = told.whole("count")
    if not n:
        return Distribution()
    plain, shares = of(told, _STATS, n, factor), of(told.under("percentiles"), _SHARES, n, factor)
    found = {stat: getattr(shares, stat) for stat in _SHARES if getattr(shares, stat) is not None}
    return Distribution(
        n=n,
        mean=plain.mean,
        sd=plain.sd,
        min=plain.min,
        max=plain.max,
        marked=shares.marked,
        **{"p50": plain.p50, **found},
    )


def _length(metrics: Fields, name: str) -> Length:
    told = _successful(metrics, name)
    if not told.whole("count"):
        return Length()
    shares = told.under("percentiles")
    plain = length(told, {"mean": "mean", "p50": "median", "max": "max"})
    return Length(mean=plain.mean, p50=plain.p50, p95=shares.number("p95"), max=plain.max)


def _successful(metrics: Fields, name: str) -> Fields:
    return metrics.under(name).under("successful")


def _load(strategy: Fields, most: int | None) -> Load:
    kind, rate = strategy.text("type_"), strategy.number("rate")
    if kind in ("constant", "poisson", "async"):
        return Load(rate_per_s=rate, arrivals="constant" if kind == "constant" else "poisson", requests=most)
    streams = strategy.first(("streams", "max_concurrency"), strategy.whole)
    return Load(concurrency=1 if kind == "synchronous" else streams, requests=most)


def _most(config: Fields, args: Fields) -> int | None:
    told = config.under("constraints").under("max_requests")
    return told.first(("max_num",), told.whole) or told.under("args").whole("count") or args.whole("max_number")


def _by_request(told: Told, requests: Fields, start: float | None) -> bool:
    """Whether all requests are in the file; a sample of them says too little, and is left."""
    counts = told.counts
    held = [(outcome, one) for name, outcome in _OUTCOMES for one in requests.each(name)]
    of_all = None if counts is None else counts.started
    if not held:
        return False
    if of_all is not None and len(held) != of_all:
        told.notes.add("import_requests_sampled", n=len(held), of=of_all)
        return False
    seen = [_seen(one, outcome) for outcome, one in held]
    known = [one.start_s for one in seen if one.start_s]
    base = min(known, default=0.0)
    if start is not None and base < start:
        told.warmup_s = start - base
    told.started_ns = seconds_ns(base) or told.started_ns
    told.records = [
        record(place, one._replace(start_s=max(one.start_s - base, 0.0)), told.notes) for place, one in enumerate(seen)
    ]
    told.placed = True
    told.stream = any(one.ttft_s for one in seen)
    return True


def _seen(request: Fields, outcome: Outcome) -> Seen:
    info = request.under("info") or request.under("scheduler_info")
    times = info.under("timings") or info
    start = times.number("request_start") or request.number("start_time") or request.number("request_start_time")
    end = times.number("request_end") or request.number("end_time") or request.number("request_end_time")

    def since(*names: str) -> float | None:
        found = times.first(names, times.number) or request.first(names, request.number)
        return None if found is None or start is None else max(found - start, 0.0)

    error = info.text("error") or request.text("error")
    tokens = request.first(("output_tokens",), request.whole)
    counted = request.under("output_metrics").whole("total_tokens") is not None or "output_metrics" not in request
    first = since("first_token_iteration", "first_token_time")
    return Seen(
        start_s=start or 0.0,
        ttft_s=first,
        ttfa_s=since("first_output_token_iteration"),
        last_s=since("last_token_iteration", "last_token_time"),
        e2e_s=None if end is None or start is None or not math.isfinite(end - start) else max(end - start, 0.0),
        prompt_tokens=request.whole("prompt_tokens") if outcome == "ok" else None,
        cached_tokens=request.whole("cached_tokens"),
        output_tokens=tokens or None,
        token_source="usage" if counted else "estimated",
        outcome=outcome,
        error=error_kind(error) if outcome == "error" else None,
        detail=error if outcome == "error" else None,
    )
