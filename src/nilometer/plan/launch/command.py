"""Reads how an engine is started - a command line, a file's pairs, a server's - into the words of a plan.

Flags that are not known are named with the nearest that is; those that a plan does not count are named as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from nilometer.core.errors import SpecError
from nilometer.core.secrets import SHOWN, is_secret_name, mask_url

from .fields import Launch, Unknown, Written, launch_of
from .flags import BOOLEAN, NONE, UNCOUNTED, Dialect, Flag
from .flags_others import DIALECTS
from .shell import Typed, find
from .values import NO, YES, Value, value_of

__all__ = ["Launch", "Spoken", "Unknown", "Written", "gathered", "look_up", "nearest", "read_command", "spoken"]


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """A command taken apart, nothing of it understood yet."""

    engine: str
    version: str | None
    variables: tuple[Written, ...]
    flags: tuple[Written, ...]
    config: str | None
    """The file it names for more settings; they stand between the variables and the flags."""


def spoken(text: str) -> Spoken:
    """A shell command to its engine's words. SpecError `launch_unreadable`, `launch_engine_unknown`,
    `launch_value_missing`.
    """
    typed = find(text)
    dialect = DIALECTS[typed.engine]
    flags = tuple(_pairs(typed, dialect))
    named = (one.value for one in flags if (row := look_up(one.name, dialect)[0]) and row.field == "config")
    return Spoken(
        engine=typed.engine,
        version=typed.version,
        variables=tuple(_variables(typed, dialect)),
        flags=flags,
        config=next(named, None),
    )


def read_command(text: str) -> Launch:
    """A shell command to what it starts; a file that it names is left aside.

    SpecErrors of `spoken`, and `launch_value_bad`.
    """
    said = spoken(text)
    return gathered(said.engine, [*said.variables, *said.flags], version=said.version)


def gathered(
    engine: str, pairs: Iterable[Written], *, version: str | None = None, dialect: Dialect | None = None
) -> Launch:
    """The settings of one engine put together; of two that name one field the later counts. SpecErrors as above."""
    spoken = dialect or DIALECTS[engine]
    found: dict[str, Value] = {}
    given: list[Written] = []
    unknown, ignored, uncounted = [], [], []
    for pair in pairs:
        given.append(msgspec.structs.replace(pair, value=_shown(pair)))
        flag, turned = look_up(pair.name, spoken)
        if flag is None:
            unknown.append(Unknown(name=pair.name, nearest=nearest(pair.name, spoken), place=pair.place))
        elif flag.field == UNCOUNTED:
            uncounted.append(flag.name)
        elif flag.field == NONE:
            ignored.append(flag.name)
        else:
            found[flag.field] = _value(flag, pair, spoken, turned)
    made = launch_of(engine, found, version)
    return msgspec.structs.replace(
        made,
        given=tuple(given),
        unknown=tuple(unknown),
        ignored=tuple(dict.fromkeys(ignored)),
        uncounted=tuple(dict.fromkeys([*made.uncounted, *uncounted])),
    )


def _shown(pair: Written) -> str | None:
    if pair.value is None:
        return None
    return SHOWN if is_secret_name(pair.name) else mask_url(pair.value)


def _variables(typed: Typed, dialect: Dialect) -> Iterable[Written]:
    """Those that the engine reads; others that begin as its own do are handed on, to be named as unknown."""
    for name, value in typed.env.items():
        own = dialect.prefix is not None and name.startswith(dialect.prefix)
        if name in dialect.env or own:
            yield Written(name=name, value=value, place=name)


def _pairs(typed: Typed, dialect: Dialect) -> Iterable[Written]:
    """Flags with their values, and the model where it stands alone. SpecError `launch_value_missing`."""
    words = list(typed.words)
    at, model = 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_flag(word):
            if not model and dialect.engine in {"vllm", "sglang"}:
                model = True
                yield Written(name="--model", value=word)
            continue
        name, equals, attached = word.partition("=")
        if re.fullmatch(r"-O\d", name):
            name, equals, attached = "-O", "=", name[2:]
        flag, _ = look_up(name, dialect)
        if equals:
            yield Written(name=name, value=attached)
            continue
        values = _following(words, at)
        count = _taken(flag, values)
        at += count
        if flag is not None and count == 0 and flag.kind not in BOOLEAN | {"many"}:
            raise SpecError("launch_value_missing", engine=dialect.engine, flag=name)
        yield Written(name=name, value=" ".join(values[:count]) if count else None)


def _following(words: Sequence[str], at: int) -> Sequence[str]:
    """The words up to the next flag."""
    end = next((i for i in range(at, len(words)) if _is_flag(words[i])), len(words))
    return words[at:end]


def _taken(flag: Flag | None, values: Sequence[str]) -> int:
    """How many of the words behind a flag are its own; of an unknown one all."""
    if flag is None or flag.kind == "many":
        return len(values)
    if flag.kind in BOOLEAN:
        return int(bool(values) and values[0].lower() in YES | NO | {"auto"})
    return min(1, len(values))


def _is_flag(word: str) -> bool:
    """A negative number is none."""
    return word.startswith("-") and len(word) > 1 and not re.match(r"-\.?\d", word)


def look_up(name: str, dialect: Dialect) -> tuple[Flag | None, bool]:
    """The row of a flag or variable, and whether the name turns it round (`--no-...`)."""
    known = dialect.flags
    if name in dialect.env:
        return dialect.env[name], False
    if dialect.underscores and name.startswith("--"):
        name = name.replace("_", "-")
    if name in known:
        return known[name], False
    head = name.partition(".")[0]
    if head != name and head in known and known[head].kind in {"value", "word"}:
        return known[head], False
    if dialect.negates and name.startswith("--no-"):
        turned = known.get(f"--{name.removeprefix('--no-')}")
        return (turned, True) if turned is not None and turned.kind in BOOLEAN else (None, False)
    if dialect.abbreviates and name.startswith("--") and len(name) > len("--x"):
        begun = {flag.name: flag for spelling, flag in known.items() if spelling.startswith(name)}
        if len(begun) == 1:
            return next(iter(begun.values())), False
    return None, False


def nearest(name: str, dialect: Dialect) -> str | None:
    """The known flag or variable that looks most like it; None where none does."""
    word = name.lower().replace("_", "-") if name.startswith("-") else name
    close = get_close_matches(word[:200], [*dialect.flags, *dialect.env], n=1, cutoff=0.7)
    return close[0] if close else None


def _value(flag: Flag, pair: Written, dialect: Dialect, turned: bool) -> Value:
    if pair.value is None:
        if flag.kind == "switch":
            return True
        if flag.kind not in BOOLEAN:
            raise SpecError("launch_value_missing", engine=dialect.engine, flag=pair.name)
        return (flag.kind == "off") == turned
    try:
        value = value_of(flag, pair.value, suffixes=dialect.suffixes, engine=dialect.engine)
    except SpecError as fault:
        if pair.place is None:
            raise
        raise SpecError("launch_value_bad_at", place=pair.place, **fault.params) from None
    return not value if turned and isinstance(value, bool) else value
