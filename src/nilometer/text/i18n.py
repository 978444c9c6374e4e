"""Sentences by key, in zh or en, from one catalogue file per language. A key that is missing is a fault, not a blank.

A parameter may name the form of its number as `text.units` knows it: `{share:percent}`, `{lag_ms:latency}`,
`{n:of|request|requests}`; without one it shows as it is, and None as `-`.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from .units import worded

LANGUAGES = ("en", "zh")


@cache
def _load(lang: str) -> dict[str, str]:
    text = resources.files(__package__).joinpath("locale", f"{lang}.toml").read_text("utf-8")
    return dict(_flatten(tomllib.loads(text)))


def _flatten(tree: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            rows.extend(_flatten(value, f"{prefix}{key}."))
        else:
            rows.append((f"{prefix}{key}", str(value)))
    return rows


class _Speech(string.Formatter):
    """`str.format` with the forms of `text.units`."""

    def format_field(self, value: object, format_spec: str) -> str:
        return worded(value, format_spec)


_SPEECH = _Speech()


class Catalogue:
    """All sentences of one language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self._entries = _load(lang)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def say(self, key: str, /, **params: object) -> str:
        """The sentence of `key` with its parameters filled in; KeyError where either is missing."""
        return _SPEECH.vformat(self._entries[key], (), params)

    def template(self, key: str) -> str:
        """The sentence of `key` with its parameters as they are written, for documentation."""
        return self._entries[key]

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._entries)


def language(flag: str | None, environment: Mapping[str, str]) -> str:
    """`zh` or `en`: the flag, else NILO_LANG, LC_ALL, LC_MESSAGES, LANG (zh* = zh), else en."""
    if flag in LANGUAGES:
        return flag
    for name in ("NILO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
