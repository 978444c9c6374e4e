"""Knee and greatest load by hand."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.summary import Counts, Distribution, Generator, Summary, Throughput
from nilometer.metrics import slo
from nilometer.metrics.curve import Greatest, Rung, gain, greatest, knee, rung_of

from .made import answered, phases, summary

BOUNDS = slo.parse("ttft_p95<=500ms,error_rate<=1%,output_tokens_per_s>=100")


def borne(**changes: object) -> Summary:
    made = summary([answered(i * 0.1, [i * 0.1 + 0.2, i * 0.1 + 0.3]) for i in range(5)], phases(0, 10))
    good = {
        "latency_ms": {"ttft": Distribution(n=100, p95=250.0)},
        "requests": Counts(started=100, ok=100),
        "throughput": Throughput(output_tokens_per_s=200.0, requests_per_s=2.0),
        "generator": Generator(verdict="fit"),
    }
    return msgspec.structs.replace(made, **(good | changes))


def test_a_load_that_is_borne() -> None:
    assert rung_of(4, borne(), BOUNDS) == Rung(4, True, 0.5, 200.0)


@pytest.mark.parametrize(
    ("changes", "met", "worst"),
    [
        ({"latency_ms": {"ttft": Distribution(n=100, p95=600.0)}}, False, 1.2),
        ({"latency_ms": {}}, None, 0.5),
        ({"requests": Counts(started=100, ok=96, error=4)}, False, 4.0),
        ({"throughput": Throughput(output_tokens_per_s=50.0)}, False, 2.0),
        ({"generator": Generator(verdict="limited")}, None, 0.5),
    ],
)
def test_a_load_that_is_not(changes: dict[str, object], met: bool | None, worst: float) -> None:
    rung = rung_of(4, borne(**changes), BOUNDS)
    assert rung.met is met
    assert rung.worst == pytest.approx(worst)


def test_what_broke_down_broke_its_promise() -> None:
    assert rung_of(4, borne(), BOUNDS, broken=True).met is False
    assert rung_of(4, borne(), [], broken=False).met is True


def test_requests_stand_in_for_tokens() -> None:
    assert rung_of(4, borne(throughput=Throughput(requests_per_s=2.0)), []).throughput == 2.0
    made = Throughput(output_tokens_per_s=0.0, requests_per_s=2.0)
    assert rung_of(4, borne(throughput=made), []).throughput == 0, "never requests in a curve of tokens"


def test_the_greatest_is_below_the_first_that_broke() -> None:
    rungs = [Rung(8, False, 2, 1), Rung(2, True, 0.5, 1), Rung(4, True, 0.9, 1), Rung(16, True, 0.9, 1)]
    assert greatest(rungs) == Greatest(4, 4, 8)
    assert greatest([Rung(1, False, 2, 1)]) is None
    assert greatest([Rung(1, None, None, 1)]) is None
    assert greatest([Rung(1, True, 0.1, 1)]) == Greatest(1, 1, None)


def test_the_knee_is_where_the_asymptotes_cross() -> None:
    """X(1) = 50, X_max = 400: they cross at 8."""
    rungs = [Rung(1, True, None, 50), Rung(4, True, None, 190), Rung(16, True, None, 400), Rung(32, False, 2.0, 396)]
    assert knee(rungs) == pytest.approx(8.0)
    assert knee(rungs[1:]) == pytest.approx(400 / 47.5)
    assert knee(rungs[:3]) is None, "it still grows"
    assert knee(rungs[:1]) is None


@pytest.mark.parametrize(
    "last", [Rung(4, None, None, 210), Rung(4, None, None, None), Rung(4, False, None, 210, broken=True)]
)
def test_no_plateau_is_read_off_a_load_that_tells_nothing_of_the_service(last: Rung) -> None:
    """By the generator, cut off, or broken down under."""
    climbing = [Rung(1, True, None, 100), Rung(2, True, None, 200)]
    assert knee([*climbing, last]) is None
    assert knee([*climbing, Rung(4, True, None, 210)]) == pytest.approx(2.1)
    assert knee([last, Rung(8, True, None, 800), Rung(16, True, None, 800)]) == pytest.approx(8.0), "nor its foot"


def test_the_rung_of_a_breakdown_says_so() -> None:
    assert rung_of(4, borne(), [], broken=True).broken
    assert not rung_of(4, borne(), []).broken


def test_a_gain_is_per_doubling() -> None:
    assert gain((1, 100), (2, 150)) == pytest.approx(0.5)
    assert gain((1, 100), (4, 225)) == pytest.approx(0.5)
    assert gain((2, 100), (3, 100)) == 0.0
