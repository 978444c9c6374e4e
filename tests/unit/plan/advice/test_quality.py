from __future__ import annotations

import pytest

from nilometer.plan.advice.quality import CACHE, WEIGHTS, Quality, cache_quality, risk_of, weights_quality
from nilometer.plan.advice.support import CACHE_TIER, tiers
from nilometer.plan.model.precision import PRECISIONS


def test_the_word_follows_from_the_worst_published_loss() -> None:
    assert [risk_of(loss) for loss in (0.07, 0.91, 1.3, 2.8, 7.5)] == ["none", "small", "small", "medium", "high"]


@pytest.mark.parametrize("row", [*WEIGHTS.values(), *CACHE.values()])
def test_every_row_has_its_source_and_a_loss_or_none(row: Quality) -> None:
    assert row.source
    if row.measure is None:
        assert row.loss_low is None
        assert row.loss_high is None
    else:
        assert row.loss_low is not None
        assert row.loss_high is not None
        assert 0 <= row.loss_low <= row.loss_high
        assert row.on


@pytest.mark.parametrize(
    ("name", "plain", "added"),
    [("q6_k", 6.231636, 0.021748), ("q5_k_m", 6.231636, 0.056974), ("q4_k_m", 6.231636, 0.175482)],
)
def test_losses_of_perplexity_are_those_of_the_scoreboard(name: str, plain: float, added: float) -> None:
    """Llama-3-8B: what a format adds to 6.2316, in per cent."""
    assert weights_quality(name).loss_high == pytest.approx(100 * added / plain, abs=0.03)


def test_fewer_bits_of_a_family_never_lose_less() -> None:
    family = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k")
    losses = [weights_quality(name).loss_high or 0 for name in family]
    assert losses == sorted(losses)


def test_what_is_not_in_the_table_is_unknown() -> None:
    assert weights_quality("mxfp4").risk == "unknown"
    assert cache_quality("nvfp4").risk == "unknown"
    assert cache_quality("fp8").loss_high is None, "no figure was found"


@pytest.mark.parametrize("engine", CACHE_TIER)
def test_every_tier_on_offer_is_in_the_tables(engine: str) -> None:
    assert set(tiers(engine)) <= set(WEIGHTS) & set(PRECISIONS)
    assert CACHE_TIER[engine] in CACHE
    bits = [PRECISIONS[name].linear_bits for name in tiers(engine) if name != "nvfp4"]
    assert bits == sorted(bits, reverse=True)
