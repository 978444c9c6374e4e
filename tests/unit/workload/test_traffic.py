"""What a workload asks and when, by hand-made rows."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest
from tests.unit.workload import toy
from tests.unit.workload.toy import Counting

from nilometer.core.errors import SpecError
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.workload import ruler
from nilometer.workload.entry import Head, Part, Row, Workload
from nilometer.workload.lengths import Empirical, Fixed, parse
from nilometer.workload.prompts import Maker
from nilometer.workload.traffic import (
    Asked,
    Otherwise,
    asked,
    lengths_of,
    recorded_s,
    refuse_unheeded,
    totals_of,
)

COUNT = Counting(toy.pieces, template=11)


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
    assert recorded_s(made, 1.0) == (0.0, 0.0, 2.0, 4.5)
    assert recorded_s(made, 2.0) == (0.0, 0.0, 1.0, 2.25)


def test_rows_without_a_time_cannot_be_replayed() -> None:
    with pytest.raises(SpecError) as refused:
        recorded_s(workload(Row(offset_s=1.0), Row()), 1.0)
    assert refused.value.slug == "replay_without_stamps"


def test_the_lengths_of_a_workload() -> None:
    other = (Fixed(50), Fixed(9))
    made = workload(Row(input_tokens=40, output_tokens=0), Row(input_tokens=60))
    assert lengths_of(made, other) == (Empirical((40, 60)), other[1])


TEXT = (Part("user", "Why?"),)
LENGTHS, STATED = Row(input_tokens=60), Row(input_tokens=60, output_tokens=5)
TEXTS, ANSWERED, BLOCKS = Row(parts=TEXT), Row(parts=TEXT, output_tokens=5), Row(input_tokens=60, hash_ids=(1,))


@pytest.mark.parametrize(
    ("asked_for", "rows", "option"),
    [
        ({"input_tokens": "64"}, (TEXTS,), "--input-tokens"),
        ({"input_tokens": "64"}, (LENGTHS, STATED), "--input-tokens"),
        ({"input_tokens": "64"}, (LENGTHS, Row()), None),
        ({"output_tokens": "7"}, (STATED, ANSWERED), "--output-tokens"),
        ({"output_tokens": "7"}, (TEXTS, ANSWERED), None),
        ({"shared_prefix_tokens": 9}, (TEXTS,), "--shared-prefix"),
        ({"shared_prefix_tokens": 9}, (LENGTHS, BLOCKS), "--shared-prefix"),
        ({"shared_prefix_tokens": 9}, (LENGTHS, Row()), None),
        ({"text": "zh"}, (TEXTS,), "--prompt-text"),
        ({"text": "zh"}, (TEXTS, BLOCKS), None),
        ({"seed": 3}, (TEXTS,), "--prompt-seed"),
        ({"seed": 3, "output_tokens": "uniform:5,9"}, (TEXTS,), None),
        ({"seed": 3}, (TEXTS, LENGTHS), None),
        ({}, (TEXTS, STATED, BLOCKS), None),
    ],
)
def test_what_no_row_heeds_is_refused(asked_for: dict[str, Any], rows: tuple[Row, ...], option: str | None) -> None:
    made = workload(*rows, block_tokens=40)
    spec = Spec(target="http://t", load=Load(concurrency=1), prompts=Prompts(workload="w.toml", **asked_for))
    outputs = parse(spec.prompts.output_tokens)
    if option is None:
        refuse_unheeded(spec, made, outputs)
        return
    with pytest.raises(SpecError) as refused:
        refuse_unheeded(spec, made, outputs)
    assert (refused.value.slug, refused.value.params) == ("workload_decides", {"option": option, "file": "w.toml"})


@pytest.mark.parametrize(("load", "heeded"), [(Load(rate_per_s=2.0), True), (Load(arrivals="recorded"), False)])
def test_the_seed_moves_arrivals_that_are_drawn(load: Load, heeded: bool) -> None:
    spec = Spec(target="http://t", load=load, prompts=Prompts(workload="w.toml", seed=3))
    if heeded:
        refuse_unheeded(spec, workload(TEXTS), Fixed(5))
    else:
        with pytest.raises(SpecError):
            refuse_unheeded(spec, workload(TEXTS), Fixed(5))


def test_a_share_of_the_rows_begins_with_the_common_prefix() -> None:
    maker, draws = Maker(RULER, seed=1, shared_tokens=40), iter([True, False, True, False])
    otherwise = Otherwise(Fixed(50), Fixed(9), Random(1), Random(2))
    texts = [
        one.prompt for one in islice(asked(workload(Row(input_tokens=90)), maker, otherwise, lambda: next(draws)), 4)
    ]
    assert COUNT(common(texts[0], texts[2])) >= 40
    assert COUNT(common(texts[0], texts[1])) < 11 + 5
    assert COUNT(common(texts[1], texts[3])) < 11 + 5


def test_the_tokens_of_a_row_are_its_own_in_and_out() -> None:
    made = workload(Row(input_tokens=60, output_tokens=5), Row(output_tokens=0), Row(input_tokens=7))
    assert totals_of(made, Fixed(50), Fixed(9)) == [65, 50, 16]
    assert totals_of(made, Fixed(50), None) == [60, 50, 7]
