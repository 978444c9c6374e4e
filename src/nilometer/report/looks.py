"""How each mark of a chart looks: a shape, a colour by its name in the page's style, a dash. Shapes and dashes tell the
marks apart also where the colours do not. The legend draws from this table, and so does the page's script.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .markup import Html, element, join

Shape = Literal["dot", "ring", "cross", "line", "band", "frame", "bar"]


class Look(NamedTuple):
    """`colour` names a variable of the page's style; `dash` are lengths drawn and left out, none = solid."""

    shape: Shape
    colour: str
    dash: tuple[int, ...] = ()


LOOKS: dict[str, Look] = {
    "ok": Look("dot", "c1"),
    "outside": Look("ring", "muted"),
    "failed": Look("cross", "trouble"),
    "line": Look("line", "c1"),
    "median": Look("line", "c2"),
    "p50": Look("line", "c3", (8, 4)),
    "p95": Look("line", "c2", (3, 3)),
    "asked": Look("line", "c2", (3, 3)),
    "mean": Look("line", "c2", (8, 4)),
    "warmup": Look("band", "band"),
    "left_out": Look("band", "band"),
    "window": Look("frame", "muted"),
    "drain": Look("band", "band"),
    "lag": Look("bar", "lag"),
    "connect": Look("bar", "connect"),
    "first": Look("bar", "first"),
    "whole": Look("bar", "whole"),
    "decode": Look("bar", "decode"),
    "rest": Look("bar", "rest"),
}
_RUNS = (
    Look("line", "c1"),
    Look("line", "c2", (9, 4)),
    Look("line", "c3", (2, 3)),
    Look("line", "c4", (10, 3, 2, 3)),
    Look("line", "c5", (5, 2)),
    Look("line", "muted", (1, 4)),
)


def look(name: str) -> Look:
    """That of a mark; `run0`, `run1` ... are the lines of the runs of a report."""
    number = name.removeprefix("run")
    return LOOKS[name] if number == name else _RUNS[int(number) % len(_RUNS)]


def place(name: str) -> tuple[int, str]:
    """Sorts the marks of a legend: the runs, then as in the table."""
    return (list(LOOKS).index(name) if name in LOOKS else -1, name)


def swatch(name: str) -> Html:
    """The mark as it stands in a legend."""
    shape, colour, dash = look(name)
    return element("svg", _drawn(shape, colour, dash), class_="swatch", width="26", height="12", aria_hidden="true")


def _drawn(shape: Shape, colour: str, dash: tuple[int, ...]) -> Html:
    match shape:
        case "dot" | "ring":
            return element("circle", cx="13", cy="6", r="4", class_=f"{shape} {colour}")
        case "cross":
            return element("path", d="M9 2l8 8M17 2l-8 8", class_=f"stroke {colour}")
        case "line":
            dashes = " ".join(map(str, dash)) or None
            return element("path", d="M0 6h26", class_=f"stroke {colour}", stroke_dasharray=dashes)
        case _:
            return element("rect", x="1", y="1", width="24", height="10", class_=f"{shape} {colour}")


def patterns() -> Html:
    """What fills the stretches of a bar: each its colour and its own pattern."""
    inside = [
        _pattern("lag", 6, element("circle", cx="2", cy="2", r="1.2")),
        _pattern("connect", 6, element("path", d="M0 6L6 0M-1 1L1 -1M5 7L7 5")),
        _pattern("whole", 5, element("path", d="M0 1h5")),
        _pattern("decode", 6, element("path", d="M1 0v6")),
        _pattern("rest", 5, element("path", d="M0 1h5M1 0v5")),
    ]
    return element("svg", element("defs", *inside), width="0", height="0", class_="patterns", aria_hidden="true")


def _pattern(name: str, size: int, drawn: Html) -> Html:
    ground = element("rect", width=str(size), height=str(size), class_=f"ground {name}")
    return element(
        "pattern",
        join(ground, drawn),
        id=f"pattern-{name}",
        class_=name,
        width=str(size),
        height=str(size),
        patternUnits="userSpaceOnUse",
    )
