"""The small statistics behind the features, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.diagnose.made import about

from nilometer.diagnose import figure
from nilometer.diagnose.figure import Figure


def test_shares_means_and_medians() -> None:
    assert figure.share(np.array([True, False, False, False])) == Figure(0.25, 4)
    values = np.array([1.0, np.nan, 2.0, 6.0])
    assert figure.median(values) == Figure(2.0, 3)
    assert figure.mean(values) == Figure(3.0, 3)


def test_nothing_gives_none() -> None:
    none = np.zeros(0)
    assert figure.share(none > 0) is figure.mean(none) is figure.median(none) is None
    assert figure.correlation(none, none) is figure.between_groups(none, none.astype(np.int64)) is None


def test_a_ratio_has_the_smaller_count() -> None:
    assert figure.ratio(Figure(6.0, 4), Figure(3.0, 9)) == Figure(2.0, 4)
    assert figure.ratio(Figure(6.0, 4), Figure(0.0, 9)) is None
    assert figure.ratio(None, Figure(1.0, 1)) is None


def test_variance_between_groups() -> None:
    """Groups 1, 3 and 5, 7: of 20 in all, 16 lie between; adjusted 1 - 0.2 * 3 / 2."""
    assert figure.between_groups(np.array([1.0, 3, 5, 7]), np.array([4, 4, 9, 9])) == about(0.7, 4)


def test_groups_that_are_all_there_is_explain_nothing() -> None:
    assert figure.between_groups(np.array([1.0, 3.0]), np.array([0, 1])) is None
    assert figure.between_groups(np.array([2.0, 2, 2]), np.array([0, 1, 1])) is None


def test_chance_explains_nothing_on_average() -> None:
    random = np.random.default_rng(0)
    found = [figure.between_groups(random.normal(size=60), np.arange(60) % 6) for _ in range(200)]
    assert np.mean([one.value for one in found if one]) < 0.05


def test_correlation_is_pearsons() -> None:
    assert figure.correlation(np.array([1.0, 2, 3]), np.array([2.0, 4, 6])) == about(1, 3)
    assert figure.correlation(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])) == about(0.8, 4)
    assert figure.correlation(np.array([1.0, 2, 3]), np.array([5.0, 5, 5])) is None


@pytest.mark.parametrize(
    ("flags", "lengths"), [("", []), ("000", []), ("110100111", [2, 1, 3]), ("1", [1]), ("01110", [3])]
)
def test_runs(flags: str, lengths: list[int]) -> None:
    assert figure.runs(flag == "1" for flag in flags) == lengths
