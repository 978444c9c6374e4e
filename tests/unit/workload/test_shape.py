"""The shape of a workload is that of its rows, whatever batches they come in."""

from __future__ import annotations

import numpy as np
import pytest

from nilometer.workload import shape
from nilometer.workload.entry import NO_TIME, NS_PER_S, UNKNOWN, Batch
from nilometer.workload.shape import Counts, Lengths, Measure, bins, counted, ks


def made(asked: list[int], answered: list[int] | None = None, at_s: list[float] | None = None) -> Batch:
    """A batch of numbers; what is left out is unknown."""
    n = len(asked)
    unknown = np.full(n, UNKNOWN)
    return Batch(
        line=np.arange(n) + 1,
        at_ns=np.full(n, NO_TIME) if at_s is None else (np.array(at_s) * NS_PER_S).round().astype(np.int64),
        input_tokens=np.array(asked),
        output_tokens=unknown if answered is None else np.array(answered),
        turns=np.ones(n, np.int64),
        shared_tokens=unknown,
        root=unknown,
    )


def measured(*batches: Batch) -> shape.Shape:
    measure = Measure()
    for batch in batches:
        measure.add(batch)
    return measure.shape()


def test_lengths_are_exact_beyond_the_dense_counts_too() -> None:
    values = [0, 1, 1, 500, shape.DENSE - 1, shape.DENSE, shape.DENSE + 5, 900_000_000]
    counts = Counts()
    counts.add(np.array([*values, UNKNOWN]))
    found = counts.lengths()
    assert (found.n, found.max) == (8, 900_000_000)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.p50 == pytest.approx(np.quantile(values, 0.5))
    assert found.p95 == pytest.approx(np.quantile(values, 0.95))


def test_nothing_known_is_nothing_told() -> None:
    found = measured(made([UNKNOWN, UNKNOWN]))
    assert (found.rows, found.input_tokens, found.output_tokens) == (2, Lengths(), Lengths())
    assert (found.shared_prefix_share, found.arrivals.rate_per_s, found.arrivals.gap_cv) == (None, None, None)


def test_bins_hold_what_lies_above_half_of_their_bound() -> None:
    tokens = [0, 1, 2, 3, 4, 5, 8, 9, 1024, 1025, 1 << 30]
    assert bins(np.array(tokens)).tolist() == [0, 0, 1, 2, 2, 3, 3, 4, 10, 11, 30]


def test_the_joint_distribution_counts_rows_that_have_both() -> None:
    found = measured(made([3, 3, 100], [1, UNKNOWN, 17]))
    assert {(i, j): n for i, row in enumerate(found.joint) for j, n in enumerate(row) if n} == {(2, 0): 1, (7, 5): 1}


def test_arrivals_of_even_gaps_in_any_batches() -> None:
    at_s = [100.0 + 2 * n for n in range(100)]
    whole = measured(made([1] * 100, at_s=at_s)).arrivals
    parts = measured(*(made([1] * 10, at_s=at_s[n : n + 10]) for n in range(0, 100, 10))).arrivals
    assert whole == parts
    assert (whole.rate_per_s, whole.span_s, whole.sorted) == (0.5, 198, True)
    assert whole.gap_cv == pytest.approx(0, abs=1e-6)
    assert whole.per_minute == Lengths(n=4, mean=25, p50=30, p95=30, max=30)


def test_arrivals_that_are_not_in_order_are_put_in_order() -> None:
    at_s = [0.0, 1, 2, 4, 8]
    straight, mixed = (measured(made([1] * 5, at_s=each)).arrivals for each in (at_s, [4.0, 0, 8, 1, 2]))
    assert straight.gap_cv == pytest.approx(np.std([1, 1, 2, 4]) / 2)
    assert mixed.gap_cv == pytest.approx(straight.gap_cv)
    assert (mixed.rate_per_s, mixed.sorted) == (straight.rate_per_s, False)


def test_too_many_stamps_out_of_order_have_no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "KEPT_STAMPS", 3)
    assert measured(made([1] * 4, at_s=[0, 1, 2, 4])).arrivals.gap_cv == pytest.approx(np.std([1, 1, 2]) / (4 / 3))
    assert measured(made([1] * 4, at_s=[0, 2, 1, 4])).arrivals.gap_cv is None


def test_minutes_without_any_request_count() -> None:
    found = measured(made([1] * 3, at_s=[0, 1, 180])).arrivals.per_minute
    assert (found.n, found.mean, found.p50, found.max) == (4, 0.75, 0.5, 2)
    assert found.p95 == pytest.approx(1.85)


def test_the_distance_of_two_distributions() -> None:
    assert ks(counted([1, 2, 3, 4]), counted([1, 2, 3, 4, 1, 2, 3, 4])) == 0
    assert ks(counted([1, 2]), counted([3, 4])) == 1
    assert ks(counted([1, 2, 3, 4]), counted([1, 2, 3, 9])) == 0.25
    assert (ks(counted([]), counted([])), ks(counted([]), counted([1]))) == (0, 1)
