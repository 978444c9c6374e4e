"""A server's own page alone: what it shows, and that it is never more than likely."""

from __future__ import annotations

import pytest

from nilometer.diagnose.by_page import RULES, UNSEEN, by_page
from nilometer.diagnose.rules import RULES as CAUSES

FIT = {
    "running_mean": 4.0,
    "waiting_above_zero": 0.0,
    "kv_usage_mean": 0.3,
    "kv_usage_max": 0.4,
    "queue_mean_s": 0.001,
    "ttft_mean_s": 0.1,
    "prefill_mean_s": 0.09,
    "e2e_mean_s": 3.0,
    "waiting_with_room": 0.0,
    "acceptance_ratio": 0.8,
    "running_spread": 1.1,
    "adapters_waiting": 0.0,
    "prefix_hit_ratio": 0.0,
    "preemptions": 0.0,
}


@pytest.mark.parametrize(
    ("slug", "changes"),
    [
        ("queue", {"waiting_above_zero": 1.0, "queue_mean_s": 0.9, "ttft_mean_s": 1.0}),
        ("kv_capacity", {"waiting_above_zero": 1.0, "kv_usage_mean": 0.96, "kv_usage_max": 1.0, "preemptions": 9.0}),
        ("careful_admission", {"waiting_with_room": 0.9}),
        ("prefill", {"prefill_mean_s": 2.0}),
        ("poor_drafts", {"acceptance_ratio": 0.2}),
        ("replica_imbalance", {"running_spread": 3.0}),
        ("adapters", {"adapters_waiting": 0.5}),
    ],
)
def test_each_cause_that_a_page_shows(slug: str, changes: dict[str, float]) -> None:
    assert by_page(FIT) == []
    findings = by_page(FIT | changes)
    assert findings[0].slug == slug
    assert findings[0].confidence == "likely"
    assert findings[0].evidence


def test_a_page_that_tells_nothing_says_nothing() -> None:
    assert by_page({}) == []


def test_its_causes_are_causes() -> None:
    known = {rule.slug for rule in CAUSES}
    assert {rule.slug for rule in RULES} | set(UNSEEN) <= known
