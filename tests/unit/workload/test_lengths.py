from __future__ import annotations

from random import Random

import pytest

from nilometer.core.errors import SpecError
from nilometer.workload import lengths


def test_a_number_is_a_fixed_length() -> None:
    fixed = lengths.parse(" 128 ")
    assert (fixed.sample(Random(1)), fixed.mean(), fixed.bounds()) == (128, 128.0, (128, 128))


def test_uniform_includes_both_ends_and_has_their_middle_as_mean() -> None:
    uniform = lengths.parse("uniform:3,5")
    random = Random(1)
    assert {uniform.sample(random) for _ in range(200)} == {3, 4, 5}
    assert (uniform.mean(), uniform.bounds()) == (4.0, (3, 5))


def test_lognormal_has_the_median_and_the_p95_it_was_given() -> None:
    random = Random(1)
    drawn = sorted(lengths.parse("lognormal:300,1200").sample(random) for _ in range(20_000))
    assert drawn[10_000] == pytest.approx(300, rel=0.03)
    assert drawn[19_000] == pytest.approx(1200, rel=0.05)


def test_lognormal_mean_is_above_its_median_by_half_the_squared_sigma() -> None:
    # sigma = ln(1200/300) / 1.644854 = 0.842807; 300 x exp(sigma^2 / 2)
    assert lengths.parse("lognormal:300,1200").mean() == pytest.approx(427.92, abs=0.01)


@pytest.mark.parametrize(
    ("text", "square"),
    [
        ("7", 49),
        ("uniform:3,6", (9 + 16 + 25 + 36) / 4),
        # 300^2 x exp(2 x 0.842807^2)
        ("lognormal:300,1200", 372_582),
        ("empirical:lens.txt", (25 + 25 + 2500) / 3),
    ],
)
def test_mean_squares(text: str, square: float) -> None:
    assert lengths.parse(text, values=[5, 5, 50]).mean_square() == pytest.approx(square, rel=1e-4)


def test_the_mean_square_of_a_mixture_is_that_of_its_parts_by_weight() -> None:
    mixture = lengths.Mixture((lengths.Fixed(2), lengths.Fixed(10)), (3.0, 1.0))
    assert (mixture.mean(), mixture.mean_square()) == (4.0, (3 * 4 + 100) / 4)


def test_lognormal_bounds_are_its_outer_thousandths() -> None:
    # 300 x exp(-+3.090232 x 0.842807)
    assert lengths.parse("lognormal:300,1200").bounds() == (22, 4057)


def test_empirical_draws_only_what_was_seen() -> None:
    seen = lengths.parse("empirical:lens.txt", values=[5, 5, 50])
    random = Random(1)
    drawn = [seen.sample(random) for _ in range(3000)]
    assert set(drawn) == {5, 50}
    assert drawn.count(5) / 3000 == pytest.approx(2 / 3, abs=0.03)
    assert (seen.mean(), seen.bounds()) == (20.0, (5, 50))


def test_the_file_of_an_empirical_distribution_is_named_for_whoever_reads_it() -> None:
    assert lengths.empirical_file("empirical: a/b:c.txt ") == "a/b:c.txt"
    assert lengths.empirical_file("uniform:1,2") is None
    assert lengths.empirical_file("empirical:") is None


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "lengths_unknown"),
        ("many", "lengths_unknown"),
        ("normal:5,6", "lengths_unknown"),
        ("0", "lengths_number"),
        ("-3", "lengths_number"),
        ("12.5", "lengths_number"),
        ("uniform:5", "lengths_number"),
        ("uniform:1,2,3", "lengths_number"),
        ("uniform:0,2", "lengths_number"),
        ("uniform:a,b", "lengths_number"),
        ("uniform:9,2", "lengths_order"),
        ("lognormal:300,300", "lengths_order"),
        ("empirical:lens.txt", "lengths_values"),
    ],
)
def test_what_cannot_be_understood_is_refused(text: str, slug: str) -> None:
    with pytest.raises(SpecError) as refused:
        lengths.parse(text)
    assert refused.value.slug == slug
    assert refused.value.params["text"] == text


def test_an_empirical_length_of_nothing_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        lengths.parse("empirical:lens.txt", values=[4, 0])
    assert refused.value.slug == "lengths_number"
