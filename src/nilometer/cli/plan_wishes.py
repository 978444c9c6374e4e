"""What is wanted of a plan, from the options of `nilo plan`: objectives, traffic, price, devices to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nilometer.core.errors import SpecError
from nilometer.core.finding import Finding
from nilometer.plan.advice.advise import Wishes
from nilometer.plan.advice.objective import Objective, notes, objective_of
from nilometer.sources.models.read import read_model

CURRENCY = "USD"
"""As `nilo measure --price` has it."""


class Wished(NamedTuple):
    """The wishes, and what must be said of them."""

    wishes: Wishes
    notes: tuple[Finding, ...]


def wished(given: Mapping[str, Any]) -> Wished:
    """SpecError `slo_invalid`, `plan_traffic_twice`, `plan_price_by_hour`, and the readers' of a draft."""
    if given["rate"] is not None and given["users"] is not None:
        raise SpecError("plan_traffic_twice")
    objectives, told = _objectives(given["slo"])
    price = given["price"] or {}
    if price and "device_hour" not in price:
        raise SpecError("plan_price_by_hour")
    draft = None if given["draft"] is None else read_model(given["draft"]).shape
    wishes = Wishes(
        objectives=objectives,
        most_devices=given["devices"] or 8,
        price_per_device_hour=price.get("device_hour"),
        currency=price.get("currency", CURRENCY),
        rate_per_s=given["rate"],
        users=given["users"],
        spare=given["spare"] or 0,
        acceptance=given["acceptance"],
        draft=draft,
        against=tuple(_against(given["against"])),
    )
    return Wished(wishes, told)


def _against(text: str | None) -> Iterator[tuple[str, float | None]]:
    """`l40s=1.20,h200` as names and prices per hour; SpecError `plan_against_wrong`."""
    for piece in filter(None, (text or "").split(",")):
        name, priced, price = (part.strip() for part in piece.partition("="))
        try:
            hour = float(price) if priced else None
        except ValueError:
            hour = -1.0
        if not name or (hour is not None and not 0 <= hour <= 1e12):
            raise SpecError("plan_against_wrong", piece=piece)
        yield name, hour


def _objectives(text: str | None) -> tuple[tuple[Objective, ...], tuple[Finding, ...]]:
    """Those that a plan foretells, and what to say of them and of the others."""
    if text is None:
        return (), ()
    from nilometer.metrics.slo import parse

    found, unforetold = [], []
    for bound in parse(text):
        one = objective_of(bound.metric, bound.stat, bound.comparison, bound.limit)
        if one is None:
            unforetold.append(bound.text)
        else:
            found.append(one)
    left = [
        Finding(slug="plan_bound_unforetold", kind="note", severity="low", params={"bounds": ", ".join(unforetold)})
    ]
    return tuple(found), (*notes(found), *(left if unforetold else []))
