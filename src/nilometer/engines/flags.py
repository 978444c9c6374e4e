"""llama.cpp's flags as values: the defaults of an engine, and what the user's own flags replace."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nilometer.core.errors import SpecError

LOOPBACK = "127.0.0.1"


class Flag(NamedTuple):
    """One default: all its names, the first that the program knows is used; `opposites` are names of its contrary.

    `needed` flags are given whatever `--help` says.
    """

    names: tuple[str, ...]
    value: str | None = None
    needed: bool = False
    opposites: tuple[str, ...] = ()


MODEL = ("-m", "--model")
MODEL_SOURCES = (*MODEL, "-mu", "--model-url", "-dr", "--docker-repo", "-hf", "-hfr", "--hf-repo")
HOST = ("--host",)
PORT = ("--port",)
ALIAS = ("-a", "--alias")
SLOTS = ("-np", "--parallel")
CONTEXT = ("-c", "--ctx-size")
API_KEY = ("--api-key",)

HTTP_THREADS_LEAST = 256
"""A connection kept alive holds a thread of the server: a client with more of them would queue before the slots."""


def defaults(*, slots: int, context_tokens_per_slot: int, threads: int) -> list[Flag]:
    """Flags of an engine to be measured: metrics on, prompt cache off, no page of its own, a core left to the client.

    The prompt cache is off because a prompt that was seen before would otherwise cost nothing.
    """
    return [
        Flag(SLOTS, str(slots), needed=True),
        Flag(CONTEXT, str(slots * context_tokens_per_slot), needed=True),
        Flag(("-t", "--threads"), str(threads), needed=True),
        Flag(("--threads-http",), str(max(HTTP_THREADS_LEAST, 2 * slots + 8))),
        Flag(("--metrics",)),
        Flag(("--slots",), opposites=("--no-slots",)),
        Flag(("--no-webui", "--no-ui"), opposites=("--webui", "--ui")),
        Flag(("--no-cache-prompt",), opposites=("--cache-prompt",)),
        Flag(("--cache-ram", "-cram"), "0"),
    ]


def split(text: str) -> list[str]:
    """The flags of an engine spec as words. Refuses unbalanced quotes: slug `engine_spec_bad`."""
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise SpecError("engine_spec_bad", detail=str(fault)) from None


def merged(flags: Iterable[Flag], users: Sequence[str], known: frozenset[str]) -> list[str]:
    """The command's arguments: the defaults the user does not set himself and the program knows, then the user's.

    `known` empty means that the program did not tell; then only needed flags are given.
    """
    words: list[str] = []
    for flag in flags:
        name = next((name for name in flag.names if name in known), flag.names[0] if flag.needed else None)
        if name is None or any(word in flag.names + flag.opposites for word in users):
            continue
        words += [name] if flag.value is None else [name, flag.value]
    return [*words, *users]


def value_of(names: tuple[str, ...], words: Sequence[str]) -> str | None:
    """The value after the last of `names` among `words`; None where it does not stand."""
    places = [place for place, word in enumerate(words[:-1]) if word in names]
    return words[places[-1] + 1] if places else None


def without(names: tuple[str, ...], words: Sequence[str]) -> list[str]:
    """The words without these flags and their values."""
    return [
        word for place, word in enumerate(words) if word not in names and (not place or words[place - 1] not in names)
    ]


def refuse_other_hosts(words: Sequence[str]) -> None:
    """An engine started for a measurement listens on the loopback only: slug `engine_host_bad`."""
    host = value_of(HOST, words)
    if host not in (None, LOOPBACK):
        raise SpecError("engine_host_bad", flag=HOST[0], value=host)


def number_of(names: tuple[str, ...], words: Sequence[str]) -> int | None:
    """The same as a whole number; refuses what is none: slug `engine_flag_bad`."""
    value = value_of(names, words)
    if value is None:
        return None
    if not value.isdecimal():
        raise SpecError("engine_flag_bad", flag=names[0], value=value[:40])
    return int(value)
