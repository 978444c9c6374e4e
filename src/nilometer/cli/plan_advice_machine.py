"""The machine form of the advice on a plan: plain values under the keys of the Plan object."""

from __future__ import annotations

import msgspec

from nilometer.plan.advice.advise import Advice
from nilometer.plan.advice.cost import DeviceRow
from nilometer.plan.advice.fitting import Fit, Shortfall
from nilometer.plan.advice.objective import Greatest, Held
from nilometer.plan.advice.option import Option


def advice_objects(advice: Advice) -> dict[str, object]:
    """`options` in their order, `first_move` the slug of one of them; null where something was not asked."""
    return {
        "slo": [_held(one) for one in advice.held],
        "greatest_load": None if advice.greatest is None else _greatest(advice.greatest),
        "options": [_option(option) for option in advice.options],
        "first_move": None if advice.first is None else advice.first.slug,
        "precisions": [msgspec.to_builtins(tier) for tier in advice.tiers],
        "shortfall": None if advice.shortfall is None else _shortfall(advice.shortfall),
        "replicas": None if advice.replicas is None else _replicas(advice),
        "cost": None
        if advice.cost is None
        else {**msgspec.to_builtins(advice.cost), "currency": advice.wishes.currency},
        "devices": [_device(row) for row in advice.devices],
    }


def _held(one: Held) -> dict[str, object]:
    return {**msgspec.to_builtins(one.objective), "forecast": msgspec.to_builtins(one.value), "met": one.met}


def _greatest(found: Greatest) -> dict[str, object]:
    return {"low": found.low, "mid": found.mid, "high": found.high}


def _option(option: Option) -> dict[str, object]:
    return {
        "slug": option.slug,
        "kind": option.kind,
        "params": dict(option.params),
        "effect": option.effect,
        "before": msgspec.to_builtins(option.before),
        "after": msgspec.to_builtins(option.after),
        "speedup": option.speedup,
        "slo": [_held(one) for one in option.held],
        "quality": msgspec.to_builtins(option.quality),
        "cautions": list(option.caution),
        "flags": list(option.flags),
    }


def _shortfall(found: Shortfall) -> dict[str, object]:
    return {
        "short_bytes": found.short_bytes,
        "starts": found.starts,
        "ways": [_way(way) for way in found.ways],
    }


def _way(way: Fit) -> dict[str, object]:
    return {
        "slug": way.slug,
        "params": dict(way.params),
        "devices": way.devices,
        "price_per_hour": way.price_per_hour,
        "quality": msgspec.to_builtins(way.quality),
        "flags": list(way.flags),
    }


def _replicas(advice: Advice) -> dict[str, object] | None:
    found = advice.replicas
    return None if found is None else {**msgspec.to_builtins(found), "copies": found.copies, "devices": found.devices}


def _device(row: DeviceRow) -> dict[str, object]:
    load = row.load
    return {
        "name": row.name,
        "fits": row.fits,
        "devices": row.devices,
        "short_bytes": row.short_bytes,
        "ttft_ms": None if load is None else msgspec.to_builtins(load.ttft_s.times(1e3)),
        "tpot_ms": None if load is None else msgspec.to_builtins(load.tpot_s.times(1e3)),
        "output_tokens_per_s": None if load is None else msgspec.to_builtins(load.output_tokens_per_s),
        "slo": [_held(one) for one in row.held],
        "cost": None if row.cost is None else msgspec.to_builtins(row.cost),
    }
