"""The worker's watch on itself: rows of health, offsets between the clocks, and steps of the wall clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.unit.load.fakes import FakeLoop

from nilometer.load import pulse
from nilometer.load.pulse import LATE_NS, ROW_NS, Pulse, wall_offset_ns

MS = 1_000_000
OFFSET = 1_700_000_000_000_000_000


class Bench:
    """A pulse on clocks of ours; the wall clock is `offset_ns` ahead of the monotonic one."""

    def __init__(self) -> None:
        self.loop = FakeLoop(now_ns=50 * MS)
        self.offset_ns = OFFSET
        self.cpu_ns = 0
        self.in_flight = 0
        self.rows: list[int] = []

    def begin(self) -> Pulse:
        made = Pulse(self.loop.as_loop, lambda: self.in_flight, self.rows.append)
        made.start()
        return made

    def wall_ns(self) -> int:
        return self.loop.now_ns + self.offset_ns


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    clocks = SimpleNamespace(
        monotonic_ns=made.loop.monotonic_ns, time_ns=made.wall_ns, process_time_ns=lambda: made.cpu_ns
    )
    monkeypatch.setattr(pulse, "time", clocks)
    return made


def test_a_row_at_the_start_and_one_every_tenth_of_a_second(bench: Bench) -> None:
    watch = bench.begin()
    assert list(watch.at) == [50 * MS]
    bench.loop.run_until(50 * MS + 1000 * MS)
    gaps = [after - before for before, after in zip(watch.at, watch.at[1:], strict=False)]
    assert 9 <= len(gaps) <= 10
    assert all(ROW_NS <= gap <= ROW_NS + 4 * MS for gap in gaps)
    assert bench.rows == list(watch.at[1:])  # the host is told of each but the first
    columns = (watch.offset, watch.lag_max, watch.in_flight, watch.cpu)
    assert {len(column) for column in columns} == {len(watch.at)}
    assert set(watch.offset) == {OFFSET}


def test_rows_hold_what_was_so_at_their_moment(bench: Bench) -> None:
    watch = bench.begin()
    bench.in_flight, bench.cpu_ns = 7, 42
    bench.loop.run_until(200 * MS)
    assert (watch.in_flight[0], watch.in_flight[1]) == (0, 7)
    assert (watch.cpu[0], watch.cpu[1]) == (0, 42)


def test_the_longest_absence_is_told_once(bench: Bench) -> None:
    watch = bench.begin()
    bench.loop.run_until(60 * MS)
    bench.loop.now_ns += 25 * MS  # the loop was away
    bench.loop.run_until(400 * MS)
    lags = list(watch.lag_max)
    assert 20 * MS <= max(lags) <= 26 * MS
    assert sorted(lags)[-2] < MS


def test_a_read_is_late_when_the_last_beat_is_long_ago(bench: Bench) -> None:
    watch = bench.begin()
    bench.loop.run_until(150 * MS)
    assert bench.loop.now_ns - watch.beat_ns <= LATE_NS
    bench.loop.now_ns += 9 * MS
    assert bench.loop.now_ns - watch.beat_ns > LATE_NS


def test_without_a_step_one_offset_holds(bench: Bench) -> None:
    watch = bench.begin()
    bench.loop.run_until(500 * MS)
    assert watch.offsets(100 * MS, 400 * MS) == OFFSET
    assert not watch.stepped(100 * MS, 400 * MS)
    assert watch.steps == []
    assert watch.offsets(0, 10_000 * MS) == OFFSET  # before the first row and after the last


def test_a_drift_within_the_calm_is_one_offset_and_beyond_it_is_none(bench: Bench) -> None:
    watch = bench.begin()
    for i in range(1, 5):
        bench.loop.run_until((50 + 100 * i) * MS)
        bench.offset_ns += 15_000
    assert watch.steps == []
    assert watch.offsets(60 * MS, 140 * MS) is not None
    assert watch.offsets(60 * MS, 440 * MS) is None
    assert watch.offset_at(watch.at[2]) == watch.offset[2]
    assert watch.offset_at(watch.at[2] - 1) == watch.offset[1]
    assert watch.offset_at(0) == watch.offset[0]


@pytest.mark.parametrize("step_ns", [2 * MS, -2 * MS, 3600_000 * MS, -5_000 * MS])
def test_a_step_of_the_wall_clock_marks_its_stretch_alone(bench: Bench, step_ns: int) -> None:
    watch = bench.begin()
    bench.loop.run_until(320 * MS)
    bench.offset_ns += step_ns
    bench.loop.run_until(700 * MS)
    ((before, after),) = watch.steps
    assert before < 320 * MS < after <= 320 * MS + ROW_NS + 5 * MS
    assert watch.stepped(300 * MS, 330 * MS)
    assert watch.stepped(320 * MS, 320 * MS)
    assert not watch.stepped(100 * MS, before - 1)
    assert not watch.stepped(after + 1, 700 * MS)
    assert watch.offsets(200 * MS, 600 * MS) is None
    assert watch.offset_at(before) == OFFSET
    assert watch.offset_at(after) == OFFSET + step_ns
    assert watch.offsets(after + 110 * MS, 700 * MS) == OFFSET + step_ns


def test_a_step_that_no_row_tells_of_yet_is_seen_when_it_matters(bench: Bench) -> None:
    watch = bench.begin()
    bench.loop.run_until(320 * MS)
    rows = len(watch.at)
    bench.offset_ns -= 1000 * MS
    bench.loop.now_ns += 20 * MS  # a response ends and is digested before the next row
    assert watch.offsets(315 * MS, 339 * MS) is None
    assert watch.stepped(315 * MS, 339 * MS)
    assert len(watch.at) == rows + 1
    assert watch.offset_at(bench.loop.now_ns) == OFFSET - 1000 * MS


def test_a_step_below_a_millisecond_is_none(bench: Bench) -> None:
    watch = bench.begin()
    bench.loop.run_until(320 * MS)
    bench.offset_ns += 900_000
    bench.loop.run_until(600 * MS)
    assert watch.steps == []


def test_the_offset_is_that_of_the_narrowest_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five looks of different width; the wall clock is read in the middle of each, off by half the width."""
    widths = iter([900, 40, 500, 300, 200])
    now = [0]
    state = {"width": 0, "reads": 0}

    def monotonic_ns() -> int:
        if state["reads"] % 2 == 0:
            state["width"] = next(widths)
            now[0] += 1000
        else:
            now[0] += state["width"]
        state["reads"] += 1
        return now[0]

    monkeypatch.setattr(
        pulse, "time", SimpleNamespace(monotonic_ns=monotonic_ns, time_ns=lambda: now[0] + OFFSET + state["width"])
    )
    assert wall_offset_ns() == OFFSET + 40 - 20
