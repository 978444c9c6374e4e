"""genai-perf: `profile_export_genai_perf.json` (figures) and `profile_export.json` (each response as it came).

Written by `genai_perf/export_data/json_exporter.py` and by perf_analyzer, triton-inference-server/perf_analyzer, read
at 0.0.16. `inter_token_latency` = (last response - first response) / (tokens - 1) is TPOT; its latency ends at the last
response with text; tokens are counted by its own tokenizer. Every figure names its unit. How many failed is not told.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nilometer.core.record import Outcome, Record
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Lengths, Memory, Throughput
from nilometer.wire.dialects import DIALECTS

from .fields import Fields
from .figures import over
from .measured import BYTES, Measured
from .opened import Members, Opened
from .request import Seen, gaps_of, record
from .stamps import whole_ns
from .told import Notes, Told

_MAJOR = 1
"""The version of perf_analyzer's raw file that this knows."""
_APIS = {"v1/chat/completions": "chat", "v1/completions": "completions"}


def claims(opened: Opened) -> bool:
    """Metrics with units and the configuration; or the experiments of perf_analyzer."""
    keys = opened.names
    figures = keys >= {"request_latency", "input_config"} and not keys & {"was_cancelled", "aiperf_version"}
    return opened.shape == "object" and (figures or _is_raw(keys))


def read(opened: Opened) -> Iterator[Told]:
    """One run; of a raw file one for each experiment."""
    for _, members in opened.objects():
        if _is_raw(opened.names):
            yield from _raw(opened, members)
        else:
            notes = Notes()
            yield _figures(opened, Fields(opened.path, members, notes), notes)


def _is_raw(keys: frozenset[str]) -> bool:
    return keys >= {"experiments", "service_kind"}


def _figures(opened: Opened, fields: Fields, notes: Notes) -> Told:
    metrics, config = Measured(fields, notes), fields.under("input_config")
    ok = metrics.count("request_count")
    rate = metrics.per_second("request_throughput")
    models = config.take("model_names", list[str]) or []
    latency = {
        "ttft": metrics.latency("time_to_first_token", ok),
        "tpot": metrics.latency("inter_token_latency", ok),
        "e2e": metrics.latency("request_latency", ok),
    }
    if latency["ttft"].n == 0:
        del latency["ttft"]
    if (opened.path.parent / "profile_export.json").is_file():
        notes.add("import_detail_beside", name="profile_export.json")
    _note(notes)
    return Told(
        notes=notes,
        model=models[0] if models else None,
        target=config.under("endpoint").text("url"),
        stream="ttft" in latency,
        load=_load(config.under("perf_analyzer").under("stimulus"), ok),
        duration_s=over(ok, rate),
        counts=Counts(started=None, ok=ok, error=None, incomplete=None, cancelled=None, censored=None),
        latency_ms=latency,
        throughput=Throughput(
            output_tokens_per_s=metrics.per_second("output_token_throughput"),
            requests_per_s=rate,
            goodput_requests_per_s=metrics.per_second("request_goodput"),
        ),
        lengths=Lengths(input=metrics.length("input_sequence_length"), output=metrics.length("output_sequence_length")),
        memory=_memory(fields.under("telemetry_stats")),
    )


def _note(notes: Notes) -> None:
    notes.add("import_start_at_call", "ttft")
    notes.add("import_tokens_own", "output_tokens")


def _load(stimulus: Fields, requests: int | None) -> Load:
    return Load(
        concurrency=stimulus.whole("concurrency"), rate_per_s=stimulus.number("request_rate"), requests=requests
    )


def _memory(telemetry: Fields) -> Memory:
    """The most that the devices held together, if each at its peak: bytes, from the unit that stands there."""
    used = telemetry.under("gpu_memory_used")
    factor = BYTES.get(used.text("unit") or "")
    peaks = [used.under(name).number("max") for name in used if name.startswith("gpu")]
    known = [peak for peak in peaks if peak is not None]
    if factor is None or not known:
        return Memory()
    return Memory(device_used_peak_bytes=round(sum(known) * factor), source="genai-perf")


class _Output(msgspec.Struct):
    response: str = ""


class _Request(msgspec.Struct):
    """One request of perf_analyzer: when it went out, when each response came, and the responses; ns."""

    timestamp: int
    response_timestamps: list[int]
    response_outputs: list[_Output] = []


class _Load(msgspec.Struct):
    mode: str
    value: float


class _Experiment(msgspec.Struct):
    experiment: _Load
    requests: list[_Request]


def _raw(opened: Opened, members: Members) -> Iterator[Told]:
    fields = Fields(opened.path, members, Notes())
    version = fields.text("version") or "1"
    if version.split(".")[0] != str(_MAJOR):
        raise opened.newer("genai-perf", version, str(_MAJOR))
    api = _APIS.get(fields.text("endpoint") or "")
    if fields.text("service_kind") != "openai" or api is None:
        raise opened.broken(f"service_kind {fields.text('service_kind')}, endpoint {fields.text('endpoint')}")
    for experiment in fields.take("experiments", list[_Experiment]) or []:
        notes = Notes()
        yield _experiment(experiment, api, notes)


def _experiment(experiment: _Experiment, api: str, notes: Notes) -> Told:
    base = min((one.timestamp for one in experiment.requests), default=0)
    records = [_record(place, one, base, api, notes) for place, one in enumerate(experiment.requests)]
    notes.add("import_start_at_call", "ttft")
    closed = experiment.experiment.mode == "concurrency"
    value = experiment.experiment.value
    load = Load(concurrency=round(value) if closed else None, rate_per_s=None if closed else value)
    return Told(
        notes=notes,
        started_ns=whole_ns(base),
        api=api,
        stream=any(one.first_token_ns is not None for one in records),
        load=load,
        records=records,
        placed=True,
    )


def _record(place: int, request: _Request, base: int, api: str, notes: Notes) -> Record:
    """The responses read as our own reader reads a stream: empty frames are none, usage counts tokens."""
    reader = DIALECTS[api].reader(len(request.response_outputs) > 1, False)
    at: list[float] = []
    stamps = request.response_timestamps
    for stamp, output in zip(stamps, request.response_outputs, strict=False):
        frame = output.response.rstrip("\n") + "\n\n"  # perf_analyzer strips the end of some
        at += [(stamp - request.timestamp) / 1e9] * reader.feed(frame.encode("utf-8", "replace"))
    answer = reader.close()
    outcome: Outcome = "ok" if answer.complete else "incomplete"
    return record(
        place,
        Seen(
            start_s=(request.timestamp - base) / 1e9,
            ttft_s=at[0] if at else None,
            gaps_s=gaps_of(at),
            e2e_s=(stamps[-1] - request.timestamp) / 1e9 if stamps else None,
            prompt_tokens=answer.prompt_tokens,
            output_tokens=answer.output_tokens,
            token_source=answer.token_source,
            outcome=outcome if answer.fault is None else "error",
            error=None if answer.fault is None else answer.fault.kind,
        ),
        notes,
    )
