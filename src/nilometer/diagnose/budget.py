"""Where the time of a request goes: TTFT p95 and E2E p50 in parts that add up, the unexplained rest among them.

Each budget is made of the requests around its percentile: their mean parts, scaled by percentile over their mean. A
part that nobody measured is None and stays in the rest; it is never 0 for want of knowledge.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.metrics.quantiles import Floats, Ints, percentile
from nilometer.metrics.table import NONE, STAMPS

from .base import Base
from .features import both_sides
from .streams import Streams

TTFT_PERCENT = 95
E2E_PERCENT = 50
BAND_PERCENT = 2.5
"""The requests within so many percent of the percentile, by rank, stand for it."""
STALL_RATIO = 2.0
"""A gap of more than twice the usual one is a stall, and what is beyond the usual one counts; below that it is jitter,
which stays in the rest with its sign."""
UNEXPLAINED = "unexplained"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a latency; None = not measured. The unexplained part may be negative, no other."""

    name: str
    ms: float | None
    share: float | None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile of a latency, and the parts that add up to it; the last one is `unexplained`."""

    metric: Literal["ttft", "e2e"]
    stat: str
    total_ms: float
    n: int
    """The requests around the percentile that the parts are of."""
    parts: tuple[Part, ...]

    def part(self, name: str) -> Part:
        """The part of this name; KeyError where there is none."""
        found = next((part for part in self.parts if part.name == name), None)
        if found is None:
            raise KeyError(name)
        return found


def ttft_budget(streams: Streams, base: Base | None) -> Budget | None:
    """TTFT p95 = client + connect + front end + queue (or waiting) + prefill + unexplained; None without any TTFT.

    client: `sent` after `due`, connecting left out. prefill: W0(P) of the lowest level, at most what TTFT there was.
    queue, front end: the server's word on their means (see `both_sides`), as a share of what the client saw beyond
    prefill, and that share is taken at the percentile too. Without the server's word nobody can part them: then
    `waiting` is all that there was beyond prefill.
    """
    table = streams.table
    total, own = table.latency("ttft"), table.latency("ttft_from_sent") / NS_PER_MS
    rows = np.flatnonzero(streams.measured & ~np.isnan(total) & ~np.isnan(own))
    if not len(rows):
        return None
    line = base.line if base else None
    prefill = None if line is None else np.minimum(line.at_ms(_prompts(streams)), np.maximum(own, 0.0))
    rest = own if prefill is None else own - prefill
    band = _band(total, rows, TTFT_PERCENT)
    queue, front_end = (_told(share, rest[rows], rest[band]) for share in (_queue(streams), _front_end(streams)))
    told = queue is not None or front_end is not None
    connect, client = _before_sent(streams, band)
    parts = {
        "client": client,
        "connect": connect,
        "front_end": front_end,
        "queue": queue,
        **({} if told or prefill is None else {"waiting": max(float(rest[band].mean()), 0.0)}),
        "prefill": _prefill(streams, prefill, own[rows], band),
    }
    return _budget("ttft", TTFT_PERCENT, total[rows] / NS_PER_MS, total[band] / NS_PER_MS, parts)


def e2e_budget(streams: Streams, base: Base | None) -> Budget | None:
    """E2E p50 = TTFT + (n - 1) x base gap + slower gaps + stalls + tail + unexplained; None where nothing streamed.

    base gap: the lowest level's median gap per token. slower gaps: (n - 1) x what this level's median gap is beyond
    that. stalls: what gaps longer than STALL_RATIO of the usual one are beyond it. tail: last token to last byte.
    unexplained: gaps around the usual one, and requests whose tokens are not counted or came in one frame.
    """
    table = streams.table
    total, ttft = table.latency("e2e"), table.latency("ttft")
    rows = np.flatnonzero(streams.measured & ~np.isnan(total) & ~np.isnan(ttft) & (streams.last_token_ns != NONE))
    if not len(rows):
        return None
    band = _band(total, rows, E2E_PERCENT)
    tail = (table.end_ns - streams.last_token_ns)[band] / NS_PER_MS
    parts = {"ttft": float(ttft[band].mean()) / NS_PER_MS, **_decode(streams, base, band), "tail": float(tail.mean())}
    return _budget("e2e", E2E_PERCENT, total[rows] / NS_PER_MS, total[band] / NS_PER_MS, parts)


def _budget(
    metric: Literal["ttft", "e2e"], percent: int, all_ms: Floats, band_ms: Floats, parts: dict[str, float | None]
) -> Budget:
    """The parts, scaled to the percentile, and what they leave of it."""
    total = percentile(np.sort(all_ms), percent) or 0.0
    middle = float(band_ms.mean())
    scale = total / middle if middle > 0 else 1.0
    scaled = {name: None if value is None else value * scale for name, value in parts.items()}
    scaled[UNEXPLAINED] = total - math.fsum(value for value in scaled.values() if value is not None)
    return Budget(
        metric=metric,
        stat=f"p{percent}",
        total_ms=total,
        n=len(band_ms),
        parts=tuple(
            Part(name=name, ms=ms, share=None if ms is None or total <= 0 else ms / total)
            for name, ms in scaled.items()
        ),
    )


def _band(total: Floats, rows: Ints, percent: float) -> Ints:
    """The rows around a percentile of their total: those within BAND_PERCENT of its rank, and always its neighbours."""
    ordered = rows[np.argsort(total[rows], kind="stable")]
    last = len(rows) - 1
    low = math.floor(last * max(percent - BAND_PERCENT, 0) / 100)
    high = math.ceil(last * min(percent + BAND_PERCENT, 100) / 100)
    return ordered[low : high + 1]


def _prompts(streams: Streams) -> Floats:
    """Prompt tokens of each request; where they are not counted, the median of those that are."""
    tokens = streams.table.prompt_tokens
    counted = tokens[streams.measured & (tokens != NONE)]
    prompts: Floats = np.where(tokens == NONE, np.median(counted) if len(counted) else 0.0, tokens)
    return prompts


def _before_sent(streams: Streams, band: Ints) -> tuple[float | None, float | None]:
    """Connecting, and the rest of the time from `due` to `sent`, in ms: the client's own.

    Where nothing is due a latency starts with `sent`: nothing is before it. Then the client's part is what it read the
    first token late by: 0 with the kernel's stamps, not known with its own.
    """
    table = streams.table
    due = table.due_ns[band] != NONE
    connecting = due & (table.connect_ns[band] != NONE) & (table.new_connection[band] == 1)
    connect = np.where(connecting, table.connect_ns[band], 0) / NS_PER_MS
    lag = np.where(due, np.nan_to_num(table.latency("start_lag")[band]), 0.0) / NS_PER_MS
    exact = np.isin(table.stamp_source[band], [STAMPS.index("kernel"), STAMPS.index("simulated")]).all()
    client = float(np.maximum(lag - connect, 0.0).mean()) if due.any() or exact else None
    return float(np.minimum(connect, lag).mean()), client


def _queue(streams: Streams) -> float | None:
    told = both_sides.told_ms(streams, both_sides.SERVER_QUEUE_S)
    return None if told is None else told.value


def _front_end(streams: Streams) -> float | None:
    """What the client saw of the mean TTFT before and after the server's own: it is not below 0."""
    beyond = both_sides.beyond_server_ms(streams, "ttft_from_sent", both_sides.SERVER_TTFT_S)
    return None if beyond is None else max(beyond.value, 0.0)


