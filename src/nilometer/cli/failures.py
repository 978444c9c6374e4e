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


def gather(records: Iterable[Record], measured_ns: int) -> Failures:
    """Put together what failed: outcome `error` or `incomplete`. What we ended ourselves is no failure."""
    found: dict[tuple[str, str | None, int | None, str | None], Failure] = {}
    failed = seen = 0
    for record in records:
        seen += 1
        if record.outcome in ("error", "incomplete"):
            failed += 1
            _count(found, record, measured_ns)
    kinds = sorted(found.values(), key=lambda failure: -failure.n)
    return Failures(kinds=kinds, failed=failed, records=seen)


def _count(
    found: dict[tuple[str, str | None, int | None, str | None], Failure], record: Record, measured_ns: int
) -> None:
    detail = record.error_detail
    key = (record.outcome, record.error, record.status, detail)
    if key not in found and len(found) >= MOST_KINDS:
        detail = None
        key = (*key[:3], None)
    failure = found.setdefault(
        key, Failure(outcome=record.outcome, error=record.error, status=record.status, detail=detail)
    )
    failure.n += 1
    at_ns = record.end_ns if record.end_ns is not None else record.start_ns
    if at_ns is not None:
        at_s = (at_ns - measured_ns) / NS_PER_S
        failure.first_s = at_s if failure.first_s is None else min(failure.first_s, at_s)
        failure.last_s = at_s if failure.last_s is None else max(failure.last_s, at_s)
