"""A load in words: closed, open at one rate, or open by a plan."""

from __future__ import annotations

from nilometer.core.spec import Load

from . import units
from .i18n import Catalogue


def kind(load: Load, words: Catalogue) -> str:
    """`closed loop, 16 in flight`; `open loop, 4 requests/s (poisson)`; `open loop, ramp:1,8,60s`."""
    if load.varies:
        return words.say("screen.load_varied", arrivals=load.arrivals)
    if load.rate_per_s is not None:
        return words.say("screen.load_open", rate=load.rate_per_s, arrivals=load.arrivals)
    return words.say("screen.load_closed", n=load.concurrency or 1)


def who(load: Load, words: Catalogue) -> str:
    """Who is served, as the subject of a sentence."""
    if load.varies:
        return words.say("screen.lead.varied", arrivals=load.arrivals)
    if load.rate_per_s is not None:
        return words.say("screen.lead.open", rate=load.rate_per_s)
    return words.say("screen.lead.closed", n=load.concurrency or 1)


def size(load: Load) -> str:
    """Requests in flight, requests per second, or the plan: what tells the loads of a group apart."""
    if load.varies:
        return load.arrivals
    return str(load.concurrency or 1) if load.rate_per_s is None else units.plain(load.rate_per_s)
