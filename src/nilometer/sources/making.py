"""From a source to the rows of a workload, and what its head says of where they are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nilometer.workload.entry import Entry, Row
from nilometer.workload.privacy import Text
from nilometer.workload.privacy import rows as rows_of

from .reading import Reading


def made(
    reading: Reading, text: Text, entries: Iterable[Entry], first_ns: int | None
) -> tuple[Iterator[Row], dict[str, Any]]:
    """The rows of these entries, and the fields of the Head that say what they were made of.

    `reading` has been read to its end; offsets count from `first_ns`.
    """
    return map(rows_of(text, first_ns), entries), {
        "text": text,
        "source_format": reading.format.name,
        "block_tokens": reading.format.block_tokens,
        "source_rows": reading.usable,
        "source_stamps": reading.format.unit if first_ns is not None else None,
        "source_skipped": dict(reading.skipped),
        "source_unread": reading.problem_count,
    }


def least_ns(entries: Iterable[Entry]) -> int | None:
    """The first stamp among them."""
    return min((entry.at_ns for entry in entries if entry.at_ns is not None), default=None)
