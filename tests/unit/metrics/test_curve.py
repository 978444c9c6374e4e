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
    rungs = [Rung(1, None, None, 50), Rung(4, None, None, 190), Rung(16, None, None, 400), Rung(32, None, None, 396)]
    assert knee(rungs) == pytest.approx(8.0)
    assert knee(rungs[1:]) == pytest.approx(400 / 47.5)
    assert knee(rungs[:3]) is None, "it still grows"
    assert knee(rungs[:1]) is None


def test_a_gain_is_per_doubling() -> None:
    assert gain((1, 100), (2, 150)) == pytest.approx(0.5)
    assert gain((1, 100), (4, 225)) == pytest.approx(0.5)
    assert gain((2, 100), (3, 100)) == 0.0
