"""Values of a plan as they are typed: tokens, bytes, rates of memory and arithmetic; without a unit in a stated one."""

from __future__ import annotations

import re
from typing import Any

import click

from .values import Unfit

_NUMBER = re.compile(r"(?P<number>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(?P<unit>[a-z/]*)")


class Amount(click.ParamType[float]):
    """A number above 0 with a unit of a table; without one it is of the unit that stands first there.

    Nine digits before the point are the most, as for tokens: beyond it sums are no longer exact, and what is typed is
    a slip.
    """

    def __init__(self, name: str, units: dict[str, float], form: str) -> None:
        self.name = name
        self._units = units
        self._form = form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _NUMBER.fullmatch(str(value).strip().lower())
        scale = None if found is None else self._scale(found["unit"])
        if found is None or scale is None or not float(found["number"]):
            raise Unfit(str(value), self._form, param, ctx)
        return float(found["number"]) * scale

    def _scale(self, unit: str) -> float | None:
        return next(iter(self._units.values())) if not unit else self._units.get(unit)


class Tokens(click.ParamType[int]):
    """A number of tokens: 8192, 8k (8,192), 128k."""

    name = "tokens"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,9})(k?)", str(value).strip().lower())
        if found is None or not int(found[1]):
            raise Unfit(str(value), "8192, 8k, 128k", param, ctx)
        return int(found[1]) * (1024 if found[2] else 1)


MEMORY = Amount(
    "memory",
    {"gib": 2.0**30, "gb": 1e9, "mib": 2.0**20, "mb": 1e6, "tib": 2.0**40, "tb": 1e12, "g": 2.0**30},
    "80GiB, 80GB, 80",
)
"""A bare number is GiB."""
BANDWIDTH = Amount(
    "bandwidth", {"gb/s": 1e9, "tb/s": 1e12, "gib/s": 2.0**30, "gb": 1e9, "tb": 1e12}, "3350GB/s, 3.35TB/s, 3350"
)
"""A bare number is GB/s."""
FLOPS = Amount(
    "flops",
    {"tflops": 1e12, "t": 1e12, "tflop/s": 1e12, "gflops": 1e9, "g": 1e9, "pflops": 1e15, "p": 1e15},
    "989TFLOPS, 989T, 989",
)
"""A bare number is TFLOP/s."""
TOKENS = Tokens()
