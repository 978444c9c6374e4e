"""What a server says of itself in common terms: one metrics page, or what changed between two.

Unknown is None, never 0: an engine without a gauge for its KV cache has no KV use. Counts and queues are added up over
the engines of a page; shares of the KV cache never are. Reads no file and no clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from .buckets import Bound, Histogram, histogram_of
from .engine_pages import KINDS, Dialect, Gap, dialect_of
from .page_choice import chosen, first_there, once
from .page_growth import Engine, Growth, engine_of, growth
from .page_lines import PARTS
from .pages import Page

LATENCIES = ("ttft", "per_token", "inter_token", "request_tpot", "queue", "prefill", "decode", "e2e")
"""`per_token` is the gap between tokens where the engine tells it, else the mean of each request."""


class KvUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the KV cache in use, 0 to 1, of each engine on the page in the order of their labels."""

    max: float
    per_engine: list[float]


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Drafted tokens and those taken over. `acceptance_length`: tokens that a step yields, its own one among them."""

    drafts: float | None = None
    draft_tokens: float | None = None
    accepted: float | None = None
    acceptance_ratio: float | None = None
    acceptance_length: float | None = None


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """llama.cpp's slots: how many, how many at work, the context of each in tokens."""

    total: int
    busy: int | None = None
    context_tokens: int | None = None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A model that Ollama holds in memory: its bytes, and those of them on a device."""

    model: str
    bytes: int | None = None
    device_bytes: int | None = None
    context_tokens: int | None = None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A latency as the server counted it, in s; `source` is the family it was read from."""

    source: str
    kind: Gap | None = None
    count: float
    mean_s: float | None = None
    p50_s: float | Bound | None = None
    p95_s: float | Bound | None = None


class ServerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a page; counts and latencies are since the server's start, or since the page before (`elapsed_s`).

    Rates are there only where it is known how long that was. `names` are told where no engine is known by them.
    """

    engine: str | None = None
    dialect: str | None = None
    engines: int | None = None
    elapsed_s: float | None = None
    compared: bool = False
    """Whether there was a page before."""
    reset: bool = False
    appeared: int = 0
    vanished: int = 0
    ignored_lines: int = 0
    broken_lines: int = 0
    running: float | None = None
    waiting: float | None = None
    swapped: float | None = None
    kv_usage: KvUsage | None = None
    kv_capacity_tokens: float | None = None
    preemptions: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    generation_tokens: float | None = None
    generation_tps: float | None = None
    input_tps: float | None = None
    requests_per_s: float | None = None
    prefix_hit_ratio: float | None = None
    spec: Speculation | None = None
    requests: float | None = None
    ok: float | None = None
    failed: float | None = None
    finished: dict[str, float] | None = None
    step_tokens_mean: float | None = None
    """Tokens that a step of the engine works on."""
    prompt_tps: float | None = None
    """How fast prompts are read while one is."""
    decode_tps_per_slot: float | None = None
    busy_slots_mean: float | None = None
    tokens_per_decode: float | None = None
    """Tokens that a call of llama.cpp's decoder yields."""
    latencies: dict[str, Spread] = {}
    slots: Slots | None = None
    loaded: list[Loaded] | None = None
    names: list[str] = []


