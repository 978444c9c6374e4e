"""The load generator's and the server's word on the same window, beside what the client saw.

The server's figures are those of the Summary's `server`, by the names below; where one is not there, neither is the
figure that needs it.
"""

from __future__ import annotations

from nilometer.core.clock import NS_PER_MS
from nilometer.core.summary import Distribution
from nilometer.metrics.table import NONE

from ..figure import Figure, mean
from ..streams import Streams

SERVER_TTFT_S = "ttft_mean_s"
SERVER_E2E_S = "e2e_mean_s"
SERVER_QUEUE_S = "queue_mean_s"
SERVER_PREFILL_S = "prefill_mean_s"
SERVER_PROMPT_TOKENS = "prompt_tokens"
"""Prompt tokens that the server counted in the window. Some engines leave those from their cache out, some do not."""


def told(streams: Streams, name: str) -> Figure | None:
    """A figure of the server's own over the window; n ok requests of it."""
    value = streams.run.summary.server.get(name)
    return None if value is None else Figure(value, int(streams.measured.sum()))


def counted(streams: Streams, name: str) -> Figure | None:
    """A count of the server's over the window: its pages lie inside it, so what they counted is brought to its length.

    Where it is not told how long they cover, the count stands as it is.
    """
    found, covered_s = told(streams, name), streams.run.summary.server.get("covered_s")
    if found is None or not covered_s:
        return found
    return Figure(found.value * max(streams.span.length_s / covered_s, 1.0), found.n)


def host(streams: Streams, name: str) -> Figure | None:
    """A figure of the server's machine over the window; n ok requests of it."""
    value = streams.run.summary.host.get(name)
    return None if value is None else Figure(value, int(streams.measured.sum()))


def told_ms(streams: Streams, name: str) -> Figure | None:
    """The same of a latency, which servers tell in seconds, ms."""
    found = told(streams, name)
    return None if found is None else Figure(found.value * 1000, found.n)


def preemptions_per_100(streams: Streams) -> Figure | None:
    """Preemptions that the server counted for each 100 requests that the client saw answered; n ok requests."""
    found = counted(streams, "preemptions")
    return Figure(found.value / found.n * 100, found.n) if found is not None and found.n else None


def client_mean_ms(streams: Streams, latency: str) -> Figure | None:
    """Mean of a latency of the ok requests of the window, ms; n requests."""
    return mean(streams.table.latency(latency)[streams.measured] / NS_PER_MS)


def beyond_server_ms(streams: Streams, latency: str, name: str) -> Figure | None:
    """What the client saw of a mean latency beyond what the server did, ms; n requests.

    Both over the same window: their difference is the way in and out, front end, proxy and client together.
    """
    seen, server = client_mean_ms(streams, latency), told_ms(streams, name)
    return None if seen is None or server is None else Figure(seen.value - server.value, seen.n)


def unprocessed_prompt_share(streams: Streams) -> Figure | None:
    """Share of the prompt tokens sent that the server did not count, 1 - its count / ours; n requests.

    Of requests whose first token came in the window. Negative where it worked through some twice (preemption).
    """
    table, server = streams.table, counted(streams, SERVER_PROMPT_TOKENS)
    chosen = streams.spoke & streams.span.holds(table.first_token_ns) & (table.prompt_tokens != NONE)
    sent = int(table.prompt_tokens[chosen].sum())
    return None if server is None or not sent else Figure(1 - server.value / sent, int(chosen.sum()))


def loop_lag_p99_ms(streams: Streams) -> Figure | None:
    """p99 of the load loop's own lag; n as the generator has it."""
    lag = streams.run.summary.generator.loop_lag_ms
    return _of(lag, lag.p99)


def start_lag_p99_ms(streams: Streams) -> Figure | None:
    """p99 of `sent` after `due`; None in a closed loop without think time."""
    lag = streams.run.summary.latency_ms.get("start_lag", Distribution())
    return _of(lag, lag.p99)


def lag_over_gap(streams: Streams) -> Figure | None:
    """p99 of the loop's lag over the median token gap: what part of a gap the client may be wrong by."""
    lag, gap_ns = loop_lag_p99_ms(streams), streams.token_gap_ns
    return Figure(lag.value / (gap_ns / NS_PER_MS), lag.n) if lag and gap_ns else None


def generator_cpu_share(streams: Streams) -> Figure | None:
    """Share of one core that the load loop took; n ok requests."""
    return _plain(streams, streams.run.summary.generator.cpu_share)


def achieved_over_asked(streams: Streams) -> Figure | None:
    """Load that was achieved over that asked for, as the generator says; n ok requests."""
    return _plain(streams, streams.run.summary.generator.achieved_over_asked)


def _of(lag: Distribution, value: float | None) -> Figure | None:
    return None if value is None else Figure(value, lag.n or 0)


def _plain(streams: Streams, value: float | None) -> Figure | None:
    return None if value is None else Figure(value, int(streams.measured.sum()))
