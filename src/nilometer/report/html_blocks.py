"""The blocks of a Document as HTML, without style or script: headings in order, real tables, lists of names and values.

Knows no word but those of the Document and the few of the page itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from nilometer.text.i18n import Catalogue

from .document import (
    Axis,
    Bars,
    Block,
    Cell,
    Chart,
    Charts,
    Column,
    Document,
    Facts,
    Foot,
    Heading,
    Key,
    Lead,
    Note,
    Notes,
    Part,
    Table,
    Text,
    Waterfall,
)
from .looks import swatch
from .markup import Html, element, join, prose, text

_POINT, _DIGIT = "\u2008", "\u2007"
"""Blanks as wide as a point and as a digit, for what a figure has less of than the others of its column."""
_SEVERITY_SIGN = {"high": "!", "medium": "!", "low": "·"}
_NARROW = {1, 2, 4}
"""Columns of a waterfall that give way on a narrow screen."""


def body(document: Document, words: Catalogue) -> Html:
    """All blocks; the contents behind the first heading and what belongs to it."""
    parts = list(_sections(document.blocks))
    numbered = list(enumerate(parts))
    shown = [_section(part, f"{document.lang}-{i}", words) for i, part in numbered]
    return join(shown[0], _contents(document.lang, numbered[1:], words), *shown[1:])


def label(axis: Axis, words: Catalogue) -> str:
    """What stands at an axis."""
    return words.say("screen.chart.axis", what=axis.what, unit=axis.unit) if axis.unit else axis.what


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Cut before each heading but those of a part's own parts."""
    number = 0
    numbers = []
    for block in blocks:
        number += isinstance(block, Heading) and block.level < 3
        numbers.append(number)
    for _, group in groupby(zip(numbers, blocks, strict=True), key=lambda pair: pair[0]):
        yield [block for _, block in group]


def _section(blocks: Sequence[Block], name: str, words: Catalogue) -> Html:
    head = blocks[0]
    if not isinstance(head, Heading):
        return join(*_blocks(blocks, words))
    title = element(f"h{head.level}", text(head.text), id=name)
    hint = [_hint(words)] if any(isinstance(block, Charts) for block in blocks) else []
    return element("section", title, *hint, *_blocks(blocks[1:], words), aria_labelledby=name)


def _hint(words: Catalogue) -> Html:
    """How the charts are read; or that they are not drawn, where no script runs."""
    return join(
        *(
            element("p", text(words.say(f"screen.page.{key}")), class_=f"hint {kind}")
            for key, kind in (("hint", "scripted"), ("unscripted", "unscripted"))
        )
    )


def _contents(lang: str, parts: Sequence[tuple[int, list[Block]]], words: Catalogue) -> Html:
    links = [
        element("li", element("a", text(part[0].text), href=f"#{lang}-{i}"))
        for i, part in parts
        if isinstance(part[0], Heading)
    ]
    return element("nav", element("ul", *links), class_="contents", aria_label=words.say("screen.page.contents"))


def _blocks(blocks: Sequence[Block], words: Catalogue) -> Iterator[Html]:
    """A table and the facts behind it stand beside each other where there is room."""
    i = 0
    while i < len(blocks):
        block, behind = blocks[i], blocks[i + 1] if i + 1 < len(blocks) else None
        if isinstance(block, Table) and isinstance(behind, Facts):
            yield element("div", _table(block, words), _facts(behind), class_="beside")
            i += 2
        else:
            yield _block(block, words)
            i += 1


def _block(block: Block, words: Catalogue) -> Html:
    match block:
        case Lead():
            return element("p", prose(block.text), class_=f"lead {block.tone}")
        case Table():
            return _table(block, words)
        case Facts():
            return _facts(block)
        case Bars():
            return _bars(block)
        case Notes():
            return _notes(block, words)
        case _:
            return _other(block, words)


def _other(block: Foot | Heading | Text | Charts | Waterfall, words: Catalogue) -> Html:
    match block:
        case Foot():
            return _foot(block)
        case Charts():
            charts = [_chart(chart, words) for chart in block.rows]
            return element("div", *charts, class_="charts" if len(charts) > 1 else "charts one")
        case Waterfall():
            return _waterfall(block, words)
        case Heading():
            return element(f"h{block.level}", text(block.text))
        case Text():
            return element("p", prose(block.text))


def _table(table: Table, words: Catalogue, bars: Sequence[Html] = (), bar_title: Html | None = None) -> Html:
    """`bars` stand behind the rows, in a column of their own."""
    heads = [_head(column, i, bool(bars)) for i, column in enumerate(table.columns)]
    if bar_title is not None:
        heads.append(element("th", bar_title, scope="col", class_="bars"))
    decimals = [_decimals(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)]
    rows = []
    for number, row in enumerate(table.rows):
        cells = [_cell(cell, table.columns[i], decimals[i], i, bool(bars)) for i, cell in enumerate(row)]
        rows.append(element("tr", *cells, *([element("td", bars[number], class_="bars")] if bars else [])))
    whole = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    legend = [element("p", text(line), class_="legend") for line in table.legend]
    frame = element(
        "div", whole, class_="scrolls", tabindex="0", role="region", aria_label=words.say("screen.page.scrolls")
    )
    return element("div", frame, *legend, class_="table")


