"""What came back: shares that are known by what was sent."""

from __future__ import annotations

from tests.unit.diagnose.made import about, even, streams
from tests.unit.metrics.made import failed, whole

from nilometer.diagnose.features import answers
from nilometer.diagnose.figure import Figure


def test_refusals_by_their_kind() -> None:
    records = [
        even(0, 1, 3),
        failed(1, 1.1, "http_429", status=429),
        failed(2, 2.1, "http_5xx", status=503),
        failed(3, 3.1, "http_5xx", status=500),
        failed(4, 4.1, None),
    ]
    seen = streams(records)
    assert answers.refused_share(seen) == Figure(0.2, 5)
    assert answers.unavailable_share(seen) == Figure(0.2, 5)
    assert answers.failed_share(seen) == Figure(0.8, 5)


def test_who_got_no_connection_in_time() -> None:
    records = [even(0, 1, 3), failed(1, 2, "timeout_connect"), failed(2, 2.1, "connect"), failed(3, 3.1, "http_5xx")]
    assert answers.unconnected_share(streams(records)) == Figure(0.25, 4)


def test_requests_outside_the_window_do_not_count() -> None:
    seen = streams([failed(0.5, 0.6, "http_429"), even(2, 3, 3)], 5, start_s=1)
    assert answers.refused_share(seen) == Figure(0.0, 1)


def test_why_answers_ended() -> None:
    reasons = ("length", "length", "length", "stop", None)
    seen = streams([even(i, i + 0.5, 3, finish_reason=reason) for i, reason in enumerate(reasons)])
    assert answers.cut_share(seen) == Figure(0.75, 4)
    assert answers.stopped_share(seen) == Figure(0.25, 4)
    untold = streams([even(0, 1, 3)])
    assert answers.cut_share(untold) is answers.stopped_share(untold) is None


def test_answers_shorter_than_asked() -> None:
    seen = streams([even(0, 1, n, 0.01, asked_output=20) for n in (4, 10, 20)] + [even(0, 1, 3)])
    assert answers.output_over_asked(seen) == about(0.5, 3)
    assert answers.output_over_asked(streams([even(0, 1, 3)])) is None


def test_lengths() -> None:
    seen = streams([even(0, 1, 4, prompt_tokens=100), even(0, 1, 6, prompt_tokens=300)])
    assert answers.prompt_tokens(seen) == about(200, 2)
    assert answers.prompt_cv(seen) == about(0.5, 2)
    assert answers.output_tokens(seen) == about(5, 2)
    unknown = streams([whole(0, 1, None, prompt_tokens=None)])
    assert answers.prompt_tokens(unknown) is answers.prompt_cv(unknown) is answers.output_tokens(unknown) is None


def test_a_slow_replica_explains_the_variance() -> None:
    records = [even(i, i + (0.1, 0.3)[i % 2] * (1 + i / 1000), 3, target=i % 2) for i in range(40)]
    share = answers.target_share(streams(records, 60), "ttft_from_sent")
    assert share is not None
    assert share.value > 0.99


def test_replicas_that_are_alike_explain_nothing() -> None:
    records = [even(i, i + 0.1 + (i // 2 % 10) / 100, 3, target=i % 2) for i in range(40)]
    assert answers.target_share(streams(records, 60), "ttft_from_sent") == about(0, 40, abs=1e-9)


def test_one_target_has_no_variance_between() -> None:
    assert answers.target_share(streams([even(0, 1, 3), even(1, 2.5, 3)]), "ttft_from_sent") is None


def test_nothing_sent_is_not_measured() -> None:
    assert answers.refused_share(streams([])) is answers.failed_share(streams([])) is None
