"""A case played: a ladder of levels as a diagnosis climbs it, each a Run with its records, and what was true in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from random import Random

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.environment import EngineFacts, Environment
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import Page, Series
from nilometer.metrics.server_summary import told
from nilometer.metrics.server_watch import Seen, watch
from nilometer.metrics.summary import summarise
from nilometer.metrics.validity import judge
from nilometer.sim.drive import ORIGIN_NS, Offer, simulate
from nilometer.sim.event import Answer, Gauges
from nilometer.sim.machine import Plan
from nilometer.sim.page import Ledger, Shown, shown

from .client import Met, Reader, health_of, read_by
from .service import Draft, asks, plan_of

GAIN = 0.10
"""A ladder ends where the throughput grows by less for each doubling of the load."""
LEAST, EACH = 70, 20
"""Requests of a level: the least, and for each user."""
SAMPLE_S = 1.0
MOST_PAGES = 100
"""Of a level: one that lasts longer is looked at less often."""
OFF_S = 0.005
_ANSWER_NS = 1_000_000
Sample = tuple[float, list[Shown]]
Records = list[Record]


def by_client(level: Level) -> Run:
    """The run as it would be without a metrics page, and of an engine that tells nothing."""
    run = level.run
    return msgspec.structs.replace(
        run,
        summary=msgspec.structs.replace(run.summary, server=level.by_answers),
        environment=msgspec.structs.replace(run.environment, engine=EngineFacts()),
    )


@dataclass
class Truth:
    """What was true in one level, after its warm-up: by the machine, not by what was measured of it."""

    users: int
    seconds: float
    running: float = 0.0
    waiting: float = 0.0
    waiting_share: float = 0.0
    full_share: float = 0.0
    """Of the time: requests wait and no slot of some engine is free."""
    blocked_share: float = 0.0
    """Requests wait, slots are free: the pool has no room."""
    adapters_share: float = 0.0
    """Some request waits whose adapter is not among those in use, and all their slots are."""
    held_share: float = 0.0
    """Of the pool, in the mean, by tokens that are there."""
    preemptions: int = 0
    throttled: bool = False
    """Whether clocks had dropped by its end."""
    off_share: float = 0.0
    """Of the tokens, whose stamp is wrong by more than 5 ms."""


@dataclass
class Level:
    """A level that was played."""

    run: Run
    records: Records
    truth: Truth
    by_answers: dict[str, float | None]
    """What of the Summary's `server` the answers themselves told."""


def play(d: Draft, seed: int) -> list[Level]:
    """The ladder of a draft, lowest level first. Equal seeds give equal levels."""
    random = Random(seed)
    plan = plan_of(d, random)
    levels: list[Level] = []
    begun_s, rate = 0.0, 1 / d.alone_s
    for users in d.levels:
        level = _level(d, _at(d, plan, begun_s, first=not levels), users, rate, random)
        begun_s += (level.run.phases.end_ns - level.run.phases.start_ns) / NS_PER_S
        levels.append(level)
        rates = [one.run.summary.throughput.requests_per_s or rate for one in levels[-2:]]
        rate = rates[-1]
        if len(levels) > 1:
            grown = log(rates[-1] / rates[-2]) / log(users / levels[-2].truth.users)
            if 2**grown - 1 < GAIN:
                break
    return levels


def _at(d: Draft, plan: Plan, begun_s: float, *, first: bool) -> Plan:
    """The plan of a level that begins `begun_s` after the first: what grows with time goes on from there."""
    faults = plan.faults
    changes: dict[str, object] = {}
    if d.first_level_only and not first:
        changes |= {"cold_requests": 0}
    if faults.leak_per_s:
        changes |= {"leak_per_s": faults.leak_per_s / (1 + faults.leak_per_s * begun_s)}
    slowness = 1 + faults.leak_per_s * begun_s
    if slowness != 1:
        named = faults.replica_slowness or (1.0,) * plan.replicas
        changes |= {"replica_slowness": tuple(slowness * one for one in named)}
    return msgspec.structs.replace(plan, faults=msgspec.structs.replace(faults, **changes)) if changes else plan


def _throttled(d: Draft, plan: Plan, users: int, warmup_s: float, seconds: float) -> Plan:
    """Clocks drop in one of the levels, and stay there."""
    if d.throttles_at is None:
        return plan
    place, share = int(d.throttles_at[0] * len(d.levels)), d.throttles_at[1]
    at = d.levels.index(users)
    after_s = inf if at < place else -inf if at > place else warmup_s + share * seconds
    return msgspec.structs.replace(plan, faults=msgspec.structs.replace(plan.faults, throttle_after_s=after_s))


