"""The verdict: what holds, what vetoes, when it abstains, how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.unit.diagnose.cases import SHOWN, Shown, case_of

from nilometer.diagnose.diagnosis import Diagnosis, diagnose, scores, spoken
from nilometer.diagnose.group import GroupEvidence, evidence_of_group
from nilometer.diagnose.rules import RULES

FIT = Shown(
    low={"token_gap": 20.0, "ttft_mean": 80.0, "prompt_cv": 0.5, "stream_share": 0.1, "burst_share": 0.0},
    high={
        "token_gap": 22.0,
        "ttft_mean": 90.0,
        "prompt_cv": 0.5,
        "stream_share": 0.1,
        "burst_share": 0.0,
        "decoding_share": 0.95,
        "output_over_asked": 1.0,
        "tokens_per_frame": 1.0,
        "failed_share": 0.0,
        "refused_share": 0.0,
        "output_tokens": 100.0,
        "refill_share": 0.9,
        "little_asked": 0.01,
        "decoding": 15.0,
        "in_flight": 16.0,
    },
    step={"wait_share": 0.05, "gap_ratio": 1.1, "prefill_load": 0.1, "throughput_gain_last": 0.8},
    elasticities=[0.05, 0.1],
)
"""A service that is well, and looked at from all sides that a client has."""


def over(shown: Shown, **changes: Mapping[str, Any]) -> Shown:
    """The same with other figures."""
    told: dict[str, Any] = {name: {**getattr(shown, name), **more} for name, more in changes.items()}
    return shown._replace(**told)


def group(shown: Shown) -> GroupEvidence:
    return case_of(shown).group


def slugs(found: Diagnosis) -> list[str]:
    return [finding.slug for finding in found.findings]


def test_a_service_that_is_well_is_called_so() -> None:
    found = diagnose(group(FIT))
    assert (found.state, slugs(found)) == ("healthy", [])
    assert {"queue", "static_batching", "front_end", "decode_compute", "buffered_stream"} <= set(found.passed)
    assert spoken(found)[0].slug == "room"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_each_cause_is_the_answer_where_its_figures_are_and_not_where_all_is_well(rule: Any) -> None:
    assert slugs(diagnose(group(SHOWN[rule.slug])))[0] == rule.slug
    assert scores(group(FIT))[rule.slug] < 0.3


def test_no_level_is_no_ground_for_anything() -> None:
    found = diagnose(evidence_of_group([]))
    assert (found.state, found.findings, found.passed) == ("undecided", [], [])
    assert {one.slug for one in found.not_run} == {rule.slug for rule in RULES}
    assert spoken(found)[0].slug == "not_yet_known"


def test_a_generator_that_was_the_limit_vetoes_all_else_and_stands_first() -> None:
    queue = SHOWN["queue"]
    found = diagnose(group(over(queue, facts={"generator": "limited"})))
    assert (found.state, slugs(found)[:2]) == ("vetoed", ["generator_limited", "queue"])


def test_two_causes_of_different_things_are_both_named() -> None:
    noisy, queue = SHOWN["noisy_neighbour"], SHOWN["queue"]
    both = over(queue, low=noisy.low, high={**queue.high, **noisy.high})
    found = diagnose(group(both))
    assert (found.state, set(slugs(found))) == ("found", {"queue", "noisy_neighbour"})


def test_two_causes_of_the_same_thing_are_rivals_and_the_diagnosis_abstains() -> None:
    queue, kv = SHOWN["queue"], SHOWN["kv_capacity"]
    unsure = {**queue.high, "long_gaps_per_request": 0.4, "gap_simultaneity": 0.0}
    found = diagnose(group(over(queue, high=unsure)))
    assert (found.state, set(slugs(found))) == ("undecided", {"queue", "kv_capacity"})
    assert found.findings[0].rivals == [found.findings[1].slug]
    assert {finding.confidence for finding in found.findings} == {"possible"}
    assert slugs(diagnose(group(over(queue, high={**unsure, **kv.high}))))[0] == "kv_capacity"


def test_few_answers_make_nothing_more_than_possible() -> None:
    few, many = ({"facts": {"ok": n}} for n in (30, 400))
    assert diagnose(group(over(SHOWN["queue"], **few))).findings[0].confidence == "possible"
    assert diagnose(group(over(SHOWN["queue"], **many))).findings[0].confidence == "likely"


def test_what_spoke_against_a_cause_is_told_with_it() -> None:
    queue = over(SHOWN["queue"], high={**SHOWN["queue"].high, "preemptions_per_100": 0.0, "kv_usage_max": 0.4})
    finding = diagnose(group(queue)).findings[0]
    assert {"preemptions_per_100", "kv_usage_max"} & {one.name for one in finding.against}
    assert "wait_share" in {one.name for one in finding.evidence}


def test_what_could_not_be_looked_at_says_which_figures_it_takes() -> None:
    found = diagnose(group(SHOWN["queue"]))
    missing = {one.slug: one.missing for one in found.not_run}
    assert missing["poor_drafts"] == ["acceptance_ratio"]
    assert "queue" not in missing


def levels(*answers: tuple[float, int]) -> GroupEvidence:
    """A service that is well at these loads, with so many answers each."""
    well = group(FIT).levels[-1]
    return evidence_of_group(
        [
            msgspec.structs.replace(well, level=load, facts=msgspec.structs.replace(well.facts, ok=ok))
            for load, ok in answers
        ]
    )


def test_the_highest_loads_are_left_out_where_they_have_too_few_answers() -> None:
    """64 in flight and 78 answers: no percentile is to be had of that, and nothing lower is spoilt by it."""
    found = diagnose(levels((1, 90), (8, 90), (32, 91), (64, 78)))
    assert (found.state, found.greatest, found.left_out) == ("healthy", 8, (32, 64))


def test_with_one_load_left_the_test_was_too_short() -> None:
    found = diagnose(levels((1, 90), (32, 80)))
    assert (found.state, slugs(found)[0], found.left_out) == ("vetoed", "too_short", ())
    assert diagnose(levels((1, 10), (2, 10), (4, 10))).state == "vetoed"
