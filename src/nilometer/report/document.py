"""What is to be shown, free of any medium: blocks of finished words, in the order they are read.

A Document is made by `build`, `sweep`, `lab` or `whole` and shown by `terminal`, `markdown` or `html_page`. Nothing
here chooses a word, measures a width or knows a colour.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Tone = Literal["plain", "trouble"]
Severity = Literal["high", "medium", "low"]
Align = Literal["left", "right", "decimal"]


class Lead(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first line: the verdict in one sentence."""

    text: str
    tone: Tone = "plain"


class Cell(msgspec.Struct, frozen=True):
    """One figure and the mark that hangs behind it (`*`); the mark takes no part in the alignment."""

    text: str
    mark: str = ""


class Column(msgspec.Struct, frozen=True):
    """One column: its heading, how its cells stand to each other, and the unit of them all where they share one."""

    title: str
    align: Align = "decimal"
    unit: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Rows of cells under columns; `legend` explains every mark used in it."""

    columns: list[Column]
    rows: list[list[Cell]]
    legend: list[str] = []


class Fact(msgspec.Struct, frozen=True):
    """A name and what there is to say to it."""

    name: str
    value: str


class Facts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What must be known beside the table before it; a medium may show them at its side."""

    rows: list[Fact]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One warning: the cause, the evidence for it, the next step."""

    slug: str
    severity: Severity
    cause: str
    evidence: str | None = None
    step: str | None = None


class Notes(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """At most a handful, the gravest first; `rest` says where the others are."""

    rows: list[Note]
    rest: str | None = None


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a chart; `text` is how it is written, None where it was not measured."""

    label: str
    value: float | None
    text: str
    trouble: bool = False


class Bars(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Values beside each other, from 0."""

    title: str
    rows: list[Bar]


class Foot(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Where the result lies, and the commands to go on with."""

    text: str
    lead: str = ""
    commands: list[str] = []


class Heading(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the blocks up to the next one are about: the whole (level 1), a part of it (2), a part of that (3)."""

    text: str
    level: Literal[1, 2, 3] = 2


class Text(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A sentence or a few."""

    text: str


class Key(msgspec.Struct, frozen=True):
    """What a mark of a chart means; `look` is how `charts` calls it."""

    look: str
    name: str


class Axis(msgspec.Struct, frozen=True):
    """What one axis shows, and in which unit where it has one."""

    what: str
    unit: str = ""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one picture. `plot` names its numbers, None where there are none and `caption` says why.

    `table` says in figures what the picture shows, for those who cannot see it.
    """

    title: str
    caption: str
    plot: str | None = None
    x: Axis = Axis("")
    y: Axis = Axis("")
    keys: list[Key] = []
    table: Table | None = None


class Charts(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Pictures that belong beside each other; a medium without pictures shows what they say."""

    rows: list[Chart]


class Part(msgspec.Struct, frozen=True):
    """A stretch of one bar; begin and length as shares of the longest bar."""

    look: str
    begin: float
    length: float


class Waterfall(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One bar for each row of `table`, in stretches that `keys` name; `scale` is how long the longest bar is."""

    caption: str
    keys: list[Key]
    table: Table
    bars: list[list[Part]]
    bar_title: str
    scale: str


Block = Lead | Table | Facts | Bars | Notes | Foot | Heading | Text | Charts | Waterfall


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One screen or page. `lang` is the language its words are in."""

    lang: str
    blocks: list[Block]
