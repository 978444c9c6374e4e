from __future__ import annotations

from array import array
from typing import Any

import msgspec
import pytest

from nilometer.core.finding import Finding
from nilometer.core.run import Health, Phases
from nilometer.core.spec import Http, Prompts, Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    Generator,
    Length,
    Lengths,
    Summary,
    Throughput,
    Verdict,
    Window,
)
from nilometer.metrics.validity import _EFFECT, judge

from .made import answered, failed, health, phases, spec, summary

GUIDE = phases(60, 240)
ASKED = Spec(target="http://127.0.0.1:8000", prompts=Prompts(input_tokens="100", output_tokens="20"))
GOOD = Summary(
    window=Window(start_s=0.0, end_s=180.0, rule="auto", steady=True),
    requests=Counts(started=600, ok=600),
    run_requests=Counts(started=800, ok=800),
    latency_from="sent",
    latency_ms={"ttft": Distribution(n=600, p95=480.0), "refill": Distribution(n=590, p95=1.0)},
    throughput=Throughput(output_tokens_per_s=650.0),
    lengths=Lengths(token_source={"usage": 600}),
    generator=Generator(verdict="fit", achieved_over_asked=1.0),
)


def judged(
    borders: Phases = GUIDE, seen: Health | None = None, asked: Spec = ASKED, **changes: Any
) -> tuple[Verdict, list[Finding]]:
    return judge(msgspec.structs.replace(GOOD, **changes), asked, borders, seen or Health())


def slugs(verdict_and_findings: tuple[Verdict, list[Finding]]) -> tuple[Verdict, list[str]]:
    verdict, findings = verdict_and_findings
    return verdict, [finding.slug for finding in findings]


def test_nothing_against_it_is_admissible() -> None:
    assert judged() == ("admissible", [])


def test_a_limited_generator_stands_before_all_else() -> None:
    limited = Generator(verdict="limited", late_reads_share=0.11, achieved_over_asked=0.97, loop_lag_ms=Distribution())
    verdict, findings = judged(generator=limited, requests=Counts(started=600, ok=300, error=300))
    assert verdict == "inadmissible"
    assert [finding.slug for finding in findings] == ["generator_limited", "errors_over_limit"]
    told = {evidence.name: evidence.value for evidence in findings[0].evidence}
    assert told == {"late_reads_share": 0.11, "achieved_over_asked": 0.97}


def test_each_figure_beyond_its_limit_is_evidence() -> None:
    limited = Generator(verdict="limited", late_reads_share=0.0, loop_lag_ms=Distribution(n=50, p99=20.0))
    late = {"refill": Distribution(n=40, p95=30.0), "start_lag": Distribution(n=30, p99=4.0)}
    finding = judged(generator=limited, latency_ms=late)[1][0]
    assert [(e.name, e.value, e.unit, e.n) for e in finding.evidence] == [
        ("refill_p95", 30.0, "ms", 40),
        ("loop_lag_p99", 20.0, "ms", 50),
    ]


def test_a_drift_is_inadmissible() -> None:
    assert slugs(judged(window=Window(start_s=0.0, end_s=180.0, rule="auto", steady=False))) == (
        "inadmissible",
        ["never_steady"],
    )


def test_too_few_is_marked_not_unsteady() -> None:
    few = Window(start_s=0.0, end_s=180.0, rule="auto", steady=None)
    verdict, findings = judged(window=few, requests=Counts(started=49, ok=49))
    assert (verdict, [finding.slug for finding in findings]) == ("marked", ["too_few"])
    assert findings[0].params == {"n": 49, "least": 50}
    assert judged(requests=Counts(started=50, ok=50))[0] == "admissible"


def test_errors_over_the_limit_are_inadmissible_with_their_kinds() -> None:
    at_limit = Counts(started=600, ok=594, error=6, errors={"http_5xx": 6})
    assert judged(requests=at_limit) == ("admissible", [])
    over = Counts(started=600, ok=590, error=8, incomplete=2, errors={"http_429": 3, "http_5xx": 5})
    verdict, findings = judged(requests=over)
    assert (verdict, [finding.slug for finding in findings]) == ("inadmissible", ["errors_over_limit"])
    assert [(e.name, e.value) for e in findings[0].evidence] == [("http_5xx", 5), ("http_429", 3), ("incomplete", 2)]
    assert findings[0].params["share"] == pytest.approx(10 / 600)
    lenient = msgspec.structs.replace(ASKED, load=msgspec.structs.replace(ASKED.load, max_error_rate=0.05))
    assert judged(asked=lenient, requests=over)[0] == "admissible"


