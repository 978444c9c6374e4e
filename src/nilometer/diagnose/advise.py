"""Remedies of a cause, in order, with flags of the engine at hand and the gain that the case foretells."""

from __future__ import annotations

from nilometer.core.finding import Remedy

from .case import Case
from .remedies import ADVICE, ENGINES, FLAGS, Advice


def remedies(slug: str, case: Case) -> list[Remedy]:
    """The remedies of a cause, the first to be done first: at most four, none of a slug that is no cause.

    Of an engine that is not known, or has no such setting, there are no flags; where the levels do not tell what a
    remedy brings, its gain is None.
    """
    return [
        Remedy(slug=one.slug, flags=_flags(one, case), gain=None if (gain := one.gain(case)) is None else gain.told())
        for one in ADVICE.get(slug, ())
        if not one.must or one.to(case) is not None
    ]


def _flags(advice: Advice, case: Case) -> list[str]:
    """Flag and value as words of a command line; none where the value is not known."""
    engine = case.facts.engine or ""
    flags = FLAGS.get(advice.slug, {}).get(ENGINES.get(engine, engine), "")
    value = advice.to(case) if "{n}" in flags else None
    if "{n}" in flags and value is None:
        return []
    return flags.replace("{n}", str(value)).split()
