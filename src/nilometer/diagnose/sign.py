"""One figure held against a limit: how far it speaks for a cause, between not at all (0) and fully (1).

A limit is two numbers, where it begins to speak and where it has spoken; between them it is linear. What was not
measured has no degree, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nilometer.core.finding import Evidence


class Sign(NamedTuple):
    """`degree` is None where the figure was not measured; `name` says which one that would be."""

    name: str
    evidence: Evidence | None
    degree: float | None

    @property
    def speaks(self) -> bool:
        """Whether it is rather so than not."""
        return self.degree is not None and self.degree >= 0.5


class Look(NamedTuple):
    """A figure about to be held against a limit."""

    name: str
    evidence: Evidence | None

    @property
    def value(self) -> float | None:
        """Its number."""
        found = None if self.evidence is None else self.evidence.value
        return float(found) if isinstance(found, int | float) else None

    def above(self, begins: float, spoken: float) -> Sign:
        """Speaks the more, the greater it is."""
        value = self.value
        return Sign(self.name, self.evidence, None if value is None else _ramp(value, begins, spoken))

    def below(self, begins: float, spoken: float) -> Sign:
        """Speaks the more, the smaller it is: `begins` is the greater number."""
        return self.above(begins, spoken)

    def within(self, low: float, high: float, margin: float) -> Sign:
        """Speaks fully between both, and not at all beyond them by `margin` of each."""
        value = self.value
        if value is None:
            return Sign(self.name, self.evidence, None)
        degree = min(_ramp(value, low * (1 - margin), low), _ramp(value, high * (1 + margin), high))
        return Sign(self.name, self.evidence, degree)


def _ramp(value: float, begins: float, spoken: float) -> float:
    if begins == spoken:
        return float(value >= spoken)
    return min(1.0, max(0.0, (value - begins) / (spoken - begins)))


class Opinion(NamedTuple):
    """What one rule makes of a case. `score`: how far it holds, 0 where a figure that it needs is missing."""

    score: float
    speaking: tuple[Sign, ...] = ()
    """Measured signs that speak for it, the needed ones first."""
    against: tuple[Sign, ...] = ()
    """Signs looked for against it that were measured: those that do not speak have acquitted it."""
    missing: tuple[str, ...] = ()
    """Figures that would have told more."""
    sources: frozenset[str] = frozenset()
    """Whose word the speaking signs are: client, server, both."""
    looked: bool = False
    """Whether all that it needs was measured, or what was measured of it refutes it."""

    @property
    def holds(self) -> bool:
        """Whether it is rather so than not."""
        return self.score >= 0.5


SUPPORT = 0.35
"""So much of a score is lost where a measured sign that should be there is not."""


def weigh(
    needs: Sequence[Sign], *, supports: Sequence[Sign] = (), against: Sequence[Sign] = (), least: int = 0
) -> Opinion:
    """The weakest of what it needs; less where what should come with it does not, or something speaks against it.

    A need that was not measured makes it 0. Of `supports` and `against` what was not measured is left out, and named.
    With `least`, at least so many of `supports` must have been measured.
    """
    missing = tuple(sign.name for sign in (*needs, *supports, *against) if sign.degree is None)
    measured = [sign for sign in needs if sign.degree is not None]
    backing = [sign for sign in supports if sign.degree is not None]
    contrary = [sign for sign in against if sign.degree is not None]
    if len(measured) < len(needs) or len(backing) < least:
        lacking = tuple(sign.name for sign in needs if sign.degree is None)
        refuted = any(sign.degree == 0 for sign in measured)
        return Opinion(0.0, missing=lacking or missing, against=tuple(contrary), looked=refuted)
    score = min((sign.degree or 0.0 for sign in measured), default=1.0)
    for sign in backing:
        score *= 1 - SUPPORT * (1 - (sign.degree or 0.0))
    score *= 1 - max((sign.degree or 0.0 for sign in contrary), default=0.0)
    speaking = tuple(sign for sign in (*measured, *backing) if sign.speaks)
    return Opinion(score, speaking, tuple(contrary), missing, _sources(speaking), looked=True)


def strongest(*opinions: Opinion) -> Opinion:
    """Of several ways to see the same cause the one that holds best, the first of equals that could be looked at."""
    return max(opinions, key=lambda opinion: (opinion.score, opinion.looked))


def either(*signs: Sign) -> Sign:
    """The sign that speaks loudest of those that were measured; the first where none was."""
    known = [sign for sign in signs if sign.degree is not None]
    return max(known, key=lambda sign: sign.degree or 0.0) if known else signs[0]


def both(*signs: Sign) -> Sign:
    """The sign that speaks least, one that was not measured before all others."""
    unknown = next((sign for sign in signs if sign.degree is None), None)
    return unknown or min(signs, key=lambda sign: sign.degree or 0.0)


def _sources(signs: Iterable[Sign]) -> frozenset[str]:
    return frozenset(
        source for sign in signs if sign.evidence is not None and (source := sign.evidence.source) is not None
    )
