"""The page of services that the mock plays: those that are ready, and the keys of a file that describes another."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec

from nilometer.core.toml import parsed
from nilometer.engines import mock_service
from nilometer.engines.mock_service import READY, Service
from nilometer.text.i18n import Catalogue

from .markdown import row_of

BASE = "healthy"
_TABLES: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("cost", mock_service.CostTable),
    ("setting", mock_service.SettingTable),
    ("speculation", mock_service.SpeculationTable),
    ("faults", mock_service.FaultTable),
)


def services(words: Catalogue) -> Iterator[str]:
    """The ready ones, then the keys."""
    yield row_of(*(words.say(f"doc.services.column.{name}") for name in ("name", "says", "keys")))
    yield row_of(*["---"] * 3)
    tree = parsed(resources.files("nilometer.engines").joinpath(READY).read_text("utf-8"), READY)
    for name, one in tree.items():
        told = words.say(f"screen.mock_service_{name.replace('-', '_')}")
        yield row_of(f"`{name}`", told, ", ".join(_apart(one, tree[BASE])) or "-")
    yield from _keys(words, None, Service)
    for table, struct in _TABLES:
        yield from _keys(words, table, struct)


def _apart(one: dict[str, Any], base: dict[str, Any]) -> Iterator[str]:
    """What is written in the one and not, or otherwise, in the base."""
    for table, keys in one.items():
        if not isinstance(keys, dict):
            yield f"`{table} = {_written(keys)}`"
            continue
        for key, value in keys.items():
            if base.get(table, {}).get(key) != value:
                yield f"`{table}.{key} = {_written(value)}`"


def _keys(words: Catalogue, table: str | None, struct: type[msgspec.Struct]) -> Iterator[str]:
    yield f"\n## `[{table}]`\n" if table else f"\n## {words.say('doc.top_level')}\n"
    yield row_of(*(words.say(f"doc.column.{name}") for name in ("key", "default", "meaning")))
    yield row_of(*["---"] * 3)
    for field in msgspec.structs.fields(struct):
        if table is None and field.name in dict(_TABLES):
            continue
        default = "-" if field.default in (None, msgspec.NODEFAULT) else f"`{_written(field.default)}`"
        yield row_of(f"`{field.name}`", default, words.say(f"doc.services.{table or 'top'}.{field.name}"))


def _written(value: Any) -> str:
    """As TOML has it."""
    return "inf" if value == float("inf") else msgspec.json.encode(value).decode()
