"""Members by their path: what is a number, what is left out and noted, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nilometer.core.errors import DataError
from nilometer.sources.results.fields import Fields, of_table
from nilometer.sources.results.told import Notes

FILE = Path("x.json")


def fields(tree: dict[str, Any], *, line: int | None = None) -> tuple[Fields, Notes]:
    notes = Notes()
    members = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in tree.items()}
    return Fields(FILE, members, notes, line=line), notes


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (0.5, 0.5),
        ("2.5", 2.5),
        (None, None),
        (0, 0.0),
        ("nan", None),
        ("inf", None),
        (-1, None),
        (1e300, None),
    ],
)
def test_a_number(value: Any, number: float | None) -> None:
    assert fields({"a": value})[0].number("a") == number
    assert fields({"a": value})[0].number("b") is None


def test_what_cannot_be_is_noted_with_its_path_once_for_all() -> None:
    found, notes = fields({"a": {"b": "nan", "c": -1}, "d": [1, -2, None]})
    assert (found.under("a").number("b"), found.under("a").number("c")) == (None, None)
    assert found.numbers("d") == [1.0, None, None]
    told = {one.slug: one.params for one in notes.all()}
    assert told == {
        "import_not_a_number": {"fields": "a.b", "n": 1},
        "import_impossible": {"fields": "a.c, d", "n": 2},
    }


def test_only_some_of_many_fields_are_named() -> None:
    found, notes = fields({f"f{place}": -1 for place in range(7)})
    for name in found:
        found.number(name)
    (one,) = notes.all()
    assert one.params == {"fields": "f0, f1, f2, f3, f4, ...", "n": 7}


def test_an_infinite_rate_has_a_meaning() -> None:
    assert fields({"a": "inf"})[0].rate("a") == math.inf
    assert fields({"a": 4})[0].rate("a") == 4.0


@pytest.mark.parametrize("value", [{"b": 1}, [1], True, "many"])
def test_a_member_of_another_kind_is_refused_with_its_path(value: Any) -> None:
    with pytest.raises(DataError) as fault:
        fields({"a": {"n": value}})[0].under("a").number("n")
    assert (fault.value.slug, fault.value.params["field"]) == ("result_field", "a.n")
    with pytest.raises(DataError) as fault:
        fields({"n": value}, line=7)[0].whole("n")
    assert (fault.value.slug, fault.value.params["line"]) == ("result_field_line", 7)


def test_a_count_has_a_bound() -> None:
    found, notes = fields({"a": 1e14, "b": 12.0})
    assert (found.whole("a"), found.whole("b")) == (None, 12)
    assert [one.slug for one in notes.all()] == ["import_impossible"]


def test_objects_in_a_list_have_their_place_in_the_path() -> None:
    each = fields({"a": [{"b": 1}, {"b": "x"}]})[0].each("a")
    assert each[0].number("b") == 1.0
    with pytest.raises(DataError) as fault:
        each[1].number("b")
    assert fault.value.params["field"] == "a[1].b"


def test_a_row_of_a_table() -> None:
    row = of_table(FILE, {"n": "12", "name": "m", "gone": ""}, Notes(), 3)
    assert (row.whole("n"), row.text("name"), row.text("gone"), "gone" in row) == (12, "m", None, False)
