"""From archived runs to what `calibrate` takes: the load, the lengths and the mean latencies of each, as seen.

A run that is no evidence is refused; one that speaks of another model, precision or engine than the plan is taken, and
that is told. In a closed loop without pauses the load is the asked one. Else it is the mean number of requests in
flight over the window, or where that was not kept, Little's law: rate x E2E.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from nilometer.core.errors import ConditionError, Param, SpecError
from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.core.summary import Length, Summary

from ..model.precision import PLAIN_BITS, Precision, precision_of
from .calibrate import Measured

LoadFrom = Literal["spec", "in_flight", "littles_law"]

SAME_COUNT = 0.01
"""Models whose parameters differ by less than this are one; their names may be what their servers call them."""
_NS_PER_S = 1_000_000_000
_TUNED = frozenset({"instruct", "chat", "it", "base", "hf", "gguf", "text"})
_ENGINES = {
    "llama-server": "llama.cpp",
    "skulk-llama-server": "llama.cpp",
    "xllamacpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "ollama": "llama.cpp",
    "trtllm": "tensorrt-llm",
    "text-generation-inference": "tgi",
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan is of, as far as a run can contradict it. What is None is not held against it."""

    model: str | None = None
    parameters: int | None = None
    precision: str | None = None
    engine: str | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One run as evidence. `findings`: what to know of it, class note."""

    run: str
    measured: Measured
    concurrency_from: LoadFrom
    findings: tuple[Finding, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that can calibrate, in the order of their loads, and all that is to be told, those left out included."""

    seen: tuple[Seen, ...]
    findings: tuple[Finding, ...]

    @property
    def measured(self) -> tuple[Measured, ...]:
        """What `calibrate` takes."""
        return tuple(one.measured for one in self.seen)


def seen_in(run: Run, asked: Asked | None = None) -> Seen:
    """What this run says; ConditionError where it can't calibrate.

    `calibration_simulated`, `calibration_inadmissible`, `calibration_nothing_ok`, `calibration_no_tpot`,
    `calibration_lengths_unknown`, `calibration_load_unknown`.
    """
    _refuse_no_evidence(run)
    summary = run.summary
    lengths = _length(summary.lengths.input), _length(summary.lengths.output)
    if lengths[0] is None or lengths[1] is None:
        raise ConditionError("calibration_lengths_unknown", run=run.id)
    tpot_ms = _tpot_ms(run, lengths[1])
    if tpot_ms is None or tpot_ms <= 0:
        raise ConditionError("calibration_no_tpot", run=run.id)
    concurrency, source = _load(run)
    return Seen(
        run=run.id,
        measured=Measured(
            concurrency=concurrency,
            input_tokens=lengths[0],
            output_tokens=lengths[1],
            tpot_ms=tpot_ms,
            ttft_ms=_mean(summary, "ttft_from_sent", "ttft"),
            slots=run.environment.engine.slots,
            when=_date(run),
        ),
        concurrency_from=source,
        findings=(*_reservations(run), *contradictions(run, asked or Asked())),
    )


def evidence_of(runs: Sequence[Run], asked: Asked | None = None) -> Evidence:
    """All runs of a group, or some; one that can't calibrate is left out and told, where another can.

    ConditionError of the first where none can; SpecError `calibration_empty` for no run.
    """
    found, told, refused = [], [], []
    for run in runs:
        try:
            found.append(seen_in(run, asked))
        except ConditionError as refusal:
            refused.append(refusal)
            told.append(_note("calibration_run_left_out", run=run.id, reason=refusal.slug))
    if not found:
        raise refused[0] if refused else SpecError("calibration_empty")
    told += [finding for one in found for finding in one.findings]
    distinct = [finding for at, finding in enumerate(told) if finding not in told[:at]]
    return Evidence(
        seen=tuple(sorted(found, key=lambda one: one.measured.concurrency)),
        findings=tuple(distinct),
    )


def contradictions(run: Run, asked: Asked) -> Iterator[Finding]:
    """Where the run was made with something else than what is planned; what one side does not know is not told."""
    model, engine = run.environment.model, run.environment.engine
    names = [name for name in (run.spec.model, model.id, model.file) if name]
    if asked.model and names and not _same_model(asked, names, model.parameters):
        yield _note("calibration_model_differs", run=run.id, seen=names[0], asked=asked.model)
    precision = model.precision or run.spec.labels.quantisation
    if asked.precision and precision and not _same_precision(asked.precision, precision):
        yield _note("calibration_precision_differs", run=run.id, seen=precision, asked=asked.precision)
    if asked.engine and engine.name and _engine(engine.name) != _engine(asked.engine):
        yield _note("calibration_engine_differs", run=run.id, seen=engine.name, asked=asked.engine)


