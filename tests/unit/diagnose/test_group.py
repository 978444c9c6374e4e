"""Levels side by side: loads of a service whose slots, speed and base are known by how they were made."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from tests.unit.diagnose.made import even, run_of
from tests.unit.metrics.made import spec

from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.diagnose.group import GroupEvidence, evidence_of_group, evidence_of_runs
from nilometer.diagnose.level import evidence_of

STOP_S = 60.0


def served(level: int, slots: int, *, gap_s: float = 0.02, prompt: int = 500, tokens: int = 41) -> list[Record]:
    """A closed loop of `level` users and as many slots as said: 50 ms + 0.1 ms a prompt token, then the tokens.

    Prompts change from request to request; the slots take whoever came first.
    """
    free, users = [0.0] * slots, [0.0] * level
    made: list[Record] = []
    while min(users) < STOP_S:
        user, slot = users.index(min(users)), free.index(min(free))
        size = prompt + 100 * (len(made) % 5 - 2)
        begin = max(users[user], free[slot])
        first = begin + 0.05 + size * 0.0001
        made.append(even(users[user], first, tokens, gap_s, prompt_tokens=size))
        users[user] = free[slot] = first + (tokens - 1) * gap_s
    return made


def sweep(*levels: tuple[int, list[Record]]) -> GroupEvidence:
    def runs() -> Iterator[tuple[Run, list[Record]]]:
        for level, records in levels:
            yield run_of(records, STOP_S, start_s=10, level=level), records

    return evidence_of_runs(runs())


def test_full_slots() -> None:
    """3 slots of 0.9 s a request, 0.1 s of it prefill: from 4 users on, 2.67 decode at a time whatever the load."""
    found = sweep(*((level, served(level, 3)) for level in (8, 1, 4)))
    assert [level.level for level in found.levels] == [1, 4, 8]
    assert (found.base_level, found.lowest, found.highest) == (1, found.levels[0], found.levels[-1])
    assert found.base is not None
    assert found.base.line is not None
    assert found.base.line.slope_ms == pytest.approx(0.1, rel=1e-3)
    assert found.base.gap_ms == pytest.approx(20, rel=1e-3)
    assert found.value("knee") == pytest.approx(3, rel=0.03)
    assert found.value("gap_ratio") == pytest.approx(1, rel=1e-3)
    assert found.value("gap_elasticity") == pytest.approx(0, abs=1e-3)
    assert found.value("plateau") == pytest.approx(3 * 0.8 / 0.9, rel=0.05)
    assert found.value("plateau_spread") == pytest.approx(0, abs=0.05)
    assert found.value("wait") == pytest.approx(900 * 5 / 3, rel=0.05)
    assert found.value("wait_share") == pytest.approx(1500 / 1600, rel=0.02)
    assert found.value("throughput_gain_last") == pytest.approx(0, abs=0.02)
    assert found.value("prefill_load") == pytest.approx(3 / 0.9 * 500 * 0.0001, rel=0.03)


def test_the_budgets_of_all_levels_stand_on_the_lowest() -> None:
    """At p95: two rounds of 0.9 s in the queue, as two of three wait, and one of the longest prompts, 700 tokens."""
    found = sweep(*((level, served(level, 3)) for level in (1, 8)))
    high = found.levels[-1].ttft
    assert high is not None
    assert high.part("prefill").ms == pytest.approx(120, rel=0.05)
    assert high.part("waiting").ms == pytest.approx(1800, rel=0.02)
    e2e = found.levels[-1].e2e
    assert e2e is not None
    assert e2e.part("base_gaps").ms == pytest.approx(800, rel=0.01)


def test_streams_that_slow_each_other_down() -> None:
    """20 ms a token alone, 80 ms beside three others: it grows as the load does."""
    found = sweep((1, served(1, 9)), (4, served(4, 9, gap_s=0.08)), (8, served(8, 9, gap_s=0.16)))
    assert found.value("gap_ratio") == pytest.approx(8, rel=1e-3)
    assert [one.value for one in found.elasticities] == [pytest.approx(1, rel=1e-3)] * 2
    assert [one.level for one in found.elasticities] == ["1 -> 4", "4 -> 8"]
    assert found.value("plateau_share") == pytest.approx(6.4 / 6.5, rel=0.02)
    slower = found.levels[-1].e2e
    assert slower is not None
    assert slower.part("slower_gaps").ms == pytest.approx(40 * 140, rel=0.01)


def test_a_plateau_in_tokens_moves_in_count() -> None:
    """Room for 3 requests of 500 tokens, or for 12 of 100 tokens: seen from two lengths at full load."""
    long, short = served(24, 3, prompt=500), served(20, 12, prompt=300)
    found = sweep((20, short), (24, long))
    assert found.value("plateau_spread") == pytest.approx((12 - 3) / 7.5, rel=0.1)


def test_one_level_says_nothing_of_steps() -> None:
    found = sweep((4, served(4, 3)))
    assert set(found.figures.values()) == {None}
    assert (found.elasticities, found.base_level) == ((), 4)
    with pytest.raises(KeyError):
        found.value("no_such_figure")


def test_no_level_at_all() -> None:
    found = evidence_of_group([])
    assert found.base is None
    assert found.lowest is found.highest is None
    assert not found.levels


def test_runs_of_one_level_stand_side_by_side() -> None:
    found = sweep((1, served(1, 3)), (4, served(4, 3)), (4, served(4, 3)))
    assert [level.level for level in found.levels] == [1, 4, 4]
    assert len(found.elasticities) == 1


def test_a_load_without_a_number_is_left_out() -> None:
    records = served(1, 3)
    run = run_of(records, STOP_S, level=1)
    shaped = msgspec.structs.replace(run.spec.load, concurrency=None, arrivals="ramp:1..5")
    varies = msgspec.structs.replace(run, level=None, spec=msgspec.structs.replace(run.spec, load=shaped))
    assert len(evidence_of_runs([(varies, records), (run, records)]).levels) == 1


def test_levels_looked_at_one_by_one_give_the_same() -> None:
    levels = [(n, served(n, 3)) for n in (1, 4)]
    runs = [(run_of(records, STOP_S, start_s=10, level=n), records) for n, records in levels]
    low = evidence_of(*runs[0], lowest=True)
    assert evidence_of_group([evidence_of(*runs[1], base=low.base), low]) == sweep(*levels)


def test_an_open_loop_beside_a_closed_one_has_no_step_between() -> None:
    closed, opened = served(1, 3), served(4, 3)
    rate = run_of(opened, STOP_S, level=4, spec=spec(concurrency=None, rate_per_s=4.0, window=f"0..{STOP_S}"))
    found = evidence_of_runs([(run_of(closed, STOP_S, level=1), closed), (rate, opened)])
    assert [level.is_open for level in found.levels] == [False, True]
    assert set(found.figures.values()) == {None}


def test_rates_have_steps_but_no_knee() -> None:
    runs = [
        (run_of(records, STOP_S, level=n, spec=spec(concurrency=None, rate_per_s=n, window=f"10..{STOP_S}")), records)
        for n in (1, 8)
        for records in [served(n, 3)]
    ]
    found = evidence_of_runs(runs)
    assert found.value("knee") is None
    assert found.value("gap_ratio") == pytest.approx(1, rel=1e-3)
    assert found.value("prefill_load") == pytest.approx(3 / 0.9 * 500 * 0.0001, rel=0.03)
