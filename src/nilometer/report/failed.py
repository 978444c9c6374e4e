"""The table of what failed: how often, when, what the server said of it."""

from __future__ import annotations

from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Table
from .failures import Failure, Failures


def table(failures: Failures, words: Catalogue, most: int) -> Table:
    """The `most` frequent kinds, a row each; it is said where there are more."""
    more = len(failures.kinds) - most
    return Table(
        columns=[
            Column("n", "right"),
            Column(words.say("screen.runs.failure_at"), "left", words.say("screen.runs.failure_from")),
            Column(words.say("screen.runs.failure_kind"), "left"),
            Column(words.say("screen.runs.failure_detail"), "left"),
        ],
        rows=[_row(failure) for failure in failures.kinds[:most]],
        legend=[words.say("screen.runs.failure_more", n=more)] if more > 0 else [],
    )


def _row(failure: Failure) -> list[Cell]:
    first, last = units.fixed(failure.first_s, 1), units.fixed(failure.last_s, 1)
    detail = " ".join(part for part in (str(failure.status or ""), " ".join((failure.detail or "").split())) if part)
    return [
        Cell(units.count(failure.n)),
        Cell(first if first == last else f"{first}..{last}"),
        Cell(failure.error or failure.outcome),
        Cell(detail),
    ]
