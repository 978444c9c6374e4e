"""From what a file tells to a Run: figures by our own definitions where there are requests, else the tool's own.

Nothing is known of another tool's load generator: its run is `marked` at best, and its generator is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import DataError
from nilometer.core.finding import Evidence, Finding
from nilometer.core.mask import Mask
from nilometer.core.record import Record
from nilometer.core.run import START_UNKNOWN, Health, Phases, Run, new_id
from nilometer.core.secrets import in_target
from nilometer.core.spec import Labels, Sampling, Spec, without_secrets
from nilometer.core.summary import Counts, Distribution, Generator, Summary, Window
from nilometer.metrics.generator import ACHIEVED_SHARE
from nilometer.metrics.summary import summarise
from nilometer.metrics.validity import judge

from .figures import missing, over
from .told import Imported, Told, Warned

JUDGED = frozenset(
    (
        "no_ok_requests",
        "none_answered",
        "errors_over_limit",
        "never_steady",
        "too_few",
        "interrupted",
        "tokens_estimated",
    )
)
"""What our rules say of another tool's run too; the others speak of our procedure, our prompts and our generator."""
MOST_DAYS = 7
"""A load test that lasts longer is none: its stamps are of different clocks, or broken."""
UNKNOWN = Counts(started=None, ok=None, error=None, incomplete=None, cancelled=None, censored=None)


class Source(NamedTuple):
    """Where a run comes from. `modified_ns`, when the file was written, stands for a start that nobody told."""

    tool: str
    file: str
    modified_ns: int
    labels: Labels = Labels()
    model: str | None = None
    """For a file that does not name it."""


def imported(told: Told, source: Source, random: Random) -> Imported:
    """The Run with its requests, and what of the file was not taken over."""
    records = _masked(told)
    if not _within_a_run(told, records):
        raise DataError("result_span", file=source.file, days=MOST_DAYS)
    spec = _spec(told, source)
    phases = _phases(told, records, source)
    summary = _summary(told, records, spec, phases)
    _note(told, summary)
    judged = [one for one in judge(_as_judged(told, summary), spec, phases, Health())[1] if one.slug in JUDGED]
    noted = [replace(one, params={"tool": source.tool, **one.params}) for one in told.notes.all()]
    run = Run(
        id=new_id(random),
        spec=without_secrets(spec),
        environment=told.environment,
        phases=phases,
        health=Health(),
        summary=summary,
        findings=[*judged, *noted, _origin(told, source)],
        verdict="inadmissible" if any(one.severity == "high" for one in (*judged, *noted)) else "marked",
        level=told.level,
        origin="imported",
        tool=source.tool,
        tool_version=told.version,
    )
    warnings = [Warned(one.slug, {"file": source.file, **one.params}) for one in noted]
    return Imported(run, records if told.placed else [], warnings)


def _within_a_run(told: Told, records: Sequence[Record]) -> bool:
    """Whether all moments lie so that one load test can have seen them."""
    most = MOST_DAYS * 86_400 * NS_PER_S
    length_s = (told.duration_s or 0.0) + told.warmup_s
    return length_s * NS_PER_S <= most and all(
        one.sent_ns is not None and max(one.sent_ns, one.end_ns or 0, one.last_token_ns or 0) <= most for one in records
    )


def _as_judged(told: Told, summary: Summary) -> Summary:
    return replace(summary, requests=replace(summary.requests, incomplete=0)) if told.cut_requests else summary


def _origin(told: Told, source: Source) -> Finding:
    return Finding(
        slug="imported",
        kind="note",
        severity="low",
        params={"tool": f"{source.tool} {told.version}".rstrip(), "file": source.file},
    )


