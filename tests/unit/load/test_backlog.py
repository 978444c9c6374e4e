"""Ended responses: written down when a wave of ends is over, a little at a time, each once, whatever one of them is."""

from __future__ import annotations

from typing import cast

import pytest
from tests.loopback.driving import DONE, SHORT, event, finish, usage
from tests.unit.load.fakes import FakeLoop
from tests.unit.load.made import MS, S, exchange

from nilometer.core.record import Record
from nilometer.load import backlog as room
from nilometer.load.backlog import Backlog, Timers
from nilometer.load.digest import Digest
from nilometer.load.exchange import Exchange
from nilometer.load.order import Order
from nilometer.load.pulse import Pulse

ORDER = Order(target="t", dialect="chat", journal="j", counters="c", worker=1)
READ_NS = 50_000
"""What a look at the clock costs here: time passes by looking."""


class StillPulse:
    """No offset, no step."""

    def stepped(self, start_ns: int, end_ns: int) -> bool:
        return False

    def offsets(self, start_ns: int, end_ns: int) -> int | None:
        return 0


class Bench:
    """A backlog on a loop that moves when told; `written` in order, `fault` raised by every write while set."""

    def __init__(self) -> None:
        self.loop = FakeLoop(now_ns=S)
        self.pulse = cast(Pulse, StillPulse())
        self.written: list[Record] = []
        self.written_at: list[int] = []
        self.fault: Exception | None = None
        self.told: list[OSError] = []
        self.backlog = Backlog(cast(Timers, self), ORDER, self.write, self.told.append)

    def write(self, record: Record) -> None:
        if self.fault is not None:
            raise self.fault
        self.written.append(record)
        self.written_at.append(self.loop.now_ns)

    def end(self, body: bytes = SHORT, pieces: int = 1) -> Exchange:
        """A response that has ended now."""
        now = self.loop.now_ns
        step = -(-len(body) // pieces)
        ended = exchange([(now, None, [body[at : at + step]]) for at in range(0, len(body), step)])
        self.backlog.add(ended)
        return ended


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()

    def look() -> int:
        made.loop.now_ns += READ_NS
        return made.loop.now_ns

    monkeypatch.setattr(room.time, "monotonic_ns", look)  # type: ignore[attr-defined]
    return made


def test_nothing_is_read_before_the_wave_of_ends_is_over(bench: Bench) -> None:
    for _ in range(8):
        bench.end()
        bench.loop.run_until(bench.loop.now_ns + 6 * MS)
    last = bench.loop.now_ns - 6 * MS
    assert bench.written == []
    assert len(bench.backlog) == 8
    bench.loop.run_until(last + 40 * MS)
    assert len(bench.written) == 8
    assert bench.written_at[0] >= last + 10 * MS
    assert (bench.backlog.recorded, len(bench.backlog)) == (8, 0)


def test_no_response_waits_for_calm_for_ever(bench: Bench) -> None:
    start = bench.loop.now_ns
    while bench.loop.now_ns < start + 300 * MS:
        bench.end()
        bench.loop.run_until(bench.loop.now_ns + 5 * MS)
    assert bench.written
    assert 100 * MS <= bench.written_at[0] - start < 125 * MS


def test_the_loop_is_held_for_a_moment_at_a_time(bench: Bench) -> None:
    body = b"".join(event("x") for _ in range(600)) + finish() + usage(7, 600) + DONE
    bench.end(body, pieces=600)
    before = bench.loop.turns
    bench.loop.run_until(bench.loop.now_ns + 50 * MS)
    assert bench.written[0].output_tokens == 600
    assert bench.loop.turns - before > 5  # 600 pieces, 16 between two looks of 50 us, 300 us a turn


def test_records_come_in_the_order_of_ending(bench: Bench) -> None:
    ended = [bench.end(pieces=n) for n in (9, 1, 5)]
    bench.loop.run_until(bench.loop.now_ns + 50 * MS)
    assert [record.first_byte_ns for record in bench.written] == [x.first_user for x in ended]


def test_at_the_end_all_is_written_at_once_also_what_was_begun(bench: Bench) -> None:
    first = bench.end(b"".join(event("x") for _ in range(400)) + finish() + usage(7, 400) + DONE, pieces=400)
    bench.end()
    bench.backlog.digest(first).step(0)
    bench.backlog.clear(lambda: None)
    assert [record.output_tokens for record in bench.written] == [400, 3]
    assert bench.backlog.recorded == 2
    bench.loop.run_until(bench.loop.now_ns + 100 * MS)  # the timer that was set finds nothing to do
    assert len(bench.written) == 2


def test_it_starts_anew_after_it_was_empty(bench: Bench) -> None:
    for count in (1, 2, 3):
        bench.end()
        bench.loop.run_until(bench.loop.now_ns + 30 * MS)
        assert len(bench.written) == count


def test_a_reading_begun_while_the_response_came_is_gone_on_with(bench: Bench) -> None:
    coming = exchange([(S, None, [event("a")])])
    reading = bench.backlog.digest(coming)
    reading.step(room.NEVER_NS)
    assert bench.backlog.digest(coming) is reading
    coming.pieces += [event("b"), finish() + usage(7, 2) + DONE]
    coming.user += [S + MS, S + 2 * MS]
    coming.kernel += b"\xff" * 32
    bench.backlog.add(coming)
    bench.backlog.clear(lambda: None)
    assert [frame.at_ns for frame in bench.written[0].frames] == [S, S + MS]


def test_one_that_cannot_be_read_does_not_end_the_load(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = bench.end()
    bench.end()
    really = Digest.step

    def step(self: Digest, deadline_ns: int) -> bool:
        if self is bench.backlog.digest(bad):
            raise RecursionError("too deep")
        return really(self, deadline_ns)

    monkeypatch.setattr(Digest, "step", step)
    bench.backlog.clear(lambda: None)
    assert [(r.outcome, r.error) for r in bench.written] == [("error", "malformed"), ("ok", None)]
    assert "too deep" in (bench.written[0].error_detail or "")
    assert bench.backlog.recorded == 2


def test_one_that_cannot_be_written_down_is_written_as_malformed(bench: Bench) -> None:
    refused: list[Record] = []

    def write(record: Record) -> None:
        if record.outcome == "ok" and not refused:
            refused.append(record)
            raise OverflowError("int too big to convert")
        bench.write(record)

    bench.backlog._write = write
    bench.end()
    bench.end()
    bench.backlog.clear(lambda: None)
    assert [(r.outcome, r.error) for r in bench.written] == [("error", "malformed"), ("ok", None)]
    assert bench.backlog.recorded == 2


def test_a_count_beyond_64_bits_is_no_end(bench: Bench) -> None:
    """As a server may send it; the journal cannot hold it."""
    from nilometer.load import journal

    def write(record: Record) -> None:
        journal._encoder.encode(record)
        bench.write(record)

    bench.backlog._write = write
    bench.end(event("a") + finish() + usage(2**70, 2**80) + DONE)
    bench.end()
    bench.backlog.clear(lambda: None)
    assert len(bench.written) == 2
    assert bench.written[1].outcome == "ok"


def test_a_full_disk_is_told_once_and_nothing_more_is_counted(bench: Bench) -> None:
    bench.end()
    bench.backlog.clear(lambda: None)
    bench.fault = OSError(28, "No space left on device")
    for _ in range(3):
        bench.end()
    bench.backlog.clear(lambda: None)
    assert bench.backlog.recorded == 1
    assert [fault.errno for fault in bench.told] == [28]
    assert len(bench.backlog) == 0
