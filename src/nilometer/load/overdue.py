"""Which of its limits a request has passed. Pure: the moment is handed in."""

from __future__ import annotations

from nilometer.core.record import ErrorKind

from .exchange import Exchange
from .order import Limits


def limit_passed(exchange: Exchange, now: int, limits: Limits) -> ErrorKind | None:
    """The limit that a request which was sent has passed by `now`; None: none. Idle runs from the first byte on."""
    if passed(now, exchange.sent_ns, limits.total_ns):
        return "timeout_total"
    if exchange.first_user is not None and passed(now, exchange.end_user, limits.idle_ns):
        return "timeout_idle"
    if not exchange.looked and passed(now, exchange.sent_ns, limits.first_ns):
        return "timeout_first_token"
    return None


def passed(now: int, since: int | None, limit_ns: int | None) -> bool:
    """Whether more than the limit has gone by; never without a start or a limit."""
    return since is not None and limit_ns is not None and now - since > limit_ns
