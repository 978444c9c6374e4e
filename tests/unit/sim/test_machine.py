from __future__ import annotations

from array import array
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from nilometer.sim.event import Event
from nilometer.sim.faults import WHOLE_ANSWER, Faults
from nilometer.sim.machine import Machine, Plan, Router
from nilometer.sim.setting import Ask, Setting, Speculation

from .made import LIKE_A_GPU, STEADY, asks, closed, machine, mixed, of_keys, opened, setting, stamps

SETTINGS = st.builds(
    Setting,
    cost=st.just(LIKE_A_GPU),
    policy=st.sampled_from(["chunked", "blocking", "static"]),
    slots=st.integers(1, 6),
    max_batched_tokens=st.sampled_from([16, 256]),
    kv_blocks=st.sampled_from([None, 12]),
    reserve=st.sampled_from(["growing", "max_tokens"]),
    speculation=st.sampled_from([None, Speculation(drafts=3, acceptance=0.6)]),
)
FAULTS = st.builds(
    Faults,
    rate_per_s=st.sampled_from([None, 20.0]),
    drop_share=st.sampled_from([0.0, 0.3]),
    timeout_s=st.just(1.0),
    retries=st.integers(0, 2),
    cold_requests=st.integers(0, 2),
    cold_s=st.just(0.3),
    front_s=st.sampled_from([0.0, 0.02]),
    early_eos_share=st.sampled_from([0.0, 0.5]),
    frame_tokens=st.integers(1, 3),
    buffer_frames=st.sampled_from([0, 4, WHOLE_ANSWER]),
    cold_again_s=st.sampled_from([inf, 0.1]),
    jitter=st.sampled_from([0.0, 0.2]),
    spell_s=st.sampled_from([0.0, 0.2]),
    quiet_s=st.just(0.3),
    spell_slowness=st.just(4.0),
    duty_period_s=st.sampled_from([0.0, 0.25]),
    duty_share=st.just(0.7),
)
ROUTERS = st.sampled_from(["least", "turns", "random"])


def live(of: Machine, wanted: list[Ask], due_s: list[float], tick_s: float) -> list[Event]:
    """As on real sockets: looked at every tick, whatever is due; requests are handed in when they come."""
    told: list[Event] = []
    now_s, rest = 0.0, list(zip(wanted, due_s, strict=True))
    while rest or of.next_s < inf:
        now_s += tick_s
        while rest and rest[0][1] <= now_s:
            ask, at_s = rest.pop(0)
            while of.next_s < at_s and (events := of.step(at_s)):
                told += events
            of.submit(ask, at_s)
        while of.next_s <= now_s and (events := of.step(now_s)):
            told += events
    return told


@given(SETTINGS, FAULTS, st.integers(1, 3), ROUTERS, st.integers(0, 99), st.sampled_from([0.003, 0.5]))
@effort(max_examples=80, deadline=None)
def test_token_by_token_is_what_is_told_at_the_end(
    of: Setting, faults: Faults, replicas: int, router: Router, seed: int, tick_s: float
) -> None:
    wanted = mixed(12, 40, 15, 1.0, seed)
    wanted = [ask for ask in wanted if ask.prompt_tokens + ask.output_tokens < 190]
    random = Random(seed)
    due_s = sorted(random.uniform(0, 1.5) for _ in wanted)
    plan = Plan(setting=of, faults=faults, replicas=replicas, router=router)
    told = live(Machine(plan, Random(seed), tokens=True), wanted, due_s, tick_s)
    assert [event.at_s for event in told] == sorted(event.at_s for event in told)
    came: dict[int, array[float]] = {ask.key: array("d") for ask in wanted}
    counts: dict[int, list[int]] = {ask.key: [] for ask in wanted}
    ends: list[int] = []
    for event in told:
        if event.kind in ("first", "token"):
            assert (event.kind == "first") == (not came[event.key])
            came[event.key].append(event.at_s)
            counts[event.key].append(event.tokens)
        if event.answer is not None:
            assert list(came[event.key]) == list(event.answer.stamps)
            assert counts[event.key] == list(event.answer.counts or [1] * len(event.answer.stamps))
            assert event.answer.tokens == sum(counts[event.key])
        if event.kind in ("finish", "rejected"):
            ends.append(event.key)
    assert sorted(ends) == sorted(came), "each request ends once"
    virtual = opened(Machine(plan, Random(seed)), due_s, wanted)
    for i, ask in enumerate(wanted):
        record = of_keys(virtual.records)[i]
        if record.outcome == "ok":
            assert stamps(record) == pytest.approx(list(came[ask.key]), abs=1e-8)


@given(SETTINGS, FAULTS, st.integers(1, 3), ROUTERS, st.integers(1, 8), st.integers(0, 99))
@effort(max_examples=60, deadline=None)
def test_every_request_ends_once_and_all_is_given_back(
    of: Setting, faults: Faults, replicas: int, router: Router, users: int, seed: int
) -> None:
    wanted = mixed(25, 60, 25, 1.5, seed)
    plan = Plan(setting=of, faults=faults, replicas=replicas, router=router)
    made = Machine(plan, Random(seed))
    played = closed(made, users, wanted)
    assert sorted(record.seq for record in played.records) == list(range(25))
    for gauges in made.gauges:
        assert (gauges.running, gauges.waiting, gauges.blocks_held) == (0, 0, 0)
    again = closed(Machine(plan, Random(seed)), users, wanted)
    assert again == played


