"""What is to be shown, free of any medium: blocks of finished words, in the order they are read.

A Document is made by `build` and shown by `terminal` (later Markdown, HTML, the web page). Nothing here chooses a word,
measures a width or knows a colour.
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


Block = Lead | Table | Facts | Bars | Notes | Foot


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One screen or page. `lang` is the language its words are in."""

    lang: str
    blocks: list[Block]
