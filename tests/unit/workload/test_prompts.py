from __future__ import annotations

import pytest
from tests.unit.workload import toy
from tests.unit.workload.toy import Counting

from nilometer.workload import ruler
from nilometer.workload.prompts import Maker
from nilometer.workload.ruler import CHEAP, Ruler

COUNT = Counting(toy.pieces, template=11)


def in_common(prompts: list[str]) -> list[str]:
    """The words with which all begin."""
    shortest = min(map(str.split, prompts), key=len)
    alike = [len({prompt.split()[i] for prompt in prompts}) == 1 for i in range(len(shortest))]
    return shortest[: alike.index(False)]


@pytest.fixture(scope="module")
def made() -> Ruler:
    return ruler.measure(COUNT, toy.text(), 4000, CHEAP, "server_tokenizer")


@pytest.mark.parametrize("tokens", [12, 13, 14, 16, 20, 24, 33, 64, 128, 511, 1500, 4000])
def test_a_prompt_has_exactly_the_asked_tokens(made: Ruler, tokens: int) -> None:
    maker = Maker(made, salt="a")
    assert [COUNT(maker.text(tokens, index)) for index in range(30)] == [tokens] * 30


def test_less_than_the_shortest_gives_the_shortest(made: Ruler) -> None:
    maker = Maker(made)
    assert maker.least == 12
    assert COUNT(maker.text(3, 0)) == 12


def test_prompts_in_a_row_begin_with_different_words(made: Ruler) -> None:
    maker = Maker(made, salt="a")
    prompts = [maker.text(200, index) for index in range(len(made.starts))]
    assert len({prompt.split()[0] for prompt in prompts}) == len(made.starts)


def test_no_two_prompts_of_a_run_share_their_first_four_words(made: Ruler) -> None:
    maker = Maker(made, salt="a")
    openings = {tuple(maker.text(64, index).replace(":", "").split()[:4]) for index in range(2000)}
    assert len(openings) == 2000
    assert maker.distinct == len(made.starts) * len(made.words) ** 3


def test_the_openings_run_through_all_there_are_before_one_comes_again(made: Ruler) -> None:
    few = Ruler(source="usage", starts=made.starts[:2], words=made.words[:8], units=made.units, frame=made.frame)
    maker = Maker(few, salt="a")
    openings = [maker.text(64, index).partition(":")[0].split()[:4] for index in range(maker.distinct)]
    assert maker.distinct == 2 * 8**3
    assert len({tuple(opening) for opening in openings}) == maker.distinct


def test_the_same_seed_and_salt_make_the_same_prompt(made: Ruler) -> None:
    assert Maker(made, seed=3, salt="a").text(300, 17) == Maker(made, seed=3, salt="a").text(300, 17)


@pytest.mark.parametrize("other", [{"seed": 4, "salt": "a"}, {"seed": 3, "salt": "b"}])
def test_another_seed_or_another_run_makes_other_prompts(made: Ruler, other: dict[str, object]) -> None:
    first = Maker(made, seed=3, salt="a")
    second = Maker(made, seed=int(str(other["seed"])), salt=str(other["salt"]))
    assert max(len(in_common([first.text(300, i), second.text(300, i)])) for i in range(50)) < 4


def test_a_prompt_is_text_with_an_end_and_says_nothing_twice(made: Ruler) -> None:
    prompt = Maker(made, salt="a").text(1000, 5)
    assert prompt.endswith(". Please go on.") or prompt[-16] in "!?'\")"
    told = [unit.text for unit in made.units if unit.text in prompt]
    assert sum(map(len, told)) > 0.9 * len(prompt)
    assert all(prompt.count(unit) == 1 for unit in told if len(unit) > 40)


def test_prompts_that_need_not_be_unique_are_the_same_in_every_run(made: Ruler) -> None:
    one, other = Maker(made, salt="a", unique=False), Maker(made, salt="b", unique=False)
    assert one.text(300, 1) == one.text(300, 2) == other.text(300, 3)


def test_a_common_prefix_is_common_and_the_rest_is_not(made: Ruler) -> None:
    maker = Maker(made, salt="a", shared_tokens=200)
    prompts = [maker.text(500, index) for index in range(60)]
    assert {COUNT(prompt) for prompt in prompts} == {500}
    common = in_common(prompts)
    assert COUNT(" ".join(common)) == 200
    assert len({prompt.split()[len(common)] for prompt in prompts}) == 60


def test_beside_a_common_prefix_there_is_at_least_a_word(made: Ruler) -> None:
    maker = Maker(made, shared_tokens=200)
    assert maker.least == 201
    assert [COUNT(maker.text(tokens, 1)) for tokens in (50, 200, 201, 204)] == [201, 201, 201, 204]
