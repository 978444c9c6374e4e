"""How many requests were in flight, waited for their first token and decoded, at each moment of a window.

Exact: from the stamps themselves, without a grid. Means and spreads are over time, not over requests.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nilometer.metrics.quantiles import Floats, Ints
from nilometer.metrics.table import NONE, Mask
from nilometer.metrics.window import Span


class Flow(NamedTuple):
    """Stretches of time in which nothing changed: their length, and the counts in them."""

    length_ns: Ints
    in_flight: Ints
    """Sent, last byte not yet seen: L(t)."""
    waiting: Ints
    """Sent, no token yet."""
    decoding: Ints
    """Between first and last token: D(t)."""


class Spread(NamedTuple):
    """Of a count over time."""

    mean: float
    sd: float
    most: float

    @property
    def cv(self) -> float | None:
        """Spread over mean; None where the mean is 0."""
        return self.sd / self.mean if self.mean > 0 else None


def flow_of(sent_ns: Ints, first_ns: Ints, last_ns: Ints, end_ns: Ints, span: Span) -> Flow:
    """The counts within the span. One row a request that was sent; first and last token NONE where there was none.

    A stream whose last token was not seen decodes until its end. Stamps out of order (two clocks) count as at once.
    """
    spoke = first_ns != NONE
    end = np.maximum(end_ns, sent_ns)
    first = np.where(spoke, np.clip(first_ns, sent_ns, end), end)
    last = np.where(spoke, np.clip(np.where(last_ns == NONE, end, last_ns), first, end), end)
    n = len(sent_ns)
    at = np.concatenate([sent_ns, first, last, end])
    order = np.argsort(at, kind="stable")
    one, none = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    speaks = spoke.astype(np.int64)
    changes = (
        np.concatenate([one, none, none, -one]),
        np.concatenate([one, -one, none, none]),
        np.concatenate([none, speaks, -speaks, none]),
    )
    borders = np.clip(np.concatenate([[span.start_ns], at[order], [span.end_ns]]), span.start_ns, span.end_ns)
    length = np.diff(borders) if span.end_ns > span.start_ns else np.zeros(len(at) + 1, dtype=np.int64)
    real = length > 0
    counts = [np.concatenate([[0], change[order].cumsum()])[real] for change in changes]
    return Flow(length[real], *counts)


def spread(values: Ints | Floats, weights: Ints | None = None, keep: Mask | None = None) -> Spread | None:
    """Mean, standard deviation and greatest value, by weight; None where the weights come to nothing."""
    values = values.astype(np.float64)
    weighed = np.ones(len(values)) if weights is None else weights.astype(np.float64)
    if keep is not None:
        values, weighed = values[keep], weighed[keep]
    total = float(weighed.sum())
    if total <= 0:
        return None
    mean = float(values @ weighed) / total
    variance = float((values - mean) ** 2 @ weighed) / total
    return Spread(mean, math.sqrt(variance), float(values[weighed > 0].max()))
