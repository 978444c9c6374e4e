"""A question of a plan in words: the devices it asks about, the precision, the requests."""

from __future__ import annotations

from nilometer.plan.question import Question
from nilometer.text import units
from nilometer.text.i18n import Catalogue


def devices_of(question: Question, words: Catalogue) -> str:
    """`one H100-SXM-80G`, `4 x L40S (TP 2, DP 2)`; nothing without a device."""
    if question.device is None:
        return ""
    split = question.parallel
    if split.devices == 1:
        return words.say("screen.plan.one_device", name=question.device.name)
    named = (("TP", split.tensor), ("PP", split.pipeline), ("DP", split.data), ("EP", split.expert))
    ways = ", ".join(f"{name} {n}" for name, n in named if n > 1)
    return words.say("screen.plan.devices", n=split.devices, name=question.device.name, ways=ways)


def precision_of(question: Question) -> str:
    """As people write it: BF16, FP8, Q4_K_M, MXFP4 (experts)."""
    name, part, _ = question.precision.name.partition("_experts")
    return f"{name.upper()} (experts)" if part else name.upper()


def requests_of(question: Question, words: Catalogue, lengths_from: str) -> str:
    """Their lengths, and where these are from."""
    told = words.say(
        "screen.plan.lengths",
        into=units.mean(question.lengths.input),
        out=units.mean(question.lengths.output),
        whence=words.say(f"screen.plan.lengths_from.{lengths_from}"),
    )
    if not question.pairs:
        return told
    return told + words.say("screen.plan.lengths_mixed", n=question.concurrency, context=question.context)
