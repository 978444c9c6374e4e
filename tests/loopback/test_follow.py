"""The parent's watch over a load: a target that is lost, a worker that hangs, sockets that run out."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.replay import Replay, Reply
from tests.loopback.test_load_worker import QUICK, STEADY

from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.experiment import follow
from nilometer.experiment import measure as measuring
from nilometer.experiment.follow import Stop
from nilometer.experiment.live import Live
from nilometer.experiment.measure import measure
from nilometer.load import crew
from nilometer.load.counters import Field
from nilometer.load.order import Order
from nilometer.telemetry.machine import read_client

NS_PER_S = 1_000_000_000
PROMPTS = Prompts(input_tokens="16", output_tokens="3")


class Meanwhile:
    """Watches a run, and does something once, as soon as so many requests of it have ended."""

    def __init__(self, act: Callable[[], None] = lambda: None, after: int = 1) -> None:
        self._act, self._after = act, after
        self.acted_ns = 0

    def probing(self, step: str) -> None:
        pass

    def before(self, spec: Spec, *, api: str, now_wall_s: float, **foretold: Any) -> None:
        pass

    def update(self, live: Live) -> None:
        if not self.acted_ns and live.n >= self._after:
            self.acted_ns = time.monotonic_ns()
            self._act()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[crew.Worker]:
    """The workers of a run, as they are started."""
    found: list[crew.Worker] = []

    class Kept(crew.Worker):
        def __init__(self, order: Order) -> None:
            super().__init__(order)
            found.append(self)

    monkeypatch.setattr(crew, "Worker", Kept)
    return found


def run(url: str, watch: Meanwhile, load: Load) -> Run:
    spec = Spec(target=url, model="m", api="chat", probe=False, prompts=PROMPTS, load=load)
    return measure(spec, (), runs=None, watch=watch, stop=Stop())


def slugs(made: Run) -> list[str]:
    return [finding.slug for finding in made.findings]


@contextmanager
def hanging_up() -> Iterator[tuple[str, list[int]]]:
    """A server that takes every connection and closes it without a byte; (url, how often)."""
    taken: list[int] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                taken.append(time.monotonic_ns())
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_target_that_dies_ends_the_run_however_few_are_in_flight(
    concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LOST_AFTER_NS", NS_PER_S)
    with Replay(STEADY) as replay:
        watch = Meanwhile(replay.__exit__)
        made = run(replay.url, watch, Load(concurrency=concurrency, warmup_s=0, duration_s=60, ramp_s=0))
        lasted_s = (time.monotonic_ns() - watch.acted_ns) / 1e9
    assert made.phases.stopped_by == "target_lost"
    assert made.verdict == "inadmissible"
    assert "target_lost" in slugs(made)
    assert (made.summary.run_requests.ok or 0) >= 1
    assert 1 < lasted_s < 10


def test_a_server_that_only_hangs_up_is_neither_stormed_nor_kept_waiting_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LOST_AFTER_NS", 2 * NS_PER_S)
    with hanging_up() as (url, taken):
        made = run(url, Meanwhile(), Load(concurrency=8, warmup_s=0, duration_s=60, ramp_s=0))
    counts = made.summary.run_requests
    assert made.phases.stopped_by == "target_lost"
    assert counts.started == (counts.incomplete or 0) + (counts.cancelled or 0)
    assert len(taken) <= 8 * 12, "8 lanes, each at once, then after 0.2, 0.5, 1.0, 1.0 s"


def test_an_outage_that_ends_is_measured_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second without a listener: some failures, and the load goes on."""
    monkeypatch.setattr(follow, "LOST_AFTER_NS", 3 * NS_PER_S)
    with Replay(STEADY) as replay:
        back: list[Replay] = []

        def restart() -> None:
            replay.__exit__()
            time.sleep(0.5)
            back.append(Replay(STEADY, port=replay.port).__enter__())

        watch = Meanwhile(lambda: threading.Thread(target=restart).start())
        made = run(replay.url, watch, Load(concurrency=2, warmup_s=0, duration_s=3, ramp_s=0))
    back[0].__exit__()
    counts = made.summary.run_requests
    assert made.phases.stopped_by is None
    assert counts.errors.get("connect", 0) >= 2
    assert (counts.ok or 0) > 20


def test_a_worker_that_is_stopped_is_ended_and_what_it_had_is_kept(
    started: list[crew.Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "SILENT_LOOKS", 4)
    watch = Meanwhile(lambda: os.kill(started[0].process.pid, signal.SIGSTOP), after=5)
    with Replay(STEADY) as replay:
        made = run(replay.url, watch, Load(concurrency=2, warmup_s=0, duration_s=120, ramp_s=0))
    assert (time.monotonic_ns() - watch.acted_ns) / 1e9 < 15
    assert made.health.death == "silent"
    assert made.verdict == "inadmissible"
    assert "worker_silent" in slugs(made)
    assert (made.summary.run_requests.ok or 0) >= 5


def test_a_busy_worker_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "SILENT_LOOKS", 3)
    with Replay(QUICK) as replay:
        made = run(replay.url, Meanwhile(), Load(concurrency=4, warmup_s=0, duration_s=2, ramp_s=0))
    assert made.health.death is None