def _spec(told: Told, source: Source) -> Spec:
    """What the file tells of what was asked; the rest stays as the Spec has it, and is shown as unknown."""
    borders = f"0..{told.duration_s:.6f}" if told.placed and told.warmup_s and told.duration_s else "count"
    load = replace(
        told.load,
        concurrency=told.load.concurrency or None,
        rate_per_s=told.load.rate_per_s or None,
        requests=told.load.requests or None,
        warmup_s=told.warmup_s,
        duration_s=told.duration_s or 0.0,
        window=borders,
    )
    return Spec(
        target=told.target or "",
        model=told.model or source.model,
        api=told.api or "auto",
        stream=told.stream,
        load=load,
        sampling=Sampling(temperature="none"),
        labels=source.labels,
    )


def _phases(told: Told, records: Sequence[Record], source: Source) -> Phases:
    """Borders on the clock of the requests; without one, from 0 to the end of what was measured."""
    measured = round(told.warmup_s * NS_PER_S)
    last = max((one.end_ns or one.sent_ns or 0 for one in records), default=0)
    length = None if told.duration_s is None else round(told.duration_s * NS_PER_S)
    stop = max(last, measured) if length is None else measured + length
    return Phases(
        started_wall_ns=source.modified_ns if told.started_ns is None else told.started_ns,
        start_ns=0,
        measured_ns=measured,
        stop_ns=stop,
        end_ns=max(stop, last),
        interrupted=told.cut,
    )


def _summary(told: Told, records: Sequence[Record], spec: Spec, phases: Phases) -> Summary:
    if not records:
        counts = told.counts or UNKNOWN
        return _own_words(told, counts, told.latency_ms)
    made = summarise(records, spec, phases, Health(), told.memory)
    latency = {
        name: one if one.n else told.latency_ms.get(name, Distribution()) for name, one in made.latency_ms.items()
    }
    if not told.placed:
        whole = _own_words(told, told.counts or made.requests, latency)
        return replace(whole, lengths=made.lengths)
    ended = all(one.end_ns is not None for one in records)  # else nobody knows how many were in flight
    achieved = made.generator.achieved_over_asked if ended else None
    goodput = made.throughput.goodput_requests_per_s or told.throughput.goodput_requests_per_s
    return replace(
        made,
        latency_ms=latency,
        throughput=replace(made.throughput, goodput_requests_per_s=goodput),
        generator=Generator(achieved_over_asked=achieved),
        server=made.server | told.server,
    )


def _own_words(told: Told, counts: Counts, latency_ms: dict[str, Distribution]) -> Summary:
    """The tool's own figures. It tells one set of counts: of the stretch that its figures are of."""
    made = told.throughput
    if made.requests_per_s is None:
        made = replace(made, requests_per_s=over(counts.ok, told.duration_s))
    return Summary(
        window=Window(start_s=0.0, end_s=told.duration_s, rule="asked" if told.warmup_s else "count"),
        requests=counts,
        run_requests=counts,
        latency_from="sent",
        latency_ms=latency_ms,
        throughput=made,
        lengths=told.lengths,
        generator=Generator(),
        memory=told.memory,
        server=told.server,
    )


def _note(told: Told, summary: Summary) -> None:
    """What is so of any tool's run."""
    notes = told.notes
    if told.started_ns is None:
        notes.add(START_UNKNOWN)
    if not told.load.concurrency and not told.load.rate_per_s and not told.load.varies:
        notes.add("import_load_unknown")
    if summary.requests.ok is not None and summary.requests.error is None:
        notes.add("import_failed_unknown")
    lacking = missing(summary.latency_ms)
    if lacking:
        notes.add("import_percentiles_missing", missing=", ".join(lacking))
    achieved = summary.generator.achieved_over_asked
    if achieved is not None and achieved < ACHIEVED_SHARE:
        kept = Evidence(name="achieved_over_asked", value=achieved, unit="share")
        notes.add("import_load_not_kept", severity="medium", evidence=[kept], share=achieved)


def _masked(told: Told) -> list[Record]:
    """The requests without secrets of the address, which errors like to quote."""
    mask = Mask(in_target(told.target or ""))
    return [
        one if one.error_detail is None else replace(one, error_detail=mask.word(one.error_detail))
        for one in told.records
    ]
