"""Lessons of the handbook, repeated on the embedded engine: two sides under one load, in one group."""

from __future__ import annotations

import time
from functools import partial
from random import Random
from typing import NamedTuple

from nilometer.core.group import Group
from nilometer.core.run import Run, Runs, new_id
from nilometer.core.spec import Load, Prompts, Spec, to_toml

from .approach import Headers
from .follow import Stop, Watch
from .measure import Behind, Place, measure
from .series import Series, one_by_one

_LOAD = Load(concurrency=4, warmup_s=8.0, duration_s=45.0, drain_s=30.0)


class Lab(NamedTuple):
    """`sides`: name -> lengths, the naive one first. Texts without a chat template, so that short ones may be short."""

    name: str
    sides: dict[str, Prompts]
    context_tokens: int


LABS = {
    lab.name: lab
    for lab in (
        Lab(
            "length-mix",
            {
                "short": Prompts(input_tokens="64", output_tokens="32"),
                "mix": Prompts(input_tokens="lognormal:64,500", output_tokens="lognormal:24,80"),
            },
            context_tokens=4_096,
        ),
    )
}
"""`length-mix`: short prompts of one length against a mix with a long tail, such as logs of chat services show."""


def spec_of(prompts: Prompts) -> Spec:
    """The load test of one side."""
    return Spec(target="embedded", api="completions", load=_LOAD, prompts=prompts)


def run_lab(
    lab: Lab, behind: Behind, headers: Headers, *, runs: Runs, watch: Watch, stop: Stop, random: Random
) -> tuple[Group, Series]:
    """Measure both sides, one after the other."""
    first = next(iter(lab.sides.values()))
    group = Group(id=new_id(random), type="lab", started_wall_ns=time.time_ns(), spec=to_toml(spec_of(first)))

    def test(order: int, side: str) -> Run:
        place = Place(group=group, role=f"{lab.name}/{side}", order=order)
        return measure(
            spec_of(lab.sides[side]), headers, runs=runs, watch=watch, stop=stop, place=place, behind=behind,
            random=random,
        )  # fmt: skip

    return group, one_by_one((partial(test, order, side) for order, side in enumerate(lab.sides)), stop)
