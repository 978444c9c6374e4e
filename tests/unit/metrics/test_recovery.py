"""Time to recover from a spike, of loads whose latencies are written down second by second."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nilometer.core.record import Record
from nilometer.core.summary import Recovery
from nilometer.metrics.collect import collect
from nilometer.metrics.recovery import Spike, recovery

from .made import answered, failed, phases, whole

FIVE = Spike(base_per_s=5, length_s=10)
"""5 requests/s for 10 s, a peak for 10 s, then 5 again: a stretch is a second."""


def run(ttft_s: Callable[[float], float], until_s: int = 40, spike: Spike = FIVE) -> Recovery | None:
    """Five requests a second, each with the first token after what `ttft_s` says of the second it starts in."""
    records = [answered(i / 5, [i / 5 + ttft_s(i / 5), i / 5 + ttft_s(i / 5) + 0.1]) for i in range(until_s * 5)]
    return of(records, until_s, spike)


def of(records: list[Record], until_s: int, spike: Spike = FIVE) -> Recovery | None:
    return recovery(collect(records).table, spike, phases(0, until_s, until_s + 5))


def test_the_time_counts_from_the_end_of_the_spike() -> None:
    found = run(lambda s: 0.1 if s < 10 else 2.0 if s < 23 else 0.1)
    assert found is not None
    assert found.metric == "ttft"
    assert found.base_p95_ms == pytest.approx(100)
    assert found.peak_p95_ms == pytest.approx(2000)
    assert (found.recovered_after_s, found.grain_s, found.watched_s) == (3.0, 1.0, 20.0)


def test_a_service_that_bore_the_spike_recovered_at_once() -> None:
    found = run(lambda _: 0.1)
    assert found is not None
    assert found.recovered_after_s == 0.0


def test_one_good_second_among_bad_ones_is_no_recovery() -> None:
    found = run(lambda s: 0.1 if s < 10 or 22 <= s < 23 or s >= 30 else 2.0)
    assert found is not None
    assert found.recovered_after_s == 10.0


def test_none_where_it_never_came_to_itself() -> None:
    found = run(lambda s: 0.1 if s < 10 else 2.0)
    assert found is not None
    assert (found.recovered_after_s, found.watched_s) == (None, 20.0)


def test_failures_are_no_recovery_however_quick_the_others_are() -> None:
    records = [
        failed(i / 5, i / 5 + 0.1) if 20 <= i / 5 < 25 and i % 5 == 0 else answered(i / 5, [i / 5 + 0.1, i / 5 + 0.2])
        for i in range(200)
    ]
    found = of(records, 40)
    assert found is not None
    assert found.recovered_after_s == 5.0


def test_requests_refused_at_once_do_not_make_the_peak_low() -> None:
    """Whole answers after 100 ms; in the peak 4 % are ok, after 5 s, and the others refused after 1 ms."""
    peak = [10 + i / 10 for i in range(100)]
    found = of(
        [
            *(whole(i / 10, i / 10 + 0.1, 5) for i in range(100)),
            *(whole(at, at + 5, 5) if i % 25 == 0 else failed(at, at + 0.001) for i, at in enumerate(peak)),
            *(whole(20 + i / 10, 20 + i / 10 + 0.1, 5) for i in range(200)),
        ],
        40,
    )
    assert found is not None
    assert found.metric == "e2e"
    assert found.base_p95_ms == pytest.approx(100)
    assert found.peak_p95_ms == pytest.approx(5000)
    assert found.recovered_after_s == 0.0


def test_requests_that_fail_late_do_not_make_the_base_high() -> None:
    """One in ten before the spike fails after 3 s; after it every answer takes 1 s, which is not as before."""
    found = of(
        [
            *(failed(i / 10, i / 10 + 3) if i % 10 == 0 else whole(i / 10, i / 10 + 0.1, 5) for i in range(100)),
            *(whole(10 + i / 10, 10 + i / 10 + 1, 5) for i in range(300)),
        ],
        40,
    )
    assert found is not None
    assert found.base_p95_ms == pytest.approx(100)
    assert found.recovered_after_s is None


def test_a_peak_that_nobody_was_answered_in_has_no_latency() -> None:
    found = of(
        [
            *(whole(i / 10, i / 10 + 0.1, 5) for i in range(100)),
            *(failed(10 + i / 10, 10 + i / 10 + 0.001) for i in range(100)),
            *(whole(20 + i / 10, 20 + i / 10 + 0.1, 5) for i in range(200)),
        ],
        40,
    )
    assert found is not None
    assert found.peak_p95_ms is None


def test_a_slow_base_has_longer_stretches() -> None:
    records = [answered(i * 5.0, [i * 5.0 + 0.1, i * 5.0 + 0.2]) for i in range(80)]
    found = of(records, 400, Spike(base_per_s=0.2, length_s=100))
    assert found is not None
    assert found.grain_s == 25.0


@pytest.mark.parametrize("until_s", [9, 20])
def test_nothing_is_said_of_a_spike_whose_end_was_not_seen(until_s: int) -> None:
    assert run(lambda _: 0.1, until_s) is None


def test_nothing_is_said_where_nothing_was_measured_before_it() -> None:
    assert of([answered(25.0, [25.1, 25.2])], 40) is None
