from __future__ import annotations

from functools import cache
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT, LLAMA_70B

from nilometer.core.errors import SpecError
from nilometer.plan.advice.cost import compare_devices, cost, replicas
from nilometer.plan.advice.objective import Objective, greatest_load
from nilometer.plan.answer import Answer, answer
from nilometer.plan.devices import device
from nilometer.plan.interval import Interval
from nilometer.plan.latency.roofline import Latency
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.precision import precision_of
from nilometer.sources.models.known import look_up, shape_of_row

TPOT = Objective(metric="tpot_ms", stat="mean", at_most=True, limit=13)


@cache
def plan() -> Answer:
    return answer(CHAT)


def _row(tokens: Interval) -> Latency:
    row = plan().at(32)
    assert row is not None
    return replace(row, output_tokens_per_s=tokens)


def test_a_million_tokens_at_a_price() -> None:
    """3.60 an hour is 0.001 a second; 1,000 tokens in it: 1.00 a million, a fifth of it for input and output alike."""
    made = cost(plan(), _row(Interval(500, 1000, 2000)), 3.60)
    assert made.per_million_output is not None
    assert made.per_million_tokens is not None
    assert made.per_hour == 3.60
    money = made.per_million_output
    assert (money.low, money.mid, money.high) == pytest.approx((0.5, 1.0, 2.0))
    assert made.per_million_tokens.mid == pytest.approx(256 / 1280)


def test_energy_is_that_of_the_rated_power() -> None:
    """700 W for 1,000 s, the time of a million tokens at 1,000 a second: 0.194 kWh."""
    made = cost(plan(), _row(Interval(1000, 1000, 1000)))
    assert made.kwh_per_million_output is not None
    assert made.kwh_per_million_output.mid == pytest.approx(700 * 1000 / 3.6e6)
    assert (made.per_hour, made.per_million_output, made.per_million_tokens) == (None, None, None)


def test_all_devices_are_paid_for() -> None:
    four = replace(plan(), question=replace(CHAT, parallel=Parallel(tensor=2, data=2)))
    made = cost(four, _row(Interval(1000, 1000, 1000)), 3.60)
    assert (made.devices, made.per_hour) == (4, 14.4)
    assert made.per_million_output is not None
    assert made.per_million_output.mid == pytest.approx(4.0)
    assert made.kwh_per_million_output is not None
    assert made.kwh_per_million_output.mid == pytest.approx(4 * 700 / 3600)


def test_what_is_not_stated_is_not_told() -> None:
    unknown = replace(CHAT, device=replace(device("h100"), power_w=None))
    assert cost(replace(plan(), question=unknown), _row(Interval(1, 1, 1)), 1.0).kwh_per_million_output is None
    with pytest.raises(SpecError, match="plan_number_too_small"):
        cost(plan(), _row(Interval(1, 1, 1)), -1.0)


def test_copies_for_users_are_users_over_the_greatest_load() -> None:
    found, made = greatest_load(plan(), [TPOT]), replicas(plan(), [TPOT], users=1000)
    assert found is not None
    assert made is not None
    assert (made.low, made.mid, made.high) == tuple(
        None if load is None else ceil(1000 / load) for load in (found.high, found.mid, found.low)
    )


def test_copies_for_a_rate_are_by_what_the_greatest_load_serves() -> None:
    found, made = greatest_load(plan(), [TPOT]), replicas(plan(), [TPOT], rate_per_s=50, spare=1)
    assert found is not None
    assert found.rows[1] is not None
    assert made is not None
    assert made.mid == ceil(50 / (found.rows[1].output_tokens_per_s.mid / 256))
    assert made.copies == made.mid + 1
    assert made.devices == made.copies


def test_copies_stand_on_the_devices_of_one() -> None:
    made = replicas(answer(replace(CHAT, parallel=Parallel(tensor=2, data=2))), [TPOT], users=100)
    single = replicas(answer(replace(CHAT, parallel=Parallel(tensor=2))), [TPOT], users=100)
    assert made is not None
    assert made == single
    assert made.devices_each == 2


def test_where_not_even_one_request_is_served_as_asked_no_copies_help() -> None:
    made = replicas(plan(), [replace(TPOT, limit=1)], rate_per_s=1)
    assert made is not None
    assert (made.low, made.mid, made.high, made.copies, made.devices) == (None,) * 5
    assert made.per_copy == (None, None, None)
    assert replicas(answer(replace(CHAT, device=None)), rate_per_s=1) is None


