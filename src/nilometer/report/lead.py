"""The first line of every screen: the verdict in one sentence, the generator's own failure before all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.metrics import slo
from nilometer.text import load, units
from nilometer.text.i18n import Catalogue

from . import findings
from .document import Lead
from .facts import load as load_of
from .facts import measured
from .notes import level, short
from .table import ESTIMATE, MARK, estimated


def run_lead(run: Run, words: Catalogue, archived: bool = True) -> tuple[Lead, set[str]]:
    """The sentence of one run, and the slugs it has told, which no note need repeat."""
    if run.verdict == "inadmissible":
        return _refusal(run, words.say("screen.lead.refused"), words, archived)
    if run.origin == "imported":
        what = words.say("screen.list_join").join(_taken_over(run, words))
        told = words.say("screen.lead.imported", tool=run.tool, what=what or words.say("screen.lead.no_figures"))
        return Lead(text=told, tone="trouble"), set()
    state = run.verdict if run.verdict == "marked" or not run.summary.window.steady else "steady"
    missed = _missed(run, words)
    text = words.say(f"screen.lead.{state}", what=_achieved(run, words) + missed)
    return Lead(text=text, tone="trouble" if state == "marked" or missed else "plain"), set()


def group_lead(
    runs: Sequence[Run], finding: Finding | None, words: Catalogue, archived: bool = True
) -> tuple[Lead, set[str]]:
    """The sentence of a group: what limits the service, or the load at which it could not be measured."""
    refused = [run for run in runs if run.verdict == "inadmissible"]
    if refused:
        head = words.say("screen.lead.refused_at", load=level(refused[0]))
        return _refusal(refused[0], head, words, archived)
    if finding is None:
        return Lead(text=words.say("screen.lead.limit_unknown")), set()
    what = findings.cause(finding, words)
    if finding.confidence is not None:
        what = words.say(f"screen.confidence.{finding.confidence}", what=what)
    return Lead(text=sentence(words.say("screen.lead.limit", what=what))), {finding.slug}


def sentence(text: str) -> str:
    """With a capital at its beginning, where the script has capitals."""
    return text[:1].upper() + text[1:]


def _refusal(run: Run, head: str, words: Catalogue, archived: bool) -> tuple[Lead, set[str]]:
    finding = findings.gravest(run.findings)
    if finding is None:
        return Lead(text=words.say("screen.lead.bare", head=head), tone="trouble"), set()
    ref = short(run) if archived else None
    cause, step = findings.cause_with_evidence(finding, words, ref), findings.step(finding, words, ref)
    key = "screen.lead.why" if step is None else "screen.lead.why_and_step"
    return Lead(text=words.say(key, head=head, cause=cause, step=step), tone="trouble"), {finding.slug}


def _achieved(run: Run, words: Catalogue) -> str:
    """Who gets what, and what the service makes of it, in the words of the load that was put on it."""
    made = run.summary.throughput
    if made.output_tokens_per_s is None:
        makes = words.say("screen.lead.requests", requests=made.requests_per_s)
    else:
        tokens = units.rate(made.output_tokens_per_s)
        makes = words.say("screen.lead.tokens", tokens=ESTIMATE + tokens if estimated(run.summary) else tokens)
    return words.say(
        "screen.lead.achieved",
        who=load.who(run.spec, words),
        gets=_gets(run.summary.latency_ms, words),
        makes=makes,
    )


def taken_over(run: Run, words: Catalogue) -> str:
    """An imported run in one line: tool, model, test, load and the figures that it has."""
    parts = [run.tool, run.spec.model, run.level, load_of(run, words), *_taken_over(run, words)]
    return words.say("screen.list_join").join(part for part in parts if part)


def _taken_over(run: Run, words: Catalogue) -> Iterator[str]:
    """The figures of a tool that an imported run has, each with its percentile."""
    for name in ("ttft", "tpot", "e2e"):
        found = run.summary.latency_ms.get(name, Distribution())
        stat = next((one for one in _STATS if getattr(found, one) is not None), None)
        if stat is not None:
            value = _marked(found, stat, getattr(found, stat))
            yield words.say("screen.lead.figure", metric=words.say(f"short.{name}"), value=value, stat=stat)
    made = run.summary.throughput
    for name, rate in (("tokens_out", made.output_tokens_per_s), ("tokens_in", made.input_tokens_per_s)):
        if rate is not None:
            yield words.say(f"screen.lead.{name}", tokens=units.rate(rate))


_STATS = ("p95", "p50", "p99", "mean")
"""Of a latency the first that is known stands for it."""


def _missed(run: Run, words: Catalogue) -> str:
    """The bounds of the SLO that were not met, with what was measured; nothing where all were."""
    held = slo.met(slo.parse(run.spec.slo), run.summary) if run.spec.slo else []
    missed = [f"{one.bound.text}: {measured(one)}" for one in held if one.met is False]
    return words.say("screen.lead.missed", bounds=words.say("screen.list_join").join(missed)) if missed else ""


def _gets(latency: dict[str, Distribution], words: Catalogue) -> str:
    ttft, tpot, e2e = (latency.get(name, Distribution()) for name in ("ttft", "tpot", "e2e"))
    if ttft.p95 is None:
        return words.say("screen.lead.whole", p50=_marked(e2e, "p50", e2e.p50), p95=_marked(e2e, "p95", e2e.p95))
    first = _marked(ttft, "p95", ttft.p95)
    if not tpot.p50:
        return words.say("screen.lead.first", ttft=first, e2e=_marked(e2e, "p95", e2e.p95))
    return words.say("screen.lead.stream", ttft=first, each=1_000 / tpot.p50)


def _marked(distribution: Distribution, name: str, value: float | None) -> str:
    return units.latency(value) + (MARK if name in distribution.marked else "")