def _refuse_no_evidence(run: Run) -> None:
    if run.origin == "simulated":
        raise ConditionError("calibration_simulated", run=run.id)
    if run.summary.requests.ok == 0:
        raise ConditionError("calibration_nothing_ok", run=run.id)
    if run.verdict == "inadmissible":
        reasons = [finding.slug for finding in run.findings if finding.severity == "high"]
        raise ConditionError("calibration_inadmissible", run=run.id, reasons=", ".join(reasons) or "-")


def _length(length: Length) -> float | None:
    return length.mean if length.mean is not None else length.p50


def _mean(summary: Summary, *names: str) -> float | None:
    """The mean of the first of these latencies that has one."""
    known = (summary.latency_ms[name].mean for name in names if name in summary.latency_ms)
    return next((mean for mean in known if mean is not None), None)


def _tpot_ms(run: Run, output_tokens: float) -> float | None:
    """The mean; where tokens are estimates, which have none, the mean time after the first over the mean length."""
    summary = run.summary
    tpot = _mean(summary, "tpot")
    if tpot is not None or not run.spec.stream or not _estimated(summary) or output_tokens < 2:
        return tpot
    whole, first = _mean(summary, "e2e"), _mean(summary, "ttft")
    return None if whole is None or first is None else (whole - first) / (output_tokens - 1)


def _estimated(summary: Summary) -> float:
    """The share of requests whose tokens were not counted by anyone."""
    sources = summary.lengths.token_source
    return sources.get("estimated", 0) / max(1, sum(sources.values()))


def _load(run: Run) -> tuple[float, LoadFrom]:
    """Requests in flight, and what says so."""
    load = run.spec.load
    if not load.is_open and load.concurrency is not None and not _pauses(run):
        return float(load.concurrency), "spec"
    window = run.summary.window
    end = float("inf") if window.end_s is None else window.end_s
    flight = [second.in_flight for second in run.summary.timeline if window.start_s <= second.at_s < end]
    if flight and sum(flight) > 0:
        return sum(flight) / len(flight), "in_flight"
    rate, whole_ms = run.summary.throughput.requests_per_s, _mean(run.summary, "e2e_from_sent", "e2e")
    if not rate or not whole_ms:
        raise ConditionError("calibration_load_unknown", run=run.id)
    return rate * whole_ms / 1e3, "littles_law"


def _pauses(run: Run) -> bool:
    """Whether slots of a closed loop stand empty for a while: between the turns of a conversation."""
    prompts = run.spec.prompts
    thinks = [one.think_s or prompts.think_s for one in prompts.scenarios] or [prompts.think_s]
    return prompts.converses and any(think.strip() != "0" for think in thinks)


def _date(run: Run) -> str:
    """The day it started, UTC; empty where that is not known."""
    if not run.start_known or run.phases.started_wall_ns <= 0:
        return ""
    return datetime.fromtimestamp(run.phases.started_wall_ns // _NS_PER_S, tz=UTC).strftime("%Y-%m-%d")


def _reservations(run: Run) -> Iterator[Finding]:
    """What the run can say less of."""
    share = _estimated(run.summary)
    if share:
        yield _note("calibration_tokens_estimated", run=run.id, share=share)
    prompts = run.spec.prompts
    if prompts.converses or prompts.shared_prefix_tokens or any(one.shared_prefix_tokens for one in prompts.scenarios):
        yield _note("calibration_prefix_shared", run=run.id)
    if run.spec.load.varies:
        yield _note("calibration_load_varied", run=run.id)


def _same_model(asked: Asked, names: Sequence[str], parameters: int | None) -> bool:
    if parameters and asked.parameters and abs(parameters / asked.parameters - 1) < SAME_COUNT:
        return True
    planned = _words(asked.model or "")
    return any(planned <= words or words <= planned for words in map(_words, names) if words)


def _words(name: str) -> frozenset[str]:
    """Letters and numbers of a name, without its organisation and how it was tuned and packed."""
    last = re.split(r"[/\\]", name.lower())[-1].removesuffix(".gguf")
    return frozenset(re.findall(r"[a-z]+|\d+(?:\.\d+)*", last)) - _TUNED


def _same_precision(asked: str, seen: str) -> bool:
    planned, run = _precision(asked), _precision(seen)
    if planned is None or run is None:
        return asked.strip().lower() == seen.strip().lower()
    plain = planned.linear_bits == run.linear_bits == PLAIN_BITS and planned.expert_bits == run.expert_bits
    return plain or planned.name == run.name


def _precision(name: str) -> Precision | None:
    try:
        return precision_of(name)
    except SpecError:
        return None


def _engine(name: str) -> str:
    word = name.strip().lower()
    return _ENGINES.get(word, word)


def _note(slug: str, **params: Param) -> Finding:
    return Finding(slug=slug, kind="note", severity="low", params=params)
