"""The members of one JSON object by their path, each decoded when it is asked for: what is absent or null is None.

A member of a kind that its tool never writes is refused with its path. A number that is none, or that no time, size or
count can be, is left out and noted: tools write NaN, infinities and negative durations where they had nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nilometer.core.errors import DataError

from .opened import Members
from .told import Notes

Kind = TypeVar("Kind")
MOST = 1e18
"""No figure is larger: ns of thirty years."""
MOST_COUNTED = 1e13
"""No count of requests, tokens or bytes is larger."""
_NULL = b"null"


class Fields:
    """One object; `path` is where it stands in its file."""

    def __init__(
        self, file: Path, members: Mapping[str, msgspec.Raw], notes: Notes, *, path: str = "", line: int | None = None
    ) -> None:
        self._file = file
        self._members = members
        self._notes = notes
        self._path = path
        self._line = line

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __bool__(self) -> bool:
        return bool(self._members)

    def take(self, name: str, kind: type[Kind]) -> Kind | None:
        """A member of any kind. Refuses `result_field` where it is another."""
        raw = self._members.get(name)
        if raw is None or bytes(raw).strip() == _NULL:
            return None
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
            raise self.refused(name, str(fault)) from None

    def text(self, name: str) -> str | None:
        """A text; an empty one is None."""
        found: Any = self.take(name, str | int | float)  # type: ignore[arg-type]
        return None if found is None or found == "" else str(found)[:500]

    def flag(self, name: str) -> bool | None:
        """Yes or no."""
        return self.take(name, bool)

    def number(self, name: str, *, least: float = 0.0) -> float | None:
        """A finite number of at least `least`, also where it is written as text."""
        return self.figure(name, self._value(name), least)

    def rate(self, name: str) -> float | None:
        """The same where an infinity has a meaning."""
        value = self._value(name)
        return value if value == math.inf else self.figure(name, value, 0.0)

    def whole(self, name: str) -> int | None:
        """A count."""
        value = self.figure(name, self.number(name), 0.0, MOST_COUNTED)
        return None if value is None else round(value)

    def numbers(self, name: str) -> list[float | None] | None:
        """A list of them; what is none of them is None."""
        found: list[float | str | None] | None = self.take(name, list[float | str | None])
        try:
            return None if found is None else [self.figure(name, _figure(value), 0.0) for value in found]
        except ValueError as fault:
            raise self.refused(name, str(fault)) from None

    def lists(self, name: str) -> list[list[float | None]] | None:
        """Lists of such numbers."""
        found: list[list[float | None]] | None = self.take(name, list[list[float | None]])
        return None if found is None else [[self.figure(name, one, 0.0) for one in row] for row in found]

    def under(self, name: str) -> Fields:
        """The object that a member is; empty where it is absent."""
        members: Members | None = self.take(name, Members)
        return Fields(self._file, members or {}, self._notes, path=self._at(name), line=self._line)

    def each(self, name: str) -> list[Fields]:
        """The objects in a list; nothing where it is absent."""
        found: list[Members] = self.take(name, list[Members]) or []
        return [
            Fields(self._file, members, self._notes, path=f"{self._at(name)}[{place}]", line=self._line)
            for place, members in enumerate(found)
        ]

    def first(self, names: Iterable[str], how: Callable[[str], Kind | None]) -> Kind | None:
        """The first of several names under which one thing stands: `fields.first(("a", "b"), fields.number)`."""
        return next((value for name in names if (value := how(name)) is not None), None)

    def figure(self, name: str, value: float | None, least: float, most: float = MOST) -> float | None:
        """A figure that can be; else None, and noted."""
        if value is None:
            return None
        if not math.isfinite(value):
            self._notes.odd("import_not_a_number", self._at(name))
            return None
        if not least <= value <= most:
            self._notes.odd("import_impossible", self._at(name))
            return None
        return value

    def refused(self, name: str, detail: str) -> DataError:
        """The refusal of a member, with the line where the file has lines that count."""
        told = {"file": str(self._file), "field": self._at(name), "detail": detail[:200]}
        if self._line is None:
            return DataError("result_field", **told)
        return DataError("result_field_line", line=self._line, **told)

    def _value(self, name: str) -> float | None:
        found: Any = self.take(name, float | str)  # type: ignore[arg-type]
        try:
            return _figure(found)
        except ValueError:
            raise self.refused(name, repr(found)[:60]) from None

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def _figure(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def of_table(file: Path, row: Mapping[str, str], notes: Notes, line: int) -> Fields:
    """The same of a row of a table; an empty cell is absent."""
    members = {name: msgspec.Raw(msgspec.json.encode(cell)) for name, cell in row.items() if cell}
    return Fields(file, members, notes, line=line)
