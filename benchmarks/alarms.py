"""How often a verify cries wolf, and how often it sees one: simulated servers, the real judge.

A closed loop of 16 users on 8 slots with log-normal lengths, first come first served, 180 s after 60 s of warm-up:
about 950 requests a run, which wait as long as they are served. A run has a speed of its own (sd 3 %), and within it
the machine's speed wanders (AR(1), 8 s). Every simulated run is used once. A verify is pairs in the order AB BA AB ...,
judged after each pair from the third on until there is a verdict or ten pairs are spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nilometer.compare.family import TABLE
from nilometer.compare.looks import Looks
from nilometer.compare.statistics import Estimate, paired, welch
from nilometer.compare.verdict import MetricVerdict, Rule, judge_values

from .result import Row, shown

Floats = npt.NDArray[np.float64]

USERS, SLOTS = 16, 8
WARMUP_S, MEASURED_S = 60.0, 180.0
GAP_S, PREFILL_S_PER_TOKEN = 0.010, 0.0002
INPUT, OUTPUT = (400.0, 0.6), (110.0, 0.6)
"""Median tokens and sd of the log."""
GAP_SPREAD = 0.05
"""sd of the log of TPOT between requests of one run."""
RUN_SPREAD = 0.03
WANDER, WANDER_S = 0.02, 8.0
"""sd and time constant of the machine's speed within a run."""
WILD = 0.15
"""The same where a machine is shared with others that show, as in the study that the method was chosen by."""
_REQUESTS = 1_900
_GRID_S = 0.5
_BATCH = 1_000

VERIFIES, FEWER = 2_000, 400
LOOKS = Looks()
FAMILY = TABLE[:3]
NAMES = tuple(row.name for row in FAMILY)
RULE = Rule(family=FAMILY, interleaved=True, looks=LOOKS)
DRIFT = 0.06
FIXED_PAIRS = 5


class Ended(NamedTuple):
    """One verify: its verdict, the figures at that moment, and all its runs (pair, side, figure)."""

    verdict: str
    metrics: list[MetricVerdict]
    pairs: int
    runs: Floats


def alarms() -> list[Row]:
    """False alarms, power and coverage over VERIFIES simulated verifies of each kind (a minute or two)."""
    rng = np.random.default_rng(20_261)
    alike = list(verifies(rng))
    slower = list(verifies(rng, ratio=1.15))
    drifting = list(verifies(rng, drift=DRIFT))
    border = list(verifies(rng, ratio=1.05))
    tenth = list(verifies(rng, ratio=1.10, n=FEWER))
    wild = list(verifies(rng, wander=WILD, n=FEWER))
    return [
        *_spreads(alike, f" where speed wanders by {WANDER:.0%}"),
        *_rates(alike, slower, drifting, border),
        _share(tenth, {"REGRESSED"}, "10 % slower: REGRESSED within ten pairs"),
        *_coverage(alike, slower),
        _naive(alike),
        *_spreads(wild, f" where speed wanders by {WILD:.0%}"),
        _share(wild, {"SAME"}, f"SAME within ten pairs where speed wanders by {WILD:.0%}"),
        _share(wild, {"REGRESSED", "IMPROVED"}, f"false alarms where speed wanders by {WILD:.0%}", most=0.05),
    ]