def _told(told_ms: float | None, of: Floats, band: Floats) -> float | None:
    """The server's mean as a share of the client's, at the band; at most all of it."""
    if told_ms is None:
        return None
    mean = float(of.mean())
    return min(told_ms / mean, 1.0) * float(band.mean()) if mean > 0 else 0.0


def _prefill(streams: Streams, prefill: Floats | None, own: Floats, band: Ints) -> float | None:
    """By the base line; without one by the server's word on its mean."""
    if prefill is not None:
        return float(prefill[band].mean())
    told = both_sides.told_ms(streams, both_sides.SERVER_PREFILL_S)
    at_band = streams.table.latency("ttft_from_sent")[band] / NS_PER_MS
    return _told(None if told is None else told.value, own, at_band)


def _decode(streams: Streams, base: Base | None, band: Ints) -> dict[str, float | None]:
    """The mean parts of first to last token over the band, ms; None where no request of it has counted tokens."""
    table = streams.table
    rows = band[(table.frames[band] >= 2) & ~np.isnan(table.latency("tpot")[band])]
    usual_ns = streams.token_gap_ns
    if not len(rows) or usual_ns is None:
        return {"base_gaps": None, "slower_gaps": None, "stalls": None}
    usual, fastest = usual_ns / NS_PER_MS, base.gap_ms if base else None
    if fastest is not None:
        usual = max(usual, fastest)
    steps = float((table.output_tokens[rows] - 1).sum()) / len(band)
    return {
        "base_gaps": None if fastest is None else steps * fastest,
        "slower_gaps": None if fastest is None else steps * (usual - fastest),
        "stalls": _stalled_ms(streams, rows, usual) / len(band),
    }


def _stalled_ms(streams: Streams, rows: Ints, usual_ms: float) -> float:
    """Of the gaps longer than STALL_RATIO of the usual one, what they are beyond it, summed."""
    counts = streams.table.frames[rows] - 1
    ends = counts.cumsum()
    place = np.arange(int(counts.sum())) + np.repeat(streams.first_frame[rows] - (ends - counts), counts)
    length = (streams.at_ns[place + 1] - streams.at_ns[place]) / NS_PER_MS
    usual = np.repeat(streams.tokens_a_gap[rows], counts) * usual_ms
    return float((length - usual)[length > STALL_RATIO * usual].sum())
