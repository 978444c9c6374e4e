from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.unit.workload import toy
from tests.unit.workload.toy import Counting

from nilometer.workload import ruler
from nilometer.workload.prompts import Maker
from nilometer.workload.ruler import CHEAP, DEAR, Ruler, Uncountable, Unit


def measured(count: Callable[[str], int], longest: int = 2000, effort: ruler.Effort = CHEAP) -> Ruler:
    return ruler.measure(count, toy.text(), longest, effort, "usage")


def test_every_piece_is_counted_as_the_tokenizer_counts_it_after_a_blank() -> None:
    made = measured(Counting(toy.pieces, template=11))
    assert [(start.text, start.tokens) for start in made.starts[:2]] == [("Time", 12), ("People", 12)]
    assert all(unit.tokens == toy.pieces(" " + unit.text) for unit in made.units)
    assert made.frame == Unit("Please go on.", toy.pieces(": Please go on."))


def test_only_words_of_one_token_are_kept() -> None:
    made = measured(Counting(toy.pieces))
    assert made.word_tokens == 1.0
    assert len(made.words) >= 60
    assert all(len(word) <= 7 for word in made.words)


@pytest.mark.parametrize(("effort", "most"), [(CHEAP, 110), (DEAR, 48)])
def test_measuring_takes_few_counts_however_long_the_prompts(effort: ruler.Effort, most: int) -> None:
    count = Counting(toy.pieces)
    measured(count, 50_000, effort)
    assert len(count.asked) <= most


def test_the_pieces_last_for_the_longest_prompt_without_saying_anything_twice() -> None:
    made = measured(Counting(toy.words), 6000, DEAR)
    assert sum(unit.tokens for unit in made.units) >= 6000


def test_short_prompts_need_no_passages() -> None:
    count = Counting(toy.words)
    made = measured(count, 64, DEAR)
    assert len(made.units) == DEAR.sentences


def test_where_no_word_is_a_single_token_words_have_their_mean_cost() -> None:
    made = measured(Counting(toy.characters))
    used = made.words
    assert made.word_tokens == pytest.approx(sum(len(word) + 1 for word in used) / len(used))


@pytest.mark.parametrize("count", [toy.constant, lambda _: 0])
def test_counts_that_do_not_follow_the_text_are_no_measure(count: Callable[[str], int]) -> None:
    with pytest.raises(Uncountable):
        measured(count)


def test_prompts_that_came_out_exact_verify_the_ruler() -> None:
    made = measured(Counting(toy.pieces))
    assert made.verified is None
    assert ruler.corrected(made, [(100, 100), (2000, 2000)]) == msgspec.structs.replace(made, verified=True)


def test_prompts_that_are_all_off_alike_shift_it() -> None:
    made = measured(Counting(toy.pieces))
    shifted = ruler.corrected(made, [(100, 103), (2000, 2003)])
    assert (shifted.shift, shifted.drift, shifted.verified) == (3, 0.0, False)
    assert shifted.planned(100) == 97
    assert shifted.least == made.least + 3


def test_prompts_that_are_off_by_their_length_scale_it() -> None:
    made = measured(Counting(toy.pieces))
    scaled = ruler.corrected(made, [(100, 110), (2000, 2200)])
    assert scaled.drift == pytest.approx(0.1)
    assert (scaled.shift, scaled.verified) == (0, False)
    assert scaled.planned(1100) == 1000


def test_one_length_alone_cannot_tell_a_scale_so_it_shifts() -> None:
    made = measured(Counting(toy.pieces))
    shifted = ruler.corrected(made, [(1000, 1010), (1000, 1020)])
    assert (shifted.shift, shifted.drift) == (15, 0.0)


def test_a_second_correction_starts_from_the_first() -> None:
    made = measured(Counting(toy.pieces))
    once = ruler.corrected(made, [(1100, 1210), (2200, 2420)])
    # planned as 1,000 and 2,000 then; the line through (1000, 1100) and (2000, 2300)
    again = ruler.corrected(once, [(1100, 1100), (2200, 2300)])
    assert again.shift == -100
    assert again.drift == pytest.approx(0.2)


def test_nothing_seen_changes_nothing() -> None:
    made = measured(Counting(toy.pieces))
    assert ruler.corrected(made, []) is made


@pytest.mark.parametrize("lengths", [(64, 512, 1500), (256, 4000)])
def test_a_tokenizer_whose_parts_do_not_add_up_comes_near_after_correction(lengths: tuple[int, ...]) -> None:
    count = Counting(toy.quarters, template=9)
    made = measured(count, 4000)
    for turn in range(2):
        maker = Maker(made, salt=f"try {turn}")
        made = ruler.corrected(made, [(asked, count(maker.text(asked, asked))) for asked in lengths])
    maker = Maker(made, salt="load")
    for asked in lengths:
        got = [count(maker.text(asked, index)) for index in range(20)]
        assert sum(got) / len(got) == pytest.approx(asked, rel=0.01, abs=1.5)


def test_an_estimated_ruler_needs_no_count_and_says_what_it_is() -> None:
    made = ruler.estimated(toy.text())
    assert (made.source, made.verified) == ("estimated", None)
    assert toy.pieces(Maker(made).text(1000, 1)) == pytest.approx(1000, rel=0.3)


def test_chinese_is_estimated_at_three_tokens_for_four_characters() -> None:
    made = ruler.estimated(toy.text("zh"))
    prompt = Maker(made).text(1000, 1)
    chinese = sum("\u4e00" <= character <= "\u9fff" or character in "，。；：？！、" for character in prompt)
    assert chinese == pytest.approx(1330, rel=0.1)
