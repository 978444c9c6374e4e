"""Files of no known format whose columns the user names: CSV, JSON lines, access logs of nginx or envoy.

A map is `--map at=COLUMN:UNIT,input_tokens=COLUMN,...` or a TOML file with the same keys. The unit of a stamp is always
named.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from nilometer.core.errors import DataError, SpecError
from nilometer.workload.entry import Entry, Part

from .row import Broken, Got, Skipped, Unit, length, stamp_ns, told

FIELDS = ("at", "input_tokens", "output_tokens", "turns", "prompt", "session", "scenario", "status")
UNITS: tuple[Unit, ...] = get_args(Unit)


class Map(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Field -> column of the file; in JSON `a.b` is b within a. `only` names rows to keep by the text of a column."""

    at: str | None = None
    unit: Unit | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    turns: str | None = None
    prompt: str | None = None
    session: str | None = None
    scenario: str | None = None
    status: str | None = None
    only: dict[str, str] = {}

    def columns(self) -> list[str]:
        """Every column it names."""
        named = [getattr(self, field) for field in FIELDS]
        return [*(name for name in named if name is not None), *self.only]


def read_map(text: str) -> Map:
    """The map of `--map`: a TOML file, or pairs. Refuses `map_wrong`, `file_unreadable`."""
    found = _file(text) if text.endswith(".toml") else _pairs(text)
    try:
        made = msgspec.convert(found, Map)
    except msgspec.ValidationError as fault:
        raise SpecError("map_wrong", text=text[:200], detail=str(fault)) from None
    if (made.at is None) != (made.unit is None):
        raise SpecError("map_wrong", text=text[:200], detail=f"at needs one of {', '.join(UNITS)}")
    if made.input_tokens is None and made.prompt is None:
        raise SpecError("map_wrong", text=text[:200], detail="neither input_tokens nor prompt")
    return made


def _file(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as fault:
        raise DataError("file_unreadable", file=path, detail=fault.strerror or str(fault)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise SpecError("map_wrong", text=path, detail=str(fault)) from None


def _pairs(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for piece in text.split(","):
        field, _, column = (each.strip() for each in piece.partition("="))
        if not column or field in found or field not in FIELDS:
            raise SpecError("map_wrong", text=text[:200], detail=piece.strip()[:80])
        if field == "at":
            column, _, found["unit"] = column.rpartition(":")
        found[field] = column
    return found


class Mapped:
    """Reads rows by a map; a row is a table by the names of its columns."""

    def __init__(self, the_map: Map) -> None:
        self._map = the_map
        self._unmet = the_map.columns()
        self._known: list[str] | None = None

    def check(self, path: Path) -> None:
        """At the end of a file: refuses `map_absent` columns that no row of it had. In a log a row may lack any."""
        if self._unmet and self._known is not None:
            raise absent(path, self._unmet, self._known)

    def __call__(self, row: Mapping[str, Any], line: int) -> Sequence[Got]:
        the_map = self._map
        if self._known is None:
            self._known = list(_names(row))
        if self._unmet:
            self._unmet = [name for name in self._unmet if not _has(row, name)]
        if any(str(_at(row, column)) != text for column, text in the_map.only.items()):
            return (Skipped("not_asked_for"),)
        status = length(_column(row, the_map.status), "status")
        if status is not None and status >= 400:
            return (Skipped("failed_call"),)
        stamp = _column(row, the_map.at)
        if the_map.at is not None and stamp in (None, ""):
            raise Broken("stamp_wrong", f"{the_map.at}: -")
        text = _column(row, the_map.prompt)
        if text is not None and not isinstance(text, str):
            raise Broken("field_wrong", f"{the_map.prompt}")
        entry = Entry(
            line=line,
            at_ns=stamp_ns(stamp, the_map.unit or "s"),
            input_tokens=length(_column(row, the_map.input_tokens), "input_tokens"),
            output_tokens=length(_column(row, the_map.output_tokens), "output_tokens"),
            turns=length(_column(row, the_map.turns), "turns") or 1,
            parts=(Part("user", text),) if text else (),
            session=_name(_column(row, the_map.session)),
            scenario=_name(_column(row, the_map.scenario)),
        )
        if entry.input_tokens is None and not entry.parts:
            return (Skipped("no_lengths"),)
        return (told(entry),)


def absent(path: Path, columns: Sequence[str], known: Sequence[str]) -> DataError:
    """`map_absent`: what a map names and a file lacks, and what it has."""
    return DataError(
        "map_absent", file=str(path), columns=", ".join(columns)[:200], known=", ".join(known)[:400] or "-"
    )


def _names(row: Mapping[str, Any]) -> Iterator[str]:
    """Its columns as a map names them."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from (f"{key}.{name}" for name in _names(value))
        else:
            yield key


def _has(row: Mapping[str, Any], name: str) -> bool:
    """Whether it has the column, with or without a value."""
    if name in row:
        return True
    key, _, rest = name.partition(".")
    within = row.get(key)
    return bool(rest) and isinstance(within, dict) and _has(within, rest)


def _column(row: Mapping[str, Any], name: str | None) -> Any:
    return None if name is None else _at(row, name)


def _at(row: Mapping[str, Any], name: str) -> Any:
    """A column by its name, else along the points in it; None where there is none, as for `-` in an access log."""
    value: Any = row.get(name)
    if value is None and "." in name:
        value = row
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
    return None if value == "-" else value


def _name(value: Any) -> str | None:
    return None if value in (None, "") else str(value)[:200]
