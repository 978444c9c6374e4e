"""A Group holds the runs that belong together: repeats, a sweep, a verify, a quickstart."""

from __future__ import annotations

import tomllib
from typing import Any, Literal

import msgspec
import tomli_w

GroupType = Literal["quickstart", "sweep", "repeat", "verify", "tune", "lab"]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` is the TOML text of what all its runs share, and of a sweep or a verify its plan.

    `parent` is the group it repeats.
    """

    id: str
    type: GroupType
    started_wall_ns: int
    spec: str | None = None
    parent: str | None = None


def with_plan(toml: str, kind: GroupType, plan: dict[str, Any]) -> str:
    """The TOML of a Spec, and behind it, in a table named after the group's type, by what plan its runs are made."""
    return f"{toml}\n{tomli_w.dumps({kind: plan})}"


def parted(toml: str, kind: GroupType) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of the Spec and the plan, each as plain values; a group filed without a plan has an empty one.

    Raises ValueError where the text is no TOML.
    """
    tree = tomllib.loads(toml)
    return tree, tree.pop(kind, {})
