"""Spec to Orders: shares add up, seconds become ns, the ramp stays in the warm-up, tokens are foretold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.record import Call, FollowUp
from nilometer.core.spec import Load, Price, Spec, Timeouts
from nilometer.experiment.orders import Foretold, Share, alike, counted, foretold, limits, orders, part, ramp_s


class Way(NamedTuple):
    address: str = "http://127.0.0.1:9"
    proxy: str | None = None
    api: str = "chat"
    mean_e2e_s: float | None = 2.0
    keeps_connections: bool | None = None
    secrets: tuple[str, ...] = ("c4n4ry",)


def spec_of(**load: object) -> Spec:
    return Spec(target="http://x", load=Load(**load))  # type: ignore[arg-type]


def shares(n: int) -> list[Share]:
    return [Share(Path(f"/j/{i}"), Path(f"/c/{i}")) for i in range(n)]


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_parts_add_up_and_differ_by_one_at_most(whole: int, n: int) -> None:
    parts = [part(whole, n, i) for i in range(n)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1


@given(st.integers(1, 64).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 999), st.integers(n, 9_999))))
def test_a_count_is_shared_out_like_the_lanes(asked: tuple[int, int, int]) -> None:
    n, concurrency, requests = asked
    lanes = [part(concurrency, n, i) for i in range(n)]
    counts = alike(requests, lanes)
    assert sum(counts) == requests
    assert min(counts) >= 1
    assert all(abs(count - requests * of / concurrency) < 3 for count, of in zip(counts, lanes, strict=True))


def test_concurrency_and_count_are_split_over_the_workers() -> None:
    told = orders(spec_of(concurrency=5, requests=402), Way(), shares(2), keep_text=False)
    assert [order.lanes for order in told] == [3, 2]
    assert [order.requests for order in told] == [241, 161]
    assert [order.worker for order in told] == [0, 1]
    assert all(order.duration_ns is None for order in told)


def test_an_open_loop_has_no_lanes_and_a_duration_in_ns() -> None:
    (order,) = orders(spec_of(rate_per_s=2.5, warmup_s=1.5, duration_s=3), Way(), shares(1), keep_text=True)
    assert order.lanes is None
    assert order.warmup_ns == 1_500_000_000
    assert order.duration_ns == 3_000_000_000
    assert order.keep_text
    assert order.target == "http://127.0.0.1:9"


def test_the_count_of_an_open_loop_is_in_its_calls_and_not_shared_out() -> None:
    """Due every 10 ms, a warm-up of 50 ms: five calls before it, then so many as are asked for, at their times."""
    load = Load(rate_per_s=100, requests=7, warmup_s=0.05)
    told = orders(Spec(target="http://x", load=load), Way(), shares(2), keep_text=False)
    assert [(order.requests, order.duration_ns, order.as_long_as_calls) for order in told] == [(None, None, True)] * 2
    due_ms = [(call.due_ns or 0) // 1_000_000 for call in counted(load, due_calls())]
    assert due_ms == [*range(0, 50, 10), *range(50, 120, 10)]


def test_all_turns_count_and_the_last_conversation_is_cut() -> None:
    """Three turns each: 3 + 3 + 2 are eight."""
    load = Load(rate_per_s=100, requests=8, warmup_s=0.02)
    later = tuple(FollowUp(0, b"", (b"", b""), 0) for _ in range(2))
    assert [1 + len(call.later) for call in counted(load, due_calls(later))] == [3, 3, 3, 3, 2]


def test_the_calls_of_other_loads_are_left_as_they_are() -> None:
    for load in (Load(concurrency=2, requests=3), Load(rate_per_s=5)):
        assert len(list(islice(counted(load, due_calls()), 50))) == 50


def due_calls(later: tuple[FollowUp, ...] = ()) -> Iterator[Call]:
    return (Call(seq=n, request=b"", due_ns=n * 10_000_000, later=later) for n in count())


def test_timeouts_become_ns_and_none_stays_none() -> None:
    told = limits(Timeouts(connect_s=0.5, first_s="none", idle_s=2, total_s="none"))
    assert (told.connect_ns, told.first_ns, told.idle_ns, told.total_ns) == (500_000_000, None, 2_000_000_000, None)


@pytest.mark.parametrize(
    ("asked", "warmup", "e2e", "expected"),
    [
        (None, 60.0, 4.0, 4.0),  # auto: one mean E2E
        (None, 3.0, 4.0, 3.0),  # never beyond the warm-up
        (None, 0.0, 4.0, 0.0),
        (None, 60.0, None, 0.0),  # nothing is known: at once
        (7.5, 3.0, 4.0, 7.5),  # asked is asked
    ],
)
def test_ramp(asked: float | None, warmup: float, e2e: float | None, expected: float) -> None:
    assert ramp_s(spec_of(concurrency=1, ramp_s=asked, warmup_s=warmup), e2e) == expected


def test_tokens_foretold() -> None:
    # 4 in flight for 10 + 30 s at 2 s each = 80 requests of 100 + 20 tokens
    closed = spec_of(concurrency=4, warmup_s=10, duration_s=30)
    assert tokens(closed, 2.0, 100, 20) == 9_600
    # a rate needs no E2E: 3/s for 40 s
    assert tokens(spec_of(rate_per_s=3, warmup_s=10, duration_s=30), None, 100, 20) == 14_400
    # a count is itself, and the warm-up before it
    assert tokens(spec_of(concurrency=4, warmup_s=10, requests=50), 2.0, 100, 20) == (20 + 50) * 120
    assert tokens(spec_of(concurrency=4, warmup_s=0, requests=50), None, 100, 20) == 6_000
    assert foretold([closed], None, 100, 20) is None


def test_a_rate_starts_conversations_and_all_their_turns_are_foretold() -> None:
    """Four turns each: 2/s for 10 + 30 s are 320 requests; a count is one of requests, 80 of a warm-up before it."""
    for load, requests in (
        (Load(rate_per_s=2, warmup_s=10, duration_s=30), 320),
        (Load(rate_per_s=2, warmup_s=10, requests=50), 130),
        (Load(concurrency=4, warmup_s=0, requests=50), 50),
    ):
        amount = foretold([Spec(target="http://x", load=load)], None, 100, 20, per_arrival=4)
        assert amount == Foretold(requests * 120)


def tokens(spec: Spec, e2e_s: float | None, into: float, out: float) -> int | None:
    amount = foretold([spec], e2e_s, into, out)
    return None if amount is None else amount.tokens


def test_the_cost_foretold_is_that_of_all_the_tests() -> None:
    """360 requests of 1,000 + 500 tokens: 0.36 M at 0.5 and 0.18 M at 2; 80 s of 4 devices at 9 an hour."""
    tests = [spec_of(rate_per_s=rate, warmup_s=10, duration_s=30) for rate in (3, 6)]
    tokens_only = [
        msgspec.structs.replace(one, price=Price(input_per_million=0.5, output_per_million=2)) for one in tests
    ]
    assert foretold(tokens_only, None, 1_000, 500) == Foretold(540_000, 0.54)
    hours = [msgspec.structs.replace(one, price=Price(device_hour=9, devices=4)) for one in tests]
    assert foretold(hours, None, 1_000, 500) == Foretold(540_000, 0.8)
    assert foretold(tests, None, 1_000, 500) == Foretold(540_000, None)
    assert foretold([*tests, spec_of(concurrency=1)], None, 1_000, 500) is None, "half of it is not foretold"
