from __future__ import annotations

import math

import msgspec
import pytest
from tests.unit.plan.shapes import GEMMA3_12B, LLAMA_8B, SMOL

from nilometer.plan.memory.budget import Ask, Memory, memory
from nilometer.plan.memory.flight import demand
from nilometer.plan.memory.mix import in_tokens, mix_fit
from nilometer.plan.memory.startup import GIB, Settings

from .test_budget import H100
from .test_flight import held, lognormal, share_within

change = msgspec.structs.replace
CHAT = lognormal(400, 800, 0.8, 200, 0.8)


def small(**changes: object) -> Memory:
    settings = Settings(context=32_768, kv_bytes=8 * GIB)
    return memory(change(H100, **{"settings": settings, **changes}))


def test_a_mix_of_lengths_holds_far_more_than_the_longest_allowed() -> None:
    """8 GiB = 4,096 blocks of Llama-3.1-8B; two places of 32,768 tokens; a chat holds some 1,400 tokens."""
    found = mix_fit(small(), CHAT)
    assert found.contiguous == 2
    assert found.contiguous_used < 0.06
    assert 30 < found.paged.by_quantile < found.paged.by_mean < 60
    assert found.requests == found.paged.by_quantile
    sums = held(CHAT, found.requests, lambda tokens: math.ceil(tokens / 16), 3_000)
    assert share_within(sums, 4096) == pytest.approx(0.95, abs=0.03)


def test_the_engine_s_own_limit_is_heeded() -> None:
    settings = Settings(context=32_768, kv_bytes=8 * GIB, max_seqs=16)
    found = mix_fit(small(settings=settings), CHAT)
    assert (found.limit, found.requests) == (16, 16)


def test_windows_let_a_long_mix_be_held_more_often() -> None:
    """Of Gemma-3's 48 layers 40 hold 1,024 tokens at most: more requests of 8,000 tokens than without windows."""
    long = [(8000.0, 200.0)]
    windowed = mix_fit(small(shape=GEMMA3_12B), long)
    whole = mix_fit(small(shape=GEMMA3_12B, version="0.9.2"), long)
    assert windowed.paged.by_quantile > 2 * whole.paged.by_quantile


def test_a_plain_pool_is_counted_in_tokens() -> None:
    settings = Settings(context=4096, kv_bytes=300 * 1000 * 131_072.0)
    plan = memory(change(H100, engine="sglang", settings=settings))
    assert mix_fit(plan, [(100, 400)], 0.5).paged.by_quantile == 1000
    assert mix_fit(plan, [(100, 400)], 0.5, limit=64).requests == 64


def test_split_slots_hold_one_each_and_shared_ones_by_the_token() -> None:
    ask = Ask(
        shape=SMOL,
        weights_bytes=(0.1 * GIB,),
        visible_bytes=4 * GIB,
        engine="llama.cpp",
        settings=Settings(context=8192, slots=8),
    )
    short = [(100.0, 100.0)]
    split = mix_fit(memory(ask), short)
    assert (split.requests, split.limit) == (8, 8)
    assert mix_fit(memory(ask), [(2000.0, 100.0)]).requests == 0
    shared = mix_fit(memory(change(ask, settings=Settings(context=8192, slots=8, unified=True))), [(2000.0, 100.0)])
    assert shared.requests == 3


def test_the_worked_mix_by_hand() -> None:
    """Requests of 1,000 in and 0 out hold 63 blocks always: 4,096 / 63 = 65."""
    found = mix_fit(small(shape=LLAMA_8B), [(1000.0, 0.0)])
    assert found.paged.by_quantile == found.paged.by_mean == found.paged.by_worst_case == 65


def test_requests_of_the_same_lengths_are_counted_once() -> None:
    """Advice asks hundreds of devices about them, and one count of 2,000 requests takes some 20 ms."""
    pairs = tuple((float(i), float(1 + i % 7)) for i in range(2, 500))
    hits = in_tokens.cache_info().hits
    assert in_tokens(pairs) == demand(pairs, float)
    assert in_tokens(tuple(pairs)) == in_tokens(pairs)
    assert in_tokens.cache_info().hits == hits + 2
