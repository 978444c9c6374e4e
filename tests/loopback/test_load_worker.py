"""The worker process and its crew: how they begin, share, end, and what is left when either is killed.

Every process ended here was started here, and is ended by its id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loopback.driving import (
    MS,
    SHORT,
    S,
    alive,
    calls,
    drive,
    drive_here,
    event,
    left,
    order,
    wait_until,
)
from tests.loopback.replay import Replay, Reply

from nilometer.core.errors import EngineError
from nilometer.core.record import Call, Record
from nilometer.load import journal
from nilometer.load.counters import Field, State
from nilometer.load.crew import Crew
from nilometer.load.order import Order

QUICK = Reply(SHORT, framing="length", ending="keep")
STEADY = Reply(SHORT, schedule=((5, len(event("a"))), (25, len(SHORT) - len(event("a")))), ending="keep")
FOREVER = Reply(event("a"), ending="hang")


def whole(records: list[Record]) -> bool:
    """Whether each record is in itself sane: stamps in order, counts where there was an end."""
    for record in records:
        stamps = [
            record.sent_ns, record.sent_end_ns, record.first_byte_ns, record.first_token_ns, record.last_token_ns,
            record.end_ns,
        ]  # fmt: skip
        known = [stamp for stamp in stamps if stamp is not None]
        if record.outcome == "ok" and (known != stamps or record.output_tokens != 3):
            return False
        if stamps[0] is None or known[2:] != sorted(known[2:]):
            return False
    return True


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    with Replay(QUICK) as replay:
        outcome = drive(order(tmp_path, replay.url, lanes=3, requests=30), calls(100))
    assert (outcome.status, outcome.said) == (0, "")
    assert outcome.kinds() == {("ok", None): 30}
    assert outcome.health.death is None
    assert outcome.phases.start_ns <= min(record.sent_ns or 0 for record in outcome.records)
    assert outcome.phases.end_ns >= max(record.end_ns or 0 for record in outcome.records)
    entries = list(journal.read(tmp_path / "0.journal"))
    assert [type(entry) for entry in entries] == [journal.Header, *[Record] * 30, journal.Trailer]


def test_the_counters_tell_the_run(tmp_path: Path) -> None:
    told = order(tmp_path, "", lanes=2, requests=20)
    with Replay(QUICK) as replay, Crew([_at(told, replay.url)], calls(100)) as crew:
        assert crew.states() in ([State.STARTING], [State.READY])
        crew.wait_ready()
        assert crew.states() == [State.READY]
        assert crew.total(Field.STARTED) == 0
        crew.go()
        wait_until(lambda: not crew.running)
        assert crew.states() == [State.DONE]
        fields = (Field.STARTED, Field.MEASURED_STARTED, Field.RECORDED, Field.IN_FLIGHT, Field.UNPARSED)
        assert [crew.total(field) for field in fields] == [20, 20, 20, 0, 0]
        assert crew.total(Field.UNHEARD_IN_A_ROW) == 0
        assert crew.total(Field.FRAMES) >= 20


def _at(told: Order, url: str) -> Order:
    return Order(
        target=url, dialect=told.dialect, journal=told.journal, counters=told.counters, lanes=told.lanes,
        requests=told.requests, drain_ns=told.drain_ns, duration_ns=told.duration_ns,
    )  # fmt: skip


def test_two_workers_share_the_calls(tmp_path: Path) -> None:
    with Replay(STEADY) as replay:
        orders = [order(tmp_path, replay.url, worker=i, lanes=2, requests=10) for i in range(2)]
        with Crew(orders, calls(20_000)) as crew:
            crew.wait_ready()
            go = crew.go()
            wait_until(lambda: not crew.running)
        served = Counter(int(exchange.headers["x-seq"]) for exchange in replay.exchanges)
    outcomes = [left(told.journal) for told in orders]
    assert [outcome.kinds() for outcome in outcomes] == [{("ok", None): 10}] * 2
    records = [record for outcome in outcomes for record in outcome.records]
    assert Counter(record.seq for record in records) == served
    assert set(served.values()) == {1}
    assert {record.id for record in records} == {f"{record.worker}-{record.seq}" for record in records}
    assert {outcome.phases.start_ns for outcome in outcomes} == {go.start_ns}  # one clock, one start


def test_a_worker_that_is_killed_leaves_what_had_ended(tmp_path: Path) -> None:
    told = order(tmp_path, "", lanes=4, duration_ns=60 * S)
    with Replay(STEADY) as replay:
        with Crew([_at(told, replay.url)], calls(100_000)) as crew:
            crew.wait_ready()
            crew.go()
            wait_until(lambda: crew.total(Field.RECORDED) >= 20)
            counted = crew.total(Field.RECORDED)
            crew.workers[0].process.kill()
            wait_until(lambda: not crew.running)
            assert crew.workers[0].process.returncode == -signal.SIGKILL
        served = len([exchange for exchange in replay.exchanges if exchange.end_ns is not None])
    outcome = left(told.journal)
    assert outcome.trailer is None
    assert counted <= len(outcome.records) <= served  # counted is written: never the other way round
    assert {record.outcome for record in outcome.records} == {"ok"}
    assert whole(outcome.records)


PARENT = """
import sys, time
from pathlib import Path
from tests.loopback.driving import calls, order, S
from nilometer.load.crew import Crew
told = order(Path(sys.argv[2]), sys.argv[1], lanes=4, duration_ns=60 * S)
with Crew([told], calls(100_000)) as crew:
    crew.wait_ready()
    crew.go()
    print(crew.workers[0].process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("reply", [STEADY, FOREVER], ids=["steady", "hanging"])
def test_a_worker_whose_parent_is_killed_ends_by_itself(reply: Reply, tmp_path: Path) -> None:
    with Replay(reply) as replay:
        root = Path(__file__).parents[2]
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, replay.url, str(tmp_path)],
            stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, text=True,
        )  # fmt: skip
        try:
            assert parent.stdout is not None
            worker = int(parent.stdout.readline())
            wait_until(lambda: len(replay.exchanges) >= 4)
            time.sleep(0.3)
        finally:
            parent.kill()
            parent.communicate()
        wait_until(lambda: not alive(worker), 5)
    outcome = left(str(tmp_path / "0.journal"))
    assert outcome.phases.interrupted
    cancelled = [record for record in outcome.records if record.outcome == "cancelled"]
    assert 1 <= len(cancelled) <= 4
    assert {record.outcome for record in outcome.records} <= {"ok", "cancelled"}
    assert len(outcome.records) - len(cancelled) >= (4 if reply is STEADY else 0)
    assert whole(outcome.records)
    assert not journal_is_held(tmp_path / "0.journal")


