from __future__ import annotations

from functools import cache
from itertools import islice

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.workload import toy
from tests.unit.workload.toy import Counting

from nilometer.core.spec import Prompts, Spec
from nilometer.workload import plan, ruler
from nilometer.workload.prompts import Maker
from nilometer.workload.ruler import CHEAP, DEAR, Ruler

SEEDS = st.integers(0, 1 << 32)
INDEXES = st.integers(0, 1_000_000)
TOKENIZERS = st.sampled_from(["pieces", "words"])
TEMPLATES = st.sampled_from([0, 1, 30])
TEXTS = st.sampled_from(["en", "zh"])
EFFORTS = st.sampled_from([CHEAP, DEAR])
SALTS = st.text(max_size=5)


def counting(tokenizer: str, template: int) -> Counting:
    return Counting(getattr(toy, tokenizer), template)


@cache
def measured(tokenizer: str, template: int, text: str, effort: ruler.Effort) -> Ruler:
    return ruler.measure(counting(tokenizer, template), toy.text(text), 4000, effort, "usage")


@settings(deadline=None)
@given(TOKENIZERS, TEMPLATES, TEXTS, EFFORTS, st.integers(1, 4000), SEEDS, SALTS, INDEXES)
def test_a_prompt_has_exactly_the_asked_tokens(
    tokenizer: str, template: int, text: str, effort: ruler.Effort, tokens: int, seed: int, salt: str, index: int
) -> None:
    made = measured(tokenizer, template, text, effort)
    maker = Maker(made, seed=seed, salt=salt)
    got = counting(tokenizer, template)(maker.text(tokens, index))
    assert got == tokens if tokens >= maker.least else template < got <= maker.least


@settings(deadline=None)
@given(TEMPLATES, EFFORTS, st.integers(1, 600), st.integers(1, 4000), SEEDS, INDEXES)
def test_a_prompt_with_a_common_prefix_has_exactly_the_asked_tokens(
    template: int, effort: ruler.Effort, shared: int, tokens: int, seed: int, index: int
) -> None:
    maker = Maker(measured("pieces", template, "en", effort), seed=seed, shared_tokens=shared)
    got = counting("pieces", template)(maker.text(tokens, index))
    assert got == max(tokens, maker.least)


@settings(deadline=None)
@given(SEEDS, SALTS, INDEXES, st.integers(1, 1_000_000), st.integers(20, 300))
def test_two_prompts_of_a_run_differ_within_their_first_four_words(
    seed: int, salt: str, index: int, further: int, tokens: int
) -> None:
    maker = Maker(measured("words", 0, "en", CHEAP), seed=seed, salt=salt)
    first, second = (maker.text(tokens, number).replace(":", "").split()[:4] for number in (index, index + further))
    assert further < maker.distinct
    assert first != second


@settings(deadline=None)
@given(SEEDS, SALTS, st.integers(1, 7), INDEXES)
def test_the_nearest_prompts_differ_in_their_first_word(seed: int, salt: str, apart: int, index: int) -> None:
    maker = Maker(measured("words", 0, "en", CHEAP), seed=seed, salt=salt)
    assert maker.text(50, index).split()[0] != maker.text(50, index + apart).split()[0]


@settings(deadline=None)
@given(SEEDS, SALTS, st.sampled_from(["64", "uniform:40,200"]), st.sampled_from(["7", "uniform:1,20"]))
def test_every_call_is_framed_by_its_length_and_planned_alike_again(
    seed: int, salt: str, input_tokens: str, output_tokens: str
) -> None:
    prompts = Prompts(input_tokens=input_tokens, output_tokens=output_tokens, seed=seed)
    made = measured("pieces", 30, "en", CHEAP)

    def planned() -> list[bytes]:
        calls = plan.calls(
            Spec(target="http://t", prompts=prompts),
            made,
            body=lambda prompt, tokens, _: msgspec.json.encode([prompt, tokens]),
            host="h",
            target="/",
            salt=salt,
        )
        return [call.request for call in islice(calls, 5)]

    first = planned()
    assert first == planned()
    for request in first:
        head, _, payload = request.partition(b"\r\n\r\n")
        assert head.endswith(b"\r\nContent-Length: %d" % len(payload))
        prompt, tokens = msgspec.json.decode(payload, type=tuple[str, int])
        assert 1 <= tokens <= 20
        assert 40 <= counting("pieces", 30)(prompt) <= 200