def test_no_ok_request_says_only_that() -> None:
    dead = Counts(started=10, error=10, errors={"connect": 10})
    verdict, findings = judged(requests=dead)
    assert (verdict, [finding.slug for finding in findings]) == ("inadmissible", ["no_ok_requests"])
    assert findings[0].params == {"started": 10}
    assert [(e.name, e.value, e.n) for e in findings[0].evidence] == [("connect", 10, 10)]


def test_an_interrupt_marks_and_without_figures_refuses() -> None:
    assert slugs(judged(phases(60, 240, interrupted=True))) == ("marked", ["interrupted"])
    nothing = judged(phases(60, 240, interrupted=True), requests=Counts())
    assert slugs(nothing) == ("inadmissible", ["window_empty", "interrupted"])


def test_a_window_without_requests_is_told_by_the_whole_run() -> None:
    """A server that never answers holds the requests of the warm-up: in the window itself nothing starts."""
    held = judged(requests=Counts(), run_requests=Counts(started=4, cancelled=4, censored=4))[1][0]
    assert (held.slug, held.params) == ("none_answered", {"started": 4, "in_flight": 4})
    dead = Counts(started=9, error=7, incomplete=2, errors={"http_5xx": 7})
    failed_all = judged(requests=Counts(), run_requests=dead)[1][0]
    assert (failed_all.slug, failed_all.params) == ("none_answered", {"started": 9, "in_flight": 0})
    assert [(e.name, e.value, e.n) for e in failed_all.evidence] == [("http_5xx", 7, 9), ("incomplete", 2, 9)]
    slow = judged(requests=Counts(), run_requests=Counts(started=4, ok=4))
    assert (slugs(slow), slow[1][0].params) == (("inadmissible", ["window_empty"]), {"started": 4})


def test_a_target_lost_before_the_window_is_told_with_the_failures_of_the_run() -> None:
    lost = msgspec.structs.replace(GUIDE, stopped_by="target_lost")
    dead = Counts(started=60, error=60, errors={"connect": 60})
    findings = judged(borders=lost, requests=Counts(), run_requests=dead)[1]
    assert [(f.slug, f.evidence[0].value) for f in findings] == [("none_answered", 60), ("target_lost", 60)]
    through = msgspec.structs.replace(ASKED, http=Http(proxy="http://p:1"))
    named = judged(borders=lost, asked=through, requests=Counts(), run_requests=dead)[1][1]
    assert (named.slug, named.params) == ("proxy_lost", {"proxy": "http://p:1"})


def test_over_one_percent_censored_is_marked() -> None:
    within = Counts(started=600, ok=594, cancelled=6, censored=6)
    assert judged(requests=within)[0] == "admissible"
    over = Counts(started=600, ok=593, cancelled=7, censored=7)
    verdict, findings = judged(requests=over)
    assert (verdict, [finding.slug for finding in findings]) == ("marked", ["censored_over"])
    assert findings[0].params == {"share": 7 / 600, "drain_s": 60.0}


def test_a_cut_of_more_than_half_is_an_alarm() -> None:
    assert slugs(judged(window=Window(start_s=90.0, end_s=180.0, warmup_cut_s=90.0, rule="auto", steady=True))) == (
        "admissible",
        [],
    )
    assert slugs(judged(window=Window(start_s=91.0, end_s=180.0, warmup_cut_s=91.0, rule="auto", steady=True))) == (
        "marked",
        ["warmup_cut_long"],
    )


def test_shorter_than_the_guide_is_marked_as_such() -> None:
    for borders in (phases(59, 240), phases(60, 239)):
        assert slugs(judged(borders)) == ("marked", ["short_of_guide"])
    assert judged(phases(59.6, 240))[0] == "admissible"
    counted = Window(start_s=0.0, end_s=200.0, rule="count", steady=True)
    assert judged(phases(60, 61), window=counted)[0] == "admissible"
    assert slugs(judged(window=Window(start_s=0.0, end_s=20.0, rule="count", steady=True)))[1] == ["short_of_guide"]


def length(mean: float) -> Length:
    return Length(mean=mean, p50=mean, p95=mean, max=round(mean))


@pytest.mark.parametrize(("got", "found"), [(101.0, False), (101.1, True), (99.0, False), (98.9, True)])
def test_lengths_off_by_over_one_percent(got: float, found: bool) -> None:
    lengths = Lengths(
        asked_input=length(100), input=length(got), asked_output=length(100), output=length(got),
        token_source={"usage": 600},
    )  # fmt: skip
    verdict, findings = judged(lengths=lengths)
    assert [finding.slug for finding in findings] == (["length_input_off", "length_output_off"] if found else [])
    assert verdict == ("marked" if found else "admissible")
    if found:
        assert findings[0].params["off"] == pytest.approx(got / 100 - 1)


