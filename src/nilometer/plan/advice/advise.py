"""All advice on a plan at once: objectives held, the greatest load within them, options, ways to fit, copies, costs.

Each part is of a room of its own; here is only what a plan is advised by, and what of it can be told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..answer import Answer
from ..devices import DEVICES, device
from ..model.shape import Shape
from .cost import Cost, DeviceRow, Replicas, compare_devices, cost, replicas
from .fitting import Shortfall, ways_to_fit
from .objective import Greatest, Held, Objective, greatest_load, held
from .option import Option
from .options import first_move, options
from .options_weights import Tier, precision_table


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of a plan, and what may be spent."""

    objectives: tuple[Objective, ...] = ()
    most_devices: int = 8
    price_per_device_hour: float | None = None
    currency: str = ""
    rate_per_s: float | None = None
    users: float | None = None
    spare: int = 0
    acceptance: float | None = None
    drafted: int | None = None
    draft: Shape | None = None
    draft_precision: str | None = None
    """As its files have it; None = as published."""
    against: tuple[tuple[str, float | None], ...] = ()
    """Devices to be held against the one of the plan, each with its price per hour."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say; empty or None where the plan has no forecast, or nothing was asked."""

    wishes: Wishes
    held: tuple[Held, ...] = ()
    """The objectives at the asked load."""
    greatest: Greatest | None = None
    options: tuple[Option, ...] = ()
    first: Option | None = None
    tiers: tuple[Tier, ...] = ()
    shortfall: Shortfall | None = None
    replicas: Replicas | None = None
    cost: Cost | None = None
    devices: tuple[DeviceRow, ...] = ()

    @property
    def missed(self) -> bool:
        """Whether an objective is not kept by the middle of its forecast."""
        return any(one.met in {"unlikely", "no"} for one in self.held)


def advise(plan: Answer, wishes: Wishes | None = None) -> Advice:
    """Of a plan on a device; SpecErrors of the rooms."""
    wishes = wishes or Wishes()
    question = plan.question
    if question.device is None or plan.weights_bytes is None:
        return Advice(wishes=wishes)
    made = options(
        plan,
        objectives=wishes.objectives,
        most_devices=wishes.most_devices,
        price_per_device_hour=wishes.price_per_device_hour,
        rate_per_s=wishes.rate_per_s,
        users=wishes.users,
        acceptance=wishes.acceptance,
        drafted=wishes.drafted,
        draft=wishes.draft,
        draft_precision=wishes.draft_precision,
    )
    row = plan.at(question.concurrency)
    traffic = wishes.rate_per_s is not None or wishes.users is not None
    return Advice(
        wishes=wishes,
        held=() if row is None else tuple(held(row, one, question.lengths) for one in wishes.objectives),
        greatest=greatest_load(plan, wishes.objectives) if wishes.objectives else None,
        options=made,
        first=first_move(made),
        tiers=precision_table(plan),
        shortfall=ways_to_fit(plan, most_devices=wishes.most_devices, prices=_prices(plan, wishes)),
        replicas=_replicas(plan, wishes) if traffic else None,
        cost=None if row is None else cost(plan, row, wishes.price_per_device_hour),
        devices=_devices(plan, wishes),
    )


def _named(plan: Answer) -> str | None:
    """The plan's device, where it is one of the table."""
    own = plan.question.device
    return own.name if own is not None and own.name in DEVICES else None


def _prices(plan: Answer, wishes: Wishes) -> Mapping[str, float] | None:
    """The price is of the plan's device."""
    name, price = _named(plan), wishes.price_per_device_hour
    return None if name is None or price is None else {name: price}


def _replicas(plan: Answer, wishes: Wishes) -> Replicas | None:
    return replicas(plan, wishes.objectives, rate_per_s=wishes.rate_per_s, users=wishes.users, spare=wishes.spare)


def _devices(plan: Answer, wishes: Wishes) -> tuple[DeviceRow, ...]:
    """The plan's own device first among them."""
    if not wishes.against:
        return ()
    own = [(name, wishes.price_per_device_hour) for name in [_named(plan)] if name]
    prices = {device(name).name: price for name, price in (*own, *wishes.against)}
    return compare_devices(
        plan.question,
        tuple(prices),
        {name: price for name, price in prices.items() if price is not None},
        objectives=wishes.objectives,
        most_devices=wishes.most_devices,
    )
