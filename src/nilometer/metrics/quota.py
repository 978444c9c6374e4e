"""What a server refused for its quota, how long it asked to wait, and what it served meanwhile."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.summary import Quota, Throughput

from .quantiles import percentile
from .table import ERRORS, NONE, Table

_QUOTA = ERRORS.index("http_429")
_MINUTE_S = 60.0


def quota(table: Table, made: Throughput) -> Quota:
    """Over all requests of the run; the tokens a minute are those of the window."""
    refused = table.error == _QUOTA
    if not refused.any():
        return Quota()
    waits = table.retry_after_ns[refused]
    asked_s = np.sort(waits[waits != NONE]) / NS_PER_S
    into, out = made.input_tokens_per_s, made.output_tokens_per_s
    return Quota(
        refused=int(refused.sum()),
        retry_after_s_p50=percentile(asked_s, 50),
        retry_after_s_max=float(asked_s[-1]) if len(asked_s) else None,
        tokens_per_min=None if into is None or out is None else (into + out) * _MINUTE_S,
    )
