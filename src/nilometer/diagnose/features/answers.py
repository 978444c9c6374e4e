"""What came back: refusals, why answers ended, how long they were, which replica gave them, what was in a cache."""

from __future__ import annotations

import numpy as np

from nilometer.metrics.table import ERRORS, NONE, Mask

from ..figure import Figure, between_groups, median, share
from ..figure import mean as mean_of
from ..streams import Streams

UNAVAILABLE = 503


def refused_share(streams: Streams) -> Figure | None:
    """Share of the requests that start in the window and were refused for a quota (429); n requests."""
    return share(streams.table.error[streams.stretch.started] == ERRORS.index("http_429"))


def unavailable_share(streams: Streams) -> Figure | None:
    """Share of them that were told the service is not available now (503); n requests."""
    return share(streams.status[streams.stretch.started] == UNAVAILABLE)


def failed_share(streams: Streams) -> Figure | None:
    """Share of them that ended in any error or were cut by the server; n requests."""
    table, started = streams.table, streams.stretch.started
    return share((table.of("error") | table.of("incomplete"))[started])


def unconnected_share(streams: Streams) -> Figure | None:
    """Share of them that got no connection within its time limit; n requests."""
    return share(streams.table.error[streams.stretch.started] == ERRORS.index("timeout_connect"))


def cut_share(streams: Streams) -> Figure | None:
    """Share of the ok answers that ended at their length limit; n answers that told why they ended."""
    return _finished(streams, "length")


def stopped_share(streams: Streams) -> Figure | None:
    """Share of the ok answers that the model ended by itself."""
    return _finished(streams, "stop")


def output_over_asked(streams: Streams) -> Figure | None:
    """Median of output tokens got over asked for; n ok answers of which both are known."""
    table = streams.table
    known = streams.measured & (table.output_tokens != NONE) & (table.asked_output > 0)
    return median(table.output_tokens[known] / table.asked_output[known])


def prompt_tokens(streams: Streams) -> Figure | None:
    """Mean prompt, tokens; n ok requests whose prompt is counted."""
    return mean_of(streams.table.prompt_tokens[_counted(streams)])


def prompt_cv(streams: Streams) -> Figure | None:
    """Spread over mean of the prompts: 0 where all are as long; n ok requests."""
    tokens = streams.table.prompt_tokens[_counted(streams)]
    return Figure(float(tokens.std() / tokens.mean()), len(tokens)) if len(tokens) and tokens.mean() > 0 else None


def output_tokens(streams: Streams) -> Figure | None:
    """Mean answer, tokens; n ok requests whose answer is counted."""
    tokens = streams.table.output_tokens
    return mean_of(tokens[streams.measured & (tokens != NONE)])


def target_share(streams: Streams, latency: str) -> Figure | None:
    """Share of the variance of the log of a latency that lies between targets; n ok requests, None with one."""
    values = streams.table.latency(latency)[streams.measured]
    known = values > 0
    return between_groups(np.log(values[known]), streams.target[streams.measured][known])


def _counted(streams: Streams) -> Mask:
    mask: Mask = streams.measured & (streams.table.prompt_tokens != NONE)
    return mask


def _finished(streams: Streams, reason: str) -> Figure | None:
    told = streams.finish[streams.measured]
    told = told[told != NONE]
    if reason not in streams.finishes:
        return Figure(0.0, len(told)) if len(told) else None
    return share(told == streams.finishes.index(reason))
