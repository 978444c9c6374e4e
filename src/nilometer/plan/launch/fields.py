"""The form of a launch, and how the fields that flags set become those of a plan, with each release's defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from ..memory.kv import ELEMENT_BYTES
from ..memory.startup import Settings
from ..model.parallel import Parallel
from ..model.precision import ALIASES, PRECISIONS
from ..versions import parse_version
from .values import Value


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it was written; a secret's value is `***`."""

    name: str
    value: str | None = None
    place: str | None = None
    """FILE:LINE, the name of a variable, `GET PAGE` of a server; None = the command line."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that is in no table."""

    name: str
    nearest: str | None
    place: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """An engine as it was started. None = left to the engine.

    Of Ollama `settings.context` is `num_ctx`, of one request; `settled.settled` makes llama.cpp's of it.
    """

    engine: str
    """A name of `flags_others.DIALECTS`, or of `memory.ENGINES`."""
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
    admitted: int | None = None
    """Requests at once beyond which others are refused, not queued."""
    kv_tokens: int | None = None
    """The pool, where it is given in tokens."""
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

    @property
    def plan_version(self) -> str | None:
        """The release that it is planned by: Ollama's own says nothing of the llama.cpp inside it."""
        return None if self.engine == "ollama" else self.version

    @property
    def plan_cache(self) -> tuple[str, str | None]:
        """(key, value) precision as it is heeded: without flash attention Ollama keeps 16 bits whatever it was told."""
        if self.engine == "ollama" and not self.settings.flash:
            return "auto", None
        return self.key_precision, self.value_precision


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
OLLAMA_TYPE = "q4_k_m"
"""What a model of Ollama's library is where its tag does not say (gpt-oss: as published)."""
_QUANT = re.compile(r"(?i)(?:^|[-_.:/])((?:ud-)?(?:i?q\d\w*|bf16|f16|fp16|f32|mxfp4))(?:-\d{5}-of-\d{5})?(?:\.gguf)?$")


def launch_of(engine: str, found: Mapping[str, Value], version: str | None) -> Launch:
    """Fields of the tables of flags, as they were set, to those of a plan."""
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
        admitted=_count(found, "admitted") or ADMITTED.get(engine),
        kv_tokens=_kv_tokens(found),
        told=frozenset(found),
        uncounted=tuple(_text(found, f) or f for f, known in _precisions(key_known, value_known) if not known),
    )


def _value_precision(engine: str, key: str | None, value: str | None) -> str | None:
    """llama.cpp sets keys and values apart; elsewhere one word is for both."""
    return value or "auto" if engine == "llama.cpp" and (key or value) else value


def _precisions(key: bool, value: bool) -> Iterable[tuple[str, bool]]:
    return (("key_precision", key), ("value_precision", value))


def _settings(engine: str, found: Mapping[str, Value], version: str | None) -> Settings:
    chunk = _count(found, "batched_tokens")
    chunked = found.get("chunked")
    return Settings(
        utilisation=_number(found, "utilisation"),
        context=_count(found, "context"),
        max_seqs=_count(found, "max_seqs"),
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


ADMITTED: Mapping[str, int] = {"tgi": 128}
"""Where nothing is said (text-generation-inference, docs/source/reference/launcher.md)."""
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
        named = _file_type(_text(found, "hf_file")) or _file_type(model)
        return named or (OLLAMA_TYPE if engine == "ollama" and "gpt-oss" not in (model or "") else None)
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