def verifies(
    rng: np.random.Generator, ratio: float = 1.0, drift: float = 0.0, wander: float = WANDER, n: int = VERIFIES
) -> Iterator[Ended]:
    """`n` verifies of a B that is slower by `ratio`, on a machine that slows down by `drift` from the first run on."""
    pairs = LOOKS.most
    place = np.arange(2 * pairs).reshape(pairs, 2)
    place[1::2] = place[1::2, ::-1]  # of every second pair B comes first
    slowness = (1 + drift * place / (2 * pairs - 1)) * np.array([1.0, ratio])
    speeds = np.broadcast_to(slowness, (n, pairs, 2)).reshape(-1)
    figures = np.concatenate([_runs(rng, part, wander) for part in np.array_split(speeds, -(-len(speeds) // _BATCH))])
    return (_ended(runs) for runs in figures.reshape(n, pairs, 2, len(NAMES)))


def _ended(runs: Floats) -> Ended:
    for pairs in range(LOOKS.least, LOOKS.most + 1):
        a, b = ({name: runs[:pairs, side, at].tolist() for at, name in enumerate(NAMES)} for side in (0, 1))
        verdict, metrics, _ = judge_values(a, b, RULE)
        if verdict != "UNDECIDED":
            break
    return Ended(verdict, metrics, pairs, runs)


def _runs(rng: np.random.Generator, slowness: Floats, wander: float) -> Floats:
    """The three figures of one run for each slowness.

    First in units of work, in which all machines are alike: the k-th request to end frees its slot for request k + 8,
    the longest waiting, and its user asks request k + 16. Then each moment of work is put where the machine's speed
    puts it in time.
    """
    n = len(slowness)
    slowness = slowness * np.exp(rng.normal(0.0, RUN_SPREAD, n))
    prefill = PREFILL_S_PER_TOKEN * rng.lognormal(math.log(INPUT[0]), INPUT[1], (_REQUESTS, n))
    tokens = np.maximum(2.0, np.rint(rng.lognormal(math.log(OUTPUT[0]), OUTPUT[1], (_REQUESTS, n))))
    decode = (tokens - 1) * GAP_S * np.exp(rng.normal(0.0, GAP_SPREAD, (_REQUESTS, n)))
    starts = _started(prefill + decode)
    sent = np.concatenate([np.zeros((SLOTS, n)), starts[:-SLOTS]])
    time_of = _Clock(rng, slowness, wander)
    sent, first, end = (time_of(work) for work in (sent, starts + prefill, starts + prefill + decode))
    if sent[-1].min() < WARMUP_S + MEASURED_S:
        raise ValueError("too few requests are simulated for the window")
    inside = (sent >= WARMUP_S) & (sent < WARMUP_S + MEASURED_S)
    ttft, tpot = (np.where(inside, values, np.inf) for values in (first - sent, (end - first) / (tokens - 1)))
    overlap = np.clip(end, WARMUP_S, WARMUP_S + MEASURED_S) - np.clip(first, WARMUP_S, WARMUP_S + MEASURED_S)
    rate = (tokens * overlap / (end - first)).sum(axis=0) / MEASURED_S
    counts = inside.sum(axis=0)
    return np.stack([_percentile(ttft, counts, 95), _percentile(tpot, counts, 50), rate], axis=1)


def _started(service: Floats) -> Floats:
    """When each request gets a slot, in the order in which they are asked."""
    requests, n = service.shape
    starts = np.zeros((requests, n))
    free, every = service[:SLOTS].copy(), np.arange(n)
    for request in range(SLOTS, requests):
        slot = free.argmin(axis=0)
        starts[request] = free[slot, every]
        free[slot, every] += service[request]
    return starts


class _Clock:
    """From work to time: time passes for a unit of work as slowly as the machine is at that moment."""

    def __init__(self, rng: np.random.Generator, slowness: Floats, wander: float) -> None:
        cells = int(2 * (WARMUP_S + MEASURED_S) / _GRID_S)
        keeps = math.exp(-_GRID_S / WANDER_S)
        away = np.empty((cells, len(slowness)))
        away[0] = rng.normal(0.0, wander, len(slowness))
        for cell in range(1, cells):
            away[cell] = keeps * away[cell - 1] + rng.normal(0.0, wander * math.sqrt(1 - keeps**2), len(slowness))
        done = np.cumsum(_GRID_S / (slowness * np.exp(away)), axis=0)
        self._done = np.concatenate([np.zeros((1, len(slowness))), done])
        self._times = _GRID_S * np.arange(cells + 1)

    def __call__(self, work: Floats) -> Floats:
        columns = (np.interp(of_run, done, self._times) for of_run, done in zip(work.T, self._done.T, strict=True))
        return np.stack(list(columns), axis=1)


def _percentile(values: Floats, counts: npt.NDArray[np.int64], percent: int) -> Floats:
    """Type 7 of the first `counts` of each sorted column; the others are infinite."""
    ordered = np.sort(values, axis=0)
    rank = (counts - 1) * percent / 100
    low = np.floor(rank).astype(np.int64)
    below, above = (np.take_along_axis(ordered, at[None, :], axis=0)[0] for at in (low, low + 1))
    return below + (above - below) * (rank - low)


def _spreads(ended: list[Ended], where: str) -> list[Row]:
    """What a run varies by in all; the goals are of runs that vary by about 3 %."""
    logs = np.log(np.stack([one.runs for one in ended]))
    rows = []
    for at, name in enumerate(NAMES):
        whole = float(logs[..., at].std())
        within = math.sqrt(max(whole**2 - RUN_SPREAD**2, 0.0))
        note = f"{RUN_SPREAD:.0%} of it between runs, {within:.1%} within them"
        rows.append(shown(f"sd of {name}{where}", 100 * whole, unit="%", note=note))
    return rows


def _rates(alike: list[Ended], slower: list[Ended], drifting: list[Ended], border: list[Ended]) -> list[Row]:
    pairs = {kind: float(np.mean([one.pairs for one in of])) for kind, of in (("alike", alike), ("slower", slower))}
    return [
        _share(alike, {"REGRESSED", "IMPROVED"}, "two alike: REGRESSED or IMPROVED", most=0.05),
        _share(alike, {"SAME"}, "two alike: SAME within ten pairs", least=0.70),
        _share(alike, {"UNDECIDED"}, "two alike: UNDECIDED after ten pairs"),
        shown("two alike: pairs until the end, mean", pairs["alike"], unit="pairs"),
        _share(slower, {"REGRESSED"}, "15 % slower: REGRESSED within ten pairs", least=0.80),
        shown("15 % slower: pairs until the end, mean", pairs["slower"], unit="pairs"),
        _share(drifting, {"REGRESSED", "IMPROVED"}, f"two alike, {DRIFT:.0%} of drift: false alarms", most=0.06),
        _share(drifting, {"SAME"}, f"two alike, {DRIFT:.0%} of drift: SAME"),
        _share(border, {"REGRESSED"}, "slower by just the margin of two figures: REGRESSED", most=0.05),
        _share(border, {"SAME"}, "slower by just the margin of two figures: SAME", most=0.05),
    ]


def _coverage(alike: list[Ended], slower: list[Ended]) -> list[Row]:
    """How often the 95 % interval of a ratio holds the true one."""
    rows = []
    for at, name in enumerate(NAMES):
        logs = np.log(np.stack([one.runs[:FIXED_PAIRS, :, at] for one in alike]))
        estimates = [paired((one[:, 1] - one[:, 0]).tolist()) for one in logs]
        rows.append(_held(f"interval of {name}, {FIXED_PAIRS} pairs", [_holds(one, 0.0) for one in estimates]))
        estimates = [welch(one[:, 0].tolist(), one[:, 1].tolist()) for one in logs]
        rows.append(
            _held(
                f"interval of {name}, {FIXED_PAIRS} against {FIXED_PAIRS} runs", [_holds(one, 0.0) for one in estimates]
            )
        )
    for what, ended, ratio in (("two alike", alike, 1.0), ("15 % slower", slower, 1.15)):
        for at, row in enumerate(FAMILY):
            truth = ratio if row.better == "lower" else 1 / ratio
            held = [ci is not None and ci[0] <= truth <= ci[1] for ci in (one.metrics[at].ci for one in ended)]
            rows.append(_held(f"{what}: interval of {row.name} as shown at the end", held))
    return rows


def _holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval(0.95) or (math.inf, -math.inf)
    return low <= truth <= high


def _held(what: str, held: list[bool]) -> Row:
    share = sum(held) / len(held)
    return Row(what, "93-97 %", 100 * share, None, "%", 0.93 <= share <= 0.97, _interval(sum(held), len(held)))


def _naive(alike: list[Ended]) -> Row:
    """What a threshold on one run a side would have said of the same servers."""
    logs = np.log(np.concatenate([one.runs for one in alike]))
    apart = np.abs(logs[:, 1] - logs[:, 0]) > [row.log_margin for row in FAMILY]
    share = float(apart.any(axis=1).mean())
    return shown("two alike, one run each and the margin as a threshold", 100 * share, unit="%", note="for comparison")


def _share(
    ended: list[Ended], verdicts: set[str], what: str, most: float | None = None, least: float | None = None
) -> Row:
    hits, n = sum(one.verdict in verdicts for one in ended), len(ended)
    share, goal, met = hits / n, "-", None
    if most is not None:
        goal, met = f"<= {most:.0%}", share <= most
    if least is not None:
        goal, met = f">= {least:.0%}", share >= least
    return Row(what, goal, 100 * share, None, "%", met, _interval(hits, n))


def _interval(hits: int, n: int) -> str:
    """The 95 % interval of a share (Wilson 1927)."""
    z = 1.959964
    middle = (hits + z * z / 2) / (n + z * z)
    reach = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return f"{hits} of {n}: {100 * max(middle - reach, 0):.1f}-{100 * min(middle + reach, 1):.1f} %"
