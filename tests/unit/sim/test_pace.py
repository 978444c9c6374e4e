from __future__ import annotations

from math import log
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.sim.faults import HEALTHY, Faults
from nilometer.sim.pace import Pace


def _pace(faults: Faults, replica: int = 0) -> Pace:
    return Pace(faults, Random(1), Random(2), replica)


def test_nothing_is_wrong_unless_said() -> None:
    assert not HEALTHY.slows
    assert _pace(HEALTHY).ends_s(3.0, 0.5) == 3.5


def test_work_is_done_in_the_running_part_of_each_period() -> None:
    """It runs 0.8 s of every second."""
    pace = _pace(Faults(duty_period_s=1.0, duty_share=0.8))
    assert pace.ends_s(0.0, 0.5) == pytest.approx(0.5)
    assert pace.ends_s(0.0, 0.8) == pytest.approx(0.8)
    assert pace.ends_s(0.5, 0.5) == pytest.approx(1.2)
    assert pace.ends_s(0.9, 0.5) == pytest.approx(1.5)
    assert pace.ends_s(2.0, 2.0) == pytest.approx(4.4)


@given(st.floats(0, 100), st.floats(0.001, 10), st.floats(0.1, 5), st.floats(0.05, 0.95))
def test_standing_still_is_never_shorter_and_bounded(
    begun_s: float, seconds: float, period_s: float, share: float
) -> None:
    end_s = _pace(Faults(duty_period_s=period_s, duty_share=share)).ends_s(begun_s, seconds)
    stops = (seconds / (period_s * share) + 2) * period_s * (1 - share)
    assert begun_s + seconds - 1e-9 <= end_s <= begun_s + seconds + stops + 1e-9


def test_drift_throttle_and_replica_multiply() -> None:
    faults = Faults(leak_per_s=0.1, throttle_after_s=5.0, throttle_slowness=3.0, replica_slowness=(1.0, 2.0))
    assert faults.slows
    assert _pace(faults).slowness(4.0) == pytest.approx(1.4)
    assert _pace(faults).slowness(5.0) == pytest.approx(4.5)
    assert _pace(faults, 1).slowness(5.0) == pytest.approx(9.0)
    assert _pace(faults, 2).slowness(0.0) == 1.0


def test_spells_take_their_share_of_the_time() -> None:
    """1 s in 1 + 2 s."""
    pace = _pace(Faults(spell_s=1.0, quiet_s=2.0, spell_slowness=5.0))
    seen = [pace.slowness(i / 20) for i in range(100_000)]
    assert set(seen) == {1.0, 5.0}
    assert seen.count(5.0) / len(seen) == pytest.approx(1 / 3, abs=0.02)


def test_jitter_is_drawn_once_for_a_step() -> None:
    pace = _pace(Faults(jitter=0.3))
    twice = [(pace.slowness(float(i)), pace.slowness(float(i))) for i in range(20_000)]
    assert all(one == other for one, other in twice)
    logs = [log(one) for one, _ in twice]
    assert fmean(logs) == pytest.approx(0.0, abs=0.01)
    assert stdev(logs) == pytest.approx(0.3, rel=0.03)
