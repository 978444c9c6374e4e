"""inference-perf: `summary_lifecycle_metrics.json`, `stage_N_lifecycle_metrics.json` (figures) and
`per_request_lifecycle_metrics.json` (a list of requests).

Written by `inference_perf/reportgen/base.py` of kubernetes-sigs/inference-perf, read at 0.7.0. All spans are in
seconds. Its per-token times put all tokens of a frame at one moment, so its ITL is none; TPOT = (last - first) /
(tokens - 1) with tokens counted by its own tokenizer, unless told to use the server's. The start has no wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.core.record import TokenSource
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Length, Lengths, Throughput

from .fields import Fields
from .figures import length, of, over
from .opened import Opened
from .request import Seen, error_kind, gaps_of, record
from .told import Notes, Told

_STATS = {"mean": "mean", "min": "min", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "max": "max"}
_LATENCIES = {"ttft": "time_to_first_token", "tpot": "time_per_output_token", "e2e": "request_latency"}
_OFF_SHARE = 0.01
_REQUESTS = "per_request_lifecycle_metrics.json"
_STAGES = ("stage_0_lifecycle_metrics.json", "stage_1_lifecycle_metrics.json")


def claims(opened: Opened) -> bool:
    """How the load went, and what succeeded and failed; or a list of requests with what is known of each."""
    keys = opened.names
    if opened.shape == "array":
        return keys >= {"start_time", "end_time", "info", "error"}
    return opened.shape == "object" and keys >= {"load_summary", "successes", "failures"}


def read(opened: Opened) -> Iterator[Told]:
    """One run."""
    if opened.shape == "array":
        yield _requests(opened)
        return
    for _, members in opened.objects():
        notes = Notes()
        yield _figures(opened, Fields(opened.path, members, notes), notes)


def _figures(opened: Opened, fields: Fields, notes: Notes) -> Told:
    load, good, bad = fields.under("load_summary"), fields.under("successes"), fields.under("failures")
    ok, failed = good.whole("count"), bad.whole("count")
    rates, spans = good.under("throughput"), good.under("latency")
    duration = fields.number("benchmark_time_seconds")
    latency = {name: _latency(spans.under(theirs), ok) for name, theirs in _LATENCIES.items()}
    if (opened.path.parent / _REQUESTS).is_file() and opened.path.name.startswith("summary"):
        notes.add("import_detail_beside", name=_REQUESTS)
    known = ok is not None and failed is not None
    told = Told(
        notes=notes,
        stream=latency["ttft"] != Distribution(),
        load=_load(load),
        duration_s=duration or over(ok, rates.number("requests_per_sec")),
        counts=Counts(
            started=(ok or 0) + (failed or 0) if known else None,
            ok=ok,
            error=failed,
            incomplete=0 if known else None,
            cancelled=0 if known else None,
            censored=0 if known else None,
            errors=_kinds(bad.under("by_label")),
        ),
        latency_ms=latency,
        throughput=Throughput(
            output_tokens_per_s=rates.number("output_tokens_per_sec"),
            input_tokens_per_s=rates.number("input_tokens_per_sec"),
            requests_per_s=rates.number("requests_per_sec"),
            goodput_requests_per_s=good.under("goodput_metrics").number("request_goodput"),
        ),
        lengths=Lengths(input=_length(good.under("prompt_tokens")), output=_length(good.under("output_len"))),
    )
    _by_usage(told, good, duration)
    notes.add("import_not_mapped", "itl", fields="inter_token_latency, normalized_time_per_output_token")
    return told


def _by_usage(told: Told, good: Fields, duration: float | None) -> None:
    """Where the server counted other tokens than the tool, its per token and per second are of others."""
    own, usage = good.under("output_len").number("mean"), good.under("output_tokens")
    counted = usage.number("mean")
    if own is None or counted is None:
        told.notes.add("import_tokens_own", "output_tokens")
        return
    told.lengths = Lengths(input=told.lengths.input, output=_length(usage))
    if abs(own - counted) > _OFF_SHARE * counted:
        told.notes.add("import_tokens_own_off", "tpot", "medium", own=own, usage=counted)
        told.latency_ms = {name: one for name, one in told.latency_ms.items() if name != "tpot"}
        into, made = told.throughput.input_tokens_per_s, told.throughput
        told.throughput = Throughput(
            output_tokens_per_s=over(usage.number("total"), duration),
            input_tokens_per_s=into,
            requests_per_s=made.requests_per_s,
            goodput_requests_per_s=made.goodput_requests_per_s,
        )


def _latency(fields: Fields, n: int | None) -> Distribution:
    return of(fields, _STATS, n, 1e3)


def _length(fields: Fields) -> Length:
    return length(fields, {"mean": "mean", "p50": "median", "p95": "p95", "max": "max"})


def _kinds(labels: Fields) -> dict[str, int]:
    """Its labels, such as `500 - Internal Server Error` or `Timeout`, as our kinds."""
    kinds: dict[str, int] = {}
    for label in labels:
        code = label.partition(" - ")[0]
        kind = error_kind(label, int(code) if code.isdecimal() and len(code) == 3 else None)
        if kind is not None:
            kinds[kind] = kinds.get(kind, 0) + (labels.under(label).whole("count") or 0)
    return kinds


def _load(load: Fields) -> Load:
    """A stage's own; of a summary of several stages nothing is known."""
    concurrency = load.whole("concurrency")
    rate = load.first(("requested_rate",), load.number)
    count = load.whole("count")
    if concurrency:
        return Load(concurrency=concurrency, requests=count)
    return Load(rate_per_s=rate or None, requests=count)


