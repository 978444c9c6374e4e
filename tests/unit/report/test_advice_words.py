from __future__ import annotations

from typing import get_args

import pytest

from nilometer.plan.advice import quality, support
from nilometer.plan.advice.fitting import Way, ways_to_fit
from nilometer.plan.advice.option import Effect
from nilometer.plan.advice.options import options
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Attention, Block, Dense, Shape
from nilometer.plan.question import Question
from nilometer.report import advice_words as advice
from nilometer.text.i18n import Catalogue

EN, ZH = Catalogue("en"), Catalogue("zh")
SHAPE = Shape(
    name="8B",
    hidden=4096,
    vocab=128_256,
    kinds=(Block(mixer=Attention(heads=32, kv_heads=8, head_dim=128), feed_forward=Dense(intermediate=14_336)),),
    order=(0,) * 32,
    tied=False,
    max_context=8192,
)


def _question(name: str, concurrency: int, engine: str = "vllm") -> Question:
    return Question(
        shape=SHAPE,
        precision=precision_of("bf16"),
        device=device(name),
        engine=engine,
        lengths=Lengths(1024, 256),
        context=8192,
        concurrency=concurrency,
    )


@pytest.mark.parametrize("words", [EN, ZH], ids=lambda words: words.lang)
@pytest.mark.parametrize(
    ("name", "concurrency", "engine"), [("h100", 32, "vllm"), ("a100", 200, "sglang"), ("4090", 1, "llama.cpp")]
)
def test_every_option_can_be_told(words: Catalogue, name: str, concurrency: int, engine: str) -> None:
    found = options(answer(_question(name, concurrency, engine)), users=50_000)
    assert len(found) >= 4
    for one in found:
        told = [advice.what(one, words), advice.wrong(one, words), *advice.cautions(one, words)]
        assert all(told)
        assert "{" not in "".join(told)
        assert advice.effect(one.effect, words)
        if one.speculation is not None:
            assert advice.guide(one.speculation.guide, words)


@pytest.mark.parametrize("words", [EN, ZH], ids=lambda words: words.lang)
def test_every_word_of_the_tables_is_known(words: Catalogue) -> None:
    for effect in get_args(Effect):
        assert advice.effect(effect, words)
    for risk in get_args(quality.Risk):
        assert advice.risk(risk, words)
    for how in get_args(support.Computes):
        assert advice.computes(how, words)
    for row in (*quality.WEIGHTS.values(), *quality.CACHE.values()):
        assert (advice.loss(row, words) is None) == (row.loss_high is None)
        assert not row.caution or f"screen.advice.caution.{row.caution}" in words
    assert all(f"screen.advice.fit.{way}" in words for way in get_args(Way))


@pytest.mark.parametrize("words", [EN, ZH], ids=lambda words: words.lang)
def test_every_way_to_fit_can_be_told(words: Catalogue) -> None:
    for question in (_question("4090", 200), _question("h100", 200), _question("t4", 4)):
        found = ways_to_fit(answer(question), most=10)
        assert found is not None
        assert all(advice.fit(way, words) for way in found.ways)


def test_a_loss_names_its_models() -> None:
    assert advice.loss(quality.WEIGHTS["q4_k_m"], EN) == (
        "perplexity added: 1.2 to 2.8 % (Llama-3-8B, Llama-2-7B, Llama-2-70B)"
    )
    assert advice.loss(quality.CACHE["fp8"], EN) is None
