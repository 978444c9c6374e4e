"""A Document as Markdown: tables, lists and sentences that read the same where nothing renders them.

What a server sent cannot make markup of its own: every sign that Markdown or HTML could take for one is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .document import Bars, Block, Cell, Chart, Charts, Column, Document, Facts, Foot, Heading, Lead, Notes, Table, Text
from .document import Waterfall as Fall

_CODE = re.compile(r"`([^`]+)`")
_SIGNS = re.compile(r"([\\*_{}\[\]<>#|~$!&`])")
_LIST_START = re.compile(r"^(\d*)([-+=.)])(?=\s|=|$)")


def render(document: Document) -> str:
    """The whole document, ending in a line feed."""
    return "\n\n".join("\n".join(_block(block)) for block in document.blocks) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {_text(block.text)}"
        case Lead():
            yield f"**{_prose(block.text)}**"
        case Table():
            yield from _table(block)
        case Facts():
            yield from _facts(block)
        case Bars():
            yield from _bars(block)
        case Notes():
            yield from _notes(block)
        case Foot() | Text():
            yield from _closing(block)
        case Charts():
            yield "\n\n".join(_chart(chart) for chart in block.rows)
        case Fall():
            yield _prose(block.caption)
            yield ""
            yield from _table(block.table)


def _text(words: str) -> str:
    """Words in one line, nothing in them markup."""
    return _SIGNS.sub(r"\\\1", " ".join(words.split()))


def _prose(words: str) -> str:
    """The same at the beginning of a line; what stands in backticks stays code."""
    parts = _CODE.split(" ".join(words.split()))
    told = "".join(_code(part) if i % 2 else _SIGNS.sub(r"\\\1", part) for i, part in enumerate(parts))
    return _LIST_START.sub(r"\1\\\2", told)


def _code(words: str) -> str:
    """A span of code that a backtick in it does not end."""
    flat = " ".join(words.split())
    return f"`` {flat} ``" if "`" in flat else f"`{flat}`"


def _table(table: Table) -> Iterator[str]:
    yield _row([_head(column) for column in table.columns])
    yield _row(["---" if column.align == "left" else "--:" for column in table.columns])
    yield from (_row([_cell(cell) for cell in row]) for row in table.rows)
    if table.legend:
        yield ""
        yield "  \n".join(map(_text, table.legend))


def _head(column: Column) -> str:
    return _text(f"{column.title} {column.unit}".strip())


def _cell(cell: Cell) -> str:
    return _text(cell.text) + _SIGNS.sub(r"\\\1", cell.mark)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _facts(facts: Facts) -> Iterator[str]:
    yield from (f"- **{_text(fact.name)}**: {_prose(fact.value)}" for fact in facts.rows)


def _bars(bars: Bars) -> Iterator[str]:
    yield f"{_text(bars.title)}:"
    yield ""
    yield from (f"- {_text(bar.label)}: {_text(bar.text)}" for bar in bars.rows)


def _notes(notes: Notes) -> Iterator[str]:
    for note in notes.rows:
        yield f"- **{_prose(note.cause)}**"
        yield from (f"  {_prose(line)}" for line in (note.evidence, note.step) if line)
    if notes.rest:
        yield f"- {_prose(notes.rest)}"


def _closing(block: Foot | Text) -> Iterator[str]:
    yield _prose(block.text)
    if isinstance(block, Foot) and block.commands:
        yield ""
        yield from (f"- {_code(command)}" for command in block.commands)


def _chart(chart: Chart) -> str:
    """What the picture shows: its caption, then its figures."""
    figures = [] if chart.table is None else ["", *_table(chart.table)]
    return "\n".join([f"### {_text(chart.title)}", "", _prose(chart.caption), *figures])
