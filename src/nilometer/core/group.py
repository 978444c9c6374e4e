"""A Group holds the runs that belong together: repeats, a sweep, a verify, a quickstart."""

from __future__ import annotations

from typing import Literal

import msgspec

GroupType = Literal["quickstart", "sweep", "repeat", "verify", "tune", "lab"]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` is the TOML text of what all its runs share; `parent` is the group it was repeated from."""

    id: str
    type: GroupType
    started_wall_ns: int
    spec: str | None = None
    parent: str | None = None
