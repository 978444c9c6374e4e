"""From a resolved Spec to what each worker is told. Pure: the limits of this machine are asked elsewhere."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import Call
from nilometer.core.spec import Limit, Load, Spec, Timeouts
from nilometer.load.order import Limits, Order
from nilometer.metrics.cost import spent
from nilometer.workload import arrivals


class Way(Protocol):
    """What the probe found out that the workers must know."""

    @property
    def address(self) -> str: ...

    @property
    def proxy(self) -> str | None: ...

    @property
    def api(self) -> str: ...

    @property
    def mean_e2e_s(self) -> float | None: ...

    @property
    def secrets(self) -> tuple[str, ...]: ...

    @property
    def keeps_connections(self) -> bool | None: ...


class Share(NamedTuple):
    """One worker's files."""

    journal: Path
    counters: Path


def orders(spec: Spec, way: Way, shares: list[Share], *, keep_text: bool) -> list[Order]:
    """One Order a worker; a closed loop's concurrency is split as evenly as it goes, a count of requests like it.

    The count of an open loop is in its calls: see `counted`.
    """
    load, n = spec.load, len(shares)
    lanes = None if load.concurrency is None else [part(load.concurrency, n, i) for i in range(n)]
    requests = None if load.requests is None or lanes is None else alike(load.requests, lanes)
    return [
        Order(
            target=way.address,
            dialect=way.api,
            protocol=spec.protocol,
            journal=str(share.journal),
            counters=str(share.counters),
            worker=i,
            lanes=None if lanes is None else lanes[i],
            ramp_ns=_ns(ramp_s(spec, way.mean_e2e_s)),
            warmup_ns=_ns(load.warmup_s),
            duration_ns=None if load.requests is not None else _ns(load.duration_s),
            requests=None if requests is None else requests[i],
            drain_ns=_ns(load.drain_s),
            limits=limits(spec.timeouts),
            insecure=spec.http.insecure,
            proxy=way.proxy,
            keep_alive=way.keeps_connections is not False,
            keep_text=keep_text,
            secrets=way.secrets,
        )
        for i, share in enumerate(shares)
    ]


def counted(load: Load, calls: Iterator[Call]) -> Iterator[Call]:
    """The calls of a load; those of an open loop by count end with it, however many workers send them.

    What is due after the warm-up counts, all turns of a conversation; the last one is cut where the count is full.
    """
    if load.requests is None or not load.is_open:
        return calls
    return _up_to(load.requests, _ns(load.warmup_s), calls)


def _up_to(requests: int, warmup_ns: int, calls: Iterator[Call]) -> Iterator[Call]:
    left = requests
    for call in calls:
        if (call.due_ns or 0) < warmup_ns:
            yield call
            continue
        yield msgspec.structs.replace(call, later=call.later[: left - 1])
        left -= 1 + len(call.later)
        if left <= 0:
            return


def part(whole: int, n: int, i: int) -> int:
    """The i-th of n parts of a whole; parts differ by at most one and add up to it."""
    return whole // n + (1 if i < whole % n else 0)


def alike(requests: int, lanes: Sequence[int]) -> list[int]:
    """Requests for each worker: one, and of the rest so many to a lane, so that none is idle long before the others."""
    rest, whole = requests - len(lanes), sum(lanes)
    upto = [rest * so_far // whole for so_far in accumulate(lanes, initial=0)]
    return [1 + after - before for before, after in pairwise(upto)]


def limits(timeouts: Timeouts) -> Limits:
    return Limits(
        connect_ns=_limit_ns(timeouts.connect_s),
        first_ns=_limit_ns(timeouts.first_s),
        idle_ns=_limit_ns(timeouts.idle_s),
        total_ns=_limit_ns(timeouts.total_s),
    )


def ramp_s(spec: Spec, mean_e2e_s: float | None) -> float:
    """How long the opening wave is spread: as asked, else one mean E2E; never beyond the warm-up."""
    asked = spec.load.ramp_s
    wanted = asked if asked is not None else (mean_e2e_s or 0.0)
    return min(wanted, spec.load.warmup_s) if asked is None else wanted


class Foretold(NamedTuple):
    """What a test, or several, will use; `cost` in the currency of its price, None without one."""

    tokens: int
    cost: float | None = None


def foretold(
    tests: Sequence[Spec],
    mean_e2e_s: float | None,
    input_tokens: float,
    output_tokens: float,
    recorded_s: Sequence[float] | None = None,
    *,
    per_arrival: float = 1.0,
) -> Foretold | None:
    """Tokens in and out that these tests will take, from the mean lengths; None while E2E is not known.

    `per_arrival`: requests of what a rate starts. Each conversation of an open loop is foretold whole, also where its
    last turns will be due after the load.
    """
    requests = [_requests(spec, mean_e2e_s, recorded_s, per_arrival) for spec in tests]
    known = [n for n in requests if n is not None]
    if not known or len(known) < len(requests):
        return None
    into, out = sum(known) * input_tokens, sum(known) * output_tokens
    price, by_count = tests[0].price, any(spec.load.requests is not None for spec in tests)
    length_s = None if by_count else sum(spec.load.warmup_s + spec.load.duration_s for spec in tests)
    return Foretold(round(into + out), spent(price, into, out, length_s, price.devices))


def _requests(
    spec: Spec, mean_e2e_s: float | None, recorded_s: Sequence[float] | None, per_arrival: float
) -> float | None:
    load = spec.load
    stretch_s = load.warmup_s + (0.0 if load.requests is not None else load.duration_s)
    if recorded_s is not None:
        requests: float = bisect_left(recorded_s, stretch_s)
    elif load.is_open:
        requests = _arrivals(load, stretch_s) * per_arrival
    elif mean_e2e_s:
        requests = (load.concurrency or 1) * stretch_s / mean_e2e_s
    elif load.warmup_s == 0 and load.requests is not None:
        requests = 0.0
    else:
        return None
    return requests + (load.requests or 0)


def _arrivals(load: Load, stretch_s: float) -> float:
    measured_s = stretch_s - load.warmup_s
    warm, measured = (arrivals.mean_rate_per_s(load.arrivals, load.rate_per_s, s) for s in (0.0, measured_s))
    return warm * load.warmup_s + measured * measured_s


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _limit_ns(limit: Limit) -> int | None:
    return None if limit == "none" else _ns(limit)