def journal_is_held(path: Path) -> bool:
    return not journal.abandoned(path)


def test_a_crew_that_is_left_leaves_no_process(tmp_path: Path) -> None:
    """Also before the load began, and with requests that would never end."""
    with Replay(FOREVER) as replay:
        with Crew([order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)], calls(100)) as crew:
            pid = crew.workers[0].process.pid
        assert not alive(pid)
        assert left(str(tmp_path / "0.journal")).records == []
        second = tmp_path / "second"
        second.mkdir()
        begun = time.monotonic()
        with Crew([order(second, replay.url, lanes=2, duration_ns=60 * S)], calls(100)) as crew:
            crew.wait_ready()
            crew.go(lead_ns=0)
            wait_until(lambda: len(replay.exchanges) >= 2)
            pid = crew.workers[0].process.pid
        assert not alive(pid)
        assert time.monotonic() - begun < 8
    assert left(str(second / "0.journal")).kinds() == {("cancelled", None): 2}


def test_what_the_maker_of_calls_met_is_raised_where_the_run_is_followed(tmp_path: Path) -> None:
    fail = threading.Event()

    def failing() -> Iterator[Call]:
        yield from calls(100)  # enough for a store to be filled
        assert fail.wait(10)
        raise LookupError("no more words")

    with Replay(QUICK) as replay:
        told = order(tmp_path, replay.url, lanes=2, duration_ns=60 * S)
        with Crew([told], failing()) as crew:
            crew.wait_ready()
            crew.go()
            crew.check()
            fail.set()
            wait_until(lambda: not crew.running)
            with pytest.raises(LookupError, match="no more words"):
                crew.check()
    outcome = left(told.journal)
    assert {record.outcome for record in outcome.records} == {"ok"}
    assert len(outcome.records) == 96  # six whole batches before the fault were sent and measured
    assert outcome.trailer is not None


