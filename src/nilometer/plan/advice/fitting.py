"""What does not fit: by how much, and the cheapest ways to make it fit, each of them answered anew.

Cheap is in this order: what costs no money before what does; of the former what risks least quality and gives up
least service; of the latter by price where prices are known, else by the bytes of memory bought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from nilometer.core.errors import Param

from ..answer import Answer, answer
from ..devices import DEVICES, Device, device
from ..memory.slots import MOST_SLOTS
from ..question import Question
from .options_weights import lower
from .quality import Quality, cache_quality, weights_quality
from .splits import splits
from .support import CACHE_TIER, computes, flags

Way = Literal[
    "fit_limit",
    "fit_slots",
    "fit_kv",
    "fit_weights",
    "fit_weights_kv",
    "fit_requests",
    "fit_weights_requests",
    "fit_context",
    "fit_devices",
    "fit_weights_devices",
    "fit_device",
    "fit_larger_devices",
]
_RISK = {"none": 0.0, "small": 1.0, "medium": 2.0, "unknown": 2.5, "high": 4.0}
_HALF_KEPT, _LESS_KEPT = 1.5, 3.0
"""What giving up service counts beside a risk: at least half of it kept, or less."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """One way. `plan` is the proof: it fits."""

    slug: Way
    params: Mapping[str, Param]
    question: Question
    plan: Answer
    quality: Quality | None = None
    devices: int
    price_per_hour: float | None = None
    flags: tuple[str, ...] = ()


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """What is missing, and the ways, cheapest first; none where nothing that was tried fits."""

    short_bytes: float
    """On one device, the fullest."""
    starts: bool
    """Whether the engine would start at all."""
    ways: tuple[Fit, ...]


def smallest(question: Question, most: int) -> Answer:
    """Each copy on the fewest devices that hold it; where no size up to `most` does, on the most that was tried."""
    tried = splits(question, most)
    plan = answer(replace(question, parallel=tried[0]))
    for one in tried[1:]:
        if plan.fits:
            return plan
        plan = answer(replace(question, parallel=one))
    return plan


def ways_to_fit(
    plan: Answer, *, most_devices: int = 8, most: int = 3, prices: Mapping[str, float] | None = None
) -> Shortfall | None:
    """None where it fits, or no device is named. `prices`: per hour of one device, by any name of it.

    SpecError `device_unknown` for a price of a device that is not in the table.
    """
    if plan.memory is None or plan.fits:
        return None
    known = {device(name).name: price for name, price in (prices or {}).items()}
    found = [*_free_of_charge(plan), *_paid(plan, most_devices, known)]
    ways = sorted(found, key=lambda one: _cheap(one, plan, known))
    return Shortfall(short_bytes=plan.memory.short_bytes, starts=plan.memory.starts, ways=tuple(ways[:most]))


def _cheap(way: Fit, plan: Answer, prices: Mapping[str, float]) -> tuple[bool, float, float]:
    old, new = plan.question, way.question
    paid = way.devices > old.parallel.devices or new.device is not old.device
    if not paid:
        return False, _risk(way) + _given_up(old, new), 0.0
    price = None if new.device is None else prices.get(new.device.name)
    bought = way.devices * (0.0 if new.device is None else new.device.memory_bytes)
    return True, bought if price is None or not prices else price * way.devices, _risk(way)


def _risk(way: Fit) -> float:
    return 0.0 if way.quality is None else _RISK[way.quality.risk]


def _given_up(old: Question, new: Question) -> float:
    kept = min(new.concurrency / old.concurrency, new.context / old.context)
    if kept >= 1:
        return 0.0
    return _HALF_KEPT if kept >= 1 / 2 else _LESS_KEPT


def _fit(
    slug: Way, question: Question, *, quality: Quality | None = None, told: tuple[str, ...] = (), **params: Param
) -> Iterator[Fit]:
    """It, where it fits."""
    plan = answer(question)
    if plan.fits:
        yield Fit(
            slug=slug,
            params=params,
            question=question,
            plan=plan,
            quality=quality,
            devices=question.parallel.devices,
            flags=told,
        )


def _free_of_charge(plan: Answer) -> Iterator[Fit]:
    question = plan.question
    yield from _limit(plan)
    cached = _cache_lower(question)
    if cached is not None:
        name = cached.key_precision
        yield from _fit(
            "fit_kv", cached, quality=cache_quality(name), told=flags(question.engine, "kv_8bit"), precision=name
        )
    yield from _weights(plan)
    fewer = [*_requests(question)]
    yield from fewer or _weights_requests(plan)
    yield from _context(question)


def _limit(plan: Answer) -> Iterator[Fit]:
    """Where the engine plans for longer requests than were asked for: say so to it. Where slots lack: more of them."""
    question, memory = plan.question, plan.memory
    if memory is not None and memory.slots is not None:
        sized = _sized(question, question.concurrency, question.context)
        yield from _fit(
            "fit_slots", sized, told=_sized_flags(sized), slots=question.concurrency, context=question.context
        )
    if memory is not None and memory.context > question.context and question.engine != "llama.cpp":
        limit = max(question.context, _whole(memory.tokens.low))
        limited = replace(question, settings=replace(question.settings, context=min(limit, memory.context)))
        told = flags(question.engine, "context", n=limited.settings.context)
        yield from _fit("fit_limit", limited, told=told, context=limited.settings.context)


def _whole(tokens: float, step: int = 1024) -> int:
    """A round number of tokens that a pool surely holds."""
    return int(tokens // step) * step


def _cache_lower(question: Question) -> Question | None:
    name = CACHE_TIER.get(question.engine)
    if name is None or min(question.cached.key, question.cached.value) < 2.0:
        return None
    return replace(question, key_precision=name, value_precision=None)


def _usable(plan: Answer) -> list[Question]:
    """It in the lower tiers that its device runs, most bits first."""
    return [one for one in lower(plan) if one.device and computes(one.device, one.precision, one.engine) != "no"]


def _weights(plan: Answer) -> Iterator[Fit]:
    """The tier of most bits that fits; the same with 8 bits of cache where none does by itself."""
    usable = _usable(plan)
    both = [one for one in map(_cache_lower, usable) if one is not None]
    sorts: tuple[tuple[Way, Sequence[Question]], ...] = (("fit_weights", usable), ("fit_weights_kv", both))
    for slug, tried in sorts:
        for one in tried:
            found = [*_in_tier(slug, one)]
            if found:
                yield found[0]
                return


def _in_tier(slug: Way, question: Question, told: tuple[str, ...] = (), **params: Param) -> Iterator[Fit]:
    name = question.precision.name
    if question.key_precision != "auto":
        params["cache"] = question.key_precision
    told = (*_told(question), *told)
    yield from _fit(slug, question, quality=weights_quality(name), told=told, precision=name, **params)


def _weights_requests(plan: Answer) -> Iterator[Fit]:
    """Where not even fewer requests fit: the tier of most bits with as many of them as it holds."""
    for one in _usable(plan):
        for fewer in _requests(one):
            at_once = fewer.question.concurrency
            yield from _in_tier("fit_weights_requests", fewer.question, fewer.flags, concurrency=at_once)
            return


def _told(question: Question) -> tuple[str, ...]:
    name, engine = question.precision.name, question.engine
    told = flags(engine, "weights_gguf" if engine == "llama.cpp" else f"weights_{name}", name=name.upper())
    return told if question.key_precision == "auto" else (*told, *flags(engine, "kv_8bit"))


def _requests(question: Question) -> Iterator[Fit]:
    """As many at once as it holds."""
    copies = question.parallel.data
    most = -(-question.concurrency // copies) - 1
    held = _greatest(most, lambda each: answer(_sized(question, each * copies, question.context)).fits)
    if held:
        fewer = _sized(question, held * copies, question.context)
        yield from _fit("fit_requests", fewer, told=_sized_flags(fewer), concurrency=held * copies)


def _context(question: Question) -> Iterator[Fit]:
    """The longest requests of which it holds the asked number, whole steps of tokens; the mean one must fit in."""
    least = -(-int(question.lengths.input + question.lengths.output) // _STEP)
    most = -(-question.context // _STEP) - 1
    held = _greatest(most, lambda steps: answer(_sized(question, question.concurrency, steps * _STEP)).fits)
    if held and held >= least:
        shorter = _sized(question, question.concurrency, held * _STEP)
        yield from _fit("fit_context", shorter, told=_sized_flags(shorter), context=held * _STEP)


def _greatest(most: int, passes: Callable[[int], bool | None]) -> int:
    """The greatest of 1..most that passes, where all smaller ones do; 0 where none does."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _sized(question: Question, concurrency: int, context: int) -> Question:
    """For so many requests of so many tokens, and the engine told of it: llama.cpp by -np and the -c of all slots."""
    told = replace(question.settings, context=context)
    if question.engine == "llama.cpp":
        slots = min(concurrency, MOST_SLOTS)
        told = replace(told, slots=slots, context=slots * context)
    return replace(question, concurrency=concurrency, context=context, settings=told)


