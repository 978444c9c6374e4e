"""evalscope perf: `benchmark_data.db` (SQLite, a request a row), or `benchmark_summary.json` with the files beside it.

Written below `evalscope/perf` of modelscope/evalscope, read at 0.8.2, 0.17.0 and 1.14.1. TTFT ends at the first frame
with text or `reasoning_content`; TPOT = (latency - TTFT) / (tokens - 1), 0 for one token; ITL is the gap between
frames; percentiles are values that occurred. Until 1.0 the first frame of any kind ended TTFT, and what it called time
per output token was another thing. Columns that hold Python's pickles are never read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec

from nilometer.core.spec import Load
from nilometer.core.summary import Counts, Distribution, Length, Lengths, Throughput

from .fields import MOST_COUNTED, Fields
from .figures import distribution
from .opened import Opened
from .request import COUNTED, Seen, gaps_of, record
from .told import Notes, Told

_ARGUMENTS = "benchmark_args.json"
_PERCENTILES = "benchmark_percentile.json"
_DATABASE = "benchmark_data.db"
_DURATION = ("Test Duration (s)", "Time taken for tests (s)")
_OK = ("Success Requests", "Succeed requests")
_FAILED = ("Failed Requests", "Failed requests")
_TOTAL = ("Total Requests", "Total requests")
_SPEED = ("Output Throughput (tok/s)", "Output token throughput (tok/s)", "Throughput(average tokens/s)")
_RATE = ("Req Throughput (req/s)", "Request throughput (req/s)", "Average QPS")
_LATENCY = ("Avg Latency (s)", "Average latency (s)")
_TTFT_MS = ("Avg TTFT (ms)",)
_TTFT_S = ("Average time to first token (s)",)
_TPOT_MS = ("Avg TPOT (ms)",)
_OLD_TPOT = "Average time per output token (s)"
_ITL_MS = ("Avg ITL (ms)",)
_INPUT = ("Avg Input Tokens", "Average input tokens per request")
_OUTPUT = ("Avg Output Tokens", "Average output tokens per request")
_CONCURRENCY = ("Concurrency", "Number of concurrency")
_ROWS = {"p50": "50%", "p90": "90%", "p95": "95%", "p99": "99%", "min": "min", "max": "max"}
_COLUMNS = {
    "ttft": ("TTFT (ms)", 1.0),
    "tpot": ("TPOT (ms)", 1.0),
    "frame_gap": ("ITL (ms)", 1.0),
    "e2e": ("Latency (s)", 1e3),
}
_ANY_NUMBER = float("-inf")


def claims(opened: Opened) -> bool:
    """A database with its one table, or its own words for what succeeded."""
    if opened.shape == "sqlite":
        return {"start_time", "success", "first_chunk_latency", "completion_tokens"} <= _columns(opened)
    return opened.shape == "object" and bool(opened.names & set(_DURATION)) and bool(opened.names & set(_OK))


def read(opened: Opened) -> Iterator[Told]:
    """One run."""
    if opened.shape == "sqlite":
        yield _database(opened)
        return
    for _, members in opened.objects():
        notes = Notes()
        yield _summary(opened, Fields(opened.path, members, notes), notes)


def _summary(opened: Opened, fields: Fields, notes: Notes) -> Told:
    ok, failed = fields.first(_OK, fields.whole), fields.first(_FAILED, fields.whole)
    known = ok is not None and failed is not None
    told = Told(
        notes=notes,
        duration_s=fields.first(_DURATION, fields.number),
        counts=Counts(
            started=fields.first(_TOTAL, fields.whole),
            ok=ok,
            error=failed,
            incomplete=0 if known else None,
            cancelled=0 if known else None,
            censored=0 if known else None,
        ),
    )
    _configure(told, opened)
    if told.load.concurrency is None and not told.load.is_open:
        told.load = Load(concurrency=fields.first(_CONCURRENCY, fields.whole))
    if (opened.path.parent / _DATABASE).is_file():
        notes.add("import_detail_beside", name=_DATABASE)
    if not ok:
        notes.add("import_all_failed", severity="high")
        return told
    told.throughput = Throughput(output_tokens_per_s=_mean(fields, *_SPEED), requests_per_s=_mean(fields, *_RATE))
    told.lengths = Lengths(input=Length(mean=_mean(fields, *_INPUT)), output=Length(mean=_mean(fields, *_OUTPUT)))
    told.latency_ms = _latencies(fields, opened, ok, notes)
    if any(name in fields for name in _TTFT_S):
        notes.add("import_first_frame_may_be_empty", "ttft", "medium")
    if _OLD_TPOT in fields:
        notes.add("import_not_mapped", "tpot", fields=_OLD_TPOT)
    notes.add("import_start_at_call", "ttft")
    return told


def _mean(fields: Fields, *names: str) -> float | None:
    """A mean or a rate; what it could not compute is -1."""
    value = fields.first(names, lambda name: fields.number(name, least=_ANY_NUMBER))
    return None if value is None or value < 0 else value


def _latencies(fields: Fields, opened: Opened, ok: int, notes: Notes) -> dict[str, Distribution]:
    """Means from the summary, percentiles from the file beside it."""
    ttft_s, e2e_s = _mean(fields, *_TTFT_S), _mean(fields, *_LATENCY)
    means = {
        "ttft": ttft_s * 1e3 if ttft_s is not None else _mean(fields, *_TTFT_MS),
        "tpot": _mean(fields, *_TPOT_MS),
        "frame_gap": _mean(fields, *_ITL_MS),
        "e2e": None if e2e_s is None else e2e_s * 1e3,
    }
    rows = {} if _OLD_TPOT in fields else _percentiles(opened, notes)
    if rows:
        notes.add("import_percentiles_occurred")
    if means["frame_gap"] is not None:
        notes.add("import_itl_of_frames", "frame_gap")
    made = {}
    for name, mean in means.items():
        column, factor = _COLUMNS[name]

        def value(stat: str, mean: float | None = mean, column: str = column, factor: float = factor) -> float | None:
            if stat == "mean":
                return mean
            found = rows[_ROWS[stat]].number(column) if _ROWS.get(stat) in rows else None
            return None if found is None else found * factor

        made[name] = distribution(value, None if name == "frame_gap" else ok)
    return made


def _percentiles(opened: Opened, notes: Notes) -> dict[str, Fields]:
    beside = opened.beside(_PERCENTILES)
    if beside is None or beside.shape != "array":
        return {}
    rows = [Fields(beside.path, members, notes, path=_PERCENTILES) for _, members in beside.objects()]
    return {label: row for row in rows if (label := row.text("Percentiles"))}


def _configure(told: Told, opened: Opened) -> None:
    """Model, address and load from the arguments beside it. What may hold a key is not looked at."""
    beside = opened.beside(_ARGUMENTS)
    if beside is None or beside.shape != "object":
        return
    arguments = Fields(beside.path, beside.first, told.notes, path=_ARGUMENTS)
    rate = arguments.number("rate", least=_ANY_NUMBER)
    requests = arguments.take("number", int | list[int])  # type: ignore[arg-type]
    parallel = arguments.take("parallel", int | list[int])  # type: ignore[arg-type]
    told.model, told.target = arguments.text("model"), arguments.text("url")
    told.stream = arguments.flag("stream") is not False
    told.api = "chat" if (told.target or "").rstrip("/").endswith("chat/completions") else None
    count = requests if isinstance(requests, int) else None
    if rate is not None and rate > 0:
        told.load = Load(rate_per_s=rate, arrivals="poisson", requests=count)
    elif isinstance(parallel, int):
        told.load = Load(concurrency=parallel, requests=count)


def _database(opened: Opened) -> Told:
    """Requests on the clock of their stamps, which has no date."""
    notes = Notes()
    held = _columns(opened)
    frames = "inter_token_latencies" if "inter_token_latencies" in held else "chunk_times"
    streamed = "is_stream" if "is_stream" in held else "1"
    query = (
        f"SELECT start_time, success, completed_time, latency, first_chunk_latency, prompt_tokens, completion_tokens,"  # noqa: S608 - names of our own
        f" {frames}, {streamed} FROM result"
    )
    old = frames == "chunk_times"
    try:
        with closing(_connected(opened)) as db:
            seen = [_seen(row, old, notes) for row in db.execute(query)]
    except (sqlite3.Error, ValueError) as fault:
        raise opened.broken(str(fault)) from None
    known = [one.start_s for one in seen if one.start_s]
    base = min(known, default=0.0)
    told = Told(
        notes=notes,
        placed=True,
        records=[
            record(place, one._replace(start_s=max(one.start_s - base, 0.0)), notes) for place, one in enumerate(seen)
        ],
    )
    _configure(told, opened)
    told.stream = any(one.ttft_s for one in seen)
    notes.add("import_start_at_call", "ttft")
    notes.add("import_tokens_by_either", "output_tokens")
    return told


def _seen(row: tuple[Any, ...], old: bool, notes: Notes) -> Seen:
    start, success, end, latency, first, prompt, output, frames, streamed = row
    start_s = _number(start, notes) or 0.0
    if not success:
        return Seen(start_s=start_s, e2e_s=_span(_number(end, notes), start_s), outcome="error")
    ttft, e2e = _number(first, notes), _number(latency, notes)
    tokens = _number(output, notes)
    gaps = _gaps(frames, old, notes)
    whole = not streamed or (old and not gaps)
    return Seen(
        start_s=start_s,
        ttft_s=None if whole else ttft,
        gaps_s=None if whole else gaps,
        empty="either" if old else "no",
        last_s=None,
        e2e_s=e2e,
        prompt_tokens=_count(_number(prompt, notes)),
        output_tokens=_count(tokens),
        token_source=COUNTED,
    )


def _gaps(text: object, old: bool, notes: Notes) -> list[float | None] | None:
    """The gaps between frames; older versions keep their moments."""
    if not isinstance(text, str):
        return None
    try:
        values = msgspec.json.decode(text, type=list[float])
    except (msgspec.MsgspecError, RecursionError):
        notes.odd("import_impossible", "inter_token_latencies")
        return None
    return gaps_of(values) if old else [gap if gap >= 0 else None for gap in values]


def _number(value: object, notes: Notes) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 <= value <= MOST_COUNTED:
        notes.odd("import_impossible", "result")
        return None
    return float(value)


def _span(end: float | None, start: float) -> float | None:
    return None if end is None or end < start else end - start


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)


def _columns(opened: Opened) -> set[str]:
    try:
        with closing(_connected(opened)) as db:
            return {row[1] for row in db.execute("PRAGMA table_info(result)")}
    except (sqlite3.Error, ValueError):  # what is wrong with a broken one may be no text
        return set()


def _connected(opened: Opened) -> sqlite3.Connection:
    """The database in memory: nothing beside the file is made or looked at."""
    db = sqlite3.connect(":memory:")
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    db.deserialize(opened.data)
    return db