class _Reader:
    """A page under a dialect, with its counters and histograms since a page before where there is one."""

    def __init__(self, dialect: Dialect, page: Page, change: Growth | None) -> None:
        self.dialect = dialect
        self.page = page
        self.grown = page if change is None else change.page

    def gauge(self, name: str) -> float | None:
        """Over all engines."""
        return _sum(once(first_there(self.page, self.dialect.gauges.get(name, ()))))

    def share(self, name: str) -> list[float]:
        """Of each engine; one below 0 is how an engine says that it has none."""
        rows = [row for row in first_there(self.page, self.dialect.ratios.get(name, ())) if row.value >= 0]
        found: dict[Engine, float] = {}
        for row in sorted(rows, key=lambda row: engine_of(row.labels)):
            key = engine_of(row.labels)
            found[key] = max(row.value, found.get(key, 0.0))
        return list(found.values())

    def count(self, name: str) -> float | None:
        """What a counter counted."""
        return _sum(row.value for row in first_there(self.grown, self.dialect.counters.get(name, ())))

    def histogram(self, name: str) -> tuple[str, Histogram] | None:
        """The family it was read from, and its series put together."""
        for family in self.dialect.histograms.get(name, ()):
            parts = {part: chosen(self.grown, family, family.name + part) for part in PARTS}
            found = histogram_of(self.grown, family.name, parts)
            if found is not None:
                return family.name, found
        return None

    def by_label(self, name: str) -> dict[str, float] | None:
        """What a counter counted, by one of its labels."""
        families, label = self.dialect.by_label.get(name, ((), ""))
        found: dict[str, float] = {}
        for row in first_there(self.grown, families):
            if (word := row.labels.get(label)) is not None:
                found[word] = found.get(word, 0.0) + row.value
        return {word: _whole(n) for word, n in found.items()} or None

    def capacity(self) -> float | None:
        """Tokens that the KV caches of all engines hold."""
        if self.dialect.blocks is not None:
            family, blocks, size = self.dialect.blocks
            rows = chosen(self.page, family, family.key)
            held = [_digits(row.labels.get(blocks)) * _digits(row.labels.get(size)) for row in rows]
            return _sum(n for n in held if n) if any(held) else None
        if self.dialect.block_gauges is not None:
            blocks_of, size_of = (_sum(once(first_there(self.page, (one,)))) for one in self.dialect.block_gauges)
            return None if blocks_of is None or size_of is None else _whole(blocks_of * size_of)
        return self.gauge("kv_capacity_tokens")


def _sum(values: Iterable[float]) -> float | None:
    held = list(values)
    return _whole(sum(held)) if held else None


def _whole(value: float) -> float:
    """As an int where it is one."""
    return int(value) if math.isfinite(value) and value == int(value) else value


