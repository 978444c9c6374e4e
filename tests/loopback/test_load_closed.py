"""The closed loop: N in flight, the opening wave, the stop rules, the drain, and what is cut at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path

import pytest
from tests.loopback.driving import MS, SHORT, Outcome, S, calls, drive_here, event, order, request
from tests.loopback.replay import Exchange, Replay, Reply

from nilometer.core.record import Call
from nilometer.load.loop import LoadLoop
from nilometer.load.order import StopReason

QUICK = Reply(SHORT, ending="keep")
SLOW_MS = 60
SLOW = Reply(SHORT, schedule=((20, 80), (SLOW_MS, len(SHORT) - 80)), ending="keep")
SILENT = Reply(SHORT, head_ms=0, schedule=((60_000, len(SHORT)),), ending="keep")


def most_at_once(outcome: Outcome) -> int:
    """The greatest number of requests between sent and end at one moment, by the records."""
    turns = [(record.sent_ns or 0, 1) for record in outcome.records]
    turns += [(record.end_ns or 0, -1) for record in outcome.records]
    level = most = 0
    for _, change in sorted(turns):
        level += change
        most = max(most, level)
    return most


def at_once(exchanges: list[Exchange]) -> int:
    """The same as the server saw it."""
    turns = [(e.read_ns, 1) for e in exchanges] + [(e.end_ns or 0, -1) for e in exchanges]
    level = most = 0
    for _, change in sorted(turns):
        level += change
        most = max(most, level)
    return most


def test_n_are_kept_in_flight_on_n_connections(tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=4, requests=32), calls(100))
        served = list(replay.exchanges)
    assert outcome.kinds() == {("ok", None): 32}
    assert (most_at_once(outcome), at_once(served)) == (4, 4)
    assert len({exchange.connection for exchange in served}) == outcome.health.connections_opened == 4
    assert outcome.health.asked_in_flight == 4
    assert sum(record.new_connection for record in outcome.records) == 4
    assert all((record.connect_ns is not None) == record.new_connection for record in outcome.records)


def test_a_freed_slot_is_refilled_at_once(tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=2, requests=20), calls(100))
    refills_ms = sorted((record.refill_ns or 0) / MS for record in outcome.records if record.refill_ns is not None)
    assert len(refills_ms) == 18  # each slot's first request refills nothing
    assert refills_ms[0] > 0
    assert refills_ms[9] < 5
    by_connection: dict[int | None, list[tuple[int, int, int | None]]] = {}
    for record in sorted(outcome.records, key=lambda record: record.sent_ns or 0):
        by_connection.setdefault(record.connection, []).append(
            (record.sent_ns or 0, record.end_ns or 0, record.refill_ns)
        )
    for rows in by_connection.values():
        for (_, end, _), (sent, _, refill) in pairwise(rows):
            assert refill == pytest.approx(sent - end, abs=0.1 * MS)  # two conversions of one kernel stamp


def test_calls_are_sent_in_their_order_and_each_once(tmp_path: Path) -> None:
    with Replay(QUICK) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=3, requests=40), calls(500))
        served = [int(exchange.headers["x-seq"]) for exchange in replay.exchanges]
    assert sorted(served) == sorted(record.seq for record in outcome.records) == list(range(40))
    by_sent = sorted(outcome.records, key=lambda record: record.sent_ns or 0)
    assert [record.seq for record in by_sent] == list(range(40))
    assert {record.id for record in outcome.records} == {f"0-{seq}" for seq in range(40)}


def test_the_opening_wave_is_spread_over_the_ramp(tmp_path: Path) -> None:
    with Replay(SILENT) as replay:
        told = order(tmp_path, replay.url, lanes=4, ramp_ns=200 * MS, duration_ns=260 * MS, drain_ns=0)
        outcome = drive_here(told, calls(20))
    start = outcome.phases.start_ns
    sent_ms = sorted(((record.sent_ns or 0) - start) / MS for record in outcome.records)
    assert sent_ms == pytest.approx([0, 50, 100, 150], abs=20)
    assert min(sent_ms) >= 0


@pytest.mark.parametrize("n", [1, 7])
def test_a_count_stops_at_exactly_n_measured_requests(n: int, tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=3, requests=n, warmup_ns=100 * MS), calls(1000))
        served = len(replay.exchanges)
    phases = outcome.phases
    measured = [record for record in outcome.records if record.phase == "measured"]
    assert len(measured) == n
    assert len(outcome.records) == served
    assert {record.outcome for record in outcome.records} == {"ok"}
    assert all(phases.measured_ns <= (record.sent_ns or 0) for record in measured)
    warmup = [record for record in outcome.records if record.phase == "warmup"]
    assert len(warmup) >= 3
    assert all((record.sent_ns or 0) < phases.measured_ns for record in warmup)
    assert phases.measured_ns == phases.start_ns + 100 * MS
    assert (phases.interrupted, phases.cut_at_drain_limit) == (False, False)


def test_a_duration_goes_on_until_the_measured_requests_have_ended(tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        told = order(tmp_path, replay.url, lanes=3, warmup_ns=100 * MS, duration_ns=200 * MS)
        outcome = drive_here(told, calls(1000))
    phases = outcome.phases
    assert phases.stop_ns - phases.measured_ns == 200 * MS
    for record in outcome.records:
        sent = record.sent_ns or 0
        expected = "warmup" if sent < phases.measured_ns else "measured" if sent < phases.stop_ns else "drain"
        assert record.phase == expected
    measured = [record for record in outcome.records if record.phase == "measured"]
    assert {record.outcome for record in measured} == {"ok"}
    last_end = max(record.end_ns or 0 for record in measured)
    assert phases.stop_ns < last_end <= phases.end_ns  # the last ones ended after the window ...
    drain = [record for record in outcome.records if record.phase == "drain"]
    assert drain  # ... under load: freed slots were still refilled ...
    assert {record.outcome for record in drain} <= {"ok", "cancelled"}  # ... and what came after them was cut
    assert not phases.cut_at_drain_limit


def test_the_drain_limit_cuts_and_says_so(tmp_path: Path) -> None:
    with Replay(SILENT) as replay:
        told = order(tmp_path, replay.url, lanes=3, duration_ns=100 * MS, drain_ns=150 * MS)
        begun = time.monotonic()
        outcome = drive_here(told, calls(20))
    assert time.monotonic() - begun < 5
    assert outcome.kinds() == {("cancelled", None): 3}
    phases = outcome.phases
    assert phases.cut_at_drain_limit
    assert not phases.interrupted
    assert phases.end_ns >= phases.stop_ns + 150 * MS
    for record in outcome.records:
        assert (record.status, record.token_source, record.output_tokens) == (200, "none", None)
        assert record.first_token_ns is None
        assert record.end_ns is not None


def test_the_drain_after_a_count_has_its_limit_too(tmp_path: Path) -> None:
    with Replay(SILENT) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=2, requests=2, drain_ns=150 * MS), calls(20))
    assert outcome.kinds() == {("cancelled", None): 2}
    assert outcome.phases.cut_at_drain_limit


def test_asked_to_stop_it_starts_nothing_more_and_ends_what_runs(tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        outcome = drive_here(
            order(tmp_path, replay.url, lanes=3, duration_ns=60 * S),
            calls(1000),
            meanwhile=lambda load: load.drain("interrupted"),
            after_ms=150,
        )
    phases = outcome.phases
    assert phases.interrupted
    assert {record.outcome for record in outcome.records} == {"ok"}
    assert max(record.sent_ns or 0 for record in outcome.records) < phases.stop_ns
    assert phases.stop_ns - phases.start_ns < 60 * S


@pytest.mark.parametrize("why", ["budget", "target_lost"])
def test_stopped_for_another_reason_it_was_not_interrupted(why: StopReason, tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)
        outcome = drive_here(told, calls(1000), meanwhile=lambda load: load.drain(why), after_ms=100)
    assert (outcome.phases.interrupted, outcome.phases.stopped_by) == (False, why)
    assert {record.outcome for record in outcome.records} == {"ok"}


def test_a_reason_that_comes_later_does_not_hide_the_interruption(tmp_path: Path) -> None:
    def twice(load: LoadLoop) -> None:
        load.drain("interrupted")
        load.drain("budget")

    with Replay(SLOW) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)
        outcome = drive_here(told, calls(1000), meanwhile=twice, after_ms=100)
    assert outcome.phases.interrupted


def test_cancelled_it_ends_at_once_with_what_there_is(tmp_path: Path) -> None:
    first = len(event("a"))
    partly = Reply(SHORT, schedule=((0, first), (60_000, len(SHORT) - first)), ending="keep")
    with Replay(partly) as replay:
        told = order(tmp_path, replay.url, lanes=3, duration_ns=60 * S)
        outcome = drive_here(told, calls(1000), meanwhile=LoadLoop.cancel, after_ms=150)
    assert outcome.kinds() == {("cancelled", None): 3}
    assert outcome.phases.interrupted
    for record in outcome.records:
        assert record.first_token_ns is not None  # a request that was cut keeps the times it had
        assert len(record.frames) == 1
        assert record.output_tokens is None


def test_stopped_before_it_began_it_leaves_a_journal_of_nothing(tmp_path: Path) -> None:
    with Replay(QUICK) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)
        outcome = drive_here(told, calls(10), meanwhile=lambda load: load.drain("interrupted"), after_ms=-19)
    assert outcome.records == []
    assert outcome.phases.interrupted
    assert replay.exchanges == []


def test_calls_that_run_out_end_the_load(tmp_path: Path) -> None:
    with Replay(QUICK) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=4, duration_ns=60 * S), calls(9))
    assert outcome.kinds() == {("ok", None): 9}
    assert outcome.phases.stop_ns - outcome.phases.start_ns < 20 * S
    assert not outcome.phases.interrupted


def test_no_calls_at_all_are_a_load_of_nothing(tmp_path: Path) -> None:
    with Replay(QUICK) as replay:
        assert drive_here(order(tmp_path, replay.url, lanes=2, duration_ns=60 * S), []).records == []


def test_calls_that_come_too_slowly_leave_slots_hungry_and_lose_none(tmp_path: Path) -> None:
    def slowly() -> Iterator[Call]:
        for seq in range(12):
            time.sleep(0.02)
            yield Call(seq=seq, request=request("h"))

    with Replay(QUICK) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=3, duration_ns=60 * S), slowly(), batch=1)
    assert outcome.kinds() == {("ok", None): 12}


def test_the_maker_of_calls_is_held_back(tmp_path: Path) -> None:
    """An endless maker is asked for no more than the store and the pipe hold."""
    made = count()
    seen = []

    def endless() -> Iterator[Call]:
        for seq in made:
            seen.append(seq)
            yield Call(seq=seq, request=request("h", body=bytes(20_000)))

    with Replay(QUICK) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=2, requests=10), endless())
    assert outcome.kinds() == {("ok", None): 10}
    assert 10 <= len(seen) < 400


@pytest.mark.parametrize("lanes", [1, 200])
def test_health_is_told_in_rows(lanes: int, tmp_path: Path) -> None:
    with Replay(SLOW) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=lanes, duration_ns=400 * MS), calls(100_000))
    health = outcome.health
    at = memoryview(health.at).cast("q").tolist()
    columns = [getattr(health, name) for name in ("wall_offset", "lag_max", "in_flight", "cpu")]
    assert {len(column) for column in columns} == {len(health.at)}
    assert at == sorted(at)
    assert len(at) >= 3  # 400 ms of load at a row every 100 ms; a busy machine skips some
    cpu = memoryview(health.cpu).cast("q").tolist()
    assert cpu == sorted(cpu)
    seen = max(memoryview(health.in_flight).cast("q").tolist())
    assert lanes * 0.9 <= seen <= lanes  # a row may fall into a wave of refills
    assert (health.death, health.resent, health.wall_steps) == (None, 0, 0)
    assert health.event_loop in ("uvloop", "asyncio")
