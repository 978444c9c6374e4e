"""One line of the doctor's: what was looked at, in what state it is, what fills its sentences."""

from __future__ import annotations

from typing import Literal

import msgspec

from nilometer.core.errors import NiloError, Param

State = Literal["ok", "warn", "fail", "skipped"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """`slug` names the check, `params` fill its sentence; the fix has one only if needed.

    Its sentence is that of the `finding` or `error` that it met, else the doctor's own: that of its state unless
    `said` names another.
    """

    slug: str
    state: State
    value: str | float | int | None = None
    params: dict[str, Param] = {}
    said: str | None = None
    finding: str | None = None
    error: str | None = None


def failed(slug: str, fault: NiloError) -> Check:
    """The check that met this error."""
    return Check(slug=slug, state="fail", value=fault.slug, params=fault.params, error=fault.slug)
