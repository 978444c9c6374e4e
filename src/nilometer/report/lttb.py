"""Fewer points that look like all of them: largest triangle three buckets.

Steinarsson, Downsampling Time Series for Visual Representation (University of Iceland, 2013). The points between first
and last are cut into buckets of (nearly) equal number; of each bucket stays the point that spans the largest triangle
with the one kept before it and the mean of the bucket behind it. Extremes survive, which a mean would smooth away.
"""

from __future__ import annotations

import numpy as np

from nilometer.metrics.quantiles import Floats, Ints


def chosen(x: Floats, y: Floats, most: int) -> Ints:
    """The positions of at most `most` points (3 or more) that stay, ascending; all of them where there are no more.

    `x` ascends; neither holds NaN. First and last point always stay.
    """
    n = len(x)
    if n <= most:
        return np.arange(n, dtype=np.int64)
    borders = np.linspace(1, n - 1, most - 1).astype(np.int64)
    kept = np.empty(most, dtype=np.int64)
    kept[0], kept[-1] = 0, n - 1
    mean_x, mean_y = _means(x, borders), _means(y, borders)
    for bucket in range(most - 2):
        begin, end = borders[bucket], borders[bucket + 1]
        before = kept[bucket]
        areas = np.abs(
            (x[before] - mean_x[bucket + 1]) * (y[begin:end] - y[before])
            - (x[before] - x[begin:end]) * (mean_y[bucket + 1] - y[before])
        )
        kept[bucket + 1] = begin + int(np.argmax(areas))
    return kept


def _means(values: Floats, borders: Ints) -> Floats:
    """The mean of each bucket, and as the bucket behind the last one the last point."""
    sums = np.add.reduceat(values, borders)
    counts = np.diff(borders, append=len(values))
    means: Floats = sums / counts
    return means
