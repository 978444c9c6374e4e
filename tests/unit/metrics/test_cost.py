"""What a run used and cost: every request's known tokens, and no cost of which a part is unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.core.record import Record
from nilometer.core.spec import Price
from nilometer.core.summary import Cost
from nilometer.metrics.cost import spent

from .made import answered, failed, phases, spec, summary

TOKENS = Price(input_per_million=1.0, output_per_million=10.0)


def cost(price: Price, *records: Record, **load: Any) -> Cost:
    asked = msgspec.structs.replace(spec(**load), price=price)
    return summary(records, phases(0, 10), asked=asked).cost


def test_all_requests_count_however_they_ended() -> None:
    """100 + 2 answered, 100 + 30 lost in a failure: 200 at 1 and 32 at 10 a million."""
    lost = failed(2.0, 3.0, "stream_error", prompt_tokens=100, output_tokens=30)
    refused = failed(3.0, 3.1, "http_429")
    made = cost(TOKENS, answered(1.0, [1.5, 1.6]), lost, refused)
    assert (made.prompt_tokens, made.output_tokens, made.uncounted) == (200, 32, 0)
    assert made.spent == pytest.approx(0.00052)


def test_a_request_that_was_taken_and_not_counted_is_told() -> None:
    cut = failed(2.0, 3.0, None, output_tokens=7)
    made = cost(TOKENS, answered(1.0, [1.5, 1.6]), cut)
    assert (made.prompt_tokens, made.output_tokens, made.uncounted) == (100, 9, 1)


def test_tokens_for_money_are_those_of_the_window() -> None:
    """Each second of the window brings 10 prompt and 0.2 output tokens: 10 + 2 millionths; 0.2 / 0.000012."""
    made = cost(TOKENS, answered(1.0, [1.5, 1.6]), window="0..10")
    assert made.tokens_per_currency == pytest.approx(0.2 / 0.000012)


def test_devices_by_the_hour() -> None:
    """10 s of 4 devices at 9 an hour."""
    made = cost(Price(device_hour=9, devices=4), answered(1.0, [1.5, 1.6]), window="0..10")
    assert made.spent == pytest.approx(0.1)
    assert made.tokens_per_currency == pytest.approx(0.2 / 0.01)


@pytest.mark.parametrize(
    ("price", "into", "out", "devices"),
    [
        (Price(), 1.0, 1.0, 1),
        (TOKENS, None, 1.0, 1),
        (TOKENS, 1.0, None, 1),
        (Price(device_hour=2.5), 1.0, 1.0, None),
    ],
)
def test_half_a_cost_is_not_said(price: Price, into: float | None, out: float | None, devices: int | None) -> None:
    assert spent(price, into, out, 60.0, devices) is None


def test_what_is_free_costs_nothing() -> None:
    assert spent(Price(input_per_million=0, output_per_million=0), 5.0, 5.0, 1.0, None) == 0
