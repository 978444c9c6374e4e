"""The table of formats: how each is told from the others, what a row of it is, in which unit its stamps are.

A format is named or it is recognised by what only it has; where two claim a file, the user must say which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nilometer.core.errors import DataError, SpecError
from nilometer.workload.prefix import BLOCK_TOKENS

from . import datasets, logs, traces
from .columns import Kind
from .mapped import Map, Mapped, absent
from .row import Got, Message
from .sniff import Layout, Sniff

Reader = Callable[[Any, int], Sequence[Got]]
Clock = Literal["wall", "own", "none"]
"""Stamps of the world's time; of a clock of the trace's own that begins at or after 0; or no stamps at all."""
Columns = dict[str, Kind]
JSON: frozenset[Layout] = frozenset({"lines", "array", "document"})
CSV: frozenset[Layout] = frozenset({"csv"})
ANY: frozenset[Layout] = frozenset({*JSON, *CSV})
TEXT: frozenset[Layout] = frozenset({*ANY, "text"})


class Format(NamedTuple):
    """One format. `row` is what a JSON row is decoded as; None is a table of the columns as they are.

    `columns`, in the order stamp, input, output, lets a CSV be read in whole chunks. `needs` are columns it cannot do
    without.
    """

    name: str
    layouts: frozenset[Layout]
    reader: Callable[[Sniff], Reader]
    claims: Callable[[Sniff], bool]
    clock: Clock = "none"
    unit: str = "none"
    row: Any = None
    columns: Columns | None = None
    needs: frozenset[str] = frozenset()
    block_tokens: int = BLOCK_TOKENS
    quirks: tuple[str, ...] = ()


def _plain(reader: Reader) -> Callable[[Sniff], Reader]:
    return lambda _: reader


def _json_with(*keys: str, without: tuple[str, ...] = ()) -> Callable[[Sniff], bool]:
    """The first row is an object with all of `keys` and none of `without`."""
    return lambda seen: seen.layout in JSON and seen.keys() >= set(keys) and not seen.keys() & set(without)


def _has_zone(seen: Sniff) -> bool:
    return str(seen.first.get("TIMESTAMP", "")).endswith(("+00:00", "Z"))


_AZURE = frozenset({"TIMESTAMP", "ContextTokens", "GeneratedTokens"})
_BURST = frozenset({"Timestamp", "Model", "Request tokens", "Response tokens"})
_LENGTHS = frozenset({"timestamp", "input_length", "output_length"})
_COUNTS = frozenset({"output_tokens_count", "prompt_tokens_count"})
_AIPERF_TYPES = ("single_turn", "multi_turn", "random_pool", "mooncake_trace")
_GUIDELLM_TYPES = frozenset({"prompt", *_COUNTS, *_LENGTHS})


def _azure(zoned: bool) -> Callable[[Sniff], bool]:
    return lambda seen: seen.layout == "csv" and set(seen.header) == _AZURE and _has_zone(seen) == zoned


def _azure_columns(kind: Kind) -> Columns:
    return {"TIMESTAMP": kind, "ContextTokens": "length", "GeneratedTokens": "length"}


def _mixed_claims(seen: Sniff) -> bool:
    first = seen.first
    if isinstance(first, list):
        return bool(first) and all(isinstance(each, dict) and "role" in each for each in first)
    if isinstance(first, str):
        return seen.layout == "lines"
    return _json_with("messages", without=("custom_id", "startTime", "type"))(seen)


def _aiperf_claims(seen: Sniff) -> bool:
    if seen.layout not in JSON or not seen.keys():
        return False
    keys = seen.keys()
    named = seen.first.get("type") in _AIPERF_TYPES
    return named or bool(keys & {"text", "texts", "turns", "text_input"}) or _is_bare_trace(keys)


def _guidellm_claims(seen: Sniff) -> bool:
    keys = seen.keys()
    if seen.layout not in ANY:
        return False
    return ("prompt" in keys and bool(keys & _COUNTS)) or _is_bare_trace(keys)


def _is_bare_trace(keys: frozenset[str]) -> bool:
    """Lengths with a stamp and nothing that says in which unit it is: aiperf has milliseconds, guidellm seconds."""
    return keys >= _LENGTHS and "hash_ids" not in keys


def _langfuse_claims(seen: Sniff) -> bool:
    keys = seen.keys()
    ids = keys & {"traceId", "trace_id", "usageDetails", "usage_details"}
    return seen.layout in ANY and "type" in keys and bool(keys & {"startTime", "start_time"}) and bool(ids)


def _vllm_log_claims(seen: Sniff) -> bool:
    return seen.layout in ("text", "csv") and any("Received request " in line for line in seen.lines)


FORMATS: tuple[Format, ...] = (
    Format(
        "sharegpt",
        JSON,
        _plain(datasets.sharegpt),
        lambda seen: seen.layout in JSON and bool(seen.keys() & {"conversations", "conversation"}),
        row=datasets.Shared,
    ),
    Format(
        "vllm-custom",
        JSON,
        _plain(datasets.vllm_custom),
        _json_with("prompt", without=(*_COUNTS, "timestamp", "type")),
        row=datasets.Custom,
    ),
    Format(
        "openai-batch",
        JSON,
        lambda _: datasets.OpenAIBatch(),
        _json_with("custom_id", "body"),
        row=datasets.BatchIn,
    ),
    Format(
        "openai-batch-output",
        JSON,
        _plain(datasets.openai_batch_output),
        _json_with("custom_id", "response"),
        row=datasets.BatchOut,
    ),
    Format("auto", JSON, _plain(datasets.mixed), _mixed_claims, row=list[Message] | datasets.Chat | str),
    Format(
        "aiperf",
        JSON,
        _plain(datasets.aiperf),
        _aiperf_claims,
        clock="own",
        unit="ms",
        row=datasets.Aiperf,
        block_tokens=traces.MOONCAKE_BLOCK_TOKENS,
    ),
    Format(
        "guidellm",
        ANY,
        _plain(datasets.guidellm),
        _guidellm_claims,
        clock="own",
        unit="s",
        row=datasets.Guidellm,
    ),
    Format("text", TEXT, _plain(datasets.text), lambda seen: seen.layout in ("text", "csv") and _is_txt(seen), row=str),
    Format(
        "azure-llm-2023",
        CSV,
        lambda _: traces.Azure("none"),
        _azure(zoned=False),
        clock="wall",
        unit="date",
        columns=_azure_columns("moment"),
        needs=_AZURE,
        quirks=("fraction_100ns", "no_zone"),
    ),
    Format(
        "azure-llm-2024",
        CSV,
        lambda _: traces.Azure("required"),
        _azure(zoned=True),
        clock="wall",
        unit="date_with_zone",
        columns=_azure_columns("moment_utc"),
        needs=_AZURE,
    ),
    Format(
        "azure-llm-2025",
        CSV,
        lambda seen: traces.Azure("required" if _has_zone(seen) else "none"),
        lambda seen: seen.layout == "csv" and set(seen.header) == _AZURE | {"NumImages"},
        clock="wall",
        unit="date",
        needs=_AZURE,
    ),
    Format(
        "burstgpt",
        CSV,
        _plain(traces.burstgpt),
        lambda seen: seen.layout == "csv" and set(seen.header) >= _BURST,
        clock="own",
        unit="s",
        columns={"Timestamp": "seconds", "Request tokens": "length", "Response tokens": "answered"},
        needs=_BURST,
    ),
    Format(
        "mooncake",
        JSON,
        _plain(traces.mooncake),
        _json_with(*_LENGTHS, "hash_ids", without=("type", "text_input")),
        clock="own",
        unit="ms",
        row=traces.MooncakeRow,
        block_tokens=traces.MOONCAKE_BLOCK_TOKENS,
    ),
    Format(
        "litellm",
        JSON,
        _plain(logs.litellm),
        lambda seen: _json_with("startTime")(seen) and bool(seen.keys() & {"call_type", "prompt_tokens"}),
        clock="wall",
        unit="s_or_date",
        row=logs.LiteLLM,
    ),
    Format(
        "langfuse",
        ANY,
        _plain(logs.langfuse),
        _langfuse_claims,
        clock="wall",
        unit="date",
        row=logs.Langfuse,
    ),
    Format(
        "vllm-log",
        TEXT,
        lambda _: logs.VllmLog(),
        _vllm_log_claims,
        clock="none",
        unit="date_without_year",
        row=str,
    ),
    Format(
        "otel-genai",
        JSON,
        _plain(logs.otlp),
        _json_with("resourceSpans"),
        clock="wall",
        unit="ns",
        row=logs.Otlp,
    ),
)
"""In the order of the documentation."""
NAMES = tuple(each.name for each in FORMATS)
MAPPED = "mapped"


def _is_txt(seen: Sniff) -> bool:
    return seen.name.endswith(".txt") and not _vllm_log_claims(seen)


def mapped(the_map: Map) -> Format:
    """The format that the user states by a map."""
    wall = the_map.unit == "iso"
    return Format(
        MAPPED,
        ANY,
        lambda _: Mapped(the_map),
        lambda _: True,
        clock="wall" if wall else "none",
        unit=the_map.unit or "none",
        row=dict[str, Any],
        needs=frozenset(the_map.columns()),
    )


def choose(path: Path, seen: Sniff, name: str | None = None, the_map: Map | None = None) -> Format:
    """The format of the file. Refuses `format_unnamed`, `format_mapped`, `format_other`, `format_unknown`,
    `format_ambiguous`, `map_absent`."""
    if the_map is not None and name is not None:
        raise SpecError("format_mapped")
    if the_map is not None:
        return _fitting(path, seen, mapped(the_map))
    if name is not None and name not in NAMES:
        raise SpecError("format_unnamed", format=name, known=", ".join(NAMES))
    if name not in (None, "auto"):
        return _fitting(path, seen, next(each for each in FORMATS if each.name == name))
    claimed = [each for each in FORMATS if each.claims(seen)]
    if not claimed:
        raise DataError("format_unknown", file=str(path), known=", ".join(NAMES))
    if len(claimed) > 1:
        raise DataError("format_ambiguous", file=str(path), formats=", ".join(each.name for each in claimed))
    return _fitting(path, seen, claimed[0])


def _fitting(path: Path, seen: Sniff, found: Format) -> Format:
    if seen.layout not in found.layouts:
        raise DataError("format_other", file=str(path), format=found.name, detail=seen.layout)
    if seen.layout == "csv" and not set(seen.header) >= found.needs:
        if found.name == MAPPED:
            raise absent(path, sorted(found.needs - set(seen.header)), seen.header)
        missing = ", ".join(sorted(found.needs - set(seen.header)))
        raise DataError("format_other", file=str(path), format=found.name, detail=f"- {missing}")
    twice = [name for name, n in Counter(seen.header).items() if n > 1 and name in (found.needs or seen.header)]
    if twice and found.row is not str:
        raise DataError("columns_twice", file=str(path), columns=", ".join(twice))
    return found
