"""The next measurement that tells rivals apart: what it changes, what each cause foretells of it, and what it said.

A trial repeats the highest load with one thing changed. Each cause foretells one of two outcomes before it runs; what
came out then speaks for those who foretold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from nilometer.core.finding import Confidence, Evidence, Experiment, Finding
from nilometer.core.spec import Spec

from .level import LevelEvidence
from .sign import Look, Sign

_COUNT = re.compile(r"\d+")
_OF_TOKENS = re.compile(r"\d+|(uniform|lognormal):\d+,\d+")


class Trial(NamedTuple):
    """`changed` is None where a spec cannot be changed so. `foretold`: by cause, an outcome's name in `outcomes`."""

    slug: str
    changed: Callable[[Spec], Spec | None]
    foretold: Mapping[str, str]
    outcomes: Mapping[str, Callable[[LevelEvidence, LevelEvidence], Sign]]
    """How far each came about, from the level as it was and as it was with the change."""


class Outcome(NamedTuple):
    """What a trial said: the causes that foretold what came about, those that foretold otherwise, and the figures."""

    held: tuple[str, ...]
    refuted: tuple[str, ...]
    evidence: tuple[Evidence, ...]


def halved(text: str) -> str | None:
    """A distribution of lengths with half the tokens; None of one that stands in a file."""
    return _COUNT.sub(lambda found: str(max(1, int(found[0]) // 2)), text) if _OF_TOKENS.fullmatch(text) else None


def _half_lengths(spec: Spec) -> Spec | None:
    prompts = spec.prompts
    shorter = halved(prompts.input_tokens), halved(prompts.output_tokens)
    if prompts.workload or prompts.scenarios or None in shorter:
        return None
    return replace(spec, prompts=replace(prompts, input_tokens=shorter[0] or "", output_tokens=shorter[1] or ""))


def _half_load(spec: Spec) -> Spec | None:
    concurrency = spec.load.concurrency
    if concurrency is None or concurrency < 2:
        return None
    return replace(spec, load=replace(spec.load, concurrency=concurrency // 2))


def _fresh_prompts(spec: Spec) -> Spec | None:
    if spec.prompts.workload:
        return None
    return replace(spec, prompts=replace(spec.prompts, shared_prefix_tokens=0, unique=True, seed=spec.prompts.seed + 1))


def _longer(spec: Spec) -> Spec | None:
    load = spec.load
    if load.requests is not None:
        return replace(spec, load=replace(load, requests=load.requests * 4))
    return replace(spec, load=replace(load, duration_s=load.duration_s * 4, window=None))


def _grown(name: str) -> Callable[[LevelEvidence, LevelEvidence], Look]:
    """A figure with the change over the same without it."""

    def look(before: LevelEvidence, after: LevelEvidence) -> Look:
        was, now = before.value(name), after.value(name)
        if was is None or now is None or was == 0:
            return Look(f"{name}_ratio", None)
        figure = after.figures[name]
        n, level = (figure.n, figure.level) if figure else (None, None)
        return Look(f"{name}_ratio", Evidence(name=f"{name}_ratio", value=now / was, n=n, level=level, source="client"))

    return look


_PLATEAU, _TTFT, _GAP, _MADE = (_grown(name) for name in ("full_decoding", "ttft_mean", "token_gap", "requests_per_s"))

TRIALS: tuple[Trial, ...] = (
    Trial(
        "half_lengths",
        _half_lengths,
        {
            "queue": "plateau_stays",
            "kv_reserved": "plateau_stays",
            "kv_capacity": "plateau_grows",
            "careful_admission": "plateau_grows",
        },
        {
            "plateau_stays": lambda before, after: _PLATEAU(before, after).within(0.8, 1.2, 0.1),
            "plateau_grows": lambda before, after: _PLATEAU(before, after).above(1.2, 1.45),
        },
    ),
    Trial(
        "half_load",
        _half_load,
        {
            "queue": "ttft_falls",
            "static_batching": "ttft_falls",
            "front_end": "ttft_falls",
            "prefill": "ttft_falls",
            "kv_capacity": "ttft_falls",
            "decode_compute": "gap_falls",
            "noisy_neighbour": "nothing_moves",
            "throttling": "nothing_moves",
            "growing_state": "nothing_moves",
            "cold_start": "nothing_moves",
            "decode_bandwidth": "nothing_moves",
        },
        {
            "ttft_falls": lambda before, after: _TTFT(before, after).below(0.85, 0.65),
            "gap_falls": lambda before, after: _GAP(before, after).below(0.85, 0.7),
            "nothing_moves": lambda before, after: _GAP(before, after).within(0.85, 1.2, 0.1),
        },
    ),
    Trial(
        "fresh_prompts",
        _fresh_prompts,
        {"prefix_flattered": "ttft_grows"},
        {"ttft_grows": lambda before, after: _TTFT(before, after).above(1.1, 1.3)},
    ),
    Trial(
        "longer",
        _longer,
        {"too_short": "figures_move"},
        {"figures_move": lambda before, after: _TTFT(before, after).above(1.05, 1.15)},
    ),
)


def trial_for(first: str, rivals: Sequence[str], spec: Spec) -> Trial | None:
    """The first trial that this spec allows and on which the cause and its rivals do not foretell the same."""
    for trial in TRIALS:
        if first not in trial.foretold or trial.changed(spec) is None:
            continue
        others = {trial.foretold[slug] for slug in rivals if slug in trial.foretold}
        if not rivals or others - {trial.foretold[first]}:
            return trial
    return next((one for one in TRIALS if first in one.foretold and one.changed(spec) is not None), None)


def predictions_of(trial: Trial, causes: Sequence[str]) -> list[str]:
    """What each of these causes foretells of it, as `TRIAL.OUTCOME:CAUSE`; nothing of those that foretell nothing."""
    return [f"{trial.slug}.{trial.foretold[slug]}:{slug}" for slug in causes if slug in trial.foretold]


def with_experiment(findings: Sequence[Finding], spec: Spec, command: str) -> list[Finding]:
    """The findings, the first with the trial that would confirm or refute it; as they are where there is none."""
    if not findings or findings[0].confidence == "confirmed":
        return list(findings)
    first, rivals = findings[0], _rivals(findings)
    trial = trial_for(first.slug, rivals, spec)
    if trial is None:
        return list(findings)
    return [
        replace(first, experiment=Experiment(command=command, predictions=predictions_of(trial, rivals_of(findings)))),
        *findings[1:],
    ]


def _rivals(findings: Sequence[Finding]) -> list[str]:
    """Those that the first names, and with it those that were found beside it."""
    return list(dict.fromkeys([*findings[0].rivals, *(one.slug for one in findings[1:])]))


def rivals_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The causes that a trial is to tell apart, the first of them the answer so far; none of no finding."""
    return (findings[0].slug, *_rivals(findings)) if findings else ()


def outcome_of(trial: Trial, causes: Sequence[str], before: LevelEvidence, after: LevelEvidence) -> Outcome:
    """What came about; a cause whose figure was not measured is neither held nor refuted."""
    held: list[str] = []
    refuted: list[str] = []
    figures: list[Evidence] = []
    for slug in causes:
        if slug not in trial.foretold:
            continue
        sign = trial.outcomes[trial.foretold[slug]](before, after)
        if sign.degree is None:
            continue
        (held if sign.speaks else refuted).append(slug)
        if sign.evidence is not None and sign.evidence not in figures:
            figures.append(sign.evidence)
    return Outcome(tuple(held), tuple(refuted), tuple(figures))


def updated(findings: Sequence[Finding], outcome: Outcome) -> list[Finding]:
    """The findings after a trial: who foretold it alone is confirmed and stands first; the refuted stand last."""
    alone = len(outcome.held) == 1
    told = [_after(finding, outcome, alone=alone) for finding in findings]
    return sorted(told, key=lambda one: (one.slug in outcome.refuted, one.slug not in outcome.held))


def _after(finding: Finding, outcome: Outcome, *, alone: bool) -> Finding:
    if finding.slug in outcome.refuted:
        return replace(finding, confidence="possible", against=[*outcome.evidence, *finding.against])
    if finding.slug not in outcome.held:
        return finding
    sure: Confidence = "confirmed" if alone or not outcome.refuted else "likely"
    return replace(finding, confidence=sure, evidence=[*outcome.evidence, *finding.evidence])