def _digits(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0


def figures(page: Page, before: Page | None = None, elapsed_s: float | None = None) -> ServerFigures:
    """The figures of a page, or of what came about since the page before, `elapsed_s` ago.

    Where a counter went back the server was started anew: what it counted since is given, and no rate.
    """
    dialect = dialect_of(frozenset(page.names))
    if dialect is None:
        return ServerFigures(
            elapsed_s=elapsed_s,
            compared=before is not None,
            ignored_lines=page.ignored,
            broken_lines=page.broken,
            names=page.names,
        )
    change = None if before is None else growth(before, page, dialect)
    reader = _Reader(dialect, page, change)
    reset = change is not None and change.reset
    seconds = None if before is None or reset else elapsed_s
    own = before is None or elapsed_s is not None
    return ServerFigures(
        engine=dialect.engine,
        dialect=dialect.name,
        engines=_engines(page),
        elapsed_s=elapsed_s,
        compared=before is not None,
        reset=reset,
        appeared=0 if change is None else len(change.appeared),
        vanished=0 if change is None else len(change.vanished),
        ignored_lines=page.ignored,
        broken_lines=page.broken,
        running=reader.gauge("running"),
        waiting=reader.gauge("waiting"),
        swapped=reader.gauge("swapped"),
        kv_usage=_kv_usage(reader),
        kv_capacity_tokens=reader.capacity(),
        preemptions=reader.count("preemptions"),
        prompt_tokens=reader.count("prompt_tokens"),
        cached_tokens=reader.count("cached_tokens"),
        generation_tokens=reader.count("generation_tokens"),
        generation_tps=_ratio(reader.count("generation_tokens"), seconds),
        input_tps=_ratio(reader.count("prompt_tokens"), seconds),
        requests_per_s=_ratio(_first(reader.count("ok"), reader.count("requests")), seconds),
        prefix_hit_ratio=_prefix_hits(reader, compared=before is not None),
        spec=_speculation(reader),
        requests=reader.count("requests"),
        ok=reader.count("ok"),
        failed=reader.count("failed"),
        finished=reader.by_label("finished"),
        step_tokens_mean=_mean(reader.histogram("step_tokens")),
        prompt_tps=_ratio(reader.count("prompt_tokens"), reader.count("prompt_seconds")) if own else None,
        decode_tps_per_slot=_ratio(reader.count("generation_tokens"), reader.count("decode_seconds")) if own else None,
        busy_slots_mean=_busy_slots(reader, before if not reset else None),
        tokens_per_decode=_ratio(reader.count("generation_tokens"), reader.count("decode_calls")),
        latencies=_latencies(reader),
    )


def _engines(page: Page) -> int:
    keys = {engine_of(row.labels) for rows in page.series.values() for row in rows}
    return max(1, len(keys - {()}))


def _kv_usage(reader: _Reader) -> KvUsage | None:
    shares = reader.share("kv_usage")
    if not shares:  # an older Triton backend tells blocks and no share
        share = _ratio(reader.gauge("kv_used"), reader.gauge("kv_held"))
        shares = [] if share is None else [share]
    return KvUsage(max=max(shares), per_engine=shares) if shares else None


def _prefix_hits(reader: _Reader, *, compared: bool) -> float | None:
    """By counters where there are any; a gauge is of no window that is known, so that two pages say nothing by it."""
    queries, hits = reader.count("prefix_queries"), reader.count("prefix_hits")
    if queries is None and (cached := reader.count("cached_tokens")) is not None:
        queries, hits = cached + (reader.count("prompt_tokens") or 0), cached  # the others are counted without it
    if queries is not None and hits is not None:
        return _ratio(hits, queries)
    told = [] if compared else reader.share("prefix_hit_ratio")
    return told[0] if len(told) == 1 else None


def _speculation(reader: _Reader) -> Speculation | None:
    drafts, drafted, accepted = (reader.count(f"spec_{name}") for name in ("drafts", "draft_tokens", "accepted"))
    if drafted or drafts:
        each = _ratio(accepted, drafts)
        return Speculation(
            drafts=drafts,
            draft_tokens=drafted,
            accepted=accepted,
            acceptance_ratio=_ratio(accepted, drafted),
            acceptance_length=None if each is None else 1 + each,
        )
    ratio, length = reader.share("spec_acceptance_ratio"), reader.share("spec_acceptance_length")
    if (len(ratio) != 1 and len(length) != 1) or not any((*ratio, *length)):
        return None
    return Speculation(
        acceptance_ratio=ratio[0] if len(ratio) == 1 else None,
        acceptance_length=length[0] if len(length) == 1 else None,
    )


def _busy_slots(reader: _Reader, before: Page | None) -> float | None:
    """A mean over the decoder's calls since the start; over those between two pages it is made from both."""
    now = reader.share("busy_slots")
    if len(now) != 1:
        return None
    if before is None:
        return now[0]
    then, first = _Reader(reader.dialect, before, None), _Reader(reader.dialect, reader.page, None)
    was, calls_were, calls = then.share("busy_slots"), then.count("decode_calls"), first.count("decode_calls")
    if len(was) != 1 or calls_were is None or calls is None or calls <= calls_were:
        return None
    return max(0.0, (now[0] * calls - was[0] * calls_were) / (calls - calls_were))


def _latencies(reader: _Reader) -> dict[str, Spread]:
    found = {}
    for name in ("ttft", *KINDS, "queue", "prefill", "decode", "e2e"):
        if (told := reader.histogram(name)) is not None:
            found[name] = _spread(told, KINDS.get(name))
    per_token = next((found[name] for name in KINDS if name in found), None)
    return found if per_token is None else {**found, "per_token": per_token}


def _spread(told: tuple[str, Histogram], kind: Gap | None) -> Spread:
    source, counted = told
    return Spread(
        source=source,
        kind=kind,
        count=_whole(counted.count),
        mean_s=counted.mean,
        p50_s=counted.percentile(50),
        p95_s=counted.percentile(95),
    )


def _mean(told: tuple[str, Histogram] | None) -> float | None:
    return None if told is None else told[1].mean


def _ratio(part: float | None, whole: float | None) -> float | None:
    found = math.nan if part is None or not whole else part / whole
    return found if math.isfinite(found) else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