def test_another_seed_is_another_run() -> None:
    of = setting(speculation=Speculation(drafts=3, acceptance=0.5))
    first, second = (closed(machine(of, seed=seed), 4, mixed(30, 50, 20)) for seed in (1, 2))
    assert first.records != second.records


def test_a_request_that_can_never_fit_is_refused() -> None:
    of = setting(kv_blocks=10, block_tokens=16)
    played = closed(machine(of), 1, asks([100, 100], [60, 61]))
    assert [(r.outcome, r.status) for r in played.records] == [("ok", 200), ("error", 400)]
    narrow = setting(reserve="context", context_tokens=100)
    played = closed(machine(narrow), 1, asks([60, 60], [40, 41]))
    assert [(r.outcome, r.status) for r in played.records] == [("ok", 200), ("error", 400)]
    with pytest.raises(ValueError, match="never fits"):
        machine(narrow).engines[0].submit(Ask(1, 60, 41), 0.0)


def test_the_bucket_lets_its_burst_in_and_then_its_rate() -> None:
    due_s = [0.0] * 5 + [0.1, 0.2, 0.55, 0.6]
    played = opened(machine(setting(), Faults(rate_per_s=4.0, rate_burst=3)), due_s, asks([8] * 9, [1] * 9))
    let_in = sorted(r.seq for r in played.records if r.outcome == "ok")
    assert let_in == [0, 1, 2, 7, 8]  # there are 0.4 at 0.1 s, 0.8 at 0.2 s, 2.2 at 0.55 s, and so 1.4 at 0.6 s


def test_one_that_goes_away_leaves_nothing_behind() -> None:
    made = machine(setting(slots=1, kv_blocks=8))
    for ask in asks([20, 20], [50, 50]):
        made.submit(ask, 0.0)
    assert made.step(0.105) == []
    assert made.gauges[0].running == 1
    assert made.cancel(0)
    assert made.cancel(1)
    assert not made.cancel(2)
    assert made.step(10.0) == []
    gauges = made.gauges[0]
    assert (gauges.running, gauges.waiting, gauges.blocks_held) == (0, 0, 0)
    made.submit(Ask(5, 20, 3), 20.0)
    (end,) = made.step(30.0)
    assert list(end.answer.stamps if end.answer else []) == pytest.approx([20.01, 20.02, 20.03])


def test_one_that_goes_away_makes_room_for_the_next() -> None:
    made = machine(setting(slots=1))
    for ask in asks([20, 20], [50, 2]):
        made.submit(ask, 0.0)
    assert made.step(0.095) == []  # its step ends at 0.1 s
    made.cancel(0)
    (end,) = made.step(inf)
    assert end.key == 1
    assert end.at_s == pytest.approx(0.12)


def test_the_router_spreads() -> None:
    def shares(router: Router, users: int = 9) -> list[int]:
        of = machine(setting(), replicas=3, router=router)
        records = closed(of, users, asks([8] * 90, [5] * 90)).records
        return [sum((r.server or {}).get("replica") == i for r in records) for i in range(3)]

    assert shares("turns") == [30, 30, 30]
    assert shares("least", users=1) == [30, 30, 30]
    assert shares("least") == [30, 30, 30]
    assert all(15 < share < 45 for share in shares("random"))


def test_replicas_serve_as_many_alone() -> None:
    """Three machines with three times the users take as long as one."""
    one = closed(machine(setting(slots=2)), 4, asks([8] * 40, [20] * 40))
    three = closed(machine(setting(slots=2), replicas=3, router="turns"), 12, asks([8] * 120, [20] * 120))
    assert three.phases.end_ns == one.phases.end_ns


def test_gauges_count_what_was_done() -> None:
    of = machine(setting(prefix_cache=True))
    wanted = [Ask(i, 40, 5, hashes=(1, 2)) for i in range(3)]
    closed(of, 1, wanted)
    (gauges,) = of.gauges
    assert gauges.written == 15
    assert (gauges.prompts_asked, gauges.prompts_found, gauges.prefilled) == (120, 64, 56)
    assert gauges.steps == 15
    assert gauges.busy_s == pytest.approx(15 * STEADY.fixed_s)
    assert (gauges.blocks_held, gauges.blocks_kept) == (0, 2)


def test_a_count_below_one_is_no_setting() -> None:
    with pytest.raises(ValueError, match="below 1"):
        setting(slots=0)
    with pytest.raises(ValueError, match="below 1"):
        setting(kv_blocks=0)
    for counts in ((0, 1, None), (1, 0, None), (1, 1, 0)):
        with pytest.raises(ValueError, match="below 1"):
            Ask(0, *counts)


def test_where_a_request_waited() -> None:
    """Two come at once to a front end of 60 ms and one slot: the second waits in front, then for the first to end."""
    made = machine(setting(slots=1), Faults(front_s=0.060))
    for ask in asks([8] * 2, [10, 10]):
        made.submit(ask, 0.0)
    first, second = (event.answer for _ in range(2) for event in made.step(inf))
    assert first is not None
    assert second is not None
    assert (first.entered_s, first.admitted_s, first.stamps[0]) == pytest.approx((0.060, 0.060, 0.070))
    assert (second.entered_s, second.admitted_s, second.stamps[0]) == pytest.approx((0.120, 0.160, 0.170))
