"""The open loop: requests start when they are due, neither before nor on too few connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

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
