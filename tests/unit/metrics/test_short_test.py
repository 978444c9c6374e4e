"""The first 30 s of a run by themselves: a cold start counts there that the run itself had left out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.core.run import Health, Run
from nilometer.metrics.short_test import short_test

from .made import answered, phases, spec


def run(stop_s: float) -> Run:
    return replace(make_run(), spec=spec(window="0..100"), phases=phases(20, stop_s), health=Health())


def test_the_warm_up_is_in_it_and_what_came_later_is_not() -> None:
    """Cold: 2 s to the first token for the first 20 s, then 0.1 s; a request a second, of which 30 began in 30 s."""
    records = [answered(s, [s + (2.0 if s < 20 else 0.1), s + 2.5]) for s in range(120)]
    short = short_test(run(120), records)
    assert short is not None
    assert short.requests.started == 30
    assert short.latency_ms["ttft"].p50 == pytest.approx(2_000)
    assert short.latency_ms["ttft"].min == pytest.approx(100)
    assert short.throughput.output_tokens_per_s == pytest.approx(2 * 28.5 / 30, abs=0.07), "a token or two a second"


def test_a_run_that_was_hardly_longer_has_none() -> None:
    assert short_test(run(59), []) is None
