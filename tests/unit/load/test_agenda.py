"""The agenda: in order, on time though the loop's timers are coarse, and cheap while it waits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.unit.load.fakes import FakeLoop

from nilometer.load import agenda
from nilometer.load.agenda import Agenda

MS = 1_000_000


class Bench:
    """An agenda on a loop of ours; `done` holds (ns, name)."""

    def __init__(self, loop: FakeLoop) -> None:
        self.loop = loop
        self.agenda = Agenda(loop.as_loop)
        self.done: list[tuple[int, str]] = []

    def at(self, moment_ns: int, name: str) -> None:
        self.agenda.at(moment_ns, lambda: self.done.append((self.loop.now_ns, name)))

    @property
    def names(self) -> str:
        return "".join(name for _, name in self.done)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    loop = FakeLoop(now_ns=1000 * MS, late_ns=MS // 2)
    monkeypatch.setattr(agenda, "time", SimpleNamespace(monotonic_ns=loop.monotonic_ns))
    return Bench(loop)


def test_actions_come_in_the_order_of_their_moments(bench: Bench) -> None:
    for ms, name in [(1030, "c"), (1010, "a"), (1020, "b"), (1040, "d")]:
        bench.at(ms * MS, name)
    bench.loop.run_until(1100 * MS)
    assert bench.names == "abcd"


def test_actions_of_one_moment_come_in_the_order_they_were_asked_for(bench: Bench) -> None:
    for name in "abc":
        bench.at(1010 * MS, name)
    bench.loop.run_until(1100 * MS)
    assert bench.names == "abc"


def test_no_action_comes_early_and_none_late_though_timers_are_coarse(bench: Bench) -> None:
    """The loop's timers fire half a millisecond late here; a turn takes 10 us."""
    moments = [1000 * MS + i * 700_123 for i in range(1, 60)]
    for moment in moments:
        bench.at(moment, "x")
    bench.loop.run_until(1100 * MS)
    off_ns = [done - moment for (done, _), moment in zip(bench.done, moments, strict=True)]
    assert min(off_ns) >= 0
    assert max(off_ns) <= 20_000


def test_a_moment_that_has_passed_is_now(bench: Bench) -> None:
    bench.at(5 * MS, "late")
    bench.loop.run_until(1001 * MS)
    assert bench.names == "late"


def test_waiting_for_long_takes_few_turns(bench: Bench) -> None:
    bench.at(2000 * MS, "x")
    bench.loop.run_until(1990 * MS)
    assert bench.loop.turns < 5
    bench.loop.run_until(2001 * MS)
    assert bench.names == "x"


def test_something_earlier_may_be_put_in_front_of_what_is_waited_for(bench: Bench) -> None:
    bench.at(1500 * MS, "b")
    bench.loop.run_until(1010 * MS)
    bench.at(1020 * MS, "a")
    bench.loop.run_until(1030 * MS)
    assert bench.names == "a"
    bench.loop.run_until(1501 * MS)
    assert bench.names == "ab"
    assert abs(bench.done[1][0] - 1500 * MS) <= 20_000


def test_an_action_may_put_more_on_the_agenda(bench: Bench) -> None:
    def chain(left: int) -> None:
        bench.done.append((bench.loop.now_ns, str(left)))
        if left:
            bench.agenda.at(bench.loop.now_ns + 5 * MS, lambda: chain(left - 1))

    bench.agenda.at(1005 * MS, lambda: chain(3))
    bench.loop.run_until(1100 * MS)
    assert bench.names == "3210"


def test_a_cleared_agenda_does_nothing_and_can_be_filled_again(bench: Bench) -> None:
    bench.at(1010 * MS, "a")
    bench.at(1011 * MS, "b")
    bench.agenda.clear()
    bench.loop.run_until(1020 * MS)
    assert bench.names == ""
    bench.at(1030 * MS, "c")
    bench.loop.run_until(1040 * MS)
    assert bench.names == "c"
