from __future__ import annotations

from typing import Any

import pytest

from nilometer.core.errors import SpecError
from nilometer.core.summary import Counts, Distribution, Generator, Lengths, Summary, Throughput, Window
from nilometer.metrics.slo import error_rate, met, parse


def test_every_form_of_the_contract_is_read() -> None:
    text = "ttft_p95<=500ms,tpot_p95<=50ms,e2e_p99<=10s,error_rate<=1%,output_tokens_per_s>=100"
    made = [(b.metric, b.stat, b.comparison, b.limit, b.unit) for b in parse(text)]
    assert made == [
        ("ttft", "p95", "<=", 500.0, "ms"),
        ("tpot", "p95", "<=", 50.0, "ms"),
        ("e2e", "p99", "<=", 10_000.0, "ms"),
        ("error_rate", None, "<=", 0.01, "share"),
        ("output_tokens_per_s", None, ">=", 100.0, "per_s"),
    ]
    assert [b.text for b in parse(text)] == text.split(",")


def test_blanks_strict_limits_and_small_units() -> None:
    first, second = parse(" ttft_from_sent_mean < 250us , goodput_requests_per_s > 2.5 ")
    assert (first.metric, first.stat, first.comparison, first.limit) == ("ttft_from_sent", "mean", "<", 0.25)
    assert (second.comparison, second.limit) == (">", 2.5)
    assert parse("error_rate<0.02")[0].limit == 0.02


@pytest.mark.parametrize(
    "piece",
    [
        "",
        "ttft<=500ms",
        "ttft_p95<=500",
        "ttft_p42<=500ms",
        "ttft_p95>=500ms",
        "ttft_p95=500ms",
        "ttft_p95<=-1ms",
        "ttft_p95<=inf",
        "ttft_p95<=5%",
        "itl_p95<=50ms",
        "speed_p95<=50ms",
        "error_rate>=1%",
        "error_rate<=1ms",
        "output_tokens_per_s<=100",
        "output_tokens_per_s>=100ms",
        "tokens_lost>=1",
        "input>=5",
        "ttft_p95<=500ms tpot_p95<=50ms",
    ],
)
def test_what_is_no_bound_is_named(piece: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(f"e2e_p50<=1s,{piece}")
    assert (refused.value.slug, refused.value.params) == ("slo_invalid", {"piece": piece})


def of(ttft: Distribution, counts: Counts, **rates: Any) -> Summary:
    return Summary(
        window=Window(start_s=0, end_s=1, rule="auto"),
        requests=counts,
        run_requests=counts,
        latency_from="sent",
        latency_ms={"ttft": ttft},
        throughput=Throughput(**rates),
        lengths=Lengths(),
        generator=Generator(),
    )


def test_bounds_beside_what_was_measured() -> None:
    seen = of(
        Distribution(n=100, p95=500.0, p99=700.0, marked=["p99"]),
        Counts(started=100, ok=97, error=2, incomplete=1),
        output_tokens_per_s=99.0,
    )
    held = met(parse("ttft_p95<=500ms,ttft_p95<500ms,ttft_p99<=1s,error_rate<=3%,output_tokens_per_s>=100"), seen)
    assert [one.met for one in held] == [True, False, True, True, False]
    assert [one.value for one in held] == [500.0, 500.0, 700.0, 0.03, 99.0]
    assert [one.marked for one in held] == [False, False, True, False, False]


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    held = met(parse("ttft_p95<=500ms,e2e_p95<=1s,output_tokens_per_s>=1,error_rate<=1%"), of(Distribution(), Counts()))
    assert [(one.value, one.met) for one in held] == [(None, None)] * 4


def test_error_rate_is_of_those_the_service_ended() -> None:
    assert error_rate(Counts(started=10, ok=6, error=1, incomplete=1, cancelled=2)) == 0.25
    assert error_rate(Counts(started=2, cancelled=2)) is None