def _requests(opened: Opened) -> Told:
    """Each request on the clock of its stamps; the load from the one stage's file beside it."""
    notes = Notes()
    seen = [
        _seen(Fields(opened.path, members, notes, path=f"[{place}]"))
        for place, (_, members) in enumerate(opened.objects())
    ]
    base = min((one.start_s for one in seen), default=0.0)
    told = Told(
        notes=notes,
        records=[record(place, one._replace(start_s=one.start_s - base), notes) for place, one in enumerate(seen)],
        placed=True,
        stream=any(one.ttft_s for one in seen),
    )
    only, second = (opened.beside(name) for name in _STAGES)
    if only is not None and second is None and only.shape == "object":
        told.load = _load(Fields(only.path, only.first, Notes()).under("load_summary"))
    return told


def _seen(fields: Fields) -> Seen:
    start, end = fields.number("start_time"), fields.number("end_time")
    if start is None or end is None:
        raise fields.refused("start_time", "null")
    info, error = fields.under("info"), fields.under("error")
    told = info.under("response_metrics") or info
    usage = told.under("server_usage")
    times = told.numbers("chunk_times") or told.numbers("output_token_times") or []
    at = sorted({one for one in times if one is not None and one >= start})
    counted = usage.first(("completion_tokens", "output_tokens"), usage.whole)
    own, text = told.whole("output_tokens"), error.text("error_msg")
    source: TokenSource = "local_tokenizer" if counted is None else "usage"
    asked = usage.first(("prompt_tokens", "input_tokens"), usage.whole)
    if asked is None:
        asked = info.under("request_metrics").under("text").whole("input_tokens") or info.whole("input_tokens")
    words = " ".join(part for part in (error.text("error_type"), text) if part)
    return Seen(
        start_s=start,
        ttft_s=at[0] - start if at else None,
        gaps_s=gaps_of(at) if at else None,
        e2e_s=max(end - start, 0.0),
        prompt_tokens=asked or None,
        output_tokens=(own if counted is None else counted) if not error else None,
        token_source=source,
        outcome="error" if error else "ok",
        error=error_kind(words) if error else None,
        detail=words or None,
    )
