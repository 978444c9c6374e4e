"""How many streams decode at a time, how many tokens they hold, and whether Little's law holds on whole and parts."""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.metrics.quantiles import Ints
from nilometer.metrics.table import NONE, Mask

from ..figure import Figure
from ..flow import Spread, spread
from ..streams import Streams


def in_flight(streams: Streams) -> Figure | None:
    """Mean number of requests in flight over the window, L; n requests that began in it."""
    return _figure(streams, streams.spreads.in_flight)


def waiting(streams: Streams) -> Figure | None:
    """Mean number of requests between `sent` and first token."""
    return _figure(streams, streams.spreads.waiting)


def decoding(streams: Streams) -> Figure | None:
    """Mean number of streams between first and last token, D."""
    return _figure(streams, streams.spreads.decoding)


def decoding_most(streams: Streams) -> Figure | None:
    """The most streams that decoded at a time."""
    found = streams.spreads.decoding
    return None if found is None else Figure(found.most, int(streams.stretch.started.sum()))


def decoding_share(streams: Streams) -> Figure | None:
    """D / L: the others have no slot, or their prompt is at work."""
    whole, part = in_flight(streams), decoding(streams)
    return Figure(part.value / whole.value, part.n) if whole and part and whole.value > 0 else None


def decoding_cv(streams: Streams) -> Figure | None:
    """Spread over mean of the number of decoding streams, over time."""
    return _cv(streams, streams.spreads.decoding)


def held_tokens(streams: Streams) -> Figure | None:
    """Mean number of tokens, prompts included, that the decoding streams hold; None where prompts are not counted."""
    return _figure(streams, _held(streams, None))


def held_tokens_cv(streams: Streams) -> Figure | None:
    """Spread over mean of the tokens held by the decoding streams, over time."""
    return _cv(streams, _held(streams, None))


def full_decoding(streams: Streams) -> Figure | None:
    """Mean D over the time in which somebody waits for a first token: where there is a plateau, this is it."""
    return _figure(streams, streams.spreads.full_decoding)


def full_decoding_cv(streams: Streams) -> Figure | None:
    """Spread over mean of the same: small where a number of streams is the limit."""
    return _cv(streams, streams.spreads.full_decoding)


def full_held_tokens(streams: Streams) -> Figure | None:
    """Mean tokens held over the time in which somebody waits."""
    return _figure(streams, _held(streams, _waited_at(streams)))


def full_held_tokens_cv(streams: Streams) -> Figure | None:
    """Spread over mean of the same: small where a number of tokens is the limit."""
    return _cv(streams, _held(streams, _waited_at(streams)))


def little(streams: Streams) -> Figure | None:
    """Little's law on the whole, |N - X R| / N: N mean in flight, X requests that end in the window a second, R their
    mean time from `sent` to end, whatever became of them; n requests that end in it.

    Large where the window is short beside a request, or the load changes in it (Little 1961).
    """
    table = streams.table
    gone = (table.sent_ns != NONE) & (table.end_ns != NONE)
    return _little(streams, in_flight(streams), gone & streams.span.holds(table.end_ns), table.end_ns - table.sent_ns)


def little_asked(streams: Streams) -> Figure | None:
    """The same with N as asked of a closed loop: more than 0 where slots stand idle. None of an open one."""
    asked = streams.run.spec.load.concurrency
    seen = in_flight(streams)
    if asked is None or streams.run.spec.load.is_open or seen is None:
        return None
    return Figure(abs(asked - seen.value) / asked, seen.n)


def little_decoding(streams: Streams) -> Figure | None:
    """The law on the decoding streams: N mean D, X streams that end in the window a second, R first to last token."""
    last, first = streams.last_token_ns, streams.table.first_token_ns
    chosen = streams.spoke & (last != NONE) & streams.span.holds(last)
    return _little(streams, decoding(streams), chosen, last - first)


def little_waiting(streams: Streams) -> Figure | None:
    """The law on those that wait: N mean waiting, X first tokens a second, R time from `sent` to first token."""
    table = streams.table
    chosen = streams.spoke & streams.span.holds(table.first_token_ns)
    return _little(streams, waiting(streams), chosen, table.first_token_ns - table.sent_ns)


def _little(streams: Streams, mean: Figure | None, chosen: Mask, took_ns: Ints) -> Figure | None:
    n = int(chosen.sum())
    if mean is None or mean.value <= 0 or not n:
        return None
    held = float(took_ns[chosen].sum()) / NS_PER_S / streams.span.length_s
    return Figure(abs(mean.value - held) / mean.value, n)


def _held(streams: Streams, keep: Mask | None) -> Spread | None:
    if streams.span.length_s <= 0 or not (streams.table.prompt_tokens[streams.spoke] != NONE).any():
        return None
    return spread(streams.held_tokens, keep=keep)


def _waited_at(streams: Streams) -> Mask:
    """At which moments of the grid somebody waited for a first token."""
    flow = streams.flow
    ends = flow.length_ns.cumsum() + streams.span.start_ns
    if not len(ends):
        return np.zeros(len(streams.grid_ns), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ends, streams.grid_ns, side="right"), len(ends) - 1)
    waited: Mask = flow.waiting[place] > 0
    return waited


def _figure(streams: Streams, found: Spread | None) -> Figure | None:
    return None if found is None else Figure(found.mean, int(streams.stretch.started.sum()))


def _cv(streams: Streams, found: Spread | None) -> Figure | None:
    if found is None or found.cv is None:
        return None
    return Figure(found.cv, int(streams.stretch.started.sum()))
