"""What must be known beside the figures: window, requests by outcome, rates, lengths, the generator, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.run import Run
from nilometer.core.summary import Counts, Length, Lengths, Summary
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Fact, Facts
from .table import ESTIMATE, estimated


def block(rows: Sequence[Fact]) -> Facts:
    """The facts as one block."""
    return Facts(rows=list(rows))


def of(run: Run, words: Catalogue) -> list[Fact]:
    """The facts of one run, in the order of every screen; what a run has nothing to say to is left out."""
    summary = run.summary
    told = [
        ("window", _window(run, words)),
        ("requests", _requests(summary.requests, words)),
        ("tokens", _tokens(summary, words)),
        ("rate", units.rate(summary.throughput.requests_per_s)),
        ("goodput", _goodput(run, words)),
        ("input", _input(summary.lengths, words)),
        ("output", _output(summary.lengths, words)),
        ("generator", _generator(summary, words)),
        ("memory", _memory(summary, words)),
    ]
    return [Fact(words.say(f"screen.fact.{name}"), value) for name, value in told if value is not None]


def conditions(run: Run, words: Catalogue) -> list[Fact]:
    """What was put on what, and when."""
    told = [
        ("target", run.spec.target),
        ("model", run.environment.model.id or run.spec.model),
        ("engine", _engine(run)),
        ("load", load(run, words)),
        ("started", units.moment(run.phases.started_wall_ns)),
    ]
    return [Fact(words.say(f"screen.fact.{name}"), value) for name, value in told if value]


def load(run: Run, words: Catalogue) -> str:
    """Closed or open loop with its size."""
    asked = run.spec.load
    if asked.rate_per_s is None:
        return words.say("screen.load_closed", n=asked.concurrency or 1)
    return words.say("screen.load_open", rate=asked.rate_per_s, arrivals=asked.arrivals)


def _engine(run: Run) -> str | None:
    engine = run.environment.engine
    known = [part for part in (engine.name, engine.version or engine.build) if part]
    return " ".join(known) or None


def _window(run: Run, words: Catalogue) -> str:
    window = run.summary.window
    asked = run.spec.load.duration_s if window.rule != "count" else None
    border = words.say(
        "screen.window" if asked is not None else "screen.window_all",
        start=units.fixed(window.start_s, 1),
        end=units.fixed(window.end_s, 1),
        asked=asked,
        rule=window.rule,
    )
    if window.steady is None:
        return border
    return border + words.say("screen.steady" if window.steady else "screen.not_steady")


def _requests(counts: Counts, words: Catalogue) -> str:
    parts = [words.say("screen.requests.ok", n=counts.ok)]
    parts += [f"{units.count(n)} {kind}" for kind, n in sorted(counts.errors.items(), key=lambda item: -item[1])]
    unnamed = counts.error - sum(counts.errors.values())
    others = (("error", unnamed), ("incomplete", counts.incomplete), ("cancelled", counts.cancelled - counts.censored))
    parts += [
        words.say(f"screen.requests.{name}", n=n) for name, n in (*others, ("censored", counts.censored)) if n > 0
    ]
    failed = counts.error + counts.incomplete
    share = words.say("screen.share", share=failed / counts.started) if failed and counts.started else ""
    return words.say("screen.list_join").join(parts) + share


def _tokens(summary: Summary, words: Catalogue) -> str:
    made = summary.throughput
    sign = ESTIMATE if estimated(summary) and made.output_tokens_per_s is not None else ""
    text = words.say(
        "screen.tokens",
        out=sign + units.rate(made.output_tokens_per_s),
        into=units.rate(made.input_tokens_per_s),
    )
    return text + (words.say("screen.tokens_lost", n=made.tokens_lost) if made.tokens_lost else "")


def _goodput(run: Run, words: Catalogue) -> str | None:
    if run.spec.slo is None:
        return None
    return words.say("screen.goodput", rate=run.summary.throughput.goodput_requests_per_s, slo=run.spec.slo)


def _input(lengths: Lengths, words: Catalogue) -> str:
    return words.say("screen.length", **_asked_got(lengths.asked_input, lengths.input, words))


def _output(lengths: Lengths, words: Catalogue) -> str:
    source = words.say("screen.list_join").join(_sources(lengths, words)) or words.say("screen.source.none")
    sign = ESTIMATE if lengths.token_source.get("estimated") else ""
    return words.say("screen.length", **_asked_got(lengths.asked_output, lengths.output, words, sign)) + words.say(
        "screen.length_source", source=source
    )


def _asked_got(asked: Length, got: Length, words: Catalogue, sign: str = "") -> dict[str, str]:
    """Means as words; the difference only where both are known and it shows."""
    off = got.mean / asked.mean - 1 if asked.mean and got.mean is not None else None
    return {
        "asked": units.mean(asked.mean),
        "got": (sign if got.mean is not None else "") + units.mean(got.mean),
        "off": words.say("screen.off", share=off) if off else "",
    }


def _sources(lengths: Lengths, words: Catalogue) -> Iterator[str]:
    """Where the token counts came from; with their numbers where there is more than one source."""
    for source, n in sorted(lengths.token_source.items(), key=lambda item: -item[1]):
        name = words.say(f"screen.source.{source}")
        yield name if len(lengths.token_source) == 1 else f"{name} {units.count(n)}"


def _generator(summary: Summary, words: Catalogue) -> str:
    generator = summary.generator
    seen = [
        words.say("screen.generator.cpu", share=generator.cpu_share),
        words.say("screen.generator.shared", share=generator.shared_reads_share),
    ]
    if generator.achieved_over_asked is not None and generator.achieved_over_asked < 0.98:
        seen.append(words.say("screen.generator.achieved", share=generator.achieved_over_asked))
    verdict = words.say(f"screen.generator.{generator.verdict}")
    return words.say("screen.generator.all", verdict=verdict, seen=words.say("screen.list_join").join(seen))


def _memory(summary: Summary, words: Catalogue) -> str | None:
    memory = summary.memory
    parts = []
    if memory.server_rss_peak_bytes is not None:
        parts.append(words.say("screen.memory.server", bytes=memory.server_rss_peak_bytes))
    if memory.device_used_peak_bytes is not None:
        parts.append(words.say("screen.memory.device", bytes=memory.device_used_peak_bytes))
    if memory.kv_used_peak_ratio is not None:
        parts.append(words.say("screen.memory.kv", share=memory.kv_used_peak_ratio))
    return words.say("screen.list_join").join(parts) or None