def test_a_maker_that_fails_at_once_keeps_nobody_waiting(tmp_path: Path) -> None:
    def failing() -> Iterator[Call]:
        raise LookupError("no words")
        yield

    with (
        Replay(QUICK) as replay,
        Crew([order(tmp_path, replay.url, duration_ns=60 * S)], failing()) as crew,
        pytest.raises(LookupError, match="no words"),
    ):
        crew.wait_ready()
        crew.check()


@pytest.mark.parametrize(("lost", "why"), [("journal", "FileNotFoundError"), ("target", "target_url")])
def test_a_worker_that_dies_at_its_start_is_told(lost: str, why: str, tmp_path: Path) -> None:
    told = order(tmp_path, "http://127.0.0.1:1" if lost == "journal" else "nonsense", requests=1)
    if lost == "journal":
        Path(told.journal).unlink()
    with Crew([told], calls(1)) as crew, pytest.raises(EngineError) as seen:
        crew.wait_ready()
    assert (seen.value.slug, seen.value.exit_code) == ("worker_not_ready", 3)
    assert why in str(seen.value.params["why"])


def test_signals_meant_for_the_parent_do_not_end_a_worker(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole foreground group; the parent decides what it means."""

    def interrupt(crew: Crew) -> None:
        wait_until(lambda: crew.total(Field.RECORDED) > 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            crew.workers[0].process.send_signal(number)

    with Replay(STEADY) as replay:
        outcome = drive(order(tmp_path, replay.url, lanes=2, requests=30), calls(100), interrupt)
    assert outcome.kinds() == {("ok", None): 30}
    assert (outcome.status, outcome.phases.interrupted) == (0, False)


def test_stopped_once_it_drains_and_twice_it_cancels(tmp_path: Path) -> None:
    def twice(crew: Crew) -> None:
        wait_until(lambda: len(replay.exchanges) >= 3)
        crew.drain("interrupted")
        time.sleep(0.25)
        assert crew.running  # it waits for what is on its way
        assert crew.states() == [State.DRAINING]
        crew.cancel()

    with Replay(FOREVER) as replay:
        outcome = drive(order(tmp_path, replay.url, lanes=3, duration_ns=60 * S, drain_ns=60 * S), calls(100), twice)
    assert outcome.kinds() == {("cancelled", None): 3}
    assert outcome.phases.interrupted
    assert not outcome.phases.cut_at_drain_limit
    assert len(replay.exchanges) == 3


def test_a_fault_of_our_own_ends_the_run_instead_of_hanging_it(tmp_path: Path) -> None:
    def broken(_: Record) -> None:
        raise RuntimeError("a fault of ours")

    with Replay(QUICK) as replay:
        outcome = drive_here(order(tmp_path, replay.url, duration_ns=60 * S), calls(100), write=broken)
    assert "a fault of ours" in (outcome.health.death or "")
    assert outcome.records == []


def test_a_lead_lets_all_workers_start_at_one_moment(tmp_path: Path) -> None:
    with Replay(QUICK) as replay, Crew([order(tmp_path, replay.url, requests=1)], calls(1)) as crew:
        crew.wait_ready()
        before, wall = time.monotonic_ns(), time.time_ns()
        go = crew.go(lead_ns=200 * MS)
        wait_until(lambda: not crew.running)
    assert 200 * MS <= go.start_ns - before < 400 * MS
    assert abs((go.started_wall_ns - wall) - (go.start_ns - before)) < 20 * MS
    assert (left(str(tmp_path / "0.journal")).one().sent_ns or 0) >= go.start_ns
