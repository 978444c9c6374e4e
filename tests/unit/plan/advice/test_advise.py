"""All advice at once: what was asked for is there, what was not is not, and an objective that is missed says so."""

from __future__ import annotations

from msgspec.structs import replace
from tests.unit.plan.shapes import LLAMA_8B

from nilometer.plan.advice.advise import Wishes, advise
from nilometer.plan.advice.objective import Objective
from nilometer.plan.answer import answer
from nilometer.plan.devices import device
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.model.precision import precision_of
from nilometer.plan.question import Question


def question(**changes: object) -> Question:
    asked = {
        "shape": LLAMA_8B,
        "precision": precision_of("bf16"),
        "device": device("h100"),
        "lengths": Lengths(7168, 1024),
        "context": 8192,
        "concurrency": 32,
    }
    return Question(**(asked | changes))  # type: ignore[arg-type]


def tpot(limit_ms: float) -> Objective:
    return Objective(metric="tpot_ms", stat="p95", at_most=True, limit=limit_ms)


def test_nothing_is_advised_without_a_device() -> None:
    told = advise(answer(question(device=None)), Wishes(rate_per_s=5, against=(("l40s", None),)))
    assert (told.options, told.held, told.devices, told.replicas) == ((), (), (), None)


def test_only_what_was_asked_is_told() -> None:
    told = advise(answer(question()))
    assert (told.held, told.greatest, told.replicas, told.devices, told.shortfall) == ((), None, None, (), None)
    assert told.options
    assert told.first in told.options
    assert told.cost is not None
    assert told.cost.per_hour is None


def test_an_objective_by_the_middle_of_its_forecast() -> None:
    plan = answer(question())
    row = plan.at(32)
    assert row is not None
    mid_ms = row.tpot_s.mid * 1e3
    kept, lost = advise(plan, Wishes(objectives=(tpot(mid_ms * 1.01),))), advise(plan, Wishes(objectives=(tpot(9.0),)))
    assert (kept.missed, lost.missed) == (False, True)
    assert kept.greatest is not None
    assert kept.greatest.mid is not None
    assert kept.greatest.mid >= 32
    assert lost.greatest is not None
    assert (lost.greatest.mid or 0) < 32
    assert lost.first is not None
    assert lost.first.effect in {"enough", "helps"}


def test_copies_for_a_traffic_of_which_one_serves_a_part() -> None:
    plan = answer(question())
    told = advise(plan, Wishes(objectives=(tpot(30.0),), rate_per_s=5.0, spare=1))
    assert told.replicas is not None
    assert told.replicas.mid is not None
    one = told.replicas.per_copy[1]
    assert one is not None
    assert (told.replicas.mid - 1) * one < 5.0 <= told.replicas.mid * one
    assert told.replicas.copies == told.replicas.mid + 1


def test_devices_are_compared_with_the_plans_own() -> None:
    told = advise(answer(question()), Wishes(price_per_device_hour=2.0, against=(("l40s", 1.0), ("h100", 9.0))))
    prices = {row.name: row.price_per_device_hour for row in told.devices}
    assert prices == {"H100-SXM-80G": 9.0, "L40S": 1.0}
    own = question(device=replace(device("h100"), name="given"))
    assert [row.name for row in advise(answer(own), Wishes(against=(("l40s", None),))).devices] == ["L40S"]
