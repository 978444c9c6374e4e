"""The failed requests of a run, like ones together: what `nilo runs show --errors` tells. Reads a stream of records."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import Record

MOST_KINDS = 1_000
"""Kept apart by their detail up to here; beyond it only by outcome, kind and status, so that memory stays bounded."""


class Failure(msgspec.Struct, kw_only=True):
    """Requests that failed alike. Seconds count from the end of the asked warm-up; None where none was ever sent."""

    outcome: str
    error: str | None
    status: int | None
    detail: str | None
    n: int = 0
    first_s: float | None = None
    last_s: float | None = None


class Failures(msgspec.Struct, kw_only=True):
    """All of them, the most frequent first, and how many records were read."""

    kinds: list[Failure]
    failed: int
    records: int


class Failing:
    """Takes records one by one; `found` hands out what failed of them: outcome `error` or `incomplete`.

    What we ended ourselves is no failure.
    """

    def __init__(self, measured_ns: int) -> None:
        self._measured_ns = measured_ns
        self._kinds: dict[tuple[str, str | None, int | None, str | None], Failure] = {}
        self._failed = self._seen = 0

    def add(self, record: Record) -> None:
        """Note one request."""
        self._seen += 1
        if record.outcome in ("error", "incomplete"):
            self._failed += 1
            self._count(record)

    def found(self) -> Failures:
        """All failures so far."""
        kinds = sorted(self._kinds.values(), key=lambda failure: -failure.n)
        return Failures(kinds=kinds, failed=self._failed, records=self._seen)

    def _count(self, record: Record) -> None:
        detail = record.error_detail
        key = (record.outcome, record.error, record.status, detail)
        if key not in self._kinds and len(self._kinds) >= MOST_KINDS:
            detail = None
            key = (*key[:3], None)
        failure = self._kinds.setdefault(
            key, Failure(outcome=record.outcome, error=record.error, status=record.status, detail=detail)
        )
        failure.n += 1
        at_ns = record.end_ns if record.end_ns is not None else record.start_ns
        if at_ns is not None:
            at_s = (at_ns - self._measured_ns) / NS_PER_S
            failure.first_s = at_s if failure.first_s is None else min(failure.first_s, at_s)
            failure.last_s = at_s if failure.last_s is None else max(failure.last_s, at_s)


def gather(records: Iterable[Record], measured_ns: int) -> Failures:
    """The same of a whole stream of them."""
    failing = Failing(measured_ns)
    for record in records:
        failing.add(record)
    return failing.found()