def _head(column: Column, i: int, has_bars: bool) -> Html:
    if not (column.title or column.unit):
        return element("td")
    unit = [element("span", text(column.unit), class_="unit")] if column.unit else []
    return element("th", text(column.title), *unit, scope="col", class_=_kind(column, i, has_bars))


def _cell(cell: Cell, column: Column, decimals: int, i: int, has_bars: bool) -> Html:
    mark = [element("span", text(cell.mark), class_="mark")] if cell.mark else []
    shown = join(text(cell.text), *mark, text(_blanks(cell, decimals) if column.align == "decimal" else ""))
    if i == 0:
        return element("th", shown, scope="row", class_=_kind(column, i, has_bars))
    return element("td", shown, class_=_kind(column, i, has_bars))


def _kind(column: Column, i: int, has_bars: bool) -> str | None:
    kinds = [*(["number"] if column.align != "left" else []), *(["wide"] if has_bars and i in _NARROW else [])]
    return " ".join(kinds) or None


def _decimals(column: Column, cells: Sequence[Cell]) -> int:
    """The most digits behind a point in a column that is aligned on it."""
    return max((_behind_point(cell) for cell in cells), default=0) if column.align == "decimal" else 0


def _behind_point(cell: Cell) -> int:
    return len(cell.text.rpartition(".")[2]) if "." in cell.text else 0


def _blanks(cell: Cell, decimals: int) -> str:
    lacking = decimals - _behind_point(cell)
    return (_POINT if decimals and not _behind_point(cell) else "") + _DIGIT * lacking


def _facts(facts: Facts) -> Html:
    rows = [element("div", element("dt", text(fact.name)), element("dd", prose(fact.value))) for fact in facts.rows]
    return element("dl", *rows)


def _bars(bars: Bars) -> Html:
    """A line for each value; the bar is for the eye only, the figure stands beside it."""
    most = max((bar.value or 0.0 for bar in bars.rows), default=0.0) or 1.0
    rows = []
    for bar in bars.rows:
        drawn = element("rect", width=_share((bar.value or 0.0) / most), height="100%", class_="bar c1")
        svg = element("svg", drawn, class_="fall", aria_hidden="true")
        kind = "trouble" if bar.trouble else None
        rows.append(
            element(
                "tr",
                element("th", text(bar.label), scope="row", class_="number"),
                element("td", svg, class_="bars"),
                element("td", text(bar.text), class_=" ".join(part for part in ("number", kind) if part)),
            )
        )
    return element("table", element("caption", text(bars.title)), element("tbody", *rows), class_="loads")


def _notes(notes: Notes, words: Catalogue) -> Html:
    rows = [element("li", *_note(note, words), class_=note.severity) for note in notes.rows]
    rest = [element("p", prose(notes.rest))] if notes.rest else []
    return join(element("ul", *rows, class_="notes"), *rest)


def _note(note: Note, words: Catalogue) -> Iterator[Html]:
    sign = text(_SEVERITY_SIGN[note.severity])
    said = words.say(f"screen.page.{note.severity}")
    yield element("span", sign, class_="sign", role="img", aria_label=said, title=said)
    yield element("p", prose(note.cause), class_="cause")
    for line in (note.evidence, note.step):
        if line:
            yield element("p", prose(line))


def _foot(foot: Foot) -> Html:
    commands = [element("li", element("code", text(command))) for command in foot.commands]
    lead = [element("p", text(foot.lead)), element("ul", *commands, class_="commands")] if commands else []
    return join(element("p", prose(foot.text)), *lead)


def _chart(chart: Chart, words: Catalogue) -> Html:
    title, caption = element("h3", text(chart.title)), element("figcaption", prose(chart.caption))
    if chart.plot is None:
        return element("figure", title, caption, class_="chart absent")
    name = f"{chart.title}. {label(chart.x, words)}; {label(chart.y, words)}. {chart.caption}"
    drawn = element("div", class_="plot", role="img", tabindex="0", aria_label=name)
    readout = element("p", class_="readout", aria_live="polite")
    legend = _legend(chart.keys)
    figures = [] if chart.table is None else [_figures(chart.table, words)]
    return element("figure", title, drawn, readout, legend, caption, *figures, class_="chart", data_plot=chart.plot)


def _figures(table: Table, words: Catalogue) -> Html:
    return element("details", element("summary", text(words.say("screen.page.figures"))), _table(table, words))


def _legend(keys: Sequence[Key]) -> Html:
    return element("ul", *(element("li", swatch(key.look), text(key.name)) for key in keys), class_="keys")


def _waterfall(fall: Waterfall, words: Catalogue) -> Html:
    bars = [_bar(parts) for parts in fall.bars]
    title = join(text(fall.bar_title), element("span", text(f"0 – {fall.scale}"), class_="unit"))
    return join(
        element("p", prose(fall.caption)),
        _legend(fall.keys),
        element("div", _table(fall.table, words, bars, title), class_="waterfall"),
    )


def _bar(parts: Sequence[Part]) -> Html:
    """The figures stand in the same row, so that the bar says nothing to a screen reader."""
    drawn = [
        element("rect", x=_share(part.begin), width=_share(part.length), height="100%", class_=f"bar {part.look}")
        for part in parts
    ]
    return element("svg", *drawn, class_="fall", aria_hidden="true")


def _share(of_one: float) -> str:
    return f"{100 * of_one:.4g}%"