def _sized_flags(question: Question) -> tuple[str, ...]:
    told = flags(question.engine, "context", n=question.settings.context)
    return (*told, *flags(question.engine, "requests", n=question.concurrency))


_STEP = 128


def _paid(plan: Answer, most_devices: int, prices: Mapping[str, float]) -> Iterator[Fit]:
    most = most_devices // plan.question.parallel.data
    found = [*_more(plan.question, "fit_devices", most)]
    fewest = found[0].devices if found else most_devices + 1
    for one in _usable(plan):
        less = [way for way in _more(one, "fit_weights_devices", most) if way.devices < fewest]
        if less and less[0].devices > plan.question.parallel.devices:
            name = one.precision.name
            params = {**less[0].params, "precision": name}
            told = (*_told(one), *less[0].flags)
            found.append(replace(less[0], params=params, quality=weights_quality(name), flags=told))
            break
    found += _bigger(plan.question, prices)
    for way in found or _several_bigger(plan.question, most, prices):
        yield _priced(way, prices)


def _more(question: Question, slug: Way, most: int) -> Iterator[Fit]:
    """On the fewest devices that hold it."""
    found = smallest(question, most)
    spread = found.question.parallel
    told = (
        *(flags(question.engine, "tensor", n=spread.tensor) if spread.tensor > 1 else ()),
        *(flags(question.engine, "pipeline", n=spread.pipeline) if spread.pipeline > 1 else ()),
    )
    if found.fits:
        yield from _fit(slug, found.question, told=told, devices=spread.devices)


