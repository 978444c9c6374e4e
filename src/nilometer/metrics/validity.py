"""Whether a run may be leaned on: admissible, marked or inadmissible, and every reason with its evidence.

Works on the Summary alone, so that a run from the archive is judged as it was on the day. One table says what each
finding makes of the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding, FindingClass, Severity
from nilometer.core.run import Damage, Health, Phases
from nilometer.core.spec import Prompts, Spec
from nilometer.core.summary import Counts, Distribution, Length, Summary, Verdict

from . import slo
from .generator import LATE_READS_SHARE, LIMIT_MS
from .summary import is_censored
from .window import GUIDE_MEASURED_S, GUIDE_WARMUP_S, LEAST_REQUESTS

LENGTH_OFF_SHARE = 0.01
PREFIX_HIT_SHARE = 0.01
_GUIDE_TOLERANCE_S = 0.5
"""A run shorter than the guide's by less is as long as the guide's."""

_EFFECT: dict[str, tuple[Verdict, Severity]] = {
    "sockets_exhausted": ("inadmissible", "high"),
    "generator_limited": ("inadmissible", "high"),
    "no_ok_requests": ("inadmissible", "high"),
    "none_answered": ("inadmissible", "high"),
    "window_empty": ("inadmissible", "high"),
    "worker_died": ("inadmissible", "high"),
    "worker_silent": ("inadmissible", "high"),
    "journal_write_failed": ("inadmissible", "high"),
    "target_lost": ("inadmissible", "high"),
    "proxy_lost": ("inadmissible", "high"),
    "oversaturated": ("inadmissible", "high"),
    "errors_over_limit": ("inadmissible", "high"),
    "never_steady": ("inadmissible", "high"),
    "journal_damaged": ("marked", "medium"),
    "interrupted": ("marked", "medium"),
    "too_few": ("marked", "medium"),
    "censored_over": ("marked", "medium"),
    "warmup_cut_long": ("marked", "medium"),
    "tokens_estimated": ("marked", "medium"),
    "prefix_cache_hit": ("marked", "medium"),
    "length_input_off": ("marked", "medium"),
    "length_output_off": ("marked", "medium"),
    "quota_reached": ("admissible", "medium"),
    "short_of_guide": ("marked", "low"),
    "clock_stepped": ("admissible", "low"),
    "connection_not_kept": ("admissible", "low"),
    "budget_reached": ("admissible", "low"),
    "lengths_not_from_traffic": ("admissible", "low"),
}
"""What a finding makes of the verdict, and how severe it is. Gravest first; findings come in this order."""

JUDGED = frozenset(_EFFECT)
"""Every finding that is made here, from the Summary; all others are told by who saw it."""
DEATHS = ("worker_died", "worker_silent", "journal_write_failed")
"""Findings that a worker ended before its time."""
_WORST_FIRST: tuple[Verdict, ...] = ("inadmissible", "marked")
_NOTES = ("clock_stepped", "quota_reached", "budget_reached", "connection_not_kept", "lengths_not_from_traffic")
"""Findings that say something about the run but nothing against its figures."""


def judge(
    summary: Summary,
    spec: Spec,
    phases: Phases,
    health: Health,
    *,
    template_tokens: int | None = None,
    more_workers: int | None = None,
) -> tuple[Verdict, list[Finding]]:
    """The verdict on a run and the findings behind it, gravest first.

    `template_tokens` are those of the chat template: they begin every prompt, so a prefix cache may hold them.
    `more_workers`: how many load processes this machine could have had, None where no more than it had.

    The verdict is the worst that any finding makes of it; a run without findings is admissible.
    """
    found = [
        *_generator(summary, health, more_workers),
        *_answers(summary),
        *_ending(summary, spec, phases, health),
        *_load(summary, spec, health),
        *_lost(health.damage),
        *_window(summary, phases),
        *_lengths(summary, spec),
        *_prefix_hits(summary, spec, template_tokens or 0),
    ]
    ranks = list(_EFFECT)
    found.sort(key=lambda finding: ranks.index(finding.slug))
    effects = {_EFFECT[finding.slug][0] for finding in found}
    verdict: Verdict = (
        "inadmissible" if "inadmissible" in effects else "marked" if "marked" in effects else "admissible"
    )
    return verdict, found


def _finding(slug: str, *evidence: Evidence, metric: str | None = None, **params: Param) -> Finding:
    kind: FindingClass = "note" if slug in _NOTES else "validity"
    return Finding(
        slug=slug, kind=kind, severity=_EFFECT[slug][1], metric=metric, params=params, evidence=list(evidence)
    )


def _generator(summary: Summary, health: Health, more_workers: int | None) -> Iterator[Finding]:
    if health.socketless:
        yield _finding("sockets_exhausted", n=health.socketless)
    elif summary.generator.verdict == "limited":
        told = list(_generator_evidence(summary))
        yield _finding("generator_limited", *told, more_workers=more_workers)


def _generator_evidence(summary: Summary) -> Iterator[Evidence]:
    """The figures of the generator that speak against it; where none is beyond its limit alone, all that are known."""
    seen, latency = summary.generator, summary.latency_ms
    refill, start_lag = latency.get("refill", Distribution()), latency.get("start_lag", Distribution())
    figures = [
        ("late_reads_share", seen.late_reads_share, "share", None, LATE_READS_SHARE),
        ("start_lag_p99", start_lag.p99, "ms", start_lag.n, LIMIT_MS),
        ("refill_p95", refill.p95, "ms", refill.n, LIMIT_MS),
        ("loop_lag_p99", seen.loop_lag_ms.p99, "ms", seen.loop_lag_ms.n, LIMIT_MS),
    ]
    known = [(name, value, unit, n, limit) for name, value, unit, n, limit in figures if value is not None]
    speaking = [figure for figure in known if figure[1] > figure[4]]
    for name, value, unit, n, _ in speaking or known:
        yield Evidence(name=name, value=value, unit=unit, n=n)
    if seen.achieved_over_asked is not None:
        yield Evidence(name="achieved_over_asked", value=seen.achieved_over_asked, unit="share")


def _answers(summary: Summary) -> Iterator[Finding]:
    """Whether anything was answered; of a window in which nothing started the whole run tells why."""
    counts, whole = summary.requests, summary.run_requests
    if counts.ok or counts.ok is None:
        return
    if counts.started:
        yield _finding("no_ok_requests", *_failures(counts), started=counts.started)
    elif whole.started and not whole.ok:
        yield _finding("none_answered", *_failures(whole), started=whole.started, in_flight=whole.cancelled)
    else:
        yield _finding("window_empty", *_failures(whole), started=whole.started)


def _ending(summary: Summary, spec: Spec, phases: Phases, health: Health) -> Iterator[Finding]:
    """What ended the load before its time."""
    counts = summary.requests
    failures = list(_failures(counts if counts.started else summary.run_requests))
    if health.death is not None:
        yield _death(health.death)
    if phases.stopped_by == "target_lost" and spec.http.proxy:
        yield _finding("proxy_lost", *failures, proxy=spec.http.proxy)
    elif phases.stopped_by == "target_lost":
        yield _finding("target_lost", *failures)
    if phases.stopped_by == "oversaturated":
        yield _finding("oversaturated")
    if phases.stopped_by == "budget":
        yield _finding("budget_reached", budget=spec.load.max_total_tokens)
    if phases.interrupted:
        yield _finding("interrupted", Evidence(name="requests_ok", value=counts.ok), ok=counts.ok)


def _load(summary: Summary, spec: Spec, health: Health) -> Iterator[Finding]:
    """What happened to the load itself."""
    counts = summary.requests
    failed = slo.error_rate(counts)
    if failed is not None and counts.ok and failed > spec.load.max_error_rate:
        yield _finding("errors_over_limit", *_failures(counts), share=failed, limit=spec.load.max_error_rate)
    yield from _quota(summary)
    if is_censored(counts):
        cut = Evidence(name="requests_censored", value=counts.censored, n=counts.started)
        share = (counts.censored or 0) / (counts.started or 1)
        yield _finding("censored_over", cut, share=share, drain_s=spec.load.drain_s)
    if health.wall_steps:
        step_ms = _largest_step_ms(health)
        yield _finding("clock_stepped", Evidence(name="wall_step", value=step_ms, unit="ms"), n=health.wall_steps)
    if health.resent:
        yield _finding("connection_not_kept", Evidence(name="requests_resent", value=health.resent))


def _quota(summary: Summary) -> Iterator[Finding]:
    seen, n = summary.quota, summary.run_requests.started
    figures = (
        ("retry_after_p50", seen.retry_after_s_p50, "s"),
        ("retry_after_max", seen.retry_after_s_max, "s"),
        ("tokens_per_min", seen.tokens_per_min, "tokens/min"),
    )
    if seen.refused:
        told = [Evidence(name=name, value=value, unit=unit) for name, value, unit in figures if value is not None]
        yield _finding("quota_reached", *told, n=seen.refused, started=n)


def _death(death: str) -> Finding:
    if death.startswith("journal: "):
        return _finding("journal_write_failed", why=death.removeprefix("journal: "))
    return _finding("worker_silent") if death == "silent" else _finding("worker_died", why=death)


def _lost(damage: Sequence[Damage]) -> Iterator[Finding]:
    """What was measured and could not be read back, over all workers."""
    if damage:
        yield _finding(
            "journal_damaged",
            *(Evidence(name="journal_lost", value=one.lost_bytes, unit="bytes", source=one.file) for one in damage),
            lost=sum(one.lost_bytes for one in damage),
            places=sum(one.gaps for one in damage),
            file=", ".join(one.file for one in damage),
        )


def _failures(counts: Counts) -> Iterator[Evidence]:
    """The kinds of failure by their number, the most frequent first."""
    kinds = sorted(counts.errors.items(), key=lambda item: -item[1])
    yield from (Evidence(name=kind, value=n, n=counts.started) for kind, n in kinds)
    if counts.incomplete:
        yield Evidence(name="incomplete", value=counts.incomplete, n=counts.started)


def _largest_step_ms(health: Health) -> float | None:
    """The largest jump of the wall clock between two health rows."""
    jumps = np.abs(np.diff(np.frombuffer(health.wall_offset, dtype="<i8")))
    return float(jumps.max()) / NS_PER_MS if len(jumps) else None


def _window(summary: Summary, phases: Phases) -> Iterator[Finding]:
    """Whether the stretch that was measured can stand for the service."""
    window, ok = summary.window, summary.requests.ok
    measured_s = (phases.stop_ns - phases.measured_ns) / NS_PER_S
    warmup_s = (phases.measured_ns - phases.start_ns) / NS_PER_S
    length_s = window.length_s
    if window.steady is False:
        yield _finding("never_steady", Evidence(name="requests_ok", value=ok), window_s=length_s)
    if ok is not None and 0 < ok < LEAST_REQUESTS:
        yield _finding("too_few", n=ok, least=LEAST_REQUESTS)
    if window.warmup_cut_s > measured_s / 2:
        cut = Evidence(name="warmup_cut", value=window.warmup_cut_s, unit="s")
        yield _finding("warmup_cut_long", cut, cut_s=window.warmup_cut_s, measured_s=measured_s)
    shown_s = length_s if window.rule == "count" else measured_s
    if warmup_s < GUIDE_WARMUP_S - _GUIDE_TOLERANCE_S or shown_s < GUIDE_MEASURED_S - _GUIDE_TOLERANCE_S:
        yield _finding("short_of_guide", warmup_s=warmup_s, measured_s=shown_s)


def _lengths(summary: Summary, spec: Spec) -> Iterator[Finding]:
    """Whether prompts and answers were what was asked for."""
    lengths, asked = summary.lengths, spec.prompts
    estimated = lengths.token_source.get("estimated", 0)
    yield from _off("length_input_off", lengths.asked_input, lengths.input)
    if estimated:
        share = estimated / max(sum(lengths.token_source.values()), 1)
        yield _finding("tokens_estimated", Evidence(name="requests_estimated", value=estimated), share=share)
    else:
        yield from _off("length_output_off", lengths.asked_output, lengths.output)
    default = Prompts()
    made_up = (asked.input_tokens, asked.output_tokens) == (default.input_tokens, default.output_tokens)
    if made_up and asked.workload is None:
        yield _finding("lengths_not_from_traffic", input=asked.input_tokens, output=asked.output_tokens)


def _prefix_hits(summary: Summary, spec: Spec, template_tokens: int) -> Iterator[Finding]:
    """Whether prompts that should be new to the server were found in its cache, beyond the template they all share."""
    hit, input_mean = summary.server.get("prefix_hit_ratio"), summary.lengths.input.mean
    if hit is None or spec.prompts.shared_prefix_tokens:
        return
    template_share = template_tokens / input_mean if input_mean else 0.0
    if hit > PREFIX_HIT_SHARE + template_share:
        yield _finding("prefix_cache_hit", Evidence(name="prefix_hit_ratio", value=hit, unit="share"), share=hit)


def _off(slug: str, asked: Length, got: Length) -> Iterator[Finding]:
    if asked.mean and got.mean is not None and abs(got.mean - asked.mean) > LENGTH_OFF_SHARE * asked.mean:
        off = got.mean / asked.mean - 1
        evidence = Evidence(name="length_mean", value=got.mean, unit="tokens")
        yield _finding(slug, evidence, asked=asked.mean, got=got.mean, off=off)
