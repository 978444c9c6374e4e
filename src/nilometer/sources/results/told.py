"""What a result file tells of one run, in our words and units, before it is a Run; and what of it was left behind.

Nothing here knows a tool. None is what a file does not tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nilometer.core.environment import Environment
from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding, FindingClass, Severity
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Lengths, Memory, Throughput

SHOWN_FIELDS = 5
"""So many fields are named where figures of many were left out."""


class Warned(msgspec.Struct, frozen=True):
    """What could not be taken over as it stands: the slug is that of a finding, its words take the parameters."""

    slug: str
    params: dict[str, Param]


class Imported(NamedTuple):
    """One run of a file, with its requests where the file has them."""

    run: Run
    records: list[Record]
    warnings: list[Warned]


class Notes:
    """Collects what a reader has to say about one run: a finding for each slug and metric, figures that cannot be."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], Finding] = {}
        self._odd: dict[tuple[str, str | None], Counter[str]] = {}

    def add(
        self,
        slug: str,
        metric: str | None = None,
        severity: Severity = "low",
        evidence: Sequence[Evidence] = (),
        **params: Param,
    ) -> None:
        """Say it once. What is grave speaks against the whole run."""
        kind: FindingClass = "validity" if severity == "high" else "note"
        finding = Finding(
            slug=slug, kind=kind, severity=severity, metric=metric, params=params, evidence=list(evidence)
        )
        self._found.setdefault((slug, metric), finding)

    def odd(self, slug: str, field: str, metric: str | None = None) -> None:
        """Count a figure that was left out; those of one slug are told together, with the fields they stood in."""
        self._odd.setdefault((slug, metric), Counter())[field] += 1

    def all(self) -> list[Finding]:
        """The findings so far, those on figures that cannot be at the end."""
        last = Notes()
        for (slug, metric), fields in self._odd.items():
            named = ", ".join(list(fields)[:SHOWN_FIELDS]) + (", ..." if len(fields) > SHOWN_FIELDS else "")
            last.add(slug=slug, metric=metric, severity="medium", fields=named, n=fields.total())
        return [*self._found.values(), *last._found.values()]


class Told(msgspec.Struct, kw_only=True):
    """One run as its file tells it.

    `records` with stamps on one clock of their own from 0 if `placed`; without a common clock each starts at 0, and
    only what each has by itself counts. `latency_ms` are the tool's own figures: they stand where no record has one.
    """

    notes: Notes
    version: str = ""
    started_ns: int | None = None
    model: str | None = None
    target: str | None = None
    api: str | None = None
    stream: bool = True
    load: Load = Load()
    level: str | None = None
    duration_s: float | None = None
    warmup_s: float = 0.0
    records: list[Record] = []
    placed: bool = False
    cut: bool = False
    """The user ended it before its time."""
    cut_requests: bool = False
    """Its incomplete requests are those that the tool itself ended with the load: no failures."""
    counts: Counts | None = None
    latency_ms: dict[str, Distribution] = {}
    throughput: Throughput = Throughput()
    lengths: Lengths = Lengths()
    memory: Memory = Memory()
    server: dict[str, float | None] = {}
    environment: Environment = Environment()
