"""A load in words: closed, open at one rate, or open by a plan."""

from __future__ import annotations

from nilometer.core.spec import RECORDED, Load, Spec

from . import units
from .i18n import Catalogue


def kind(spec: Spec, words: Catalogue) -> str:
    """`closed loop, 16 in flight`; `open loop, 4 requests/s (poisson)`; `open loop, ramp:1,8,60s`."""
    load = spec.load
    if load.varies:
        return words.say("screen.load_varied", arrivals=load.arrivals)
    if load.rate_per_s is not None:
        return words.say("screen.load_open", rate=load.rate_per_s, unit=rate_unit(spec, words), arrivals=load.arrivals)
    return words.say("screen.load_closed", n=load.concurrency or 1)


def rate_unit(spec: Spec, words: Catalogue) -> str:
    """What a rate counts: requests/s, or conversations/s where these have more than one turn."""
    return words.say("screen.conversations_unit" if spec.prompts.converses else "screen.requests_unit")


def who(spec: Spec, words: Catalogue) -> str:
    """Who is served, as the subject of a sentence."""
    load = spec.load
    if load.arrivals == RECORDED:
        return words.say("screen.lead.replayed")
    if load.varies:
        return words.say("screen.lead.varied", arrivals=load.arrivals)
    if load.rate_per_s is not None:
        said = "screen.lead.open_conversations" if spec.prompts.converses else "screen.lead.open"
        return words.say(said, rate=load.rate_per_s)
    return words.say("screen.lead.closed", n=load.concurrency or 1)


def size(load: Load) -> str:
    """How many in flight, how many per second, or the plan: what tells the loads of a group apart."""
    if load.varies:
        return load.arrivals
    return str(load.concurrency or 1) if load.rate_per_s is None else units.plain(load.rate_per_s)
