"""Advice on a plan as it is shown: the first move, all moves in the guide's order, ways to fit, copies, devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.plan.advice.advise import Advice
from nilometer.plan.advice.cost import Cost, DeviceRow, Replicas
from nilometer.plan.advice.fitting import Fit, Shortfall
from nilometer.plan.advice.objective import Greatest, Held
from nilometer.plan.advice.option import Option
from nilometer.plan.advice.options_weights import Tier
from nilometer.plan.advice.quality import Quality
from nilometer.plan.interval import Interval
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from . import advice_words
from .document import Block, Cell, Column, Fact, Facts, Heading, Table, Text


def facts(advice: Advice, words: Catalogue) -> Iterator[Fact]:
    """What stands among the facts of the plan: objectives, the load within them, copies, costs, the first move."""
    for one in advice.held:
        yield Fact(_objective(one), _held(one, words))
    if advice.greatest is not None:
        yield Fact(words.say("screen.advice.greatest"), _greatest(advice.greatest, words))
    if advice.replicas is not None:
        yield Fact(words.say("screen.advice.copies"), _replicas(advice.replicas, words))
    if advice.cost is not None and advice.cost.per_million_output is not None:
        yield Fact(words.say("screen.advice.cost"), _cost(advice.cost, advice.wishes.currency, words))
    if advice.first is not None:
        yield Fact(words.say("screen.advice.first"), _move(advice.first, words))


def missed(advice: Advice, words: Catalogue) -> str:
    """The objectives that are not kept, for the end of a sentence; nothing where all are."""
    told = [f"{_objective(one)} {_held(one, words)}" for one in advice.held if one.met in {"unlikely", "no"}]
    return words.say("screen.advice.then") + words.say("screen.advice.then").join(told) if told else ""


def shortfall(found: Shortfall | None, words: Catalogue) -> Iterator[Block]:
    """The cheapest ways to make it fit, each proven by a plan."""
    if found is None:
        return
    if not found.ways:
        yield Text(text=words.say("screen.advice.no_way"))
        return
    yield Heading(text=words.say("screen.advice.ways"))
    yield Facts(rows=[Fact(str(place), _way(way, words)) for place, way in enumerate(found.ways, 1)])


def details(advice: Advice, words: Catalogue) -> Iterator[Block]:
    """Every move with what it buys and costs and when it is wrong, and the table of precisions."""
    if advice.tiers:
        yield Heading(text=words.say("screen.advice.precisions"))
        yield _tiers(advice.tiers, words)
        yield from _sources(advice.tiers, words)
    if advice.options:
        yield Heading(text=words.say("screen.advice.moves"))
        for option in advice.options:
            yield Heading(text=advice_words.what(option, words), level=3)
            yield Facts(rows=list(_told(option, words)))


def devices(rows: Sequence[DeviceRow], load: int, words: Catalogue) -> Iterator[Block]:
    """Devices held against each other at the asked load."""
    if not rows:
        return
    priced = any(row.cost is not None and row.cost.per_million_output is not None for row in rows)
    yield Heading(text=words.say("screen.advice.devices", n=load))
    yield Table(
        columns=[
            Column(words.say("screen.plan.device"), "left"),
            Column(words.say("screen.advice.count"), "right"),
            Column(words.say("short.ttft"), "decimal", "ms"),
            Column(words.say("short.tpot"), "decimal", "ms"),
            Column(words.say("short.tokens_all"), "decimal", words.say("screen.tokens_unit")),
            *([Column(words.say("screen.advice.per_million"), "decimal")] if priced else []),
            Column(words.say("screen.advice.kept"), "left"),
        ],
        rows=[_device(row, words, priced=priced) for row in rows],
    )


def _device(row: DeviceRow, words: Catalogue, *, priced: bool) -> list[Cell]:
    load, money = row.load, None if row.cost is None else row.cost.per_million_output
    if not row.fits:
        told = words.say("screen.advice.not_on", n=row.devices, short=row.short_bytes)
    elif row.held:
        told = words.say(f"screen.advice.met.{_worst(row.held)}")
    else:
        told = words.say("screen.advice.holds")
    return [
        Cell(row.name),
        Cell(units.count(row.devices)),
        Cell(units.fixed(None if load is None else load.ttft_s.mid * 1e3, 0)),
        Cell(units.fixed(None if load is None else load.tpot_s.mid * 1e3, 1)),
        Cell(units.rate(None if load is None else load.output_tokens_per_s.mid)),
        *([Cell(units.money(None if money is None else money.mid))] if priced else []),
        Cell(told),
    ]


_MET = ("yes", "likely", "unlikely", "no")


def _worst(held: Sequence[Held]) -> str:
    return max((one.met for one in held), key=_MET.index)


def _objective(one: Held) -> str:
    """`TPOT p95 <= 30 ms` as it was asked."""
    asked = one.objective
    sign = "<=" if asked.at_most else ">="
    name = asked.metric.removesuffix("_ms") + (f"_{asked.stat}" if asked.stat else "")
    limit = units.latency(asked.limit) if asked.metric.endswith("_ms") else units.rate(asked.limit)
    return f"{name} {sign} {limit}"


def _held(one: Held, words: Catalogue) -> str:
    show = units.latency if one.objective.metric.endswith("_ms") else units.rate
    low, mid, high = show(one.value.low), show(one.value.mid), show(one.value.high)
    return words.say(f"screen.advice.met.{one.met}") + words.say("screen.advice.forecast", mid=mid, low=low, high=high)


def _greatest(found: Greatest, words: Catalogue) -> str:
    if found.mid is None:
        return words.say("screen.advice.none_within")
    return words.say("screen.advice.within", mid=found.mid, low=found.low or 0, high=found.high)


def _replicas(found: Replicas, words: Catalogue) -> str:
    traffic = words.say(f"screen.advice.traffic.{found.unit}", n=found.traffic)
    if found.mid is None or found.copies is None:
        return words.say("screen.advice.no_copies", traffic=traffic)
    return words.say(
        "screen.advice.copies_for",
        n=found.mid,
        spare=found.spare,
        low=found.low,
        high=found.high,
        devices=found.devices,
        traffic=traffic,
    )


def _cost(told: Cost, currency: str, words: Catalogue) -> str:
    output, whole = told.per_million_output, told.per_million_tokens
    if output is None or whole is None:
        return units.NOT_MEASURED
    ends = {"mid": output.mid, "low": output.low, "high": output.high}
    return words.say("screen.advice.cost_is", total=whole.mid, currency=currency, **ends)


def _move(option: Option, words: Catalogue) -> str:
    """In one sentence: what, what it buys, its risk, whether it is needed."""
    parts = [advice_words.what(option, words), *_gains(option, words)]
    if option.quality is not None:
        parts.append(advice_words.risk(option.quality.risk, words))
    if option.extra_devices:
        parts.append(words.say("screen.advice.more_devices", n=option.after.devices))
    parts.append(advice_words.effect(option.effect, words))
    return words.say("screen.advice.then").join(parts)


def _gains(option: Option, words: Catalogue) -> Iterator[str]:
    before, after = option.before, option.after
    if before.fits is False and after.fits:
        yield words.say("screen.advice.now_fits")
    if before.tpot_ms is not None and after.tpot_ms is not None:
        yield words.say("screen.advice.tpot", before=before.tpot_ms.mid, after=after.tpot_ms.mid)
    old, new = before.output_tokens_per_s, after.output_tokens_per_s
    if old is not None and new is not None:
        yield words.say("screen.advice.tokens", before=old.mid, after=new.mid)
    if after.max_concurrency is not None:
        was = 0.0 if before.max_concurrency is None else before.max_concurrency.mid
        yield words.say("screen.advice.held", before=int(was), after=int(after.max_concurrency.mid))


def _told(option: Option, words: Catalogue) -> Iterator[Fact]:
    said = words.say("screen.advice.then")
    gains = [*_gains(option, words), advice_words.effect(option.effect, words)]
    yield Fact(words.say("screen.advice.buys"), said.join(gains))
    costs = []
    if option.quality is not None:
        costs.append(_quality(option.quality, words))
    if option.extra_devices:
        costs.append(words.say("screen.advice.more_devices", n=option.after.devices))
    if costs:
        yield Fact(words.say("screen.advice.costs"), said.join(costs))
    if option.speculation is not None:
        yield Fact(words.say("screen.advice.acceptance"), _speculation(option, words))
    yield Fact(words.say("screen.advice.wrong"), advice_words.wrong(option, words))
    if told := advice_words.cautions(option, words):
        yield Fact(words.say("screen.advice.mind"), said.join(told))
    if option.flags:
        yield Fact(words.say("screen.advice.flags"), "  ".join(option.flags))


def _quality(quality: Quality, words: Catalogue) -> str:
    risk, loss = advice_words.risk(quality.risk, words), advice_words.loss(quality, words)
    if loss is None:
        return risk
    return words.say("screen.advice.with_source", what=risk, loss=loss, source=quality.source)


def _speculation(option: Option, words: Catalogue) -> str:
    told = option.speculation
    if told is None:
        return units.NOT_MEASURED
    return words.say(
        "screen.advice.speculation",
        acceptance=told.acceptance.mid,
        low=told.acceptance.low,
        high=told.acceptance.high,
        gain=told.gain.mid,
        least=told.gain.low,
        most=told.gain.high,
        break_even=told.break_even,
        cost=float(option.params.get("cost") or 0.0),
        guide=advice_words.guide(told.guide, words),
    )


def _way(way: Fit, words: Catalogue) -> str:
    parts = [advice_words.fit(way, words)]
    if way.quality is not None:
        parts.append(advice_words.risk(way.quality.risk, words))
    if way.price_per_hour is not None:
        parts.append(words.say("screen.advice.an_hour", price=way.price_per_hour))
    parts += way.flags
    return words.say("screen.advice.then").join(parts)


def _tiers(tiers: Sequence[Tier], words: Catalogue) -> Table:
    """The guide's table: memory, speed, quality risk."""
    return Table(
        columns=[
            Column(words.say("screen.advice.precision"), "left"),
            Column(words.say("screen.plan.term.weights"), "right"),
            Column(words.say("screen.advice.holds_head"), "right"),
            Column(words.say("screen.advice.alone"), "decimal", "TPOT ms"),
            Column(words.say("screen.advice.loaded"), "decimal", "TPOT ms"),
            Column(words.say("screen.advice.full"), "decimal", words.say("screen.tokens_unit")),
            Column(words.say("screen.advice.risk_head"), "left"),
        ],
        rows=[_tier(tier, words) for tier in tiers if tier.computes != "no"],
    )


def _tier(tier: Tier, words: Catalogue) -> list[Cell]:
    def mid(figure: Interval | None) -> float | None:
        return None if figure is None else figure.mid

    held = mid(tier.max_concurrency)
    return [
        Cell(tier.precision.upper()),
        Cell(units.size(tier.weights_bytes)),
        Cell(units.count(None if held is None else int(held))),
        Cell(units.fixed(mid(tier.alone_tpot_ms), 1)),
        Cell(units.fixed(mid(tier.tpot_ms), 1)),
        Cell(units.rate(mid(tier.full_tokens_per_s))),
        Cell(words.say(f"screen.advice.risk_short.{tier.quality.risk}")),
    ]


def _sources(tiers: Sequence[Tier], words: Catalogue) -> Iterator[Block]:
    told = [
        Fact(tier.precision.upper(), _quality(tier.quality, words))
        for tier in tiers
        if tier.quality.source and tier.computes != "no"
    ]
    if told:
        yield Facts(rows=told)
