"""The values of engines' flags: text to number, switch or word, each kind as its engine reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from nilometer.core.errors import SpecError
from nilometer.core.secrets import SHOWN, is_secret_name

from .flags import Flag

Value = int | float | str | bool | None
MOST = 1 << 50
"""More of anything is a slip of the keyboard."""
YES = frozenset({"1", "true", "on", "yes", "enabled", "t"})
NO = frozenset({"0", "false", "off", "no", "disabled", "f"})
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([kKmMgGtT]?)")
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SHOWN_CHARS = 60


def value_of(flag: Flag, text: str, *, suffixes: bool, engine: str) -> Value:
    """What a flag is set to. None = left to the engine ("auto", -1). SpecError `launch_value_bad`."""
    read = _KINDS.get(flag.kind, _word)
    try:
        return read(text.strip(), suffixes)
    except ValueError:
        shown = SHOWN if is_secret_name(flag.name) else text[:_SHOWN_CHARS]
        raise SpecError("launch_value_bad", engine=engine, flag=flag.name, value=shown) from None


def whole(text: str, suffixes: bool) -> int:
    """A whole number from 1 to MOST; with `suffixes` 32k = 32,000 and 32K = 32,768. ValueError for others."""
    found = _NUMBER.fullmatch(text)
    if not found or (found[2] and not suffixes):
        raise ValueError(text)
    value = float(found[1]) * _SCALES[found[2]] if "." in found[1] else int(found[1]) * _SCALES[found[2]]
    if value != int(value) or not 1 <= value <= MOST:
        raise ValueError(text)
    return int(value)


def _open(text: str, suffixes: bool) -> int | None:
    """A number, or what stands for the engine's own choice."""
    return None if text.lower() in {"auto", "-1", "0"} else whole(text, suffixes)


def _llama(text: str, suffixes: bool) -> int:
    """0 = as the model was trained."""
    return 0 if text == "0" else whole(text, suffixes)


def _chunk(text: str, suffixes: bool) -> int:
    """-1 = prompts are not cut."""
    return -1 if text == "-1" else whole(text, suffixes)


def _share(text: str, _suffixes: bool) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError(text)
    return value


def _gib(text: str, _suffixes: bool) -> float:
    value = float(text) * 2**30
    if not 1 <= value <= MOST:
        raise ValueError(text)
    return value


def _yes(text: str, _suffixes: bool) -> bool:
    if text.lower() not in YES | NO:
        raise ValueError(text)
    return text.lower() in YES


def _not(text: str, suffixes: bool) -> bool:
    return not _yes(text, suffixes)


def _switch(text: str, suffixes: bool) -> bool | None:
    return None if text.lower() in {"auto", "-1"} else _yes(text, suffixes)


def _parts(text: str, _suffixes: bool) -> int:
    """How many of a list are more than nothing."""
    return max(1, sum(float(part) > 0 for part in re.split(r"[,/]", text) if part.strip()))


def _graphs(text: str, _suffixes: bool) -> bool:
    """Whether the list of batch sizes is none."""
    return text == "0"


def _word(text: str, _suffixes: bool) -> str:
    return text


_KINDS: Mapping[str, Callable[[str, bool], Value]] = {
    "count": whole,
    "tokens": whole,
    "bytes": lambda text, _: whole(text, True),
    "open": _open,
    "llama": _llama,
    "chunk": _chunk,
    "share": _share,
    "gib": _gib,
    "on": _yes,
    "set": _yes,
    "off": _not,
    "switch": _switch,
    "list": _parts,
    "graphs": _graphs,
}
"""Kind -> how it is read; every other is a word."""
