from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from nilometer.sim.cost import Linear
from nilometer.sim.setting import Ask, Policy, Reserve, Setting, Speculation

from .made import closed, machine, opened
from .slow import One, Slow

COSTS = st.sampled_from(
    [
        Linear(fixed_s=0.010),
        Linear(fixed_s=0.007, prefill_token_s=86e-6, decode_token_s=20e-6, cached_token_s=0.32e-6),
        Linear(prefill_token_s=1e-3, decode_token_s=3e-3, cached_token_s=1e-5),
    ]
)


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    """Of pools so small that most runs preempt; every request fits them: at most 20 + 50 tokens."""
    block_tokens = draw(st.sampled_from([1, 4, 16]))
    context = draw(st.integers(70, 90))
    least = -(-context // block_tokens)
    return Setting(
        cost=draw(COSTS),
        policy=draw(st.sampled_from(get_args(Policy))),
        slots=draw(st.integers(2, 8)),
        max_batched_tokens=draw(st.sampled_from([1, 3, 16, 64])),
        kv_blocks=draw(st.one_of(st.integers(least, least + least // 2), st.integers(least, 3 * least), st.none())),
        block_tokens=block_tokens,
        reserve=draw(st.sampled_from(["growing", "growing", "growing", *get_args(Reserve)])),
        context_tokens=context,
        prefix_cache=draw(st.booleans()),
        speculation=draw(
            st.one_of(
                st.none(),
                st.builds(
                    Speculation,
                    drafts=st.integers(1, 4),
                    acceptance=st.sampled_from([0.0, 1.0]),
                    draft_share=st.sampled_from([0.0, 0.2]),
                ),
            )
        ),
    )


def some_asks(seed: int, count: int, block_tokens: int) -> list[Ask]:
    """Prompts of two families, whose heads are alike up to a length that is drawn."""
    random = Random(seed)
    made = []
    for key in range(count):
        prompt, output = random.randint(1, 20), random.randint(1, 50)
        limit = random.choice([None, 50, max(1, output - 3)])
        alike, family = random.randint(0, 10), random.randint(0, 1)
        blocks = range(prompt // block_tokens)
        hashes = tuple(hash((family, i) if i < alike else (2 + key, i)) for i in blocks)
        made.append(Ask(key, prompt, output, limit, hashes))
    return made


def _same(done: list[One], records: dict[int, list[tuple[float, int]]]) -> None:
    assert sorted(records) == sorted(one.ask.key for one in done)
    for one in done:
        told = records[one.ask.key]
        assert [n for _, n in told] == [n for _, n in one.stamps]
        assert [at for at, _ in told] == pytest.approx([at for at, _ in one.stamps], rel=1e-9, abs=2e-9)


@given(settings(), st.integers(0, 10**6), st.integers(4, 16), st.integers(1, 10))
@effort(max_examples=150, deadline=None)
def test_a_closed_loop_step_by_step(of: Setting, seed: int, count: int, users: int) -> None:
    wanted = some_asks(seed, count, of.block_tokens)
    slow = Slow(of)
    done = slow.play(wanted, users=users)
    made = machine(of)
    played = closed(made, users, wanted)
    _same(done, {r.seq: [((f.at_ns - 10**12) / 1e9, f.tokens or 0) for f in r.frames] for r in played.records})
    gauges = made.gauges[0]
    assert gauges.preemptions == sum(one.preempted for one in done)
    assert slow.most_held <= slow.total
    assert (gauges.running, gauges.waiting, gauges.blocks_held) == (0, 0, 0)


@given(settings(), st.integers(0, 10**6), st.lists(st.integers(0, 300), min_size=3, max_size=14))
@effort(max_examples=80, deadline=None)
def test_arrivals_step_by_step(of: Setting, seed: int, due_ms: list[int]) -> None:
    due_s = [ms * 0.98765431e-3 for ms in sorted(due_ms)]  # off the grid of steps: rounding decides no tie
    wanted = some_asks(seed, len(due_s), of.block_tokens)
    done = Slow(of).play(wanted, due_s)
    played = opened(machine(of), due_s, wanted)
    _same(done, {r.seq: [((f.at_ns - 10**12) / 1e9, f.tokens or 0) for f in r.frames] for r in played.records})
