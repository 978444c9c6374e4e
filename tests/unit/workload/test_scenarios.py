"""What a mix draws, held against shares and lengths that were stated."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random
from statistics import fmean

import pytest
from tests.unit.workload import toy

from nilometer.core.errors import SpecError
from nilometer.core.spec import Prompts, Scenario
from nilometer.workload import ruler, scenarios
from nilometer.workload.lengths import NOTHING, Fixed
from nilometer.workload.ruler import CHEAP, Ruler
from nilometer.workload.scenarios import Conversation

CHAT = Scenario(name="chat", weight=7, input_tokens="40", output_tokens="20", turns="3", think_s="2")
SUMMARISE = Scenario(name="summarise", weight=2, input_tokens="200", output_tokens="30")
CODE = Scenario(name="code", weight=1, input_tokens="60", output_tokens="100")
MIX = Prompts(scenarios=(CHAT, SUMMARISE, CODE))


@pytest.fixture(scope="module")
def made() -> Ruler:
    return ruler.measure(toy.Counting(toy.pieces), toy.text(), 4000, CHEAP, "server_tokenizer")


def talked(prompts: Prompts, made: Ruler, n: int) -> list[Conversation]:
    mix = scenarios.kinds(prompts)
    by = scenarios.makers(mix, prompts, made, "run")
    endless = scenarios.conversations(mix, by, lambda purpose: Random(f"{prompts.seed}/{purpose}"))
    return list(islice(endless, n))


def test_scenarios_come_as_often_as_their_weights_say(made: Ruler) -> None:
    seen = Counter(talk.scenario for talk in talked(MIX, made, 3000))
    assert seen["chat"] / 3000 == pytest.approx(0.7, abs=0.03)
    assert seen["summarise"] / 3000 == pytest.approx(0.2, abs=0.03)
    assert seen["code"] / 3000 == pytest.approx(0.1, abs=0.03)


def test_each_scenario_has_its_own_lengths_turns_and_think_time(made: Ruler) -> None:
    for talk in talked(MIX, made, 60):
        told = {"chat": (3, 40, 20), "summarise": (1, 200, 30), "code": (1, 60, 100)}[talk.scenario or ""]
        assert len(talk.turns) == told[0]
        assert {(turn.input_tokens, turn.output_tokens) for turn in talk.turns} == {told[1:]}
        assert all(toy.pieces(turn.prompt) == told[1] for turn in talk.turns)
        assert [turn.think_s for turn in talk.turns] == [0.0, 2.0, 2.0][: told[0]]


def test_what_a_scenario_leaves_out_is_as_the_prompts_have_it() -> None:
    (kind,) = scenarios.kinds(Prompts(input_tokens="77", turns="2", scenarios=(Scenario(name="only"),)))
    assert kind.inputs == Fixed(77)
    assert kind.turns == Fixed(2)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_the_common_prefix_is_hit_in_the_stated_share(made: Ruler, share: float) -> None:
    prompts = Prompts(input_tokens="120", shared_prefix_tokens=60, shared_prefix_share=share)
    said = [talk.turns[0].prompt for talk in talked(prompts, made, 400)]
    _, often = Counter(prompt[:80] for prompt in said).most_common(1)[0]
    hits = often if often > 1 else 0
    assert hits / 400 == pytest.approx(share, abs=0.07)
    assert all(toy.pieces(prompt) == 120 for prompt in said)


def test_two_scenarios_do_not_share_their_prefixes(made: Ruler) -> None:
    both = tuple(Scenario(name=name, shared_prefix_tokens=60) for name in ("a", "b"))
    seen = {talk.scenario: talk.turns[0].prompt[:60] for talk in talked(Prompts(scenarios=both), made, 30)}
    assert seen["a"] != seen["b"]


def test_the_prefix_begins_a_conversation_and_not_its_later_turns(made: Ruler) -> None:
    prompts = Prompts(input_tokens="120", shared_prefix_tokens=60, turns="3")
    talks = talked(prompts, made, 10)
    openings = {talk.turns[0].prompt[:80] for talk in talks}
    assert len(openings) == 1
    assert not any(turn.prompt[:80] in openings for talk in talks for turn in talk.turns[1:])


def test_more_turns_move_no_length_of_a_first_turn(made: Ruler) -> None:
    plain = Prompts(input_tokens="uniform:50,90")
    talks = talked(plain, made, 20)
    assert [turn.input_tokens for turn in talks[0].turns] == [talks[0].turns[0].input_tokens]
    assert talks == talked(plain, made, 20)


def test_means_count_the_history_that_is_sent_again() -> None:
    # three turns: 40, 40 + (40 + 20), 40 + 2 (40 + 20) = 300 tokens in three requests
    (chat,) = scenarios.kinds(Prompts(scenarios=(CHAT,)))
    assert scenarios.mean_prompt_tokens([chat]) == pytest.approx(100)
    # of 24 requests 21 are chat's (7 x 3), 2 summarise, 1 code; chat thinks 2 s before two of three turns
    mix = scenarios.kinds(MIX)
    assert scenarios.mean_prompt_tokens(mix) == pytest.approx((21 * 100 + 2 * 200 + 60) / 24)
    assert scenarios.mean_think_s(mix) == pytest.approx(14 * 2 / 24)
    assert scenarios.outputs_of(mix).mean() == pytest.approx((21 * 20 + 2 * 30 + 100) / 24)


def test_a_mixture_draws_its_parts_as_often_as_requests_come(made: Ruler) -> None:
    lengths = [turn.output_tokens for talk in talked(MIX, made, 2000) for turn in talk.turns]
    assert fmean(lengths) == pytest.approx(scenarios.outputs_of(scenarios.kinds(MIX)).mean(), rel=0.05)


def test_requests_per_arrival_are_the_mean_number_of_turns() -> None:
    """7 of 10 conversations have three turns, the others one; a load without a mix has those of its prompts."""
    assert scenarios.requests_per_arrival(scenarios.kinds(MIX)) == pytest.approx((7 * 3 + 2 + 1) / 10)
    assert scenarios.requests_per_arrival(scenarios.kinds(Prompts(turns="uniform:1,9"))) == 5
    assert scenarios.requests_per_arrival(scenarios.kinds(Prompts())) == 1


def test_the_mean_prompt_is_one_over_requests_and_not_over_conversations() -> None:
    """Of conversations of 1 to 9 turns, each as often: turn k of T sends 100 + (k - 1) x 200 tokens.

    That sums up to 28,500 in 45 requests: 633.3 each.
    """
    kinds = scenarios.kinds(Prompts(input_tokens="100", output_tokens="100", turns="uniform:1,9"))
    by_hand = [100 + (turn - 1) * 200 for turns in range(1, 10) for turn in range(1, turns + 1)]
    assert fmean(by_hand) == pytest.approx(28_500 / 45)
    assert scenarios.mean_prompt_tokens(kinds) == pytest.approx(fmean(by_hand))


def test_the_mean_prompt_of_conversations_with_a_long_tail() -> None:
    """Log-normal turns, against what 200,000 conversations come to."""
    kinds = scenarios.kinds(Prompts(input_tokens="100", output_tokens="100", turns="lognormal:4,12"))
    random = Random(7)
    turns = [kinds[0].turns.sample(random) for _ in range(200_000)]
    requests, pairs = sum(turns), sum(n * (n - 1) // 2 for n in turns)
    assert scenarios.mean_prompt_tokens(kinds) == pytest.approx(100 + 200 * pairs / requests, rel=0.02)


PREFIXED = Scenario(name="p", shared_prefix_tokens=30)


@pytest.mark.parametrize(
    ("prompts", "key", "needs"),
    [
        (Prompts(think_s="2"), "prompts.think_s", "turns"),
        (Prompts(think_s="2", turns="uniform:1,1"), "prompts.think_s", "turns"),
        (Prompts(think_s="exponential:1", scenarios=(SUMMARISE, CODE)), "prompts.think_s", "turns"),
        (Prompts(think_s="exponential:1", scenarios=(SUMMARISE, CHAT)), "prompts.think_s", "turns"),
        (Prompts(scenarios=(CHAT, Scenario(name="b", think_s="2"))), "prompts.scenarios[1].think_s", "turns"),
        (Prompts(shared_prefix_share=0.5), "prompts.shared_prefix_share", "shared_prefix_tokens"),
        (Prompts(shared_prefix_share=0.5, scenarios=(CODE,)), "prompts.shared_prefix_share", "shared_prefix_tokens"),
        (
            Prompts(scenarios=(PREFIXED, Scenario(name="b", shared_prefix_share=0.0))),
            "prompts.scenarios[1].shared_prefix_share",
            "shared_prefix_tokens",
        ),
    ],
)
def test_a_key_that_would_change_nothing_is_refused(prompts: Prompts, key: str, needs: str) -> None:
    """The fourth: the only scenario with turns has a think time of its own."""
    with pytest.raises(SpecError) as caught:
        scenarios.kinds(prompts)
    assert (caught.value.slug, caught.value.params) == ("key_without_effect", {"key": key, "needs": needs})


@pytest.mark.parametrize(
    "prompts",
    [
        Prompts(think_s="2", turns="2"),
        Prompts(think_s="0", shared_prefix_share=1.0),
        Prompts(think_s="2", scenarios=(Scenario(name="a", turns="uniform:1,3"), SUMMARISE)),
        Prompts(shared_prefix_share=0.5, scenarios=(PREFIXED, CODE)),
        Prompts(shared_prefix_tokens=9, scenarios=(Scenario(name="a", shared_prefix_share=0.2),)),
        Prompts(turns="2", think_s="2", scenarios=(Scenario(name="a", think_s="0"), Scenario(name="b"))),
    ],
)
def test_a_key_that_some_scenario_takes_is_not(prompts: Prompts) -> None:
    assert scenarios.kinds(prompts)


def test_two_scenarios_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError) as caught:
        scenarios.kinds(Prompts(scenarios=(CHAT, CHAT)))
    assert caught.value.slug == "scenario_twice"


def test_what_generates_nothing_is_asked_no_output_and_no_turns() -> None:
    (kind,) = scenarios.encoded(scenarios.kinds(Prompts(input_tokens="50")))
    assert (kind.inputs.mean(), kind.outputs.mean()) == (50, 0)
    assert scenarios.outputs_of(scenarios.encoded(scenarios.kinds(Prompts(scenarios=(SUMMARISE, CODE))))) == NOTHING
    with pytest.raises(SpecError) as caught:
        scenarios.encoded(scenarios.kinds(MIX))
    assert caught.value.slug == "turns_not_asked"


@pytest.mark.parametrize("prompts", [MIX, Prompts(turns="2"), Prompts(scenarios=(SUMMARISE,))])
def test_rows_of_a_workload_go_with_no_mix(prompts: Prompts) -> None:
    with pytest.raises(SpecError) as caught:
        scenarios.of_rows(scenarios.kinds(prompts), Fixed(5), Fixed(6))
    assert caught.value.slug == "scenarios_with_workload"
