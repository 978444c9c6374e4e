"""The means of one load, from its Summary alone, and how a figure grows with the load."""

from __future__ import annotations

import math
from typing import NamedTuple

from nilometer.core.summary import Distribution, Summary


class Level(NamedTuple):
    """One load of a group. Latencies are means in ms (sums and Little's law hold for means, not for percentiles)."""

    concurrency: int
    n: int
    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    tokens_per_s: float
    requests_per_s: float
    decoding: float
    """Mean number of streams between first and last token: those in flight less those that wait for their first."""


def level_of(concurrency: int, summary: Summary) -> Level | None:
    """The figures of one load; None where one is lacking (no streaming, no tokens counted, nothing answered)."""
    ttft, tpot, e2e = (_mean(summary, name) for name in ("ttft", "tpot", "e2e"))
    tokens, requests = summary.throughput.output_tokens_per_s, summary.throughput.requests_per_s
    if ttft is None or tpot is None or e2e is None or not e2e or not tokens or not requests:
        return None
    achieved = summary.generator.achieved_over_asked
    in_flight = requests * e2e / 1000 if achieved is None else achieved * concurrency
    return Level(
        concurrency=concurrency,
        n=summary.requests.ok or 0,
        ttft_ms=ttft,
        tpot_ms=tpot,
        e2e_ms=e2e,
        tokens_per_s=tokens,
        requests_per_s=requests,
        decoding=in_flight * (1 - ttft / e2e),
    )


def exponent(grown: float, load_grown: float) -> float:
    """The e of grown = load_grown ** e, for factors above 0 of which the second is not 1."""
    return math.log(grown) / math.log(load_grown)


def _mean(summary: Summary, name: str) -> float | None:
    return summary.latency_ms.get(name, Distribution()).mean
