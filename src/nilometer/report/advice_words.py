"""The words of a plan's advice: each slug of `plan.option`, `plan.fitting`, `plan.quality` and `plan.support`."""

from __future__ import annotations

from collections.abc import Mapping

from nilometer.core.errors import Param
from nilometer.plan.advice.fitting import Fit
from nilometer.plan.advice.option import Effect, Option
from nilometer.plan.advice.quality import Quality, Risk
from nilometer.plan.advice.support import Computes
from nilometer.text.i18n import Catalogue


def what(option: Option, words: Catalogue) -> str:
    """What an option changes and what that buys, in general."""
    return words.say(f"screen.advice.option.{option.slug}.what", **_shown(option.params))


def wrong(option: Option, words: Catalogue) -> str:
    """When it would be the wrong thing, in general."""
    return words.say(f"screen.advice.option.{option.slug}.wrong", **option.params)


def cautions(option: Option, words: Catalogue) -> list[str]:
    """What may make it wrong here: of the plan first, then what its figure of quality hides."""
    hidden = option.quality.caution if option.quality is not None else ""
    return [words.say(f"screen.advice.caution.{slug}") for slug in (*option.caution, hidden) if slug]


def effect(of: Effect, words: Catalogue) -> str:
    """Whether it is needed, and enough."""
    return words.say(f"screen.advice.effect.{of}")


def risk(of: Risk, words: Catalogue) -> str:
    """The quality risk."""
    return words.say(f"screen.advice.risk.{of}")


def loss(quality: Quality, words: Catalogue) -> str | None:
    """The published loss and what it was measured on; None where no figure was found."""
    if quality.measure is None:
        return None
    key = f"screen.advice.measure.{quality.measure}"
    return words.say(key, low=f"{quality.loss_low:g}", high=f"{quality.loss_high:g}", on=quality.on)


def computes(how: Computes, words: Catalogue) -> str:
    """What a device does with a precision."""
    return words.say(f"screen.advice.computes.{how}")


def fit(way: Fit, words: Catalogue) -> str:
    """A way to make it fit."""
    return words.say(f"screen.advice.fit.{way.slug}", **_shown(way.params))


def guide(says: str, words: Catalogue) -> str:
    """What the guide's rule on acceptance says."""
    return words.say(f"screen.advice.guide.{says}")


_PRECISIONS = ("precision", "cache")


def _shown(params: Mapping[str, Param]) -> Mapping[str, Param]:
    """Precisions as people write them."""
    upper = {key: value.upper() for key, value in params.items() if key in _PRECISIONS and isinstance(value, str)}
    return {**params, **upper}
