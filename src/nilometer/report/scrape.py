"""The screen of a metrics page: what the server does now, what it counted, its latencies, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.metrics.buckets import Bound
from nilometer.metrics.page_hints import Hint, hints
from nilometer.metrics.server_figures import ServerFigures, Spread
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Block, Cell, Column, Document, Fact, Facts, Lead, Note, Notes, Severity, Table

_ROWS = ("ttft", "inter_token", "request_tpot", "queue", "prefill", "decode", "e2e")
_GRAVE: dict[str, Severity] = {
    "counters_reset": "high",
    "names_unknown": "high",
    "engine_vanished": "medium",
    "slots_limit": "medium",
    "kv_full": "medium",
    "preempted": "medium",
    "lines_broken": "medium",
}
_OF_MARKS = ("beyond_buckets", "first_bucket")
"""Hints that explain a mark of the table stand below it."""
_NAMES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tgi": "TGI",
    "llama.cpp": "llama.cpp",
    "tensorrt-llm": "TensorRT-LLM",
    "ollama": "Ollama",
}


def scrape_document(figures: ServerFigures, place: str, words: Catalogue) -> Document:
    """`place` is where the page was read."""
    blocks: list[Block] = [Lead(text=_lead(figures, place, words))]
    if figures.latencies:
        blocks.append(_table(figures, words))
    rows = [Fact(words.say(f"screen.scrape.fact.{name}"), value) for name, value in _facts(figures, words) if value]
    if rows:
        blocks.append(Facts(rows=rows))
    told = [_note(hint, words) for hint in hints(figures) if hint.slug not in _OF_MARKS]
    if told:
        blocks.append(Notes(rows=told))
    return Document(lang=words.lang, blocks=blocks)


def _lead(figures: ServerFigures, place: str, words: Catalogue) -> str:
    if figures.engine is None:
        return words.say("screen.scrape.unknown", place=place)
    engine = _NAMES[figures.engine]
    if figures.dialect in ("v0", "v1"):
        engine = f"{engine} {figures.dialect.upper()}"
    if figures.loaded is not None:
        return words.say("screen.scrape.holds", engine=engine, n=len(figures.loaded))
    engines = "" if figures.engines in (None, 1) else words.say("screen.scrape.engines", n=figures.engines)
    if figures.running is None and figures.waiting is None:
        return words.say("screen.scrape.untold", engine=engine, engines=engines)
    running, waiting = units.count(figures.running), units.count(figures.waiting)
    now = words.say("screen.scrape.now", engine=engine, engines=engines, running=running, waiting=waiting)
    if figures.kv_usage is None:
        return now
    kv = "screen.scrape.kv" if len(figures.kv_usage.per_engine) == 1 else "screen.scrape.kv_most"
    return words.say("screen.sentences_join").join([now, words.say(kv, share=figures.kv_usage.max)])


def _table(figures: ServerFigures, words: Catalogue) -> Table:
    columns = [
        Column(words.say("screen.scrape.latency"), "left"),
        Column("n", "right"),
        *(Column(words.say(f"screen.scrape.{name}"), "right") for name in ("mean", "p50", "p95")),
    ]
    rows = [
        [Cell(words.say(f"screen.scrape.row.{name}")), *_cells(spread)]
        for name in _ROWS
        if (spread := figures.latencies.get(name)) is not None
    ]
    legend = [words.say(f"screen.scrape.legend.{hint.slug}") for hint in hints(figures) if hint.slug in _OF_MARKS]
    return Table(columns=columns, rows=rows, legend=legend)


def _cells(spread: Spread) -> list[Cell]:
    figures = (spread.mean_s, spread.p50_s, spread.p95_s)
    return [Cell(units.count(spread.count)), *(Cell(_latency(value)) for value in figures)]


def _latency(value: float | Bound | None) -> str:
    if not isinstance(value, Bound):
        return units.latency(None if value is None else value * 1_000)
    if value.at_most is not None:
        return f"< {units.latency(value.at_most * 1_000)}"
    return f"> {units.latency(value.at_least * 1_000)}"


def _facts(figures: ServerFigures, words: Catalogue) -> Iterator[tuple[str, str | None]]:
    """Those that are known, in the order of reading."""
    yield "span", _span(figures, words)
    yield "kv_each", _each(figures)
    yield "kv_capacity", _count(figures.kv_capacity_tokens)
    yield "slots", _slots(figures, words)
    yield "swapped", _count(figures.swapped or None)
    yield "preemptions", _count(figures.preemptions)
    yield "requests", _requests(figures, words)
    yield "prompt_tokens", _with_rate(figures.prompt_tokens, figures.input_tps, words)
    yield "generation_tokens", _with_rate(figures.generation_tokens, figures.generation_tps, words)
    yield "prefix_hits", _percent(figures.prefix_hit_ratio)
    yield "spec", _spec(figures, words)
    yield "step_tokens", None if figures.step_tokens_mean is None else units.mean(figures.step_tokens_mean)
    yield "prompt_speed", _rate(figures.prompt_tps, words)
    yield "decode_speed", _rate(figures.decode_tps_per_slot, words)
    yield "busy_slots", None if figures.busy_slots_mean is None else units.rate(figures.busy_slots_mean)
    yield "tokens_per_decode", None if figures.tokens_per_decode is None else units.rate(figures.tokens_per_decode)
    yield "loaded", _loaded(figures)


def _span(figures: ServerFigures, words: Catalogue) -> str | None:
    if not figures.compared or figures.reset:
        return words.say("screen.scrape.since_start") if figures.loaded is None and figures.engine else None
    if figures.elapsed_s is None:
        return words.say("screen.scrape.between")
    return words.say("screen.scrape.within", seconds=units.seconds(figures.elapsed_s))


def _each(figures: ServerFigures) -> str | None:
    usage = figures.kv_usage
    return None if usage is None or len(usage.per_engine) < 2 else ", ".join(map(units.percent, usage.per_engine))


def _slots(figures: ServerFigures, words: Catalogue) -> str | None:
    slots = figures.slots
    if slots is None:
        return None
    context = "" if slots.context_tokens is None else words.say("screen.scrape.context", n=slots.context_tokens)
    return words.say("screen.scrape.slots", busy=units.count(slots.busy), total=slots.total, context=context)


def _requests(figures: ServerFigures, words: Catalogue) -> str | None:
    named = (("requests", figures.requests), ("ok", figures.ok), ("failed", figures.failed))
    told = [words.say(f"screen.scrape.count.{name}", n=n) for name, n in named if n is not None]
    told += [f"{word} {units.count(n)}" for word, n in (figures.finished or {}).items()]
    if figures.requests_per_s is not None:
        told.append(words.say("screen.scrape.per_s", rate=figures.requests_per_s))
    return words.say("screen.scrape.comma").join(told) or None


def _with_rate(n: float | None, rate: float | None, words: Catalogue) -> str | None:
    told = [text for text in (_count(n), _rate(rate, words)) if text is not None]
    return words.say("screen.scrape.comma").join(told) or None


def _spec(figures: ServerFigures, words: Catalogue) -> str | None:
    spec = figures.spec
    if spec is None:
        return None
    told = [
        None if spec.acceptance_ratio is None else words.say("screen.scrape.accepted", share=spec.acceptance_ratio),
        None if spec.acceptance_length is None else words.say("screen.scrape.each_step", n=spec.acceptance_length),
    ]
    return words.say("screen.scrape.comma").join(text for text in told if text) or None


def _loaded(figures: ServerFigures) -> str | None:
    told = [f"{one.model} ({units.size(one.bytes)})" for one in figures.loaded or []]
    return ", ".join(told) or None


def _count(value: float | None) -> str | None:
    return None if value is None else units.count(value)


def _percent(value: float | None) -> str | None:
    return None if value is None else units.percent(value)


def _rate(value: float | None, words: Catalogue) -> str | None:
    return None if value is None else f"{units.rate(value)} {words.say('screen.tokens_unit')}"


def _note(hint: Hint, words: Catalogue) -> Note:
    return Note(
        slug=hint.slug,
        severity=_GRAVE.get(hint.slug, "low"),
        cause=words.say(f"screen.scrape.hint.{hint.slug}.what", **hint.params),
        step=words.say(f"screen.scrape.hint.{hint.slug}.next", **hint.params),
    )
