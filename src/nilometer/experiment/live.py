"""How a run stands while it goes on: what the journals hold so far and what the workers count."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.record import Phase, Record
from nilometer.load.journal import Tail
from nilometer.metrics import trend
from nilometer.metrics.quantiles import percentile
from nilometer.metrics.request import tpot_ns, ttft_ns
from nilometer.metrics.window import LEAST_REQUESTS

_RECENT = 2000
"""Latencies are of the latest requests of the phase, at most so many."""
_RATE_WINDOW_S = 10.0
_JUDGE_EVERY_NS = 3 * NS_PER_S


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands. `elapsed_s` and `total_s` are of the phase; `total_s` is None where a count ends it."""

    phase: Phase
    elapsed_s: float
    total_s: float | None = None
    ttft_ms_p50: float | None = None
    ttft_ms_p95: float | None = None
    tpot_ms_p50: float | None = None
    frames_per_s: float | None = None
    tokens_per_s: float | None = None
    in_flight: int = 0
    n: int = 0
    """Requests of the phase that ended well."""
    errors: int = 0
    steady_since_s: float | None = None


class Observer:
    """Follows the journals of a run."""

    def __init__(self, journals: list[Path]) -> None:
        self._tails = [Tail(path) for path in journals]
        self._phase: Phase = "warmup"
        self._ttft: deque[float] = deque(maxlen=_RECENT)
        self._tpot: deque[float] = deque(maxlen=_RECENT)
        self._ok = 0
        self._errors = 0
        self._frames: deque[tuple[int, int]] = deque()
        self._series: list[tuple[int, float]] = []
        self._judged_ns = 0
        self._steady_ns: int | None = None
        self._sent = self._spent = self._in_flight = 0

    @property
    def tokens(self) -> int:
        """What the requests sent so far use, for a budget: prompts and answers.

        A prompt that the server did not count is taken at the length asked for; one in flight, with its answer, at the
        mean of those that have ended.
        """
        return self._spent + round(self._in_flight * self._spent / max(self._sent, 1))

    def close(self) -> None:
        for tail in self._tails:
            tail.close()

    def look(self, phase: Phase, elapsed_s: float, now_ns: int, frames: int, in_flight: int) -> Live:
        """Take in what is new and say how it stands, so many seconds into the phase."""
        if phase != self._phase:
            self._begin(phase)
        for tail in self._tails:
            for entry in tail.new():
                if isinstance(entry, Record):
                    self._add(entry)
        self._in_flight = in_flight
        self._frames.append((now_ns, frames))
        while self._frames[0][0] < now_ns - _RATE_WINDOW_S * NS_PER_S and len(self._frames) > 2:
            self._frames.popleft()
        ttft = np.sort(np.asarray(self._ttft, dtype=np.float64))
        return Live(
            phase=phase,
            elapsed_s=elapsed_s,
            ttft_ms_p50=percentile(ttft, 50),
            ttft_ms_p95=percentile(ttft, 95),
            tpot_ms_p50=median(self._tpot) if self._tpot else None,
            frames_per_s=self._frame_rate(),
            in_flight=in_flight,
            n=self._ok,
            errors=self._errors,
            steady_since_s=self._steady_since_s(now_ns, elapsed_s),
        )

    def _begin(self, phase: Phase) -> None:
        """A new phase: its figures are its own; in the drain those of the measured stretch stay."""
        self._phase = phase
        if phase == "measured":
            self._ttft.clear()
            self._tpot.clear()
            self._series.clear()
            self._ok = self._errors = 0

    def _add(self, record: Record) -> None:
        if record.sent_ns is not None:
            prompt = record.asked_input if record.prompt_tokens is None else record.prompt_tokens
            self._sent += 1
            self._spent += (prompt or 0) + (record.output_tokens or 0)
        if record.outcome in ("error", "incomplete"):
            self._errors += 1
        if record.outcome != "ok":
            return
        self._ok += 1
        ttft, tpot = ttft_ns(record), tpot_ns(record)
        if ttft is not None and record.start_ns is not None:
            self._ttft.append(ttft / NS_PER_MS)
            self._series.append((record.start_ns, ttft / NS_PER_MS))
        if tpot is not None:
            self._tpot.append(tpot / NS_PER_MS)

    def _steady_since_s(self, now_ns: int, elapsed_s: float) -> float | None:
        """Since when in the measured phase TTFT shows neither a warm-up nor a drift; asked anew every few seconds."""
        if self._phase != "measured":
            return None
        if now_ns - self._judged_ns > _JUDGE_EVERY_NS:
            self._judged_ns = now_ns
            self._steady_ns = steady_since_ns(self._series)
        if self._steady_ns is None:
            return None
        return max(elapsed_s - (now_ns - self._steady_ns) / NS_PER_S, 0.0)

    def _frame_rate(self) -> float | None:
        (t0, f0), (t1, f1) = self._frames[0], self._frames[-1]
        return (f1 - f0) * NS_PER_S / (t1 - t0) if t1 > t0 else None


def steady_since_ns(series: list[tuple[int, float]]) -> int | None:
    """The start of the first request from which on these (start ns, latency) show no drift; None while too few do."""
    ordered = sorted(series)
    values = np.array([value for _, value in ordered], dtype=np.float64)
    cut = trend.warmup(values)
    if len(values) - cut < LEAST_REQUESTS or trend.drift(values[cut:]).is_real():
        return None
    return ordered[cut][0]
