"""Reading a TOML file strictly: into plain values, into a struct, and a refusal that names file, key and line."""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeVar

import msgspec

from .errors import SpecError

T = TypeVar("T")


def parsed(text: str, source: str) -> dict[str, Any]:
    """The file as plain values; slug `toml_invalid` with file and line where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise SpecError("toml_invalid", file=source, detail=str(fault)) from None


def typed(tree: dict[str, Any], kind: type[T], source: str) -> T:
    """Plain values as a struct; slug `toml_key` with the key's path where they are none."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as fault:
        raise SpecError("toml_key", file=source, detail=str(fault)) from None


def refusal(source: str, detail: str, path: str) -> SpecError:
    """What is wrong with the key at this dotted path."""
    return SpecError("toml_key", file=source, detail=f"{detail} - at `$.{path}`")


def located(fault: SpecError, text: str) -> SpecError:
    """The same refusal with the line of its key in `text`, where a line names it."""
    detail = str(fault.params["detail"])
    line = _line_of(text, _path_in(detail))
    return fault if line is None else SpecError(fault.slug, **{**fault.params, "detail": f"{detail} (at line {line})"})


_AT = re.compile(r" - at `\$\.?([^`]*)`")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def _path_in(detail: str) -> list[str]:
    """The keys that lead to what a refusal is about."""
    at, unknown = _AT.search(detail), _UNKNOWN.search(detail)
    path = [key.partition("[")[0] for key in at[1].split(".") if key] if at else []
    return [*path, unknown[1]] if unknown else path


def _line_of(text: str, path: list[str]) -> int | None:
    """The line that sets the key at `path`, or what it lies in; None where no line names any of it."""
    table: list[str] = []
    nearest = None
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.match(line):
            table = here = _keys(found[1])
        elif found := _KEY.match(line):
            here = [*table, *_keys(found[1])]
        else:
            continue
        if here == path:
            return number
        if here == path[: len(here)]:
            nearest = number
    return nearest


def _keys(dotted: str) -> list[str]:
    return [key.strip().strip("\"'") for key in dotted.split(".")]
