"""What an engine was told at its start, in the words of a plan: read from a command line, a file's pairs, a server.

Flags that are not known are named with the nearest that is; those that a plan does not count are named as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from nilometer.core.errors import SpecError
from nilometer.core.secrets import SHOWN, is_secret_name, mask_url

from .kv import ELEMENT_BYTES
from .launch_flags import BOOLEAN, NONE, UNCOUNTED, Dialect, Flag
from .launch_flags_others import DIALECTS
from .launch_shell import Typed, find
from .launch_values import NO, YES, Value, value_of
from .parallel import Parallel
from .precision import ALIASES, PRECISIONS
from .startup import Settings
from .versions import parse_version


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it was written; a secret's value is `***`."""

    name: str
    value: str | None = None
    place: str | None = None
    """FILE:LINE, a variable, a server's page; None = the command line."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that is in no table."""

    name: str
    nearest: str | None
    place: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """An engine as it was started. None = left to the engine.

    Of Ollama `settings.context` is `num_ctx`, of one request; `launch_settled.settled` makes llama.cpp's of it.
    """

    engine: str
    """A name of `launch_flags_others.DIALECTS`, or of `memory.ENGINES`."""
    version: str | None = None
    model: str | None = None
    settings: Settings = Settings()
    parallel: Parallel = Parallel()
    weights: str | None = None
    """A name of `precision.PRECISIONS`; None = as published."""
    key_precision: str = "auto"
    value_precision: str | None = None
    threads: int | None = None
    continuous: bool = True
    """Whether a request may join those under way."""
    kv_tokens: int | None = None
    """The pool, where it is given in tokens."""
    config: str | None = None
    """The file that the command names for more settings."""
    told: frozenset[str] = frozenset()
    """Fields that were set, not left to the engine."""
    given: tuple[Written, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    ignored: tuple[str, ...] = ()
    """Known, and of no weight for a plan."""
    uncounted: tuple[str, ...] = ()
    """Known, and of weight, but not counted."""

    @property
    def plan_engine(self) -> str:
        """The name of `memory.ENGINES` that it is planned by."""
        return "llama.cpp" if self.engine == "ollama" else self.engine


def read_command(text: str) -> Launch:
    """A shell command to what it starts.

    SpecError `launch_unreadable`, `launch_engine_unknown`, `launch_value_bad`, `launch_value_missing`.
    """
    typed = find(text)
    dialect = DIALECTS[typed.engine]
    return gathered(typed.engine, [*_variables(typed, dialect), *_pairs(typed, dialect)], version=typed.version)


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
    made = _launch(engine, found, version)
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
    value = value_of(flag, pair.value, suffixes=dialect.suffixes, engine=dialect.engine)
    return not value if turned and isinstance(value, bool) else value


_METHODS: Mapping[str, str | None] = {
    "awq_marlin": "int4",
    "gptq_marlin": "int4",
    "marlin": "int4",
    "moe_wna16": "int4",
    "w8a8_int8": "int8",
    "experts_int8": "int8",
    "w8a8_fp8": "fp8",
    "modelopt_fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "modelopt_fp4": "nvfp4",
    "petit_nvfp4": "nvfp4",
    "bitsandbytes": "nf4",
    "bitsandbytes_nf4": "nf4",
    "bitsandbytes_fp4": "nf4",
    "eetq": "w8a16",
}
"""Methods of quantisation whose name tells the bits; others are as the model's config says."""
_TYPES: Mapping[str, str] = {"fp8_e4m3fn": "fp8_e4m3", "fp8_inc": "fp8", "bfloat16": "bf16", "float16": "fp16"}
_QUANT = re.compile(r"(?i)(?:^|[-_.:/])((?:ud-)?(?:i?q\d\w*|bf16|f16|fp16|f32|mxfp4))(?:\.gguf)?$")


def _launch(engine: str, found: Mapping[str, Value], version: str | None) -> Launch:
    """Fields of the tables to those of the plan."""
    key, key_known = _cached(_text(found, "key_precision"))
    value, value_known = _cached(_text(found, "value_precision"))
    model = _text(found, "model") or _text(found, "repository")
    return Launch(
        engine=engine,
        version=version,
        model=model,
        settings=_settings(engine, found, version),
        parallel=_parallel(found),
        weights=_weights(engine, found, model),
        key_precision=key or "auto",
        value_precision=_value_precision(engine, key, value),
        threads=_count(found, "threads"),
        continuous=found.get("continuous") is not False,
        kv_tokens=_kv_tokens(found),
        config=_text(found, "config"),
        told=frozenset(found),
        uncounted=tuple(_text(found, f) or f for f, known in _precisions(key_known, value_known) if not known),
    )


def _value_precision(engine: str, key: str | None, value: str | None) -> str | None:
    """llama.cpp sets keys and values apart; elsewhere one word is for both."""
    return value or "auto" if engine == "llama.cpp" and (key or value) else key and value


def _precisions(key: bool, value: bool) -> Iterable[tuple[str, bool]]:
    return (("key_precision", key), ("value_precision", value))


def _settings(engine: str, found: Mapping[str, Value], version: str | None) -> Settings:
    chunk = _count(found, "batched_tokens")
    max_seqs = _count(found, "max_seqs") or _count(found, "admitted")
    chunked = found.get("chunked")
    return Settings(
        utilisation=_number(found, "utilisation"),
        context=_count(found, "context"),
        max_seqs=max_seqs,
        batched_tokens=None if chunk == -1 else chunk,
        block=_count(found, "block"),
        chunked=False if chunk == -1 else chunked if isinstance(chunked, bool) else None,
        prefix_caching=_prefix_caching(engine, found, version),
        eager=found.get("eager") is True,
        kv_bytes=_number(found, "kv_bytes"),
        slots=_count(found, "slots"),
        unified=found["unified"] is True if "unified" in found else None,
        full_windows=found.get("full_windows") is True,
        ubatch=_count(found, "ubatch"),
        flash=_flash(engine, found, version),
    )


FLASH_SINCE = (6_325,)
"""llama.cpp chooses flash attention by itself from about this build (PR 15434, August 2025)."""
PREFIX_SINCE = {"vllm": (0, 8), "tgi": (3, 0)}
"""Releases from which an engine caches prefixes unless told otherwise (vLLM's V1, TGI 3)."""


def _prefix_caching(engine: str, found: Mapping[str, Value], version: str | None) -> bool:
    if "prefix_caching" in found:
        return found["prefix_caching"] is not False
    release, since = parse_version(version), PREFIX_SINCE.get(engine)
    return release is None or since is None or release >= since


def _flash(engine: str, found: Mapping[str, Value], version: str | None) -> bool:
    told = found.get("flash")
    if isinstance(told, bool):
        return told
    release = parse_version(version)
    return engine != "llama.cpp" or release is None or len(release) > 1 or release >= FLASH_SINCE


def _parallel(found: Mapping[str, Value]) -> Parallel:
    tensor = 1 if found.get("sharded") is False else _count(found, "tensor") or 1
    data = _count(found, "data") or 1
    return Parallel(
        tensor=tensor,
        pipeline=_count(found, "pipeline") or _count(found, "devices") or 1,
        data=data,
        expert=tensor * data if found.get("experts") is True else _count(found, "expert") or 1,
    )


def _kv_tokens(found: Mapping[str, Value]) -> int | None:
    blocks = _count(found, "kv_blocks")
    return blocks * (_count(found, "block") or 16) if blocks else _count(found, "kv_tokens")


def _weights(engine: str, found: Mapping[str, Value], model: str | None) -> str | None:
    method = (_text(found, "quantisation") or "").lower().replace("-", "_")
    if engine == "tgi" and method == "bitsandbytes":
        return "int8"
    if method:
        named = _METHODS.get(method, ALIASES.get(method, method))
        return named if named in PRECISIONS else None
    if engine in {"llama.cpp", "ollama"}:
        return _file_type(_text(found, "hf_file")) or _file_type(model)
    return "fp32" if _text(found, "dtype") in {"float", "float32"} else None


def _file_type(name: str | None) -> str | None:
    """GGUF's file type in a file's name or a repository's tag."""
    found = _QUANT.search(name or "")
    word = found[1].lower().removeprefix("ud-") if found else ""
    named = ALIASES.get(word, word)
    return named if named in PRECISIONS else None


def _cached(name: str | None) -> tuple[str | None, bool]:
    """A precision of the cache, and whether its bytes are known."""
    word = (name or "auto").lower()
    word = _TYPES.get(word, word)
    if word == "auto":
        return None, True
    return (word, True) if word in ELEMENT_BYTES else (None, False)


def _text(found: Mapping[str, Value], field: str) -> str | None:
    value = found.get(field)
    return value if isinstance(value, str) and value else None


def _count(found: Mapping[str, Value], field: str) -> int | None:
    value = found.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(found: Mapping[str, Value], field: str) -> float | None:
    value = found.get(field)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
