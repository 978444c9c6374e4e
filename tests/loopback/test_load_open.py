"""The open loop: requests start when they are due, neither before nor on too few connections."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, count, islice, repeat
from pathlib import Path
from random import Random

from tests.loopback.driving import MS, SHORT, S, drive_here, due_calls, order
from tests.loopback.replay import Replay, Reply

from nilometer.core.record import Call


def test_requests_start_when_due_also_when_the_end_of_the_calls_comes_in_between(tmp_path: Path) -> None:
    due_ms = [60, 160, 260, 360]

    def end_comes_late() -> Iterator[Call]:
        yield from due_calls(due_ms)
        time.sleep(0.1)  # the pipe is closed while the first call waits on the agenda

    with Replay(Reply(SHORT, ending="keep")) as replay:
        told = order(tmp_path, replay.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, end_comes_late(), batch=1)
    assert outcome.kinds() == {("ok", None): 4}
    start = outcome.phases.start_ns
    assert [record.due_ns for record in outcome.records] == [start + ms * MS for ms in due_ms]
    lags_ms = [((record.sent_ns or 0) - (record.due_ns or 0)) / MS for record in outcome.records]
    assert min(lags_ms) >= 0
    assert sorted(lags_ms)[1] < 20


def test_poisson_and_constant_schedules_are_kept_to(tmp_path: Path) -> None:
    """Every request has its due time from the schedule, goes out then, and counts its latency from it."""
    for name, gaps in [("constant", repeat(5.0)), ("poisson", (Random(3).expovariate(1 / 5.0) for _ in count()))]:
        due_ms = list(islice(accumulate(gaps), 120))
        folder = tmp_path / name
        folder.mkdir()
        with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
            outcome = drive_here(order(folder, replay.url, lanes=None, duration_ns=5 * S), due_calls(due_ms))
        assert outcome.kinds() == {("ok", None): 120}
        records = sorted(outcome.records, key=lambda record: record.seq)
        assert [(record.due_ns or 0) - outcome.phases.start_ns for record in records] == [
            round(ms * MS) for ms in due_ms
        ]
        lags_ms = sorted(((record.sent_ns or 0) - (record.due_ns or 0)) / MS for record in records)
        assert lags_ms[0] >= 0
        assert lags_ms[60] < 2
        assert all(record.start_ns == record.due_ns for record in records)
        assert all(record.refill_ns is None for record in records)


def test_phases_go_by_when_requests_are_due(tmp_path: Path) -> None:
    due_ms = [0, 50, 99, 100, 150, 299, 300, 350]
    slow = Reply(SHORT, schedule=((120, len(SHORT)),), ending="keep")
    with Replay(slow) as replay:
        told = order(tmp_path, replay.url, lanes=None, warmup_ns=100 * MS, duration_ns=200 * MS)
        outcome = drive_here(told, due_calls(due_ms))
    phases = {record.seq: record.phase for record in outcome.records}
    expected = ["warmup"] * 3 + ["measured"] * 3 + ["drain"] * 2
    assert [phases[seq] for seq in range(8)] == expected
    measured = [record for record in outcome.records if record.phase == "measured"]
    assert {record.outcome for record in measured} == {"ok"}  # those of the drain may be cut when these have ended
    assert outcome.health.asked_in_flight is None


def test_a_count_stops_the_schedule(tmp_path: Path) -> None:
    with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
        told = order(tmp_path, replay.url, lanes=None, warmup_ns=50 * MS, requests=7)
        outcome = drive_here(told, due_calls(i * 10.0 for i in range(1000)))
        assert len(replay.exchanges) == 12
    assert Counter(record.phase for record in outcome.records) == {"warmup": 5, "measured": 7}


def test_a_load_as_long_as_its_calls_stops_at_the_last_and_then_drains(tmp_path: Path) -> None:
    slow = Reply(SHORT, schedule=((300, len(SHORT)),), ending="keep")
    with Replay(slow) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=None, warmup_ns=20 * MS), due_calls([10, 30, 50]))
    assert outcome.kinds() == {("ok", None): 3}
    assert 50 * MS <= outcome.phases.stop_ns - outcome.phases.start_ns < 250 * MS
    with Replay(Reply(b"", ending="hang", head_ms=60_000)) as replay:
        folder = tmp_path / "hangs"
        folder.mkdir()
        outcome = drive_here(order(folder, replay.url, lanes=None, drain_ns=100 * MS), due_calls([10, 30, 50]))
    assert set(outcome.kinds()) == {("cancelled", None)}
    assert outcome.phases.cut_at_drain_limit


def test_where_no_connection_is_free_another_is_opened(tmp_path: Path) -> None:
    slow = Reply(SHORT, schedule=((150, len(SHORT)),), ending="keep")
    with Replay(slow) as replay:
        told = order(tmp_path, replay.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, due_calls([0, 10, 20, 30, 400, 410]))
        assert len({exchange.connection for exchange in replay.exchanges}) == 4
    assert outcome.kinds() == {("ok", None): 6}
    assert outcome.health.connections_opened == 4
    assert [record.new_connection for record in sorted(outcome.records, key=lambda record: record.seq)] == [
        *([True] * 4), False, False,
    ]  # fmt: skip
    assert max(((record.sent_ns or 0) - (record.due_ns or 0)) / MS for record in outcome.records) < 100


def test_requests_that_are_due_at_one_moment_all_go_out(tmp_path: Path) -> None:
    with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
        told = order(tmp_path, replay.url, lanes=None, duration_ns=5 * S)
        outcome = drive_here(told, due_calls([30.0] * 50))
    assert outcome.kinds() == {("ok", None): 50}
    assert {record.due_ns for record in outcome.records} == {outcome.phases.start_ns + 30 * MS}


def test_calls_that_come_after_they_were_due_go_out_at_once_and_count_from_due(tmp_path: Path) -> None:
    def late() -> Iterator[Call]:
        (first, *others) = due_calls([0, 20, 40])
        yield first
        time.sleep(0.3)
        yield from others

    with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
        outcome = drive_here(order(tmp_path, replay.url, lanes=None, duration_ns=5 * S), late(), batch=1)
    assert outcome.kinds() == {("ok", None): 3}
    lags_ms = [((record.sent_ns or 0) - (record.due_ns or 0)) / MS for record in outcome.records]
    assert all(200 < lag < 1000 for lag in lags_ms[1:])


def test_a_fast_schedule_does_not_starve(tmp_path: Path) -> None:
    """Faster than the store is filled in calm moments: 3,000 a second for a while."""
    with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
        told = order(tmp_path, replay.url, lanes=None, requests=600)
        outcome = drive_here(told, due_calls(i / 3 for i in range(2000)))
    assert outcome.kinds() == {("ok", None): 600}
    assert outcome.phases.stop_ns - outcome.phases.start_ns < 3 * S


def test_the_drain_limit_holds_in_the_open_loop(tmp_path: Path) -> None:
    with Replay(Reply(b"", ending="hang", head_ms=60_000)) as replay:
        told = order(tmp_path, replay.url, lanes=None, duration_ns=150 * MS, drain_ns=100 * MS)
        outcome = drive_here(told, due_calls(i * 20.0 for i in range(100)))
    assert set(outcome.kinds()) == {("cancelled", None)}
    assert sum(record.phase == "measured" for record in outcome.records) == 8
    assert outcome.phases.cut_at_drain_limit


def test_stopped_it_sends_nothing_that_is_due_later(tmp_path: Path) -> None:
    with Replay(Reply(SHORT, ending="keep", framing="length")) as replay:
        told = order(tmp_path, replay.url, lanes=None, duration_ns=60 * S)
        outcome = drive_here(
            told, due_calls([0, 50, 400, 500]), meanwhile=lambda load: load.drain("interrupted"), after_ms=200
        )
    assert [record.seq for record in outcome.records] == [0, 1]
    assert outcome.phases.interrupted
