"""Two sides measured in turns, A B B A ..., pair after pair, until they are told apart, or pairs, time or tokens end.

In turns, because machines drift: what both runs of a pair share drops out, and what changes steadily meets A first in
one pair and B first in the next. Who decides is handed in: nothing here knows a statistic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from random import Random
from typing import Literal, NamedTuple

from nilometer.core.group import Group
from nilometer.core.run import Run, Runs
from nilometer.core.spec import Spec

from .approach import Headers
from .follow import Stop, Watch
from .measure import Behind, Place, lost, measure
from .series import Series, one_by_one, tokens_left, within

Role = Literal["a", "b"]
Short = Literal["time", "tokens", "pairs", "unfit"]

_SPOILED_IN_A_ROW = 2
"""One run that is no evidence may be an accident of the machine: its pair is measured again, once."""


class Reached(NamedTuple):
    """A side that answers: what its requests carry, and the engine behind it where we started one."""

    headers: Headers
    behind: Behind | None


class Side(NamedTuple):
    """One of the two: its test, and its target for as long as the context lasts, entered anew for each run."""

    spec: Spec
    reach: Callable[[], AbstractContextManager[Reached]]


class Plan(NamedTuple):
    """At most so many pairs, none that would end past `budget_s`."""

    most: int
    budget_s: float | None = None


class Pair(NamedTuple):
    """The two runs of a pair, whichever came first."""

    a: Run
    b: Run

    @property
    def fit(self) -> bool:
        return not any(run.verdict == "inadmissible" or run.phases.interrupted for run in self)


class Verified(NamedTuple):
    """Every run that was measured, the pairs that count, and what ended it before it was decided, if anything did."""

    series: Series
    pairs: list[Pair]
    short: Short | None = None


def order_of(pair: int) -> tuple[Role, Role]:
    """A first in the pairs 0, 2, ...; B first in the others."""
    return ("b", "a") if pair % 2 else ("a", "b")


def verify(
    sides: Mapping[Role, Side],
    plan: Plan,
    group: Group,
    *,
    decided: Callable[[Sequence[Pair]], bool],
    runs: Runs | None,
    watch: Watch,
    stop: Stop,
    random: Random,
    monotonic: Callable[[], float] = time.monotonic,
) -> Verified:
    """Measure pair after pair; after each the pairs that count are shown to `decided`, which ends it.

    A pair with an inadmissible run does not count and is measured again; a second one in a row ends it (`unfit`).
    The token budget of the spec is that of all runs together.
    """
    turns = _Turns(sides, plan, monotonic)

    def test(role: Role) -> Run:
        at_s = monotonic()
        with sides[role].reach() as reached:
            run = measure(
                turns.spec(role),
                reached.headers,
                runs=runs,
                watch=watch,
                stop=stop,
                place=Place(group=group, role=role, order=len(turns.measured)),
                behind=reached.behind,
                random=random,
                still=[sides["a"].spec] * (turns.most_left - 1),
            )
        turns.take(run, monotonic() - at_s)
        return run

    series = one_by_one((partial(test, role) for role in turns.roles(decided)), stop)
    gone = next(map(lost, series.runs[-1:]), None)
    cut = series.cut or any(run.phases.interrupted and run.health.death is None for run in series.runs)
    return Verified(series._replace(fault=series.fault or gone, cut=cut), turns.pairs, turns.short)


class _Turns:
    """Whose turn it is, by what was measured so far."""

    def __init__(self, sides: Mapping[Role, Side], plan: Plan, monotonic: Callable[[], float]) -> None:
        self._sides = sides
        self._plan = plan
        self._monotonic = monotonic
        self._begun_s = monotonic()
        self._run_s = 0.0
        """What the longest run took."""
        self.measured: list[Run] = []
        self.pairs: list[Pair] = []
        self.short: Short | None = None

    @property
    def most_left(self) -> int:
        """Runs until the last of the most pairs, the one that is next included."""
        return max(2 * (self._plan.most - len(self.pairs)) - len(self.measured) % 2, 1)

    def spec(self, role: Role) -> Spec:
        """The side's test, with what is left of the tokens."""
        spec = self._sides[role].spec
        return within(spec, tokens_left(spec, self.measured))

    def take(self, run: Run, seconds: float) -> None:
        self.measured.append(run)
        self._run_s = max(self._run_s, seconds)

    def roles(self, decided: Callable[[Sequence[Pair]], bool]) -> Iterator[Role]:
        """Whose run is next; each is to be taken before the one after it is asked for."""
        spoiled = 0
        while not (self.pairs and decided(self.pairs)):
            self.short = "unfit" if spoiled == _SPOILED_IN_A_ROW else self._short()
            if self.short is not None:
                return
            for role in order_of(len(self.pairs)):
                if self.measured and not self._any_tokens():
                    self.short = "tokens"
                    return
                yield role
                if lost(self.measured[-1]) is not None or self.measured[-1].phases.interrupted:
                    return  # the next would find nobody, or is not wanted
            fit = pairs_of(self.measured[-2:])
            self.pairs += fit
            spoiled = 0 if fit else spoiled + 1

    def _short(self) -> Short | None:
        """What does not suffice for another pair."""
        if not self._tokens_suffice():
            return "tokens"
        if len(self.pairs) >= self._plan.most:
            return "pairs"
        if self._plan.budget_s is None or not self.measured:
            return None
        return "time" if self._monotonic() - self._begun_s + 2 * self._run_s > self._plan.budget_s else None

    def _any_tokens(self) -> bool:
        """Whether anything is left for the run that is next: the first may have used the budget of all."""
        left = tokens_left(self._sides["a"].spec, self.measured)
        return left is None or left > 0

    def _tokens_suffice(self) -> bool:
        """Whether what is left would hold another pair: a run that is cut for its tokens is like no other."""
        spec = self._sides["a"].spec
        budget, left = spec.load.max_total_tokens, tokens_left(spec, self.measured)
        if budget is None or left is None or not self.measured:
            return True
        return left >= 2 * max(budget - (tokens_left(spec, [run]) or 0) for run in self.measured)


def pairs_of(runs: Sequence[Run]) -> list[Pair]:
    """The pairs that count among the runs of a verify, in order: whole, and both runs of them admissible."""
    found: dict[int, dict[str | None, Run]] = {}
    for run in sorted(runs, key=lambda run: run.order or 0):
        found.setdefault((run.order or 0) // 2, {})[run.role] = run
    whole = [Pair(by_role["a"], by_role["b"]) for by_role in found.values() if by_role.keys() == {"a", "b"}]
    return [pair for pair in whole if pair.fit]
