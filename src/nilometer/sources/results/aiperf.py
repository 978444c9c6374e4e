"""aiperf: `profile_export_aiperf.json` (figures) and `profile_export.jsonl` (a request a line).

Written by `exporters/metrics_json_exporter.py` and `post_processors/record_export_results_processor.py` below
`src/aiperf`, ai-dynamo/aiperf, read at 0.2.0 and 0.13.0. `inter_token_latency` = (latency - TTFT) / (tokens - 1) is
TPOT, `inter_chunk_latency` the frame gap; its latency ends at the last content. Tokens are counted by its own tokenizer
unless told otherwise: TPOT and tokens/s rest on that, and each request may also hold what the server's usage said.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nilometer.core.record import Phase
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Lengths, Throughput

from .fields import Fields
from .figures import over
from .measured import Measured
from .opened import Opened
from .request import Seen, error_kind, record
from .stamps import local_ns, whole_ns
from .told import Notes, Told

_MAJOR = 1
"""The schema of its figures that this knows."""
_OFF_SHARE = 0.01
"""Counts that differ by more are not of the same tokens."""
_FIGURES = "profile_export_aiperf.json"
_REQUESTS = "profile_export.jsonl"


def claims(opened: Opened) -> bool:
    """Metrics with units and how the run ended; or lines of metadata and metrics."""
    keys = opened.names
    figures = "request_latency" in keys and bool(keys & {"was_cancelled", "aiperf_version"})
    return opened.shape in ("object", "lines") and (figures or keys >= {"metadata", "metrics"})


def read(opened: Opened) -> Iterator[Told]:
    """One run."""
    if "metadata" in opened.names:
        yield _requests(opened)
    else:
        for _, members in opened.objects():
            notes = Notes()
            yield _figures(opened, Fields(opened.path, members, notes), notes)


def _figures(opened: Opened, fields: Fields, notes: Notes) -> Told:
    version = fields.text("schema_version") or "1.0"
    if version.split(".")[0] != str(_MAJOR):
        raise opened.newer("aiperf", version, str(_MAJOR))
    metrics = Measured(fields, notes)
    ok, duration = metrics.count("request_count"), metrics.seconds("benchmark_duration")
    latency = {
        "ttft": metrics.latency("time_to_first_token", ok),
        "ttfa": metrics.latency("time_to_first_output_token", ok),
        "tpot": metrics.latency("inter_token_latency", ok),
        "frame_gap": metrics.latency("inter_chunk_latency", None),
        "e2e": metrics.latency("request_latency", ok),
    }
    if (opened.path.parent / _REQUESTS).is_file():
        notes.add("import_detail_beside", name=_REQUESTS)
    told = Told(
        notes=notes,
        version=fields.text("aiperf_version") or "",
        started_ns=local_ns(fields, "start_time", notes),
        stream=latency["ttft"] != Distribution(),
        duration_s=over(ok, metrics.per_second("request_throughput")) if duration is None else duration,
        cut=bool(fields.flag("was_cancelled")),
        counts=_counts(fields, metrics, ok),
        latency_ms={name: one for name, one in latency.items() if one != Distribution()},
        throughput=Throughput(
            output_tokens_per_s=metrics.per_second("output_token_throughput"),
            input_tokens_per_s=metrics.per_second("input_token_throughput"),
            requests_per_s=metrics.per_second("request_throughput"),
            goodput_requests_per_s=metrics.per_second("goodput"),
        ),
        lengths=Lengths(input=metrics.length("input_sequence_length"), output=metrics.length("output_sequence_length")),
    )
    _configure(told, fields.under("input_config"))
    _by_usage(told, metrics)
    notes.add("import_start_at_call", "ttft")
    return told


def _counts(fields: Fields, metrics: Measured, ok: int | None) -> Counts:
    """Its count of failed requests is left out where there were none; the summary of errors is not."""
    failed = metrics.count("error_request_count")
    if failed is None and "error_summary" in fields:
        failed = sum(one.whole("count") or 0 for one in fields.each("error_summary"))
    started = None if failed is None or ok is None else ok + failed
    unknown = None if failed is None else 0
    kinds: dict[str, int] = {}
    for one in fields.each("error_summary"):
        details = one.under("error_details")
        kind = error_kind(details.text("type"), details.whole("code"))
        if kind is not None:
            kinds[kind] = kinds.get(kind, 0) + (one.whole("count") or 0)
    return Counts(
        started=started, ok=ok, error=failed, incomplete=unknown, cancelled=unknown, censored=unknown, errors=kinds
    )


def _by_usage(told: Told, metrics: Measured) -> None:
    """Where the server counted other tokens than the tool, per token and per second are not of the same tokens."""
    own, usage = told.lengths.output, metrics.length("usage_completion_tokens")
    if usage.mean is None or own.mean is None:
        told.notes.add("import_tokens_own", "output_tokens")
        return
    if abs(own.mean - usage.mean) <= _OFF_SHARE * usage.mean:
        return
    told.notes.add("import_tokens_own_off", "tpot", "medium", own=own.mean, usage=usage.mean)
    told.latency_ms.pop("tpot", None)
    told.throughput = msgspec.structs.replace(
        told.throughput,
        output_tokens_per_s=over(metrics.mean("total_usage_completion_tokens"), told.duration_s),
        input_tokens_per_s=over(metrics.mean("total_usage_prompt_tokens"), told.duration_s),
    )
    into = metrics.length("usage_prompt_tokens")
    told.lengths = Lengths(input=told.lengths.input if into.mean is None else into, output=usage)


def _configure(told: Told, config: Fields) -> None:
    """Model, address and load from the configuration, of either shape that it had."""
    endpoint, phases = config.under("endpoint"), config.each("phases")
    models = [one.text("name") for one in config.under("models").each("items")]
    models += endpoint.take("model_names", list[str]) or []
    urls = (endpoint.take("urls", list[str]) or []) + [endpoint.text("url") or ""]
    load = next((one for one in phases if one.text("kind") == "profiling"), config.under("loadgen"))
    rate = load.first(("rate", "request_rate"), load.number)
    told.model = next((one for one in models if one), None)
    told.target = next((one for one in urls if one), None)
    kind = endpoint.text("type")
    told.api = kind if kind in ("chat", "completions") else None
    told.load = Load(
        concurrency=None if rate is not None else load.whole("concurrency"),
        rate_per_s=rate,
        requests=load.first(("requests", "request_count"), load.whole),
    )


def _requests(opened: Opened) -> Told:
    """Each request on the clock of its stamps; model and load from the file of figures beside it."""
    notes = Notes()
    seen, starts_ns = [], []
    for line, members in opened.objects():
        fields = Fields(opened.path, members, notes, line=line)
        start_ns = fields.under("metadata").take("request_start_ns", int)
        if start_ns is None:
            raise fields.refused("metadata.request_start_ns", "null")
        seen.append(_seen(fields))
        starts_ns.append(start_ns)
    base = min(starts_ns, default=0)
    measured = [ns for ns, one in zip(starts_ns, seen, strict=True) if one.phase == "measured"]
    told = Told(
        notes=notes,
        started_ns=whole_ns(base),
        warmup_s=(min(measured, default=base) - base) / 1e9,
        records=[
            record(place, one._replace(start_s=(ns - base) / 1e9), notes)
            for place, (ns, one) in enumerate(zip(starts_ns, seen, strict=True))
        ],
        placed=True,
        stream=any(one.ttft_s for one in seen),
    )
    beside = opened.beside(_FIGURES)
    if beside is not None and beside.shape == "object":
        figures = Fields(beside.path, beside.first, Notes())
        told.version = figures.text("aiperf_version") or ""
        told.cut = bool(figures.flag("was_cancelled"))
        _configure(told, figures.under("input_config"))
    return told


def _seen(fields: Fields) -> Seen:
    meta, metrics, error = fields.under("metadata"), fields.under("metrics"), fields.under("error")
    phase: Phase = "warmup" if meta.text("benchmark_phase") == "warmup" else "measured"
    if error or meta.flag("was_cancelled"):
        text = " ".join(part for part in (error.text("type"), error.text("message")) if part)
        return Seen(
            phase=phase,
            outcome="error" if error else "cancelled",
            error=error_kind(text, error.whole("code")) if error else None,
            detail=text or None,
        )

    def span(name: str) -> float | None:
        value = _ms(metrics, name)
        return None if value is None else value / 1e3

    gaps = metrics.under("inter_chunk_latency").numbers("value")
    usage, own = _tokens(metrics, "usage_completion_tokens"), _tokens(metrics, "output_sequence_length")
    asked = _tokens(metrics, "usage_prompt_tokens")
    return Seen(
        phase=phase,
        ttft_s=span("time_to_first_token"),
        ttfa_s=span("time_to_first_output_token"),
        gaps_s=None if gaps is None else [None if gap is None else gap / 1e3 for gap in gaps],
        e2e_s=span("request_latency"),
        connect_s=span("http_req_connection_overhead") or None,
        prompt_tokens=_tokens(metrics, "input_sequence_length") if asked is None else asked,
        output_tokens=own if usage is None else usage,
        token_source="local_tokenizer" if usage is None else "usage",
    )


def _ms(metrics: Fields, name: str) -> float | None:
    """A span of one request; aiperf writes them in ms, and says so."""
    metric = metrics.under(name)
    if metric and metric.text("unit") not in ("ms", None):
        raise metric.refused("unit", str(metric.text("unit")))
    return metric.number("value")


def _tokens(metrics: Fields, name: str) -> int | None:
    return metrics.under(name).whole("value")
