"""The latencies of one request, each by its definition: a Record in, ns or None out.

The only place where these words are defined; everything that shows or sums a latency asks here. A latency that cannot
be had is None, never 0.
"""

from __future__ import annotations

import numpy as np

from nilometer.core.clock import NS_PER_MS
from nilometer.core.record import Frames, Record

from .quantiles import Ints

_ONE_TOKEN = (1).to_bytes(4, "little")


def ttft_ns(record: Record) -> int | None:
    """Time to first token: first frame with generated matter of any channel, minus the start."""
    return _span(record.start_ns, record.first_token_ns)


def ttfa_ns(record: Record) -> int | None:
    """Time to first answer: the same with reasoning left out."""
    return _span(record.start_ns, record.first_answer_ns)


def tpot_ns(record: Record) -> float | None:
    """Time per output token: (last token - first token) / (output tokens - 1).

    None for fewer than 2 tokens, for several choices, for an estimated count, and where counted tokens never streamed.
    """
    if not record.has_tpot or record.output_tokens is None:
        return None
    span_ns = _span(record.first_token_ns, record.last_token_ns)
    return None if span_ns is None else span_ns / (record.output_tokens - 1)


def e2e_ns(record: Record) -> int | None:
    """End to end: last byte of the response minus the start."""
    return _span(record.start_ns, record.end_ns)


def start_lag_ns(record: Record) -> int | None:
    """How long after it was due a request was sent; None where nothing was due."""
    return _span(record.due_ns, record.sent_ns)


def connect_ns(record: Record) -> int | None:
    """What connecting took, the TLS handshake included; None on a connection that was there already."""
    return None if record.connect_ns is None else record.connect_ns + (record.tls_ns or 0)


def refill_ns(record: Record) -> int | None:
    """A closed-loop slot's time from the end of its last request to this one's start."""
    return record.refill_ns


def ttft_from_sent_ns(record: Record) -> int | None:
    """TTFT counted from `sent` whatever was due: the server's own part."""
    return _span(record.sent_ns, record.first_token_ns)


def e2e_from_sent_ns(record: Record) -> int | None:
    """E2E counted from `sent`."""
    return _span(record.sent_ns, record.end_ns)


def frame_stamps_ns(frames: Frames) -> Ints:
    """The best stamp of each frame with generated matter: the kernel's where there is one, else the loop's own."""
    user = np.frombuffer(frames.user, dtype="<i8")
    return best_stamps_ns(user, np.frombuffer(frames.kernel, dtype="<i8")) if frames.kernel else user


def best_stamps_ns(user: Ints, kernel: Ints) -> Ints:
    """`kernel` where it was taken (not negative), else `user`."""
    best: Ints = np.where(kernel >= 0, kernel, user)
    return best


def frame_gaps_ns(frames: Frames) -> Ints:
    """Gaps between neighbouring frames with generated matter of one request."""
    gaps: Ints = np.diff(frame_stamps_ns(frames))
    return gaps


def one_token_a_frame(record: Record) -> bool:
    """Whether each frame is known to carry exactly one token: stated so, or as many tokens counted as frames seen."""
    n = len(record.frames)
    if record.frames.tokens == _ONE_TOKEN * n:
        return True
    return is_counted(record) and not record.hidden_tokens and record.output_tokens == n


def is_counted(record: Record) -> bool:
    """Whether the output tokens were counted by someone, not estimated and not unknown."""
    return record.output_tokens is not None and record.token_source not in ("estimated", "none")


def shown_ms(record: Record) -> dict[str, float | None]:
    """The four latencies of a raw record, in ms, by the contract's names."""
    spans = {
        "ttft_ms": ttft_ns(record),
        "ttfa_ms": ttfa_ns(record),
        "tpot_ms": tpot_ns(record),
        "e2e_ms": e2e_ns(record),
    }
    return {name: None if span_ns is None else span_ns / NS_PER_MS for name, span_ns in spans.items()}


def _span(since_ns: int | None, until_ns: int | None) -> int | None:
    return None if since_ns is None or until_ns is None else until_ns - since_ns