def _level(d: Draft, plan: Plan, users: int, rate: float, random: Random) -> Level:
    """Long enough for its requests; once more and longer where it was not."""
    seed = random.getrandbits(64)
    asked: float = max(LEAST, EACH * users)
    if d.requests < 1:
        asked, rate = max(5, d.requests * EACH * users), users / d.alone_s
    seconds = max(asked / rate, d.least_s)
    for _ in range(3):
        level = _played(d, plan, users, seconds, Random(seed))
        ok = level.run.summary.requests.ok or 0
        if ok >= 0.8 * asked or (level.run.summary.requests.started or 0) >= 5 * asked:
            break
        seconds *= min(1.15 * asked / max(ok, 1), 6)
    return level


def _played(d: Draft, plan: Plan, users: int, seconds: float, random: Random) -> Level:
    alone = d.alone_s * (1 + users / 16)
    warmup_s = 0.0 if d.requests < 1 else min(max(2.0, 2 * alone), seconds)
    stop_s = warmup_s + seconds
    plan = _throttled(d, plan, users, warmup_s, seconds)
    reader = _reader(d, users, stop_s, random)
    machine = Met(plan, Random(random.getrandbits(64)), reader, d.client.path_pool)
    samples: list[Sample] = []
    offer = Offer(
        users=min(users, d.client.own_pool or users),
        ramp_s=min(alone, warmup_s) if warmup_s else 0.0,
        warmup_s=warmup_s,
        stop_s=stop_s,
        drain_s=60.0,
        timeout_s=d.client_timeout_s,
    )
    played = simulate(
        offer,
        asks(d, random),
        machine,
        sample_s=max(SAMPLE_S, stop_s / MOST_PAGES),
        sample=lambda at_s, m: samples.append((at_s, shown(m))),
    )
    records = [_named(d, record) for record in read_by(played.records, reader, random, kernel=d.client.kernel)]
    records.sort(key=lambda one: one.end_ns or 0)
    spec = _spec(d, users, warmup_s, seconds)
    health = health_of(
        played.phases.end_ns,
        reader,
        random,
        asked=users,
        in_flight=offer.users or users,
        own_work=d.client.own_work,
        each_s=0.02 + users / d.tpot * 25e-6,
    )
    summary = summarise(records, spec, played.phases, health)
    window = summary.window
    start_ns, end_ns = (
        played.phases.measured_ns + round(border * NS_PER_S) for border in (window.start_s, window.end_s or seconds)
    )
    seen = _pages(plan, machine, samples, start_ns, end_ns)
    by_answers, watched = summary.server, watch(seen, start_ns, end_ns)
    if watched is not None:
        summary = msgspec.structs.replace(summary, server={**summary.server, **told(watched)})
    verdict, findings = judge(summary, spec, played.phases, health)
    run = Run(
        id=f"level{users}",
        spec=spec,
        environment=_environment(d, plan),
        phases=played.phases,
        health=health,
        summary=summary,
        findings=findings,
        verdict=verdict,
        group="case",
        level=str(users),
    )
    truth = _truth(plan, users, samples, warmup_s, stop_s)
    truth.throttled = plan.faults.throttle_after_s < stop_s
    truth.off_share = _off_share(records, machine) if reader is not None else 0.0
    return Level(run, records, truth, by_answers)


def _reader(d: Draft, users: int, until_s: float, random: Random) -> Reader | None:
    """More streams, more work of its own; a processor that others take is taken at every level."""
    if not d.client.away_share:
        return None
    share = d.client.away_share * ((users / d.top) ** 0.7 if d.client.own_work else 1.0)
    return Reader(random, until_s + 60.0, min(share, 0.9), d.client.away_s)


def _spec(d: Draft, users: int, warmup_s: float, seconds: float) -> Spec:
    return Spec(
        target="http://127.0.0.1:8000",
        model="model",
        load=Load(concurrency=users, warmup_s=warmup_s, duration_s=seconds),
        prompts=Prompts(
            input_tokens=f"lognormal:{round(d.prompt * 0.85)},{round(d.prompt * 2)}",
            output_tokens=f"lognormal:{round(d.output * 0.85)},{round(d.output * 2)}",
            ignore_eos=d.asked_over == 1 and not d.faults.early_eos_share,
        ),
    )


def _environment(d: Draft, plan: Plan) -> Environment:
    engine = EngineFacts(
        name="vllm",
        version="0.11",
        slots=plan.setting.slots if d.tells_slots else None,
        context_tokens=plan.setting.context_tokens,
    )
    return msgspec.structs.replace(d.environment, engine=engine)


