"""Of two causes that hold the greater comes first; what is not known costs nothing."""

from __future__ import annotations

import pytest
from tests.unit.diagnose.cases import Shown, case_of

from nilometer.diagnose.diagnosis import diagnose
from nilometer.diagnose.impact import SMALL, impact, weight

GROWING = {"tpot_drift": 0.3, "tpot_drift_p": 0.001}
QUEUE = Shown(
    low={"ttft_mean": 80.0, **GROWING},
    high={
        "ttft_mean": 1680.0,
        "e2e_mean": 2000.0,
        "decoding_share": 0.2,
        "full_decoding_cv": 0.1,
        **GROWING,
    },
    step={"wait_share": 0.95, "gap_ratio": 1.1},
)
"""Four fifths of a request are waiting, and tokens get slower by three tenths over each level."""


def test_the_share_of_what_explains_waiting_is_the_ttft_that_the_load_added() -> None:
    assert impact("waiting", case_of(QUEUE)) == pytest.approx(1600 / 2000)


def test_a_drift_of_three_tenths_is_half_of_that_on_the_mean() -> None:
    assert impact("pace", case_of(Shown(high=GROWING))) == pytest.approx(0.15 / 1.15)


@pytest.mark.parametrize(
    ("low", "expected"),
    [
        ({"slow_time_share": 0.5, "slow_ratio": 2.0}, 0.25),
        ({"pause_time_share": 0.4}, 0.4),
        ({"cut_ratio": 1.25}, 0.2),
        ({"step_ratio": 2.0, "step_separation": 0.5}, None),
        ({"step_ratio": 2.0, "step_separation": 0.9}, 0.5),
    ],
)
def test_the_pace_is_what_its_greatest_sign_takes(low: dict[str, float], expected: float | None) -> None:
    assert impact("pace", case_of(Shown(low=low))) == (None if expected is None else pytest.approx(expected))


def test_what_is_not_known_or_of_another_kind_keeps_its_place() -> None:
    assert weight("waiting", case_of(Shown())) == 1.0
    assert weight("refusals", case_of(QUEUE)) == 1.0
    assert weight("stalls", case_of(Shown(stalls=0.0))) == SMALL


def test_a_queue_that_is_most_of_the_time_comes_before_a_drift_that_is_little_of_it() -> None:
    assert [finding.slug for finding in diagnose(case_of(QUEUE).group).findings][:2] == ["queue", "growing_state"]
