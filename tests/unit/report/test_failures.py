"""Failed requests, like ones together."""

from __future__ import annotations

import pytest
from tests.unit.archive.samples import make_record

from nilometer.report import failures
from nilometer.report.failures import Failure, gather

S = 1_000_000_000


def test_like_failures_are_counted_together_with_their_span() -> None:
    records = [
        make_record(0),
        make_record(1, outcome="error", error="http_5xx", status=503, error_detail="full", end_ns=12 * S),
        make_record(2, outcome="error", error="http_5xx", status=503, error_detail="full", end_ns=11 * S),
        make_record(3, outcome="error", error="connect", status=None, sent_ns=None, end_ns=None),
        make_record(4, outcome="incomplete", end_ns=9 * S),
        make_record(5, outcome="cancelled"),
    ]
    found = gather(records, measured_ns=10 * S)
    assert (found.failed, found.records) == (4, 6)
    assert found.kinds == [
        Failure(outcome="error", error="http_5xx", status=503, detail="full", n=2, first_s=1.0, last_s=2.0),
        Failure(outcome="error", error="connect", status=None, detail=None, n=1),
        Failure(outcome="incomplete", error=None, status=200, detail=None, n=1, first_s=-1.0, last_s=-1.0),
    ]


def test_a_request_without_an_end_is_placed_at_its_start() -> None:
    (kind,) = gather([make_record(0, outcome="incomplete", sent_ns=3 * S, end_ns=None)], measured_ns=0).kinds
    assert kind.first_s == 3.0


def test_details_that_never_repeat_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MOST_KINDS", 3)
    records = [make_record(i, outcome="error", error="malformed", error_detail=f"{i}") for i in range(10)]
    kinds = gather(records, measured_ns=0).kinds
    assert [(kind.detail, kind.n) for kind in kinds] == [(None, 7), ("0", 1), ("1", 1), ("2", 1)]


def test_no_failures() -> None:
    found = gather([make_record(0)], measured_ns=0)
    assert (found.kinds, found.failed, found.records) == ([], 0, 1)
