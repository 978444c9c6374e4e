"""What serving costs: copies for a traffic, money and energy for a million tokens, devices side by side.

Prices are the user's. Energy is an upper bound: the devices' rated power, drawn all the time, nothing else counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec
from msgspec.structs import replace

from nilometer.core.errors import SpecError

from ..answer import Answer, answer
from ..devices import device
from ..interval import Interval
from ..latency.roofline import Latency
from ..question import Question
from .fitting import smallest
from .objective import Held, Objective, greatest_load, held

_MILLION, _HOUR_S, _KWH_J = 1e6, 3600.0, 3.6e6


class Replicas(msgspec.Struct, frozen=True, kw_only=True):
    """Copies of the model for a traffic. `per_copy` is in the traffic's own unit: requests per second, or users."""

    traffic: float
    unit: str
    """requests_per_s or users."""
    per_copy: tuple[float | None, float | None, float | None]
    """By the worst, middle and best end of the forecast; None = that end serves not even one request as asked."""
    low: int | None
    mid: int | None
    high: int | None
    """Copies that the traffic takes: in the best case, by the middle, in the worst."""
    spare: int
    devices_each: int

    @property
    def copies(self) -> int | None:
        """By the middle, the spare ones included."""
        return None if self.mid is None else self.mid + self.spare

    @property
    def devices(self) -> int | None:
        """All of them."""
        return None if self.copies is None else self.copies * self.devices_each


def replicas(
    plan: Answer,
    objectives: Sequence[Objective] = (),
    *,
    rate_per_s: float | None = None,
    users: float | None = None,
    spare: int = 0,
) -> Replicas | None:
    """How many copies serve so many requests per second, or so many users who each wait for one answer at a time.

    A copy serves what its greatest load within the objectives does; `spare` ones stand by for one that fails. Copies of
    the attention that share their experts count as one. The
    forecast is of a closed loop: arrivals at random need more room, the nearer to this the more. None where nothing
    is forecast. SpecError `plan_number_too_small` for a traffic of 0 or less, or neither or both named.
    """
    traffic, unit = _traffic(rate_per_s, users)
    one = plan.question.parallel
    together = one.sharing
    single = plan if one.data == together else answer(replace(plan.question, parallel=replace(one, data=together)))
    found = greatest_load(single, objectives)
    if found is None:
        return None
    loads = (found.low, found.mid, found.high)
    output = plan.question.lengths.output
    ends = ("low", "mid", "high")
    rates = tuple(
        None if row is None else getattr(row.output_tokens_per_s, end) / output
        for row, end in zip(found.rows, ends, strict=True)
    )
    served = rates if unit == "requests_per_s" else tuple(None if n is None else float(n) for n in loads)
    worst, middle, best = (None if each is None else ceil(traffic / each - 1e-9) for each in served)
    return Replicas(
        traffic=traffic,
        unit=unit,
        per_copy=(served[0], served[1], served[2]),
        low=best,
        mid=middle,
        high=worst,
        spare=spare,
        devices_each=one.tensor * one.pipeline * together,
    )


def _traffic(rate_per_s: float | None, users: float | None) -> tuple[float, str]:
    given = rate_per_s if users is None else users
    if given is None or (rate_per_s is not None and users is not None) or not given > 0:
        raise SpecError("plan_number_too_small", key="traffic", value=given, least="0")
    return given, "requests_per_s" if users is None else "users"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Of a load that is there all the time. Money in the currency of the price; None without one."""

    devices: int
    per_hour: float | None
    per_million_output: Interval | None
    per_million_tokens: Interval | None
    """Input and output together."""
    kwh_per_million_output: Interval | None
    """At most: by the rated power of the devices. None where it is not stated."""


def cost(plan: Answer, row: Latency, price_per_device_hour: float | None = None) -> Cost:
    """What a million tokens cost at a load of a plan: price x devices x seconds over the tokens made in them.

    SpecError `plan_number_too_small` for a price below 0.
    """
    if price_per_device_hour is not None and not price_per_device_hour >= 0:
        raise SpecError("plan_number_too_small", key="price", value=price_per_device_hour, least=0)
    devices, lengths = plan.question.parallel.devices, plan.question.lengths
    hour = None if price_per_device_hour is None else price_per_device_hour * devices
    output = None if hour is None else row.output_tokens_per_s.under(hour / _HOUR_S * _MILLION)
    share = lengths.output / (lengths.input + lengths.output)
    power = plan.question.device.power_w if plan.question.device else None
    energy = None if power is None else row.output_tokens_per_s.under(power * devices * _MILLION / _KWH_J)
    return Cost(
        devices=devices,
        per_hour=hour,
        per_million_output=output,
        per_million_tokens=None if output is None else output.times(share),
        kwh_per_million_output=energy,
    )


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One device for a question: on the fewest of it that hold the model and its requests."""

    name: str
    fits: bool
    devices: int
    """None of the sizes tried fits = the largest of them."""
    short_bytes: float
    """On one device; 0 where it fits."""
    plan: Answer
    load: Latency | None
    """At the asked load; None where it does not fit or the device's bandwidth is not known."""
    held: tuple[Held, ...]
    cost: Cost | None
    price_per_device_hour: float | None


def compare_devices(
    question: Question,
    names: Sequence[str],
    prices: Mapping[str, float] | None = None,
    *,
    objectives: Sequence[Objective] = (),
    most_devices: int = 8,
) -> tuple[DeviceRow, ...]:
    """A row for each device of the table named, those that fit first, cheapest or else fastest first.

    `prices`: per hour of one device, by any name of it. SpecError `device_unknown`.
    """
    known = {device(name).name: price for name, price in (prices or {}).items()}
    rows = [_device_row(question, name, known, objectives, most_devices) for name in names]
    return tuple(sorted(rows, key=_rank))


def _device_row(
    question: Question, name: str, prices: Mapping[str, float], objectives: Sequence[Objective], most: int
) -> DeviceRow:
    on = replace(question, device=device(name))
    plan = smallest(on, most // question.parallel.data)
    fits = bool(plan.fits)
    load = plan.at(question.concurrency) if fits else None
    price = prices.get(device(name).name)
    return DeviceRow(
        name=device(name).name,
        fits=fits,
        devices=plan.question.parallel.devices,
        short_bytes=0.0 if plan.memory is None else plan.memory.short_bytes,
        plan=plan,
        load=load,
        held=() if load is None else tuple(held(load, one, question.lengths) for one in objectives),
        cost=None if load is None else cost(plan, load, price),
        price_per_device_hour=price,
    )


def _rank(row: DeviceRow) -> tuple[bool, bool, float]:
    if row.load is None or row.cost is None:
        return (not row.fits, True, row.devices)
    money = row.cost.per_million_output
    return (not row.fits, money is None, row.load.tpot_s.mid if money is None else money.mid)
