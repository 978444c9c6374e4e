"""Which of its limits a request has passed. Pure: the moment is handed in."""

from __future__ import annotations

from nilometer.core.record import ErrorKind

from .exchange import Exchange
from .order import Limits

STALE_NS = 30_000_000
"""A close that was under way shows within this and two round trips; a busy server resets some time after its end."""


def limit_passed(exchange: Exchange, now: int, limits: Limits) -> ErrorKind | None:
    """The limit that a request which was sent has passed by `now`; None: none. Idle runs from the first byte on."""
    if passed(now, exchange.sent_ns, limits.total_ns):
        return "timeout_total"
    if exchange.first_user is not None and passed(now, exchange.end_user, limits.idle_ns):
        return "timeout_idle"
    if not exchange.looked and passed(now, exchange.sent_ns, limits.first_ns):
        return "timeout_first_token"
    return None


def may_be_stale(exchange: Exchange, now: int, round_trip_ns: int) -> bool:
    """Whether a close may have been under way already when this request went out on a kept connection.

    Only before the first byte, and only as soon after the sending as such a close shows: a server that held the
    request for longer had it, and has failed it.
    """
    if exchange.new_connection or exchange.first_user is not None or exchange.sent_ns is None:
        return False
    return now - exchange.sent_ns <= STALE_NS + 2 * round_trip_ns


def passed(now: int, since: int | None, limit_ns: int | None) -> bool:
    """Whether more than the limit has gone by; never without a start or a limit."""
    return since is not None and limit_ns is not None and now - since > limit_ns
