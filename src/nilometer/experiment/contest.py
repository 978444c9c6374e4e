"""Lessons in which two sides are measured in turns, on servers started for it: what was felt, and what is so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from random import Random
from typing import NamedTuple

from nilometer.compare.condition import CHANGES
from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.group import Group, with_plan
from nilometer.core.run import Runs, new_id
from nilometer.core.spec import Load, Prompts, Spec, to_toml
from nilometer.engines import embedded
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.engines.tell import Tell

from .follow import Stop, Watch
from .measure import Behind
from .verify import Pair, Plan, Reached, Role, Side, Verified, verify

Start = Callable[[Tell], AbstractContextManager[Reached]]


class Contest(NamedTuple):
    """One question: two sides under one load, in at most so many pairs. `name` is that of its sentence."""

    name: str
    target: str
    a: Start
    b: Start
    load: Load
    prompts: Prompts
    most: int

    @property
    def spec(self) -> Spec:
        """The load test of either side; texts without a chat template, so that short ones may be short."""
        return Spec(target=self.target, api="completions", load=self.load, prompts=self.prompts)


@contextmanager
def _mock(script: Script, _tell: Tell) -> Iterator[Reached]:
    with launched(script) as server:
        facts = EngineFacts(name="mock", launched_by_us=True), ModelFacts(id=script.models[0])
        yield Reached((), Behind(server.url, *facts, server.pid))


@contextmanager
def _embedded(precision: str, tell: Tell) -> Iterator[Reached]:
    with embedded.start(precision=precision, context_tokens_per_slot=512, tell=tell) as engine:
        yield Reached(tuple(engine.headers.items()), Behind(engine.url, engine.facts, engine.model, engine.pid))


_ON_MOCK = (Load(concurrency=16, warmup_s=2.0, duration_s=8.0), Prompts(input_tokens="64", output_tokens="64"))
_ON_ENGINE = (Load(concurrency=2, warmup_s=3.0, duration_s=15.0), Prompts(input_tokens="64", output_tokens="32"))
_OLD, _NEW = Script(ttft_ms=200, gap_ms=20), Script(ttft_ms=120, gap_ms=22)
_Q4, _Q8 = partial(_embedded, "Q4_0"), partial(_embedded, "Q8_0")

LESSONS: dict[str, tuple[Contest, ...]] = {
    "felt-faster": (Contest("felt_faster", "mock", partial(_mock, _OLD), partial(_mock, _NEW), *_ON_MOCK, most=6),),
    "really-faster": (
        Contest("itself", "embedded", _Q8, _Q8, *_ON_ENGINE, most=4),
        Contest("quantised", "embedded", _Q8, _Q4, *_ON_ENGINE, most=6),
    ),
}
"""`felt-faster`: the first token comes sooner, every other one 10 % later. `really-faster`: an engine against itself,
which is the noise floor of this machine, and then against smaller weights."""


def hold(
    contest: Contest,
    *,
    decided: Callable[[Sequence[Pair]], bool],
    runs: Runs | None,
    watch: Watch,
    stop: Stop,
    tell: Tell,
    random: Random,
) -> tuple[Group, Verified]:
    """Measure its pairs until `decided`; all runs are one group of type `verify`."""
    group = Group(
        id=new_id(random),
        type="verify",
        started_wall_ns=time.time_ns(),
        spec=with_plan(to_toml(contest.spec), "verify", {"pairs": contest.most, "changes": list(CHANGES)}),
    )
    sides: dict[Role, Side] = {
        "a": Side(contest.spec, partial(contest.a, tell)),
        "b": Side(contest.spec, partial(contest.b, tell)),
    }
    plan = Plan(contest.most)
    return group, verify(sides, plan, group, decided=decided, runs=runs, watch=watch, stop=stop, random=random)