def test_estimated_tokens_are_said_and_not_held_against_the_asked_length() -> None:
    lengths = Lengths(asked_output=length(100), output=length(50), token_source={"usage": 300, "estimated": 100})
    verdict, findings = judged(lengths=lengths)
    assert (verdict, [finding.slug for finding in findings]) == ("marked", ["tokens_estimated"])
    assert findings[0].params == {"share": 0.25}


def test_prefix_hits_flatter_unless_a_shared_prefix_was_asked_for() -> None:
    assert judged(server={"prefix_hit_ratio": 0.01})[0] == "admissible"
    assert slugs(judged(server={"prefix_hit_ratio": 0.02})) == ("marked", ["prefix_cache_hit"])
    prefixed = msgspec.structs.replace(ASKED, prompts=Prompts(input_tokens="100", shared_prefix_tokens=50))
    assert judged(asked=prefixed, server={"prefix_hit_ratio": 0.5})[0] == "admissible"


def test_the_chat_template_may_hit_and_no_more() -> None:
    """20 of 100 tokens are the template's: a ratio of 0.21 is still all template and 1 % of tolerance."""
    lengths = Lengths(asked_input=length(100), input=length(100), token_source={"usage": 600})
    for ratio, expected in ((0.20, []), (0.21, []), (0.22, ["prefix_cache_hit"])):
        seen = msgspec.structs.replace(GOOD, lengths=lengths, server={"prefix_hit_ratio": ratio})
        assert [f.slug for f in judge(seen, ASKED, GUIDE, Health(), template_tokens=20)[1]] == expected


def test_what_stopped_the_load_is_said() -> None:
    lost = msgspec.structs.replace(GUIDE, stopped_by="target_lost")
    assert slugs(judged(borders=lost)) == ("inadmissible", ["target_lost"])
    spent = msgspec.structs.replace(GUIDE, stopped_by="budget")
    verdict, findings = judged(borders=spent)
    assert (verdict, findings[0].slug, findings[0].kind) == ("admissible", "budget_reached", "note")


def test_notes_do_not_touch_the_verdict() -> None:
    default = Spec(target="http://127.0.0.1:8000")
    offsets_ns = array("q", [1_000_000, 4_000_000, 4_000_000])
    stepped = health([0.0] * 3, wall_steps=1, wall_offset=offsets_ns.tobytes())
    verdict, findings = judged(seen=stepped, asked=default)
    assert (verdict, [finding.slug for finding in findings]) == (
        "admissible",
        ["clock_stepped", "lengths_not_from_traffic"],
    )
    assert {finding.kind for finding in findings} == {"note"}
    assert findings[0].evidence[0].value == 3.0


@pytest.mark.parametrize(
    ("death", "slug", "params"),
    [
        ("SIGKILL", "worker_died", {"why": "SIGKILL"}),
        ("journal: No space left on device", "journal_write_failed", {"why": "No space left on device"}),
        ("silent", "worker_silent", {}),
    ],
)
def test_a_dead_worker_is_inadmissible(death: str, slug: str, params: dict[str, str]) -> None:
    verdict, findings = judged(seen=Health(death=death))
    assert (verdict, findings[0].slug, findings[0].params) == ("inadmissible", slug, params)


def test_without_a_socket_the_generator_is_limited_by_that() -> None:
    limited = Generator(verdict="limited")
    verdict, findings = judged(generator=limited, seen=Health(socketless=3))
    assert (verdict, findings[0].slug, findings[0].params) == ("inadmissible", "sockets_exhausted", {"n": 3})
    assert "generator_limited" not in [finding.slug for finding in findings]


def test_findings_come_gravest_first() -> None:
    severities = {"high": 0, "medium": 1, "low": 2}
    ranks = [severities[severity] for _, severity in _EFFECT.values()]
    assert ranks == sorted(ranks)
    found = judged(
        phases(1, 2, interrupted=True),
        Health(death="x", wall_steps=1),
        Spec(target="x"),
        requests=Counts(started=9, ok=9),
    )[1]
    order = list(_EFFECT)
    assert [f.slug for f in found] == sorted((f.slug for f in found), key=order.index)
    assert len(found) == 6


def test_from_records_to_verdict() -> None:
    """One in ten fails: inadmissible, whatever the survivors' percentiles say."""
    records = [failed(i, i + 0.999) if i % 10 == 0 else answered(i, [i + 0.5, i + 0.999]) for i in range(200)]
    asked, borders = spec(), phases(60, 200)
    verdict, findings = judge(summary(records, borders, asked), asked, borders, Health())
    assert verdict == "inadmissible"
    assert findings[0].slug == "errors_over_limit"
    assert findings[0].params["share"] == pytest.approx(0.1)
