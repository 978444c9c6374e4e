"""Refusals for a quota: how many, how long the server asked to wait, what it let through meanwhile."""

from __future__ import annotations

from nilometer.core.run import Health
from nilometer.core.summary import Quota
from nilometer.metrics.validity import judge

from .made import answered, failed, phases, spec, summary

ANSWERED = answered(1.0, [1.5, 1.6])
WAITS = [failed(2.0, 2.1, "http_429", retry_after_s=wait) for wait in (2.0, 12.0, None, 4.0)]


def test_refusals_are_counted_with_the_waits_that_were_asked_for() -> None:
    """Of 2, 4 and 12 s the median is 4; 102 tokens in a window of 10 s are 612 a minute."""
    made = summary([ANSWERED, *WAITS], phases(0, 10), spec(window="0..10")).quota
    assert made == Quota(refused=4, retry_after_s_p50=4.0, retry_after_s_max=12.0, tokens_per_min=612.0)


def test_those_of_the_warm_up_count_too_and_other_waits_do_not() -> None:
    early = failed(0.5, 0.6, "http_429", phase="warmup")
    busy = failed(2.0, 2.1, "http_5xx", retry_after_s=30.0)
    made = summary([ANSWERED, early, busy], phases(1, 10)).quota
    assert (made.refused, made.retry_after_s_p50, made.retry_after_s_max) == (1, None, None)


def test_without_a_refusal_nothing_is_said_of_a_quota() -> None:
    assert summary([ANSWERED], phases(0, 10)).quota == Quota()


def test_any_wait_may_be_asked_for() -> None:
    for_ever = failed(2.0, 2.1, "http_429", retry_after_s=1e300)
    assert (summary([for_ever], phases(0, 10)).quota.retry_after_s_max or 0) >= 1e9


def test_a_quota_is_told_with_its_figures_and_does_not_condemn_by_itself() -> None:
    asked, borders = spec(window="0..10", max_error_rate=1.0), phases(0, 10)
    made = summary([ANSWERED, *WAITS], borders, asked)
    _, found = judge(made, asked, borders, Health())
    (told,) = [finding for finding in found if finding.slug == "quota_reached"]
    assert (told.kind, told.params) == ("note", {"n": 4, "started": 5})
    assert {one.name: one.value for one in told.evidence} == {
        "retry_after_p50": 4.0,
        "retry_after_max": 12.0,
        "tokens_per_min": 612.0,
    }
