"""What a bench says: rows of figure, goal, floor and verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One figure. `met` None = not judged, with the reason in `note`."""

    what: str
    goal: str
    measured: float | str | None
    floor: float | None = None
    unit: str = "ms"
    met: bool | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def judged(
    what: str,
    measured: float,
    floor: float | None = None,
    *,
    absolute: float | None = None,
    over_floor: float | None = None,
    times_floor: float | None = None,
    unit: str = "ms",
    note: str = "",
) -> Row:
    """A row with its verdict: any of the given bounds is enough.

    An absolute bound counts against a tool only where the floor is below half of it: above that the machine itself is
    what was measured.
    """
    bounds: list[tuple[str, float]] = []
    if absolute is not None:
        bounds.append((f"<= {absolute:g}", absolute))
    if over_floor is not None and floor is not None:
        bounds.append((f"floor + {over_floor:g}", floor + over_floor))
    if times_floor is not None and floor is not None:
        bounds.append((f"{times_floor:g} x floor", times_floor * floor))
    goal = " or ".join(text for text, _ in bounds)
    met: bool | None = any(measured <= bound for _, bound in bounds)
    if not met and over_floor is None and absolute is not None and floor is not None and floor > absolute / 2:
        met, note = None, _joined(note, "floor above half the goal")
    return Row(what, goal, measured, floor, unit, met, note)


def shown(what: str, measured: float | str | None, floor: float | None = None, unit: str = "ms", note: str = "") -> Row:
    """A row without a goal."""
    return Row(what, "-", measured, floor, unit, None, note)


def exact(what: str, measured: object, expected: object) -> Row:
    """A row whose figure must equal the truth."""
    same = measured == expected
    return Row(
        what, "exact", "as meant" if same else f"{measured}", None, "", same, "" if same else f"meant {expected}"
    )


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def table(rows: Sequence[Row]) -> str:
    """Fixed-width text, one line a row."""
    cells = [("figure", "goal", "floor", "measured", "verdict", "note")]
    cells += [
        (row.what, row.goal, _number(row.floor, row.unit), _number(row.measured, row.unit), _verdict(row), row.note)
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def _number(value: float | str | None, unit: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    return f"{value:.{digits}f} {unit}".rstrip()


def _verdict(row: Row) -> str:
    if row.met is None:
        return "not judged" if row.goal not in ("-", "") else "-"
    return "met" if row.met else "MISSED"


def median_rows(repeats: Sequence[Sequence[Row]]) -> list[Row]:
    """Rows of several repeats: the median run's; of text rows the first that was missed, else the first."""
    if len(repeats) == 1:
        return list(repeats[0])
    return [_middle(same) for same in zip(*repeats, strict=True)]


def _middle(rows: Sequence[Row]) -> Row:
    numbers = [row for row in rows if isinstance(row.measured, float | int)]
    if len(numbers) != len(rows):
        return next((row for row in rows if row.met is False), rows[0])
    ordered = sorted(numbers, key=lambda row: float(row.measured or 0))
    middle = ordered[len(ordered) // 2]
    spread = f"{_number(ordered[0].measured, '')}..{_number(ordered[-1].measured, '')} in {len(rows)} runs"
    return Row(
        middle.what, middle.goal, middle.measured, middle.floor, middle.unit, middle.met, _joined(middle.note, spread)
    )
