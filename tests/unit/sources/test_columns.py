"""Whole chunks read as single rows do: the fast reader is sure of nothing that the slow one reads otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.sources.columns import Kind, Plan, parse
from nilometer.sources.row import Broken, iso_ns, length, number_ns

_SLOW: dict[Kind, Callable[[str], int | None]] = {
    "length": lambda text: length(text, "n"),
    "answered": lambda text: length(text, "n"),
    "seconds": lambda text: number_ns(text, "s"),
    "moment": lambda text: iso_ns(text, "none"),
    "moment_utc": lambda text: iso_ns(text, "required"),
}
_SURE: list[tuple[Kind, str]] = [
    ("length", "0"),
    ("length", "126195"),
    ("answered", "1"),
    ("seconds", "5"),
    ("seconds", "45.5"),
    ("seconds", "5270399.999999999"),
    ("moment", "2023-11-16 18:17:03.9799600"),
    ("moment", "1999-12-31 23:59:59"),
    ("moment", "2024-02-29T00:00:00.000000001"),
    ("moment_utc", "2024-05-10 00:00:00.009930+00:00"),
    ("moment_utc", "2024-05-10 00:00:00+00:00"),
    ("moment_utc", "2024-05-10 00:00:00Z"),
]
_UNSURE: list[tuple[Kind, str]] = [
    ("length", ""),
    ("length", "-1"),
    ("length", " 1"),
    ("length", "1234567890"),
    ("answered", "0"),
    ("seconds", "1.2.3"),
    ("seconds", "."),
    ("seconds", "1e3"),
    ("moment", "2023-02-29 00:00:00"),
    ("moment", "2023-11-16 18:17:03."),
    ("moment", "2023-11-16 18:17:03.1234567890"),
    ("moment", "2024-05-10 00:00:00+00:00"),
    ("moment_utc", "2024-05-10 00:00:00"),
    ("moment_utc", "2024-05-10 00:00:00+08:00"),
]


def _one(kind: Kind, text: str, others: tuple[str, ...] = ()) -> tuple[int, bool]:
    """The value of the middle column of a row between two others, and whether it is sure."""
    chunk = "".join(f"a,{each},b\n" for each in (*others, text, *others)).encode()
    parsed = parse(chunk, Plan(3, {1: kind}))
    return int(parsed.values[1][len(others)]), bool(parsed.sure[len(others)])


@pytest.mark.parametrize(("kind", "text"), _SURE)
def test_what_is_usual_is_read_as_the_single_reader_reads_it(kind: Kind, text: str) -> None:
    assert _one(kind, text) == (_SLOW[kind](text), True)


@pytest.mark.parametrize(("kind", "text"), _UNSURE)
def test_what_is_unusual_is_left_to_the_single_reader(kind: Kind, text: str) -> None:
    assert _one(kind, text)[1] is False


@pytest.mark.parametrize("kind", list(_SLOW))
@given(data=st.data())
def test_no_text_is_read_otherwise(kind: Kind, data: st.DataObject) -> None:
    right = [text for named, text in _SURE if named == kind]
    mutated = st.sampled_from(right).flatmap(
        lambda text: st.tuples(st.integers(0, len(text)), st.text("0123456789.-+: TZe\r", max_size=3)).map(
            lambda change: text[: change[0]] + change[1] + text[change[0] + len(change[1]) // 2 :]
        )
    )
    text = data.draw(mutated)
    value, sure = _one(kind, text, tuple(right))
    if sure:
        assert value == _SLOW[kind](text)


@given(st.lists(st.text("0123456789,\r", max_size=12), min_size=1, max_size=8))
def test_rows_of_any_number_of_columns_never_shift_each_other(rows: list[str]) -> None:
    chunk = ("\n".join(rows) + "\n").encode()
    parsed = parse(chunk, Plan(2, {0: "length", 1: "length"}))
    assert len(parsed.sure) == len(rows)
    for place, row in enumerate(rows):
        cells = row.removesuffix("\r").split(",")
        right = len(cells) == 2 and all(cell.isdecimal() and len(cell) <= 9 for cell in cells)
        assert bool(parsed.sure[place]) == right
        if right:
            assert [int(parsed.values[at][place]) for at in (0, 1)] == [int(cell) for cell in cells]
        assert chunk[parsed.start[place] : parsed.stop[place]].decode() == row.removesuffix("\r")


def test_a_broken_value_is_broken_for_the_single_reader_too() -> None:
    with pytest.raises(Broken):
        iso_ns("2023-11-16 18:17:03.", "none")
