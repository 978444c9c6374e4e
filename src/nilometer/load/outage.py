"""A target of which nothing is heard: it refuses connections, or takes them and hangs up without a byte.

Since when, how often in a row, and how long a lane waits before it tries again, so that a dead server is not stormed.
"""

from __future__ import annotations

from .exchange import Exchange

_PAUSE_S = (0.1, 0.2, 0.5, 1.0)
_REFUSED = 400
_REFUSED_ROUNDS, _REFUSED_PAUSE_S = 100, 0.05
"""A server that has refused so many requests a lane, all in a row, will refuse the next: it need not be hammered."""
_UNOPENED = ("connect", "tls", "timeout_connect")
NO_SOCKET = "no_socket"
"""The ending of a request for which this machine had no socket left: no fault of the target."""


class Outage:
    """`in_a_row` requests of which nothing was heard, the first of them at `since_ns`; both 0 while it is heard."""

    __slots__ = ("in_a_row", "refused_in_a_row", "since_ns")

    def __init__(self) -> None:
        self.in_a_row = 0
        self.since_ns = 0
        self.refused_in_a_row = 0

    def pause_s(self, exchange: Exchange, lanes: int | None, now: int) -> float:
        """Take in how a request ended; how long its lane is to wait before the next, 0 where the target was heard."""
        status = exchange.status
        if status is not None and status < _REFUSED:  # nearly always
            self.in_a_row = self.since_ns = self.refused_in_a_row = 0
            return 0.0
        if exchange.ending == NO_SOCKET:
            return _PAUSE_S[0]
        if status is not None:
            self.in_a_row = self.since_ns = 0
            self.refused_in_a_row += 1
            return _REFUSED_PAUSE_S if self.refused_in_a_row > _REFUSED_ROUNDS * (lanes or 1) else 0.0
        if not _unheard(exchange):
            self.in_a_row = self.since_ns = self.refused_in_a_row = 0
            return 0.0
        self.in_a_row += 1
        self.since_ns = self.since_ns or now
        rounds = (self.in_a_row - 1) // (lanes or 1)
        if rounds == 0 and exchange.ending == "cut":
            return 0.0  # a few that were hung up on are an answer of a kind: it is the load, not an outage
        return _PAUSE_S[min(rounds, len(_PAUSE_S) - 1)]


def _unheard(exchange: Exchange) -> bool:
    return exchange.ending in _UNOPENED or (exchange.ending == "cut" and exchange.first_user is None)
