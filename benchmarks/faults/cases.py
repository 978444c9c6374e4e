"""The cases: settings and seeds of each kind, of services that are well, of two kinds at once, and of each severity."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from .kinds import BY_SLUG, DOUBLES, HEALTHY, KINDS, whole
from .play import Level, play
from .service import Draft, Draw, Split, draft

SETTINGS, SEEDS = 5, 3
WELL = 12
"""Settings of each sort of service that is well, one seed each."""
DOUBLE_SETTINGS = 3
SEVERITIES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
SWEEP_SETTINGS = 2
TRIES = 60


@dataclass(frozen=True)
class Label:
    """What a case is of. `sort` of a service that is well; `sweep`: its severity may be too small to show."""

    kinds: tuple[str, ...]
    setting: int
    seed: int
    severity: float | None = None
    """None = drawn, from the middle up."""
    sort: str = ""
    sweep: bool = False

    @property
    def name(self) -> str:
        """A file's name."""
        what = "+".join(self.kinds) or "healthy-" + self.sort.replace(" ", "_")
        at = "" if self.severity is None else f"-at{self.severity:g}"
        return f"{'sweep-' if self.sweep else ''}{what}-{self.setting}-{self.seed}{at}"


@dataclass
class Case:
    """A case, played. `redraws`: settings that were thrown away, for their label was not true of them."""

    label: Label
    draft: Draft
    severity: float
    levels: list[Level]
    redraws: int


def labels(split: Split) -> Iterator[Label]:
    """All of a split, in an order that brings every kind early."""
    for setting in range(SETTINGS):
        for kind in KINDS:
            for seed in range(SEEDS):
                yield Label((kind.slug,), setting, seed)
    for setting in range(WELL):
        for sort, _ in HEALTHY:
            yield Label((), setting, 0, sort=sort)
    for setting in range(DOUBLE_SETTINGS):
        for pair in DOUBLES:
            yield Label(pair, setting, 0)
    for setting in range(SWEEP_SETTINGS):
        for kind in KINDS:
            for severity in SEVERITIES:
                yield Label((kind.slug,), setting, 0, severity, sweep=True)


def case_of(label: Label, split: Split) -> Case:
    """The case of a label, drawn anew until what it says is true."""
    true = whole(label.kinds)
    for tried in range(TRIES):
        random = Random(_seed(split, label, tried))
        draw = Draw(random, split)
        d = draft(draw)
        severity = random.uniform(0.5, 1.0) if label.severity is None else label.severity
        _change(d, draw, label, severity)
        levels = play(d, random.getrandbits(64) ^ label.seed)
        if (label.sweep and levels) or true(d, levels):
            return Case(label, d, severity, levels, tried)
    raise RuntimeError(f"no setting of {label.name} is what it says")


def _change(d: Draft, draw: Draw, label: Label, severity: float) -> None:
    for slug in label.kinds:
        BY_SLUG[slug].change(d, draw, severity)
    if label.sort:
        dict(HEALTHY)[label.sort](d, draw, severity)


def _seed(split: Split, label: Label, tried: int) -> int:
    """A setting is the same for all seeds until a try fails; what is sampled of it is not."""
    words = f"{split}/{'+'.join(label.kinds)}/{label.sort}/{label.setting}/{label.sweep}/{tried}"
    return zlib.crc32(words.encode())
