"""The first line of every screen: the verdict in one sentence, the generator's own failure before all else."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Lead
from .notes import cause_of, gravest, step_of
from .table import ESTIMATE, MARK, estimated


def run_lead(run: Run, words: Catalogue) -> tuple[Lead, set[str]]:
    """The sentence of one run, and the slugs it has told, which no note need repeat."""
    if run.verdict == "inadmissible":
        return _refusal(run, words)
    state = run.verdict if run.verdict == "marked" or not run.summary.window.steady else "steady"
    what = words.say(f"screen.lead.{state}", what=_achieved(run, words))
    return Lead(text=what, tone="trouble" if state == "marked" else "plain"), set()


def group_lead(runs: Sequence[Run], finding: Finding | None, words: Catalogue) -> tuple[Lead, set[str]]:
    """The sentence of a group: what limits the service, or the load at which it could not be measured."""
    refused = [run for run in runs if run.verdict == "inadmissible"]
    if refused:
        lead, told = _refusal(refused[0], words)
        at = words.say("screen.lead.at_load", load=level(refused[0]), what=lead.text)
        return Lead(text=at, tone="trouble"), told
    if finding is None:
        return Lead(text=words.say("screen.lead.limit_unknown")), set()
    return Lead(text=words.say("screen.lead.limit", what=cause_of(finding, words))), {finding.slug}


def level(run: Run) -> str:
    """The load of a run within its group: requests in flight, or requests per second."""
    load = run.spec.load
    return run.level or (units.plain(load.rate_per_s) if load.rate_per_s is not None else str(load.concurrency or 1))


def _refusal(run: Run, words: Catalogue) -> tuple[Lead, set[str]]:
    finding = gravest(run.findings)
    if finding is None:
        return Lead(text=words.say("screen.lead.inadmissible_bare"), tone="trouble"), set()
    text = words.say("screen.lead.inadmissible", cause=cause_of(finding, words, run), step=step_of(finding, words, run))
    return Lead(text=text, tone="trouble"), {finding.slug}


def _achieved(run: Run, words: Catalogue) -> str:
    """Who gets what, and what the service makes of it, in the words of the load that was put on it."""
    load, made = run.spec.load, run.summary.throughput
    if load.rate_per_s is None:
        who = words.say("screen.lead.closed", n=load.concurrency or 1)
    else:
        who = words.say("screen.lead.open", rate=load.rate_per_s)
    if made.output_tokens_per_s is None:
        makes = words.say("screen.lead.requests", requests=made.requests_per_s)
    else:
        tokens = units.rate(made.output_tokens_per_s)
        makes = words.say("screen.lead.tokens", tokens=ESTIMATE + tokens if estimated(run.summary) else tokens)
    return words.say("screen.lead.achieved", who=who, gets=_gets(run.summary.latency_ms, words), makes=makes)


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
