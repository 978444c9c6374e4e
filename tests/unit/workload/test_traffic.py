"""What a workload asks and when, by hand-made rows."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from tests.unit.workload import toy
from tests.unit.workload.toy import Counting

from nilometer.core.errors import SpecError
from nilometer.workload import ruler
from nilometer.workload.entry import Head, Part, Row, Workload
from nilometer.workload.lengths import Empirical, Fixed
from nilometer.workload.prompts import Maker
from nilometer.workload.traffic import Asked, Otherwise, asked, lengths_of, recorded, recorded_s

COUNT = Counting(toy.pieces, template=11)

S = 1_000_000_000


def workload(*rows: Row, block_tokens: int | None = None) -> Workload:
    head = Head(
        nilometer_workload=1, name="w", data="w.jsonl", sha256="0" * 64, source_format="text", rows=len(rows),
        text="lengths", block_tokens=block_tokens,
    )  # fmt: skip
    return Workload(head, rows)


RULER = ruler.measure(COUNT, toy.text(), 4000, ruler.CHEAP, "server_tokenizer")


def first(n: int, made: Workload) -> list[Asked]:
    maker = Maker(RULER, seed=1)
    return list(islice(asked(made, maker, Otherwise(Fixed(50), Fixed(9), Random(1), Random(2))), n))


def test_lengths_are_those_of_the_rows_in_order_and_again() -> None:
    made = first(5, workload(Row(input_tokens=40, output_tokens=7), Row(input_tokens=60, output_tokens=3)))
    assert [(one.input_tokens, one.output_tokens) for one in made] == [(40, 7), (60, 3), (40, 7), (60, 3), (40, 7)]
    assert [COUNT(one.prompt) for one in made] == [40, 60, 40, 60, 40]
    assert len({one.prompt for one in made}) == 5, "new words for each"


def test_what_a_row_does_not_state_is_drawn() -> None:
    (one,) = first(1, workload(Row()))
    assert (one.input_tokens, one.output_tokens) == (50, 9)


def test_a_row_with_its_text_is_asked_as_it_stands() -> None:
    parts = (Part("system", "Be brief."), Part("user", "Who?"), Part("assistant", "I."), Part("user", "Why?"))
    (one,) = first(1, workload(Row(input_tokens=3, output_tokens=0, parts=parts)))
    assert one == Asked("Why?", (("system", "Be brief."), ("user", "Who?"), ("assistant", "I.")), None, 1)


def test_a_row_whose_text_is_gone_has_a_new_one_of_its_length() -> None:
    (one,) = first(1, workload(Row(input_tokens=44, output_tokens=5, parts=(Part("user", None, 40),))))
    assert (one.input_tokens, COUNT(one.prompt), one.turns) == (44, 44, ())


def test_blocks_in_common_are_words_in_common() -> None:
    rows = (
        Row(input_tokens=120, output_tokens=1, hash_ids=(1, 2, 3)),
        Row(input_tokens=120, output_tokens=1, hash_ids=(1, 2, 4)),
        Row(input_tokens=120, output_tokens=1, hash_ids=(5, 2, 3)),
        Row(input_tokens=110, output_tokens=1, hash_ids=(1, 2)),
    )
    one, two, three, four = (made.prompt for made in first(4, workload(*rows, block_tokens=40)))
    assert [abs(COUNT(text) - 120) <= 1 for text in (one, two, three)] == [True] * 3
    assert abs(COUNT(four) - 110) <= 1
    assert COUNT(common(one, two)) >= 70
    assert COUNT(common(one, four)) >= 70
    assert COUNT(common(one, three)) < 11 + 5, "11 are the template"


def common(one: str, other: str) -> str:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return one[:same]


def test_recorded_times_count_from_the_first_and_end_with_the_rows() -> None:
    made = workload(Row(offset_s=5.0), Row(offset_s=5.0), Row(offset_s=7.0), Row(offset_s=9.5))
    assert list(recorded(made, 1.0)) == [0, 0, 2 * S, 4.5 * S]
    assert recorded_s(made, 2.0) == (0.0, 0.0, 1.0, 2.25)


def test_rows_without_a_time_cannot_be_replayed() -> None:
    with pytest.raises(SpecError) as refused:
        recorded(workload(Row(offset_s=1.0), Row()), 1.0)
    assert refused.value.slug == "replay_without_stamps"


def test_the_lengths_of_a_workload() -> None:
    other = (Fixed(50), Fixed(9))
    made = workload(Row(input_tokens=40, output_tokens=0), Row(input_tokens=60))
    assert lengths_of(made, other) == (Empirical((40, 60)), other[1])
