"""A Document as text for a terminal: aligned on the decimal point, within a width, at most two colours.

Red is trouble, cyan is a command to copy; everything reads the same without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest

from nilometer.text.width import columns, pad, wrap

from .document import (
    Bars,
    Block,
    Cell,
    Charts,
    Column,
    Document,
    Facts,
    Foot,
    Heading,
    Lead,
    Notes,
    Table,
    Text,
    Waterfall,
)

_RED, _CYAN, _END = "\x1b[31m", "\x1b[36m", "\x1b[0m"
_COMMAND = re.compile(r"`[^`]+`")
_GAP = "  "
_SIDE = "   "
"""Between the table and the facts at its side."""
_BAR, _SHORTEST_BAR = "#", 10
_MOST_BROKEN = 1
"""Facts stand beside the table while no more of them than this need a second line."""

Paint = Callable[[str, str], str]


def render(document: Document, width: int = 80, colour: bool = False) -> str:
    """The document as lines of at most `width` columns, without a newline at the end.

    Only what cannot be broken (a table, a long path or command) may be wider.
    """
    paint = _painted if colour else _plain
    parts: list[list[str]] = []
    for i, block in enumerate(document.blocks):
        before = document.blocks[i - 1] if i else None
        if isinstance(block, Facts) and isinstance(before, Table):
            parts[-1] = _beside(parts[-1], block, width)
        else:
            parts.append(_alone(block, width, paint))
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part)


def _plain(text: str, _colour: str) -> str:
    return text


def _painted(text: str, colour: str) -> str:
    return f"{colour}{text}{_END}" if text else text


def _alone(block: Block, width: int, paint: Paint) -> list[str]:
    match block:
        case Lead():
            return [paint(line, _RED) if block.tone == "trouble" else line for line in wrap(block.text, width)]
        case Facts():
            return _facts(block, width)
        case Bars():
            return list(_bars(block, width, paint))
        case Notes():
            return list(_notes(block, width, paint))
        case Foot():
            return list(_foot(block, width, paint))
        case _:
            return _other(block, width)


def _other(block: Table | Heading | Text | Charts | Waterfall, width: int) -> list[str]:
    """Tables, and what stands in a whole report only; pictures by their words."""
    match block:
        case Table():
            return _table(block)
        case Charts():
            return [line for chart in block.rows for line in wrap(f"{chart.title}: {chart.caption}", width)]
        case Waterfall():
            return _table(block.table)
        case _:
            return wrap(block.text, width)


def _table(table: Table) -> list[str]:
    """Headings, their units on a second line where there are any, rows; the legend below."""
    rendered = [
        _column(column, [row[i] for row in table.rows], any(c.unit for c in table.columns))
        for i, column in enumerate(table.columns)
    ]
    lines = [_GAP.join(cells) for cells in zip(*rendered, strict=True)]
    return [*lines, *table.legend]


def _column(column: Column, cells: list[Cell], with_units: bool) -> list[str]:
    """One column from heading to last row, every line of the same width; marks hang right of the figures."""
    heads = [column.title, column.unit] if with_units else [column.title]
    right = column.align != "left"
    most = max((_decimals(cell) for cell in cells), default=0) if column.align == "decimal" else 0
    blanks = [" " * max(most - _decimals(cell), 0) for cell in cells]
    bodies = [cell.text + blank for cell, blank in zip(cells, blanks, strict=True)]
    width = max(columns(text) for text in (*heads, *bodies))
    marks = max((columns(cell.mark) for cell in cells), default=0)
    lines = [pad(text, width, right) for text in heads]
    for cell, body, blank in zip(cells, bodies, blanks, strict=True):
        before = pad("", width - columns(body)) if right else ""
        lines.append(before + cell.text + cell.mark + blank)
    return [pad(line, width + marks) for line in lines]


def _decimals(cell: Cell) -> int:
    """Columns from the decimal point to the end; 0 where there is none."""
    return len(cell.text) - cell.text.rindex(".") if "." in cell.text else 0


def _beside(table: list[str], facts: Facts, width: int) -> list[str]:
    """Table and facts side by side where the width allows, else one below the other."""
    left = max(columns(line) for line in table)
    beside = _facts(facts, width - left - len(_SIDE))
    if len(beside) > len(facts.rows) + _MOST_BROKEN or max(map(columns, beside)) > width - left - len(_SIDE):
        return [*table, "", *_facts(facts, width)]
    return [pad(one, left) + _SIDE + other for one, other in zip_longest(table, beside, fillvalue="")]


def _facts(facts: Facts, width: int) -> list[str]:
    """`name  value`, the values under each other."""
    names = max((columns(fact.name) for fact in facts.rows), default=0)
    lines = []
    for fact in facts.rows:
        values = wrap(fact.value, width - names - len(_GAP)) or [""]
        lines += [pad(fact.name if i == 0 else "", names) + _GAP + value for i, value in enumerate(values)]
    return lines


def _bars(bars: Bars, width: int, paint: Paint) -> Iterator[str]:
    """A line for each value: label, bar, figure."""
    labels = max((columns(bar.label) for bar in bars.rows), default=0)
    figures = max((columns(bar.text) for bar in bars.rows), default=0)
    most = max((bar.value or 0.0 for bar in bars.rows), default=0.0) or 1.0
    room = max(width - labels - figures - 2 * len(_GAP), _SHORTEST_BAR)
    yield from wrap(bars.title, width)
    for bar in bars.rows:
        drawn = _BAR * round((bar.value or 0.0) / most * room)
        yield pad(bar.label, labels, True) + _GAP + (paint(drawn, _RED) if bar.trouble else drawn) + _GAP + bar.text


def _notes(notes: Notes, width: int, paint: Paint) -> Iterator[str]:
    """Each note behind its sign, cause, evidence and step beginning a line of their own."""
    for note in notes.rows:
        lines = [line for text in (note.cause, note.evidence, note.step) if text for line in wrap(text, width - 2)]
        sign = "-" if note.severity == "low" else paint("!", _RED)
        yield from (f"{sign if i == 0 else ' '} {_commands(line, paint)}" for i, line in enumerate(lines))
    if notes.rest:
        yield from (f"  {_commands(line, paint)}" for line in wrap(notes.rest, width - 2))


def _commands(line: str, paint: Paint) -> str:
    return _COMMAND.sub(lambda match: paint(match.group(), _CYAN), line)


def _foot(foot: Foot, width: int, paint: Paint) -> Iterator[str]:
    """Where it lies; then the commands, each whole, as many on a line as fit."""
    yield from wrap(foot.text, width)
    indent = columns(foot.lead) + len(_GAP)
    for i, line in enumerate(_filled(foot.commands, width - indent)):
        shown = _SIDE.join(paint(command, _CYAN) for command in line)
        yield (foot.lead + _GAP if i == 0 else " " * indent) + shown


def _filled(commands: list[str], room: int) -> list[list[str]]:
    lines: list[list[str]] = []
    for command in commands:
        if lines and columns(_SIDE.join([*lines[-1], command])) <= room:
            lines[-1].append(command)
        else:
            lines.append([command])
    return lines
