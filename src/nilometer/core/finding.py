"""What was concluded: a slug, its parameters and the evidence. The sentence is made in `text`, never here."""

from __future__ import annotations

from typing import Literal

import msgspec

from .errors import Param

FindingClass = Literal["validity", "cause", "remedy", "note"]
Severity = Literal["high", "medium", "low"]
Confidence = Literal["confirmed", "likely", "possible"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One figure that speaks for or against a finding."""

    name: str
    value: float | int | str | None = None
    lo: float | None = None
    hi: float | None = None
    unit: str | None = None
    n: int | None = None
    window: str | None = None
    level: str | None = None
    source: str | None = None


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What would decide between this finding and its rivals."""

    command: str
    predictions: list[str] = []


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about it, with the flags and the gain to expect."""

    slug: str
    flags: list[str] = []
    gain: dict[str, float | str | None] | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One conclusion. `class` in JSON is `kind` here; `params` fill the sentence of `slug`."""

    slug: str
    kind: FindingClass = msgspec.field(name="class")
    severity: Severity
    confidence: Confidence | None = None
    metric: str | None = None
    level: str | None = None
    params: dict[str, Param] = {}
    evidence: list[Evidence] = []
    against: list[Evidence] = []
    missing: list[str] = []
    rivals: list[str] = []
    experiment: Experiment | None = None
    remedies: list[Remedy] = []
