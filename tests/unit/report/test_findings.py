"""A finding in words: what its sentence gives is not said again."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.errors import Param
from nilometer.core.finding import Evidence, Finding, FindingClass, Severity
from nilometer.report import findings
from nilometer.text.i18n import Catalogue

EN, ZH = Catalogue("en"), Catalogue("zh")


def finding(
    slug: str,
    *evidence: Evidence,
    severity: Severity = "medium",
    kind: FindingClass = "validity",
    **params: Param,
) -> Finding:
    return Finding(slug=slug, kind=kind, severity=severity, params=params, evidence=list(evidence))


ERRORS = finding(
    "errors_over_limit",
    Evidence(name="http_429", value=61, n=201),
    Evidence(name="incomplete", value=5, n=201),
    share=0.4,
    limit=0.01,
)
LIMITED = finding(
    "generator_limited",
    Evidence(name="late_reads_share", value=0.087, unit="share"),
    Evidence(name="refill_p95", value=81.2, unit="ms", n=594),
    severity="high",
)


def test_evidence_counts_parts_of_a_whole_and_says_what_a_figure_rests_on() -> None:
    assert findings.evidence(ERRORS, EN) == "http_429 61 of 201, incomplete 5 of 201"
    assert findings.evidence(ERRORS, ZH) == "http_429 61/201，不完整 5/201"
    assert findings.all_evidence(LIMITED, EN) == "late reads that held several tokens 8.7 %, refill p95 81.2 ms (n 594)"


def test_a_sentence_that_takes_in_its_evidence_leaves_none_to_tell() -> None:
    assert "(late reads that held several tokens 8.7 %, refill p95 81.2 ms)" in findings.cause(LIMITED, EN)
    assert findings.evidence(LIMITED, EN) is None
    assert findings.cause_with_evidence(LIMITED, EN) == findings.cause(LIMITED, EN)


def test_a_sentence_that_does_not_gets_it_in_brackets() -> None:
    told = findings.cause_with_evidence(ERRORS, EN)
    assert told == findings.cause(ERRORS, EN) + " (http_429 61 of 201, incomplete 5 of 201)"


def test_a_figure_that_the_sentence_gives_is_no_evidence_besides() -> None:
    hit = finding("prefix_cache_hit", Evidence(name="prefix_hit_ratio", value=0.31, unit="share"), share=0.31)
    assert findings.evidence(hit, EN) is None
    assert findings.cause_with_evidence(hit, EN).startswith("31 % of the prompt tokens")


def test_a_range_a_level_and_an_unknown_name_are_shown_as_they_are() -> None:
    one = Evidence(name="vllm:kv_usage", value=0.9, lo=0.85, hi=0.95, unit="share", level="8", n=12)
    assert findings.all_evidence(finding("x", one), EN) == "vllm:kv_usage 90 % (85 % - 95 %) at 8 (n 12)"


def test_a_step_that_needs_a_run_is_left_out_where_no_command_can_name_it() -> None:
    assert findings.step(ERRORS, EN, "k3vac2") == (
        "see `nilo runs show k3vac2 --errors`; `--max-error-rate` sets the limit"
    )
    assert findings.step(ERRORS, EN) is None
    assert findings.step(LIMITED, EN) is not None


@pytest.mark.parametrize("first", [0, 1])
def test_the_generator_stands_before_all_else(first: int) -> None:
    other = finding("never_steady", severity="high", window_s=60.0)
    pair = [other, LIMITED] if first else [LIMITED, other]
    assert findings.gravest(pair) is LIMITED


def test_a_note_makes_no_run_inadmissible() -> None:
    note = finding("lengths_not_from_traffic", severity="high", kind="note", input="512", output="128")
    few = finding("too_few", n=3, least=50)
    assert findings.gravest([note, few]) is few
    assert findings.gravest([note]) is None


@pytest.mark.parametrize(
    ("params", "en", "zh"),
    [
        ({"more_workers": 4}, "`--workers 4`", "`--workers 4`"),
        ({"more_workers": None}, "less load", "减小负载"),
        ({}, "less load", "减小负载"),
    ],
)
def test_a_limited_generator_is_told_what_more_of_it_there_could_be(params: dict[str, Param], en: str, zh: str) -> None:
    limited = msgspec.structs.replace(finding("generator_limited", severity="high"), params=params)
    for lang, told in (("en", en), ("zh", zh)):
        said = findings.step(limited, Catalogue(lang)) or ""
        assert told in said
        assert ("--workers" in said) == bool(params.get("more_workers"))
