from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT

from nilometer.plan.advice.objective import Metric, Objective, greatest_load, held, keeps, notes, objective_of, value
from nilometer.plan.answer import Answer, answer
from nilometer.plan.interval import Interval
from nilometer.plan.latency.roofline import Latency, latency
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.question import setup

TPOT = Objective(metric="tpot_ms", stat="mean", at_most=True, limit=30)
TTFT = Objective(metric="ttft_ms", stat="mean", at_most=True, limit=500)
RATE = Objective(metric="output_tokens_per_s", at_most=False, limit=1000)


@cache
def plan() -> Answer:
    return answer(CHAT)


def _row(load: int) -> Latency:
    made, device = plan(), CHAT.device
    assert device is not None
    return latency(setup(CHAT, device, made.slots), CHAT.lengths, load)


def test_metrics_are_in_their_own_units() -> None:
    row = _row(32)
    assert value(row, "ttft_ms", CHAT.lengths) == row.ttft_s.times(1000)
    assert value(row, "tpot_ms", CHAT.lengths) == row.tpot_s.times(1000)
    assert value(row, "requests_per_s", CHAT.lengths).mid == pytest.approx(row.output_tokens_per_s.mid / 256)
    whole = value(row, "e2e_ms", CHAT.lengths)
    assert whole.mid == pytest.approx(1000 * (row.ttft_s.mid + 255 * row.tpot_s.mid))
    assert whole.low < whole.mid < whole.high


def test_an_answers_time_obeys_littles_law() -> None:
    row = _row(32)
    rate = value(row, "requests_per_s", CHAT.lengths).mid
    assert rate * value(row, "e2e_ms", CHAT.lengths).mid / 1000 == pytest.approx(32)


@pytest.mark.parametrize(
    ("limit", "at_most", "met"),
    [
        (13.0, True, "yes"),
        (11.0, True, "likely"),
        (9.0, True, "unlikely"),
        (7.0, True, "no"),
        (7.0, False, "yes"),
        (9.0, False, "likely"),
        (11.0, False, "unlikely"),
        (13.0, False, "no"),
        (12.0, True, "yes"),
    ],
)
def test_held_by_the_middle_and_the_whole_interval(limit: float, at_most: bool, met: str) -> None:
    row = replace(_row(32), tpot_s=Interval(0.008, 0.010, 0.012))
    one = Objective(metric="tpot_ms", stat="mean", at_most=at_most, limit=limit)
    found = held(row, one, CHAT.lengths)
    assert (found.met, found.objective, found.value.mid) == (met, one, 10.0)


def test_a_percentile_is_held_as_the_mean_and_that_is_said() -> None:
    (note,) = notes([replace(TPOT, stat="p95"), replace(TTFT, stat="p99"), RATE, TPOT])
    assert (note.slug, note.params) == ("plan_percentile_as_mean", {"stats": "p95, p99"})
    assert notes([TPOT, RATE, replace(TTFT, stat="p50")]) == ()


def test_the_greatest_load_is_the_last_that_keeps_all() -> None:
    found = greatest_load(plan(), [replace(TPOT, limit=12), TTFT])
    assert found is not None
    assert found.mid is not None
    inside, outside = _row(found.mid), _row(found.mid + 1)
    assert inside.tpot_s.mid <= 0.012
    assert inside.ttft_s.mid <= 0.5
    assert outside.tpot_s.mid > 0.012 or outside.ttft_s.mid > 0.5
    assert found.rows[1] == inside


def test_where_one_request_misses_it_there_is_none() -> None:
    found = greatest_load(plan(), [replace(TPOT, limit=1)])
    assert found is not None
    assert (found.low, found.mid, found.high, found.rows) == (None, None, None, (None, None, None))


def test_the_worse_end_of_the_forecast_lets_fewer_through() -> None:
    found = greatest_load(plan(), [replace(TPOT, limit=13)])
    assert found is not None
    assert None not in {found.low, found.mid, found.high}
    assert (found.low or 0) < (found.mid or 0) < (found.high or 0)


def test_without_a_bound_it_is_what_the_device_holds() -> None:
    made = plan()
    found = greatest_load(made, [RATE])
    assert found is not None
    assert found.low == found.mid == found.high == made.slots
    slow = greatest_load(made, [replace(TPOT, limit=1e6)])
    assert slow is not None
    assert slow.low == slow.mid == slow.high == made.slots, "TPOT alone does not feel that requests queue"
    twice = greatest_load(answer(replace(CHAT, parallel=Parallel(data=2))), [])
    assert twice is not None
    assert twice.mid == 2 * (made.slots or 0)


def test_without_a_forecast_there_is_nothing_to_find() -> None:
    assert greatest_load(answer(replace(CHAT, device=None)), [TPOT]) is None


@settings(deadline=None)
@given(limits=st.tuples(st.floats(1, 500), st.floats(1, 500)), metric=st.sampled_from(["tpot_ms", "ttft_ms", "e2e_ms"]))
def test_a_looser_limit_never_lets_fewer_through(limits: tuple[float, float], metric: Metric) -> None:
    scale = 100.0 if metric == "e2e_ms" else 1.0
    loads = []
    for limit in sorted(limits):
        found = greatest_load(plan(), [Objective(metric=metric, stat="mean", at_most=True, limit=limit * scale)])
        assert found is not None
        loads.append([found.low or 0, found.mid or 0, found.high or 0])
        assert loads[-1] == sorted(loads[-1])
    assert all(one <= other for one, other in zip(*loads, strict=True))


def test_a_bound_of_a_measurement_becomes_an_objective_where_a_plan_foretells_it() -> None:
    assert objective_of("tpot", "p95", "<=", 30.0) == replace(TPOT, stat="p95")
    assert objective_of("output_tokens_per_s", None, ">=", 1000.0) == RATE
    assert objective_of("error_rate", None, "<=", 0.01) is None


def test_the_limit_itself_keeps_it() -> None:
    assert keeps(30.0, TPOT)
    assert keeps(1000.0, RATE)
    assert not keeps(999.0, RATE)
