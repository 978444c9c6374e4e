"""What must be known beside the figures: window, requests by outcome, rates, lengths, the generator, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.run import Run
from nilometer.core.summary import Counts, Length, Lengths, Summary
from nilometer.metrics import slo
from nilometer.text import load as loads
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Fact, Facts
from .table import ESTIMATE, MARK, estimated


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
        ("slo", _slo(run, words)),
        ("goodput", _goodput(summary, words)),
        ("input", _input(summary.lengths, words)),
        ("output", _output(summary.lengths, words)),
        ("recovery", _recovery(summary, words)),
        ("generator", _generator(summary, words)),
        ("server", _server(summary, words)),
        ("memory", _memory(summary, words)),
        ("cost", _cost(run, words)),
    ]
    return [Fact(words.say(f"screen.fact.{name}"), value) for name, value in told if value is not None]


def conditions(run: Run, words: Catalogue) -> list[Fact]:
    """What was put on what, and when."""
    told = [
        ("target", run.spec.target),
        ("model", run.environment.model.id or run.spec.model),
        ("engine", _engine(run)),
        ("load", load(run, words)),
        ("workload", run.spec.prompts.workload),
        ("started", units.moment(run.phases.started_wall_ns) if run.start_known else None),
    ]
    return [Fact(words.say(f"screen.fact.{name}"), value) for name, value in told if value]


def condition_facts(run: Run, words: Catalogue) -> Facts:
    """What a history holds still: what is served, how, and with which lengths."""
    told = [
        ("model", run.environment.model.id or run.spec.model),
        ("engine", _engine(run)),
        ("workload", run.spec.prompts.workload),
        ("input", _input(run.summary.lengths, words)),
        ("output", _output(run.summary.lengths, words)),
    ]
    return block([Fact(words.say(f"screen.fact.{name}"), value) for name, value in told if value])


def load(run: Run, words: Catalogue) -> str:
    """Closed or open loop with its size."""
    return loads.kind(run.spec, words) if run.load_known else words.say("screen.load_unknown")


def measured(held: slo.Held) -> str:
    """The figure a bound of the SLO was held against, in the bound's unit, with the mark of too few samples."""
    show = {"ms": units.latency, "share": units.percent, "per_s": units.rate}[held.bound.unit]
    return show(held.value) + (MARK if held.marked else "")


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


def _requests(counts: Counts, words: Catalogue) -> str | None:
    """Answered, failed by kind, ended by us; nothing where there were no requests to speak of."""
    if counts.ok is None:
        return None
    text = words.say("screen.requests.ok", n=counts.ok)
    if counts.error is None:
        text += words.say("screen.requests.failed_unknown")
    elif counts.failed and counts.started:
        kinds = words.say("screen.list_join").join(_failures(counts, words))
        text += words.say("screen.requests.failed", share=counts.failed / counts.started, kinds=kinds)
    ours = (("cancelled", counts.by_us), ("censored", counts.censored or 0))
    return text + "".join(words.say(f"screen.requests.{name}", n=n) for name, n in ours if n > 0)


def _failures(counts: Counts, words: Catalogue) -> Iterator[str]:
    """Each kind with its number, the most frequent first; `error` for those without a kind."""
    yield from (f"{units.count(n)} {kind}" for kind, n in sorted(counts.errors.items(), key=lambda item: -item[1]))
    unnamed = (counts.error or 0) - sum(counts.errors.values())
    others = (("error", unnamed), ("incomplete", counts.incomplete or 0))
    yield from (words.say(f"screen.requests.{name}", n=n) for name, n in others if n > 0)


def _tokens(summary: Summary, words: Catalogue) -> str:
    made = summary.throughput
    sign = ESTIMATE if estimated(summary) and made.output_tokens_per_s is not None else ""
    text = words.say(
        "screen.tokens",
        out=sign + units.rate(made.output_tokens_per_s),
        into=units.rate(made.input_tokens_per_s),
    )
    return text + (words.say("screen.tokens_lost", n=made.tokens_lost) if made.tokens_lost else "")


