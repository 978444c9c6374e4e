"""Rates over the window: tokens by their arrival, requests by their end, and what was lost.

The definitions are the contract's words `throughput` and `requests/s`; goodput is in `slo`.
"""

from __future__ import annotations

import numpy as np

from nilometer.core.summary import Throughput

from .collect import Seen
from .quantiles import Ints
from .table import NONE, Mask, Table
from .window import Span, Stretch


def throughput(seen: Seen, stretch: Stretch, good_requests: int | None) -> Throughput:
    """Rates over the window, all None where it is empty; a token rate also where no ok request has a count.

    `good_requests`: how many of those that started in the window met the SLO, None without one.
    """
    table, span = seen.table, stretch.span
    lost = _tokens_lost(table, stretch.started)
    if span.length_s <= 0:
        return Throughput(tokens_lost=lost)
    ok = table.of("ok")
    output = None if _unknown(table.output_tokens, ok) else _output_tokens(seen, span)
    into = None if _unknown(table.prompt_tokens, ok) else _input_tokens(table, ok, span)
    return Throughput(
        output_tokens_per_s=None if output is None else output / span.length_s,
        input_tokens_per_s=None if into is None else into / span.length_s,
        requests_per_s=int((ok & span.holds(table.end_ns)).sum()) / span.length_s,
        goodput_requests_per_s=None if good_requests is None else good_requests / span.length_s,
        tokens_lost=lost,
    )


def _unknown(counts: Ints, ok: Mask) -> bool:
    """Whether there were ok requests, none of which has this count."""
    return bool(ok.any() and (counts[ok] == NONE).all())


def _output_tokens(seen: Seen, span: Span) -> float:
    return float(sum(tokens[span.holds(at_ns)].sum() for at_ns, tokens in seen.arrivals()))


def _input_tokens(table: Table, ok: Mask, span: Span) -> int:
    """Prompt tokens of ok requests, each at its first token (at its last byte where nothing streamed)."""
    at_ns = np.where(table.first_token_ns != NONE, table.first_token_ns, table.end_ns)
    counts = ok & (table.prompt_tokens != NONE) & span.holds(at_ns)
    return int(table.prompt_tokens[counts].sum())


def _tokens_lost(table: Table, started: Mask) -> int | None:
    """Output tokens known of requests that started in the window and were not ok; None where none is known."""
    lost = started & ~table.of("ok") & (table.output_tokens != NONE)
    return int(table.output_tokens[lost].sum()) if lost.any() else None
