"""A Group holds the runs that belong together: repeats, a sweep, a verify, a quickstart."""

from __future__ import annotations

import tomllib
from typing import Any, Literal

import msgspec
import tomli_w

GroupType = Literal["quickstart", "sweep", "repeat", "verify", "tune", "lab"]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` is the TOML text of what all its runs share, and of a sweep its plan; `parent` is the group it repeats."""

    id: str
    type: GroupType
    started_wall_ns: int
    spec: str | None = None
    parent: str | None = None


def with_plan(toml: str, plan: dict[str, Any]) -> str:
    """The TOML of a Spec, and behind it how the levels of a sweep are chosen, in a table `[sweep]` of its own."""
    return f"{toml}\n{tomli_w.dumps({'sweep': plan})}"


def parted(toml: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of the Spec and the plan, each as plain values; a group filed without a plan has an empty one.

    Raises ValueError where the text is no TOML.
    """
    tree = tomllib.loads(toml)
    return tree, tree.pop("sweep", {})