def _slo(run: Run, words: Catalogue) -> str | None:
    """Each bound of the SLO beside the measured figure, those that were missed first."""
    if run.spec.slo is None:
        return None
    held = sorted(slo.met(slo.parse(run.spec.slo), run.summary), key=lambda one: _FATES.index(one.met))
    return words.say("screen.list_join").join(_bound(one, words) for one in held)


_FATES = (False, None, True)


def _bound(held: slo.Held, words: Catalogue) -> str:
    fate = "unmeasured" if held.met is None else "met" if held.met else "missed"
    return words.say(f"screen.slo.{fate}", bound=held.bound.text, value=measured(held))


def _goodput(summary: Summary, words: Catalogue) -> str | None:
    rate = summary.throughput.goodput_requests_per_s
    return None if rate is None else words.say("screen.goodput", rate=rate)


def _recovery(summary: Summary, words: Catalogue) -> str | None:
    """When the service was as before the spike, by which measure, and how bad it was meanwhile."""
    found = summary.recovery
    if found is None:
        return None
    after = "never" if found.recovered_after_s is None else "after"
    how = words.say(f"screen.recovery.{after}", seconds=found.recovered_after_s, watched=found.watched_s)
    return how + words.say(
        "screen.recovery.by",
        metric=words.say(f"short.{found.metric}"),
        base=found.base_p95_ms,
        peak=found.peak_p95_ms,
    )


def _input(lengths: Lengths, words: Catalogue) -> str:
    return words.say("screen.length", **_asked_got(lengths.asked_input, lengths.input, words))


def _output(lengths: Lengths, words: Catalogue) -> str | None:
    """Nothing where none was asked and none came: an encoder's answers have no tokens."""
    if lengths.asked_output.mean is None and lengths.output.mean is None and lengths.token_source.keys() == {"none"}:
        return None
    source = words.say("screen.list_join").join(_sources(lengths, words)) or words.say("screen.source.none")
    sign = ESTIMATE if lengths.token_source.get("estimated") else ""
    told = words.say("screen.length", **_asked_got(lengths.asked_output, lengths.output, words, sign))
    if lengths.output.mean is not None and not lengths.token_source:
        return told  # imported figures: nobody says who counted
    return told + words.say("screen.length_source", source=source)


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
        words.say(f"screen.generator.{name}", share=share)
        for name, share in (("cpu", generator.cpu_share), ("shared", generator.shared_reads_share))
        if share is not None
    ]
    if generator.achieved_over_asked is not None and generator.achieved_over_asked < 0.98:
        seen.append(words.say("screen.generator.achieved", share=generator.achieved_over_asked))
    verdict = words.say(f"screen.generator.{generator.verdict}")
    if not seen:
        return verdict
    return words.say("screen.generator.all", verdict=verdict, seen=words.say("screen.list_join").join(seen))


def _server(summary: Summary, words: Catalogue) -> str | None:
    """What the server itself told: how much of it was at work, and who waited."""
    told = summary.server
    running, slots, waiting = told.get("running_mean"), told.get("slots"), told.get("waiting_mean")
    parts = []
    if running is not None:
        parts.append(words.say("screen.server.slots" if slots else "screen.server.running", n=running, slots=slots))
    if waiting is not None:
        parts.append(words.say("screen.server.waiting", n=waiting))
    if (queue_s := told.get("queue_mean_s")) is not None:
        parts.append(words.say("screen.server.queue", wait=units.latency(queue_s * 1000)))
    if preemptions := told.get("preemptions"):
        parts.append(words.say("screen.server.preemptions", n=preemptions))
    return words.say("screen.list_join").join(parts) or None


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


def _cost(run: Run, words: Catalogue) -> str | None:
    """What the run cost by its price, and what that buys; nothing without a price."""
    price, used = run.spec.price, run.summary.cost
    if used.spent is None:
        unknown = price.device_hour is not None and run.summary.efficiency.devices is None
        return words.say("screen.cost.devices_unknown") if unknown else None
    least = "at_least" if used.uncounted and price.device_hour is None else "spent"
    told = words.say(
        f"screen.cost.{least}",
        cost=used.spent,
        currency=price.currency,
        into=used.prompt_tokens,
        out=used.output_tokens,
        n=used.uncounted,
    )
    if used.tokens_per_currency is None:
        return told
    return told + words.say("screen.cost.buys", n=used.tokens_per_currency, currency=price.currency)
