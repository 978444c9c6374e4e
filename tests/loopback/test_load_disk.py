"""A disk that is full during a run: a limit on the size of the worker's files stands in for it (EFBIG for ENOSPC)."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from tests.loopback.driving import SHORT, Outcome, S, calls, drive, drive_here, event, order, wait_until
from tests.loopback.replay import Replay, Reply

from nilometer.core.record import Record
from nilometer.load import journal
from nilometer.load.counters import Field
from nilometer.load.crew import Crew

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prlimit, which only Linux has")

STEADY = Reply(SHORT, schedule=((5, len(event("a"))), (20, len(SHORT) - len(event("a")))), ending="keep")


def run_into(limit_bytes: int, folder: Path) -> tuple[Outcome, int, int]:
    """A run whose worker may write so many bytes more: what it left, requests it counted, requests served."""
    counted = 0

    def fill(crew: Crew) -> None:
        nonlocal counted
        size = os.path.getsize(folder / "0.journal") + limit_bytes
        resource.prlimit(crew.workers[0].process.pid, resource.RLIMIT_FSIZE, (size, size))
        wait_until(lambda: not crew.running)
        counted = crew.total(Field.RECORDED)

    with Replay(STEADY) as replay:
        outcome = drive(order(folder, replay.url, lanes=3, duration_ns=60 * S), calls(100_000), fill)
    assert "Traceback" not in outcome.said
    return outcome, counted, len(replay.exchanges)


@pytest.mark.parametrize("limit_bytes", [0, 1, 700, 3_000, 3_001])
def test_a_full_disk_ends_the_run_and_keeps_what_was_measured(limit_bytes: int, tmp_path: Path) -> None:
    outcome, counted, served = run_into(limit_bytes, tmp_path)
    assert outcome.status == 4  # EXIT_JOURNAL
    assert len(outcome.records) == counted < served
    assert (counted > 0) == (limit_bytes >= 700)
    assert {record.outcome for record in outcome.records} <= {"ok"}
    size = os.path.getsize(tmp_path / "0.journal")
    written = len(journal.MAGIC) + sum(8 + length for length in lengths(tmp_path / "0.journal"))
    assert size == written  # no half entry at its end


def lengths(path: Path) -> list[int]:
    """Length of each entry's body, by the documented layout."""
    data, found = path.read_bytes(), []
    at = len(journal.MAGIC)
    while at < len(data):
        found.append(int.from_bytes(data[at : at + 4], "little"))
        at += 8 + found[-1]
    return found


def test_where_room_is_left_for_it_the_trailer_names_the_cause(tmp_path: Path) -> None:
    """The disk is full for a moment: the run ends all the same, and says why."""
    kept: list[Record] = []

    def full_after_five(record: Record) -> None:
        if len(kept) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kept.append(record)

    with Replay(STEADY) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)
        outcome = drive_here(told, calls(1000), write=full_after_five)
    assert len(kept) == 5
    assert outcome.health.death == "journal: No space left on device"
    assert outcome.phases.end_ns - outcome.phases.start_ns < 20 * S
