"""What the rules look at: the levels of a group, the step between them, and the figures by name.

A figure is asked for at the highest level, at the lowest, or of the step from one to the other.
"""

from __future__ import annotations

from functools import cached_property

from nilometer.core.finding import Evidence

from .facts import Facts
from .group import GroupEvidence
from .level import LevelEvidence
from .sign import Look


class Case:
    """A group under diagnosis; ValueError without a level."""

    def __init__(self, group: GroupEvidence) -> None:
        if not group.levels:
            raise ValueError("no level")
        self.group = group
        self.lowest, self.highest = group.levels[0], group.levels[-1]

    def high(self, name: str) -> Look:
        """A figure of the highest level."""
        return Look(name, self.highest.figures.get(name))

    def low(self, name: str) -> Look:
        """A figure of the lowest level."""
        return Look(name, self.lowest.figures.get(name))

    def step(self, name: str) -> Look:
        """A figure of the step from the lowest to the highest."""
        return Look(name, self.group.figures[name])

    def most(self, name: str) -> Look:
        """The greatest of a figure over the levels."""
        return self._extreme(name, greatest=True)

    def least(self, name: str) -> Look:
        """The smallest of a figure over the levels."""
        return self._extreme(name, greatest=False)

    def made(self, name: str, value: float | None, unit: str | None = None, source: str = "client") -> Look:
        """A figure that a rule makes of others, of the highest level."""
        if value is None:
            return Look(name, None)
        level = "" if self.highest.level is None else f"{self.highest.level:g}"
        found = Evidence(
            name=name,
            value=value,
            unit=unit,
            n=self.facts.ok,
            level=level or None,
            window=self.highest.window,
            source=source,
        )
        return Look(name, found)

    @property
    def facts(self) -> Facts:
        """Of the highest level."""
        return self.highest.facts

    @cached_property
    def server_seen(self) -> bool:
        """Whether the server's own page was seen at the highest level."""
        return self.facts.server_seen

    def _extreme(self, name: str, *, greatest: bool) -> Look:
        known = [(value, level) for level in self.group.levels if (value := level.value(name)) is not None]
        if not known:
            return Look(name, None)
        _, level = (max if greatest else min)(known, key=lambda one: one[0])
        return Look(name, level.figures[name])


def level_at(levels: tuple[LevelEvidence, ...], number: float) -> LevelEvidence | None:
    """The level of this load."""
    return next((level for level in levels if level.level == number), None)
