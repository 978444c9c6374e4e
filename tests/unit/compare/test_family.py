from __future__ import annotations

import math

import pytest

from nilometer.compare.family import TABLE, parse
from nilometer.core.errors import SpecError
from nilometer.metrics.catalogue import BY_NAME

from .made import summary


def test_the_primary_family_and_its_margins() -> None:
    assert {row.name: row.margin for row in TABLE if row.primary} == {
        "ttft_p95": 0.10,
        "tpot_p50": 0.05,
        "output_tokens_per_s": 0.05,
    }
    assert [row.name for row in TABLE] == [
        "ttft_p95",
        "tpot_p50",
        "output_tokens_per_s",
        "ttft_p50",
        "tpot_p95",
        "e2e_p50",
        "e2e_p95",
        "requests_per_s",
        "goodput_requests_per_s",
    ]
    assert all(row.margin == (0.10 if row.stat == "p95" or row.metric == "ttft" else 0.05) for row in TABLE)


def test_every_figure_is_one_of_the_catalogue_that_has_a_better_way() -> None:
    assert all(BY_NAME[row.metric].better == row.better for row in TABLE)
    assert {row.name for row in TABLE if row.better == "higher"} == {
        "output_tokens_per_s",
        "requests_per_s",
        "goodput_requests_per_s",
    }


def test_figures_are_taken_from_their_place_in_the_summary() -> None:
    made = summary(ttft_p95=480.0, tpot_p50=21.0, tokens=640.0)
    assert {row.name: row.of(made) for row in TABLE} == {
        "ttft_p95": 480.0,
        "tpot_p50": 21.0,
        "output_tokens_per_s": 640.0,
        "ttft_p50": 240.0,
        "tpot_p95": 31.5,
        "e2e_p50": 2900.0,
        "e2e_p95": 5000.0,
        "requests_per_s": 5.0,
        "goodput_requests_per_s": 0.0,
    }
    assert [row.of(summary(None, None, None)) for row in TABLE[:3]] == [None, None, None]


def test_a_margin_is_as_wide_up_as_down() -> None:
    assert math.exp(TABLE[1].log_margin) == pytest.approx(1.05)


def test_a_family_of_the_users_own() -> None:
    family = parse(" tpot_p50=3% , output_tokens_per_s,e2e_p95=0.2")
    assert [(row.name, row.margin) for row in family if row.primary] == [
        ("tpot_p50", 0.03),
        ("output_tokens_per_s", 0.05),
        ("e2e_p95", 0.2),
    ]
    assert {row.name for row in family} == {row.name for row in TABLE}
    assert len(family) == len(TABLE)
    assert next(row.name for row in family if not row.primary) == "ttft_p95", "shown, no longer judged"


@pytest.mark.parametrize(
    "text",
    ["", "latency", "ttft", "ttft_p42", "tpot_p50=0", "tpot_p50=101%", "tpot_p50=-3%", "tpot_p50=3%%", "ttft_p95,"],
)
def test_what_is_no_family_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(text)
    assert refused.value.slug == "family_invalid"
    assert "ttft_p95" in str(refused.value.params["names"])


def test_a_figure_named_twice_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        parse("tpot_p50=3%,tpot_p50=5%")
    assert refused.value.params["piece"] == "tpot_p50=5%"
