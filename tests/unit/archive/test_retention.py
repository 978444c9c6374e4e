"""Which lots of runs may go: by age, by number, never with a tag, never in part."""

from __future__ import annotations

import pytest

from nilometer.archive.retention import Kept, choose

RUNS = [
    Kept("a", None, 10, "chat", 5),
    Kept("b", "sweep", 20, "chat", 1),
    Kept("c", "sweep", 21, "chat", 2),
    Kept("d", "mixed", 30, "chat", 1),
    Kept("e", "mixed", 31, "code", 1),
    Kept("f", None, 40, "code", 0),
    Kept("g", None, 50, None, 0),
    Kept("h", None, 60, "chat", 0),
]


def chosen(**asked: object) -> list[str]:
    tagged = asked.pop("tagged", set())
    return ["".join(lot.runs) for lot in choose(RUNS, tagged, **asked)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["a", "bc", "de", "f", "g", "h"]),
        ({"before_wall_ns": 41}, ["a", "bc", "de", "f"]),
        ({"before_wall_ns": 31}, ["a", "bc"]),
        ({"before_wall_ns": 21}, ["a"]),
        ({"keep": 1}, ["a", "bc", "de"]),
        ({"keep": 2}, ["a"]),
        ({"keep": 3}, []),
        ({"service": "chat"}, ["a", "bc", "h"]),
        ({"service": "code"}, ["f"]),
        ({"service": "chat", "keep": 1}, ["a", "bc"]),
        ({"keep": 1, "before_wall_ns": 20}, ["a"]),
        ({"tagged": {"a"}}, ["bc", "de", "f", "g", "h"]),
        ({"tagged": {"b", "mixed"}}, ["a", "f", "g", "h"]),
        ({"tagged": {"h"}, "keep": 1}, ["a", "bc", "de"]),
    ],
)
def test_what_may_go(asked: dict[str, object], found: list[str]) -> None:
    assert chosen(**asked) == found


def test_a_lot_tells_what_it_holds() -> None:
    (_, sweep, *_) = choose(RUNS, set())
    assert (sweep.group, sweep.runs, sweep.newest_wall_ns, sweep.service, sweep.records) == (
        "sweep",
        ["b", "c"],
        21,
        "chat",
        3,
    )


def test_nothing_is_chosen_of_nothing() -> None:
    assert choose([], set()) == []
