"""The first baseline: the embedded engine at three loads of mixed lengths, one sentence on what limits it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run, Runs, new_id
from nilometer.core.spec import Load, Prompts, Spec, to_toml
from nilometer.diagnose.diagnosis import diagnose_runs, spoken

from .follow import Stop, Watch
from .measure import Behind, Place, measure
from .series import Series, one_by_one

LEVELS = (1, 4, 8)
"""Requests in flight: alone, with company, as many as the engine has slots."""
WARMUP_S = 6.0
MEASURED_S = 35.0
INPUT_TOKENS = "uniform:32,128"
OUTPUT_TOKENS = "uniform:8,40"


def spec_of(level: int) -> Spec:
    """The load test of one level. Short on purpose: the figures are marked as shorter than the guide's."""
    return Spec(
        target="embedded",
        load=Load(concurrency=level, warmup_s=WARMUP_S, duration_s=MEASURED_S, drain_s=30.0),
        prompts=Prompts(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS),
    )


def quickstart(
    behind: Behind,
    headers: tuple[tuple[str, str], ...],
    *,
    runs: Runs,
    watch: Watch,
    stop: Stop,
    random: Random,
) -> tuple[Group, Series, list[Finding]]:
    """Measure the levels in order, file them as one group, and let the diagnosis speak.

    An interrupt ends the series; what was measured is filed and judged.
    """
    group = Group(
        id=new_id(random), type="quickstart", started_wall_ns=time.time_ns(), spec=to_toml(spec_of(LEVELS[0]))
    )

    def test(order: int, level: int) -> Run:
        place = Place(group=group, role="level", level=str(level), order=order)
        return measure(
            spec_of(level), headers, runs=runs, watch=watch, stop=stop, place=place, behind=behind, random=random
        )

    series = one_by_one((partial(test, order, level) for order, level in enumerate(LEVELS)), stop)
    return group, series, diagnosis(series.runs, runs.records)


def diagnosis(runs: Sequence[Run], records: Callable[[str], Iterable[Record]]) -> list[Finding]:
    """What the runs of a quickstart tell together, from their `records` by id; never empty."""
    return spoken(diagnose_runs(runs, records))