def test_an_open_loop_without_sockets_accuses_itself_and_not_the_target(started: list[crew.Worker]) -> None:
    """20 requests a second that each last longer than the run, with files for a few of them."""
    slow = Reply(QUICK.body, schedule=((60_000, len(QUICK.body)),), ending="keep")

    def shorten() -> None:
        pid = started[0].process.pid
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2, used + 2))

    class Shortens(Meanwhile):
        def update(self, live: Live) -> None:
            if not self.acted_ns and started[0].counters[Field.IN_FLIGHT] >= 5:
                self.acted_ns = time.monotonic_ns()
                shorten()

    with Replay(slow) as replay:
        load = Load(concurrency=None, rate_per_s=20, arrivals="constant", warmup_s=0, duration_s=2, drain_s=0)
        made = run(replay.url, Shortens(), load)
    assert made.phases.stopped_by is None
    assert made.health.socketless >= 10
    assert made.summary.run_requests.errors["connect"] == made.health.socketless
    assert made.summary.generator.verdict == "limited"
    assert slugs(made)[0] == "sockets_exhausted"


def test_a_load_beyond_one_process_gets_two_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 requests/s of 3 tokens are 7,200 events/s; a process that takes 10,000 at most bears 5,000."""
    monkeypatch.setattr(measuring, "one_process", lambda: 10_000.0)
    monkeypatch.setattr(measuring, "usable_count", lambda _: 3)
    told: list[str] = []

    class Before(Meanwhile):
        def before(self, spec: Spec, **foretold: Any) -> None:
            told.extend(finding.slug for finding in foretold["ahead"])

    with launched(Script(models=("m",), null=True)) as server:
        made = run(server.url, Before(), Load(rate_per_s=400, warmup_s=0, duration_s=1))
        few = run(server.url, Meanwhile(), Load(rate_per_s=20, warmup_s=0, duration_s=0.5))
    assert told == ["workers_chosen"]
    assert "workers_chosen" in slugs(made)
    assert (made.environment.client or read_client()).workers == 2
    assert made.spec.load.workers is None, "the next run chooses again"
    assert made.summary.run_requests.started == pytest.approx(400, rel=0.25)
    assert (few.environment.client or read_client()).workers == 1
    assert "workers_chosen" not in slugs(few)


def test_two_workers_send_a_count_of_an_open_loop_on_its_times(tmp_path: Path) -> None:
    """200/s: 20 due in the warm-up of 100 ms, then 150, each 5 ms after the one before, whoever sends it."""
    load = Load(rate_per_s=200, arrivals="constant", warmup_s=0.1, requests=150, workers=2)
    records: list[Record] = []
    with launched(Script(models=("m",), null=True)) as server:
        spec = Spec(target=server.url, model="m", api="chat", probe=False, prompts=PROMPTS, load=load)
        made = measure(spec, (), runs=None, watch=Meanwhile(), stop=Stop(), take_records=records.extend)
    due_ns = sorted(record.due_ns or 0 for record in records)
    assert {later - before for before, later in pairwise(due_ns)} == {5_000_000}
    assert Counter(record.phase for record in records) == {"warmup": 20, "measured": 150}
    assert {record.worker for record in records} <= {0, 1}  # a busy machine may let one of them send them all
    assert (made.phases.stop_ns - made.phases.measured_ns) / 1e9 == pytest.approx(149 / 200, abs=0.05)
    assert not made.phases.interrupted
    assert not made.phases.cut_at_drain_limit


def test_what_is_foretold_of_conversations_are_all_their_turns() -> None:
    """Eight of four turns: 32 requests, in the mean of 1.5 turns of 20 + 5 before the 20 of their own, and 5 out."""
    told: list[Any] = []

    class Before(Meanwhile):
        def before(self, spec: Spec, **foretold: Any) -> None:
            told.append(foretold["amount"].tokens)

    prompts = Prompts(input_tokens="20", output_tokens="5", turns="4")
    load = Load(rate_per_s=20, arrivals="constant", warmup_s=0, duration_s=0.4)
    with launched(Script(models=("m",), null=True)) as server:
        spec = Spec(target=server.url, model="m", api="chat", probe=False, prompts=prompts, load=load)
        measure(spec, (), runs=None, watch=Before(), stop=Stop())
    assert told == [round(32 * (20 + 1.5 * 25 + 5))]
