"""Values as they are typed: durations, shares, key-value pairs. A value that cannot be is refused with what could."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

import click

from nilometer.core.clock import NS_PER_S

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_AGES_S = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,9})([mhdw])")
_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")
_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(us|ms|s|m|h)?")


class Unfit(click.BadParameter):
    """A value that cannot be. `form` is what could, as one writes it in any language; a `value` of None is not told."""

    def __init__(
        self,
        value: str | None,
        form: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
        slug: str = "value_wrong",
    ) -> None:
        super().__init__(f"write {form}" if value is None else f"{value!r}: write {form}", ctx, param)
        self.value = value
        self.form = form
        self.slug = slug


class Seconds(click.ParamType[float]):
    """A time: 60s, 500ms, 2m; a bare number is seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _SPAN.fullmatch(str(value).strip())
        if found is None:
            raise Unfit(str(value), "60s, 500ms, 2m", param, ctx)
        return float(found[1]) * _SECONDS[found[2] or "s"]


class WaitSeconds(Seconds):
    """A time in which something can happen: more than none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if seconds <= 0:
            raise Unfit(str(value), "500ms, 5s, 1m", param, ctx)
        return seconds


class RampSeconds(Seconds):
    """A time, or `auto`, which is None."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return "auto" if value == "auto" else super().convert(value, param, ctx)


class Moment(click.ParamType[int]):
    """A moment, as ns since 1970 UTC: so long ago (30d, 12h, 2w), or a date or time in UTC (2026-11-30T08:00).

    A date alone is its first moment, or where it `ends` something, the first of the day behind it.
    """

    name = "moment"

    def __init__(self, *, ends: bool = False) -> None:
        self._ends = ends

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        ago = _AGO.fullmatch(text)
        try:
            age_s = int(ago[1]) * _AGES_S[ago[2]] if ago else None
            moment_ns = self._by_date(text) if age_s is None else time.time_ns() - age_s * NS_PER_S
        except (ValueError, OverflowError):
            moment_ns = -1
        if moment_ns < 0:
            raise Unfit(text, "30d, 12h, 2026-11-30, 2026-11-30T08:00", param, ctx)
        return moment_ns

    def _by_date(self, text: str) -> int:
        told = datetime.fromisoformat(text)
        moment = told if told.tzinfo else told.replace(tzinfo=UTC)
        if self._ends and _DAY.fullmatch(text):
            moment += timedelta(days=1)
        return round(moment.timestamp()) * NS_PER_S


class Share(click.ParamType[float]):
    """A share: 1% or 0.01."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise Unfit(text, "1%, 0.01", param, ctx)
        return share


class Limits(click.ParamType[dict[str, Any]]):
    """Timeouts by name: connect=10s,first=none,idle=120s,total=600s."""

    name = "limits"
    _NAMES = ("connect", "first", "idle", "total")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        limits: dict[str, float | Literal["none"]] = {}
        for piece in str(value).split(","):
            name, _, text = piece.strip().partition("=")
            if name not in self._NAMES or not text:
                raise Unfit(piece, "connect=10s,first=none,idle=120s,total=600s", param, ctx)
            limits[f"{name}_s"] = "none" if text == "none" else Seconds().convert(text, param, ctx)
        return limits


class Price(click.ParamType[dict[str, Any]]):
    """A price by its parts: in=0.15,out=0.60,hour=2.50,devices=2,currency=CNY."""

    name = "price"
    _KEYS: ClassVar = {
        "in": ("input_per_million", float, 0),
        "out": ("output_per_million", float, 0),
        "hour": ("device_hour", float, 0),
        "devices": ("devices", int, 1),
        "currency": ("currency", str, 0),
    }
    """As it is written: name in the spec, kind, and the least it may be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        price: dict[str, float | int | str] = {}
        for piece in str(value).split(","):
            name, _, text = (part.strip() for part in piece.partition("="))
            try:
                key, kind, least = self._KEYS[name]
                price[key] = part = kind(text)
            except (KeyError, ValueError):
                text = part = ""
            if not text or not (isinstance(part, str) or least <= part <= 1e12):
                raise Unfit(piece, "in=0.15,out=0.60,hour=2.50,devices=2,currency=CNY", param, ctx)
        return price


class Pair(click.ParamType[tuple[str, str]]):
    """A pair: K:V or K=V, by the separator it is made with."""

    def __init__(self, separator: str) -> None:
        self.name = f"key{separator}value"
        self._separator = separator

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value[0], value[1]
        key, mark, text = str(value).partition(self._separator)
        if not mark or not key.strip() or "\n" in text or "\r" in text:
            raise Unfit(None, f"KEY{self._separator}VALUE", param, ctx)  # it may be a secret
        return key.strip(), text.strip()


class Levels(click.ParamType[tuple[float, ...]]):
    """Loads: 1,2,4,8."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            levels = tuple(float(piece) for piece in str(value).split(","))
        except ValueError:
            levels = ()
        if not levels or not all(0 < level < 1e6 for level in levels) or len(set(levels)) < len(levels):
            raise Unfit(str(value), "1,2,4,8", param, ctx, "levels_wrong")
        return levels


SECONDS = Seconds()
WAIT = WaitSeconds()
LEVELS = Levels()
RAMP = RampSeconds()
MOMENT = Moment()
END = Moment(ends=True)
SHARE = Share()
LIMITS = Limits()
PRICE = Price()
HEADER = Pair(":")
LABEL = Pair("=")
