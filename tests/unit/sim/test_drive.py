from __future__ import annotations

from itertools import count, repeat

import pytest

from nilometer.sim.cost import Linear
from nilometer.sim.drive import ORIGIN_NS, Offer, simulate
from nilometer.sim.faults import Faults
from nilometer.sim.machine import Machine
from nilometer.sim.setting import Ask

from .made import asks, closed, machine, of_keys, opened, seconds, setting


def test_a_request_by_hand() -> None:
    """10 ms to the first token, then 10 ms each."""
    (record,) = opened(machine(setting()), [0.5], asks([8], [3])).records
    assert (record.due_ns, record.sent_ns) == (ORIGIN_NS + 500_000_000,) * 2
    assert record.first_token_ns == record.first_byte_ns == ORIGIN_NS + 510_000_000
    assert record.end_ns == record.last_token_ns == ORIGIN_NS + 530_000_000
    assert [frame.at_ns - ORIGIN_NS for frame in record.frames] == [510_000_000, 520_000_000, 530_000_000]
    assert [frame.tokens for frame in record.frames] == [1, 1, 1]
    assert (record.outcome, record.status, record.finish_reason) == ("ok", 200, "length")
    assert (record.prompt_tokens, record.output_tokens, record.asked_output) == (8, 3, 3)
    assert (record.stamp_source, record.token_source, record.cached_tokens) == ("simulated", "usage", None)


def test_a_user_asks_again_when_the_answer_has_come_and_was_thought_about() -> None:
    records = of_keys(closed(machine(setting()), 1, asks([8] * 3, [2] * 3), think_s=0.1).records)
    assert [seconds(records[i].sent_ns) for i in range(3)] == pytest.approx([0.0, 0.12, 0.24])
    assert all(record.due_ns is None for record in records.values())


def test_users_start_over_the_ramp() -> None:
    records = closed(machine(setting()), 4, asks([8] * 4, [1_000] * 4), ramp_s=2.0).records
    assert sorted(seconds(record.sent_ns) for record in records) == [0.0, 0.5, 1.0, 1.5]


def test_nothing_is_asked_after_the_stop_and_what_was_asked_ends() -> None:
    played = closed(machine(setting()), 2, [*repeat(Ask(0, 8, 100), 50)], stop_s=2.5, warmup_s=1.0)
    assert len(played.records) == 6
    assert {record.outcome for record in played.records} == {"ok"}
    assert [record.phase for record in sorted(played.records, key=lambda r: r.seq)] == ["warmup"] * 2 + ["measured"] * 4
    borders = played.phases
    assert (borders.measured_ns, borders.stop_ns) == (ORIGIN_NS + 10**9, ORIGIN_NS + 2_500_000_000)
    assert borders.end_ns == max(record.end_ns or 0 for record in played.records)
    assert not borders.cut_at_drain_limit


def test_what_outlives_the_drain_is_cut() -> None:
    played = closed(machine(setting()), 2, [*repeat(Ask(0, 8, 100), 50)], stop_s=2.5, drain_s=0.2)
    cut = [record for record in played.records if record.outcome == "cancelled"]
    assert [seconds(record.end_ns) for record in cut] == [2.7, 2.7]
    assert played.phases.cut_at_drain_limit
    assert seconds(played.phases.end_ns) == 2.7


def test_so_many_requests_and_no_more() -> None:
    endless = (Ask(key, 8, 2) for key in count())
    assert len(simulate(Offer(users=3, requests=7), endless, machine(setting())).records) == 7
    due_s = (0.1 * i for i in count())
    assert len(simulate(Offer(due_s=due_s, stop_s=0.95), endless, machine(setting())).records) == 10


def test_a_client_gives_up() -> None:
    made = machine(setting(slots=1))
    played = closed(made, 2, asks([8] * 2, [100, 5]), timeout_s=0.5)
    records = of_keys(played.records)
    assert [(r.outcome, r.error, seconds(r.end_ns)) for r in records.values()] == [
        ("error", "timeout_total", 0.5),
        ("error", "timeout_total", 0.5),
    ]
    assert made.gauges[0].running == made.gauges[0].waiting == 0


def test_what_got_lost_is_cut_when_nothing_else_can_happen() -> None:
    played = closed(machine(setting(), Faults(drop_share=1.0)), 2, asks([8] * 2, [2] * 2))
    assert [record.outcome for record in played.records] == ["cancelled"] * 2


def test_a_scraper_looks_at_even_times() -> None:
    seen: list[tuple[float, int]] = []

    def look(at_s: float, made: Machine) -> None:
        seen.append((at_s, made.gauges[0].running))

    wanted = asks([8] * 4, [90] * 4)  # three end at 0.9 s, the fourth at 1.8 s
    simulate(Offer(users=4), wanted, machine(setting(slots=3)), sample_s=0.5, sample=look)
    assert seen == [(0.0, 0), (0.5, 3), (1.0, 1), (1.5, 1)]


def test_users_or_moments() -> None:
    with pytest.raises(ValueError, match="users or due_s"):
        Offer()
    with pytest.raises(ValueError, match="users or due_s"):
        Offer(users=1, due_s=[0.0])


def test_one_that_comes_as_a_step_ends_joins_the_next() -> None:
    """Steps of a quarter of a second, exact in binary: the second comes at 0.5 s, just after it at 0.5 s and a bit."""
    steady = setting(Linear(fixed_s=0.25))
    for due_s, first_s in ((0.5, 0.75), (0.5 + 1e-9, 1.0)):
        records = of_keys(opened(machine(steady), [0.0, due_s], asks([8] * 2, [9, 2])).records)
        assert seconds(records[1].first_token_ns) == first_s
