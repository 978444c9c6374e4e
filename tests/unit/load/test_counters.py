"""The counter block: what one side writes the other reads, without a call in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.load.counters import Counters, Field, State


def test_a_new_block_is_all_zero_and_starting(tmp_path: Path) -> None:
    block = Counters(tmp_path / "c", create=True)
    assert {block[field] for field in Field} == {0}
    assert State(block[Field.STATE]) is State.STARTING
    block.close()


def test_what_one_side_writes_the_other_reads(tmp_path: Path) -> None:
    ours, theirs = Counters(tmp_path / "c", create=True), Counters(tmp_path / "c")
    for i, field in enumerate(Field):
        theirs[field] = i * 2**40 - 1
    assert [ours[field] for field in Field] == [i * 2**40 - 1 for i in range(len(Field))]
    theirs.close()
    assert ours[Field.STARTED] == Field.STARTED * 2**40 - 1
    ours.close()


def test_each_field_has_a_place_of_its_own() -> None:
    assert [field.value for field in Field] == list(range(len(Field)))


def test_a_block_that_is_not_there_is_not_made_up(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Counters(tmp_path / "c")


def test_a_closed_block_is_closed(tmp_path: Path) -> None:
    block = Counters(tmp_path / "c", create=True)
    block.close()
    with pytest.raises(ValueError, match="released"):
        block[Field.STATE]
