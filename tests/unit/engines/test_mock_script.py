"""The mock's script: what is refused, what is drawn, where the grid lies."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import Any

import pytest

from nilometer.core.errors import SpecError
from nilometer.engines.mock_script import FAULTS, Fault, Length, Script, draw_fault, draw_length, paced, parse_fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cut:0.1:10", Fault("cut", 0.1, 10)),
        ("http_429:25%", Fault("http_429", 0.25, 2)),
        ("stall:1", Fault("stall", 1.0, 5)),
        ("drop:0", Fault("drop", 0.0, 0)),
    ],
)
def test_a_fault_is_kind_share_and_after(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize("text", ["", "cut", "cut:", "cut:x", "cut:1.5", "cut:-1%", "cut:1:x", "cut:1:-2", "burn:0.1"])
def test_nonsense_faults_are_refused_with_the_known_kinds(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_fault(text)
    assert refused.value.slug == "mock_fault"
    assert "stream_error" in str(refused.value.params["known"])


@pytest.mark.parametrize(
    "options",
    [
        {"models": ()},
        {"ttft_ms": -1.0},
        {"gap_ms": -1.0},
        {"gap_ms_per_stream": -0.1},
        {"noise": -0.1},
        {"noise": 0.1, "aligned": True},
        {"prefill_ms_per_token": -0.1},
        {"aligned": True, "gap_ms": 0.0},
        {"tokens": 0},
        {"tokens_per_frame": 0},
        {"slots": -1},
        {"reasoning_tokens": -1},
        {"stop_after": (5, 4)},
        {"stop_after": (0, 4)},
        {"faults": [Fault("cut", 0.7, 1), Fault("drop", 0.4, 0)]},
    ],
)
def test_what_cannot_be_served_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as refused:
        Script(**options)
    assert refused.value.slug == "mock_option"


def test_faults_repeat_by_seed_and_come_close_to_their_shares() -> None:
    faults = [Fault("cut", 0.2, 1), Fault("http_500", 0.1, 0)]
    script = Script(faults=faults, seed=7)
    drawn = [draw_fault(script, number) for number in range(2000)]
    assert drawn == [draw_fault(script, number) for number in range(2000)]
    assert drawn != [draw_fault(Script(faults=faults, seed=8), number) for number in range(2000)]
    counts = {kind: sum(1 for fault in drawn if fault and fault.kind == kind) for kind in ("cut", "http_500")}
    assert 320 < counts["cut"] < 480  # 400 expected, standard deviation 18; the draw is fixed by the seed
    assert 140 < counts["http_500"] < 260


def test_a_share_of_one_meets_every_request_and_of_zero_none() -> None:
    always = Script(faults=[Fault("drop", 0.0, 0), Fault("cut", 1.0, 1)])
    kinds = [fault.kind if fault else None for fault in (draw_fault(always, number) for number in range(100))]
    assert kinds == ["cut"] * 100


def test_first_token_is_base_plus_prefill_and_the_null_server_waits_for_nothing() -> None:
    script = Script(ttft_ms=100, prefill_ms_per_token=0.5)
    assert script.first_token_ns(40) == 120_000_000
    null = Script(null=True, prefill_ms_per_token=0.5)
    assert (null.first_token_ns(40), null.gap_ns) == (0, 0)


def test_a_gap_grows_with_each_other_request_in_service() -> None:
    script = Script(gap_ms=10, gap_ms_per_stream=0.5)
    assert [script.slowdown_ns(requests) for requests in (0, 1, 2, 9)] == [0, 0, 500_000, 4_000_000]
    assert Script(null=True, gap_ms_per_stream=0.5).slowdown_ns(9) == 0


def test_the_grid_is_the_next_multiple_of_the_gap() -> None:
    script = Script(aligned=True, gap_ms=20)
    assert [script.on_grid_ns(ns) for ns in (0, 1, 20_000_000, 20_000_001)] == [0, 20_000_000, 20_000_000, 40_000_000]
    assert Script(gap_ms=20).on_grid_ns(7) == 7


@pytest.mark.parametrize(
    ("script", "limit", "ignore_eos", "min_tokens", "length"),
    [
        (Script(tokens=9), None, False, 0, Length(9, "stop")),
        (Script(tokens=9), 30, False, 0, Length(30, "length")),
        (Script(stop_after=(10, 10)), 30, False, 0, Length(10, "stop")),
        (Script(stop_after=(10, 10)), 8, False, 0, Length(8, "length")),
        (Script(stop_after=(10, 10)), 30, True, 0, Length(30, "length")),
        (Script(stop_after=(10, 10)), 30, False, 20, Length(20, "stop")),
        (Script(stop_after=(10, 10), honours_ignore_eos=False), 30, True, 20, Length(10, "stop")),
    ],
)
def test_output_length(script: Script, limit: int | None, ignore_eos: bool, min_tokens: int, length: Length) -> None:
    assert draw_length(script, 1, limit, ignore_eos, min_tokens) == length


def test_drawn_lengths_cover_their_span() -> None:
    script = Script(stop_after=(3, 6))
    assert {draw_length(script, number, 100, False, 0).tokens for number in range(200)} == {3, 4, 5, 6}


def test_every_fault_means_an_outcome_of_the_contract_or_leaves_it_to_the_client() -> None:
    for kind in FAULTS.values():
        assert (kind.error is not None) == (kind.outcome == "error")


def test_noise_is_a_factor_of_each_request_and_the_same_again() -> None:
    """sd of the log 5 %, mean of the log 0: over 400 requests within three standard errors."""
    script = Script(ttft_ms=100, gap_ms=10, noise=0.05, seed=3)
    drawn = [paced(script, number) for number in range(400)]
    assert drawn == [paced(script, number) for number in range(400)]
    assert {round(one.ttft_ms / one.gap_ms, 9) for one in drawn} == {10.0}
    logs = [math.log(one.gap_ms / 10) for one in drawn]
    assert abs(fmean(logs)) < 3 * 0.05 / 20
    assert stdev(logs) == pytest.approx(0.05, rel=0.11)
    plain = Script()
    assert paced(plain, 1) is plain