def _named(d: Draft, record: Record) -> Record:
    """What a client can tell of where its request went."""
    changes: dict[str, object] = {}
    if d.replicas > 1:
        at = (record.server or {}).get("replica")
        changes = {"server": None}
        if d.targets and isinstance(at, int):
            changes["target"] = at
    if not d.tells_cached:
        changes["cached_tokens"] = None
    return msgspec.structs.replace(record, **changes) if changes else record


def _pages(plan: Plan, machine: Met, samples: list[Sample], start_ns: int, end_ns: int) -> list[Seen]:
    """The pages of the window, each as an engine would have written it by then.

    Of those between the first and the last only gauges and counters: nobody looks at their histograms.
    """
    ledger = Ledger(plan)
    for key, at_s in machine.arrived_s.items():
        ledger.arrived(key, at_s)
    counted: list[tuple[float, int, Callable[[int, Answer], None], int, Answer]] = []
    for key, answer in machine.answers:
        stamps = answer.engine_stamps
        counted.append((stamps[0], len(counted), ledger.begins, key, answer))
        counted.append((stamps[-1], len(counted), ledger.ends, key, answer))
    counted.sort()
    moments = [(ORIGIN_NS + round(at_s * NS_PER_S), at_s, now) for at_s, now in samples]
    inside = [one for one in moments if start_ns <= one[0] and one[0] + _ANSWER_NS < end_ns]
    pages, at = [], 0
    for moment, at_s, now in inside:
        while at < len(counted) and counted[at][0] <= at_s:
            _, _, count, key, answer = counted[at]
            count(key, answer)
            at += 1
        whole = moment in (inside[0][0], inside[-1][0])
        pages.append(Seen(moment, moment + _ANSWER_NS, page_of(ledger, now, whole=whole)))
    return pages


def page_of(ledger: Ledger, now: list[Shown], *, whole: bool = True) -> Page:
    """What reading `ledger.text` gives, without writing and parsing it; not `whole`: without histograms."""
    series: dict[str, list[Series]] = {}
    names: dict[str, None] = {}
    for row in ledger.rows(now, histograms=whole):
        names[row.name] = None
        if row.name in FAMILIES:
            series.setdefault(row.name + row.part, []).append(Series(row.labels, float(row.value)))
    return Page(series=series, names=list(names))


def _truth(plan: Plan, users: int, samples: list[Sample], warmup_s: float, stop_s: float) -> Truth:
    inside = [now for at_s, now in samples if warmup_s <= at_s < stop_s]
    truth = Truth(users=users, seconds=stop_s - warmup_s)
    if not inside:
        return truth
    n, setting = len(inside), plan.setting
    pool = (setting.kv_blocks or 1) * setting.block_tokens

    def mean(of: Callable[[Gauges], float]) -> float:
        return sum(of(one.gauges) for now in inside for one in now) / n

    def share(of: Callable[[Gauges], bool]) -> float:
        return sum(any(of(one.gauges) for one in now) for now in inside) / n

    truth.running, truth.waiting = mean(lambda g: g.running), mean(lambda g: g.waiting)
    truth.waiting_share = share(lambda g: g.waiting > 0)
    truth.full_share = share(lambda g: g.waiting > 0 and g.running >= setting.slots)
    truth.blocked_share = share(lambda g: g.waiting > 0 and g.running < setting.slots)
    truth.adapters_share = sum(any(_wants_adapter(one, setting.adapter_slots) for one in now) for now in inside) / n
    truth.held_share = mean(lambda g: g.tokens_held) / pool / plan.replicas
    truth.preemptions = sum(
        last.gauges.preemptions - first.gauges.preemptions for first, last in zip(inside[0], inside[-1], strict=True)
    )
    return truth


def _off_share(records: Records, machine: Met) -> float:
    came = dict(machine.answers)
    off, n = 0, 0
    for record in records:
        if record.outcome == "ok":
            stamps = np.frombuffer(record.frames.kernel or record.frames.user, np.int64)
            true = np.frombuffer(came[record.seq].stamps, np.float64)
            off += int((np.abs((stamps - ORIGIN_NS) / NS_PER_S - true) > OFF_S).sum())
            n += len(stamps)
    return off / max(n, 1)


def _wants_adapter(one: Shown, slots: int) -> bool:
    return len(one.running_adapters) >= slots and not set(one.waiting_adapters) <= set(one.running_adapters)