@pytest.mark.parametrize("traffic", [{}, {"rate_per_s": 0.0}, {"users": -1.0}, {"users": 1.0, "rate_per_s": 1.0}])
def test_a_traffic_is_one_number_above_nothing(traffic: dict[str, float]) -> None:
    with pytest.raises(SpecError, match="plan_number_too_small"):
        replicas(plan(), **traffic)  # type: ignore[arg-type]


@settings(deadline=None)
@given(traffic=st.floats(0.01, 1e5), by_rate=st.booleans())
def test_copies_times_what_each_serves_is_enough_and_one_fewer_is_not(traffic: float, by_rate: bool) -> None:
    made = replicas(plan(), [TPOT], rate_per_s=traffic if by_rate else None, users=None if by_rate else traffic)
    assert made is not None
    for copies, each in zip((made.high, made.mid, made.low), made.per_copy, strict=True):
        assert copies is not None
        assert each is not None
        assert copies * each >= traffic * (1 - 1e-6)
        assert (copies - 1) * each < traffic
    assert (made.low or 0) <= (made.mid or 0) <= (made.high or 0)


def test_devices_side_by_side_each_on_the_fewest_that_hold_it() -> None:
    rows = compare_devices(
        CHAT, ["t4", "h100", "a100", "l40s", "910b"], {"h100": 2.5, "A100-SXM-80G": 1.5}, objectives=[TPOT]
    )
    by_name = {row.name: row for row in rows}
    assert [row.name for row in rows][:2] == ["H100-SXM-80G", "A100-SXM-80G"], "a price each, the cheaper tokens first"
    assert {name: row.devices for name, row in by_name.items() if row.fits} == {
        "H100-SXM-80G": 1,
        "A100-SXM-80G": 1,
        "L40S": 2,
        "T4": 8,
        "Ascend-910B-64G": 1,
    }
    h100, ascend = by_name["H100-SXM-80G"], by_name["Ascend-910B-64G"]
    assert h100.load == plan().at(32)
    assert h100.held[0].met == "likely"
    assert h100.cost is not None
    assert h100.cost.per_hour == 2.5
    assert (ascend.load, ascend.cost, ascend.held) == (None, None, ())
    assert rows[-1] is ascend, "no bandwidth, no forecast"


def test_a_device_that_holds_it_on_no_number_stands_last_and_says_by_how_much() -> None:
    rows = compare_devices(replace(CHAT, shape=LLAMA_70B), ["l4", "h100"], most_devices=4)
    assert [(row.name, row.fits, row.devices) for row in rows] == [("H100-SXM-80G", True, 4), ("L4", False, 4)]
    assert rows[1].short_bytes > 0
    assert rows[1].cost is None


def test_copies_that_share_their_experts_are_started_together() -> None:
    """DeepSeek-V3 on 8 x H200, the attention on each, the experts over all: less than eight of them is none of it."""
    shape = shape_of_row(look_up("deepseek-v3").row)
    wide = Parallel(data=8, expert=8)
    asked = replace(CHAT, shape=shape, precision=precision_of("fp8_block"), device=device("h200"), parallel=wide)
    made = replicas(answer(asked), users=10_000)
    assert made is not None
    assert made.devices_each == 8
    found = greatest_load(answer(asked), ())
    assert found is not None
    assert made.mid == ceil(10_000 / (found.mid or 0))
    with pytest.raises(SpecError, match="expert_not_dividing"):
        answer(replace(asked, parallel=Parallel(expert=8)))


def test_devices_are_counted_for_all_copies() -> None:
    """8 billion in 16 bits do not go on one T4: two copies of four are all that eight devices make."""
    two = replace(CHAT, parallel=Parallel(data=2), concurrency=2, context=2048)
    rows = compare_devices(two, ["t4"], most_devices=8)
    assert [(row.fits, row.devices) for row in rows] == [(True, 4)]
    none = compare_devices(replace(two, concurrency=32, context=8192), ["t4"], most_devices=4)
    assert [(row.fits, row.devices) for row in none] == [(False, 4)]


def test_an_unknown_device_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match="device_unknown"):
        compare_devices(CHAT, ["h1000"])
    with pytest.raises(SpecError, match="device_unknown"):
        compare_devices(CHAT, ["h100"], {"nothing": 1.0})