def _priced(way: Fit, prices: Mapping[str, float]) -> Fit:
    price = None if way.question.device is None else prices.get(way.question.device.name)
    return replace(way, price_per_hour=None if price is None else price * way.devices)


def _bigger(question: Question, prices: Mapping[str, float]) -> Iterator[Fit]:
    """The device of the table that costs least, or has least memory, and holds it in the same split."""
    for one in _larger(question, prices):
        for found in _fit("fit_device", replace(question, device=one), device=one.name):
            yield found
            return


def _several_bigger(question: Question, most: int, prices: Mapping[str, float]) -> Iterator[Fit]:
    """Where nothing else does: the fewest of the first such device that hold it."""
    for one in _larger(question, prices):
        for found in _more(replace(question, device=one), "fit_larger_devices", most):
            yield replace(found, params={**found.params, "device": one.name})
            return


def _larger(question: Question, prices: Mapping[str, float]) -> list[Device]:
    """Devices of the table with more memory, cheapest or smallest first."""
    own = question.device
    more = [one for one in DEVICES.values() if own is not None and own.kind != "cpu" and _is_bigger(one, own)]
    return sorted(more, key=lambda one: (prices.get(one.name, float("inf")), one.memory_bytes, one.name))


def _is_bigger(one: Device, own: Device) -> bool:
    return (
        one.kind == own.kind
        and one.memory_bytes > own.memory_bytes
        and one.bandwidth_bytes_per_s is not None
        and one.confidence == "high"
    )
