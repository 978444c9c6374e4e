from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.shapes import LLAMA_8B, SMOL

from nilometer.core.errors import SpecError
from nilometer.plan.devices import device, device_of
from nilometer.plan.latency.calibrate import Measured, calibrate
from nilometer.plan.latency.roofline import Lengths, Tuning, latency
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.precision import precision_of

GPU = Setup(shape=LLAMA_8B, device=device("h100"), precision=precision_of("bf16"))
CPU = Setup(
    shape=SMOL, device=device_of(47e9, 235e9, kind="cpu"), precision=precision_of("q4_0"), engine="llama.cpp", slots=16
)
LENGTHS = Lengths(128, 64)


def _measured(concurrency: float, tpot_ms: float, ttft_ms: float | None = None, slots: int | None = None) -> Measured:
    return Measured(
        concurrency=concurrency, input_tokens=128, output_tokens=64, tpot_ms=tpot_ms, ttft_ms=ttft_ms, slots=slots
    )


@given(
    setup=st.sampled_from([GPU, CPU]),
    load=st.sampled_from([1, 2, 4, 16, 64]),
    tpot_ms=st.floats(0.5, 500),
    ttft_ms=st.floats(5, 5000),
)
def test_one_run_is_given_back_exactly(setup: Setup, load: int, tpot_ms: float, ttft_ms: float) -> None:
    queued = 63 * tpot_ms * max(0.0, load / (setup.slots or load) - 1)
    run = _measured(load, tpot_ms, ttft_ms + queued)
    made = latency(setup, LENGTHS, load, calibrate(setup, [run]))
    assert made.tpot_s.mid * 1e3 == pytest.approx(tpot_ms)
    assert made.ttft_s.mid * 1e3 == pytest.approx(ttft_ms + queued)
    assert made.tpot_s.low < made.tpot_s.mid < made.tpot_s.high


@pytest.mark.parametrize("setup", [GPU, CPU])
def test_a_tuning_is_found_again_from_two_of_its_loads(setup: Setup) -> None:
    true = Tuning(fixed=1.3, batched=1.3, growing=1.7, prefill=1.7)
    runs = []
    for load in (1, 4):
        made = latency(setup, LENGTHS, load, true)
        runs.append(_measured(load, made.tpot_s.mid * 1e3, made.ttft_s.mid * 1e3))
    found = calibrate(setup, runs)
    assert found.fixed == pytest.approx(1.3, rel=0.02)
    assert found.growing == pytest.approx(1.7, rel=0.05)
    for load in (2, 8, 16):
        want, got = latency(setup, LENGTHS, load, true), latency(setup, LENGTHS, load, found)
        assert got.tpot_s.mid == pytest.approx(want.tpot_s.mid, rel=0.03)
        assert got.output_tokens_per_s.mid == pytest.approx(want.output_tokens_per_s.mid, rel=0.03)


def test_what_one_run_says_of_waiting_is_halfway_to_what_is_known() -> None:
    """The row says 4 partners; a run that shows 16 gives 8: the geometric mean."""
    seen = Tuning(partners=16.0)
    runs = []
    for load in (1, 4):
        made = latency(CPU, LENGTHS, load, seen)
        runs.append(_measured(load, made.tpot_s.mid * 1e3, made.ttft_s.mid * 1e3))
    assert calibrate(CPU, runs).partners == pytest.approx(8.0, rel=0.02)


SMALL = {
    1: (5.25, 121.3, 142),
    2: (16.56, 141.0, 108),
    4: (24.47, 283.4, 140),
    8: (36.27, 1043.2, 154),
    16: (56.14, 1402.5, 207),
}
"""SmolLM2-135M (Q4_0) on llama.cpp, -np 16, 2 cores of a shared machine, 128 tokens in, 64 out: TPOT ms, TTFT ms,
tokens/s by their means; December 2026."""


def test_the_embedded_engine_from_one_and_four_requests() -> None:
    """What a CPU does: a single sequence has kernels of its own, a batch pays for others once and then little more."""
    tuning = calibrate(CPU, [_measured(n, *SMALL[n][:2]) for n in (1, 4)])
    for n in (1, 4):
        assert latency(CPU, LENGTHS, n, tuning).tpot_s.mid * 1e3 == pytest.approx(SMALL[n][0])
    for n in (2, 8, 16):
        made = latency(CPU, LENGTHS, n, tuning)
        assert made.tpot_s.mid * 1e3 == pytest.approx(SMALL[n][0], rel=0.15), n
        assert made.output_tokens_per_s.mid == pytest.approx(SMALL[n][2], rel=0.15), n


def test_requests_beyond_the_slots_wait_as_measured() -> None:
    """-np 4, 16 requests: TPOT 23.2, TTFT 5,753 ms measured; from one and four requests with four slots."""
    few = replace(CPU, slots=4)
    tuning = calibrate(few, [_measured(1, 5.03, 121.0), _measured(4, 26.5, 285.9)])
    made = latency(few, LENGTHS, 16, tuning)
    assert made.tpot_s.mid * 1e3 == pytest.approx(23.2, rel=0.15)
    assert made.ttft_s.mid * 1e3 == pytest.approx(5753, rel=0.15)
    assert made.bound == "capacity"


def test_a_run_beyond_its_slots_tells_what_its_prefill_took() -> None:
    alone = latency(replace(CPU, slots=4), LENGTHS, 4)
    queued = latency(replace(CPU, slots=4), LENGTHS, 16)
    run = _measured(16, queued.tpot_s.mid * 1e3, queued.ttft_s.mid * 1e3, slots=4)
    tuning = calibrate(replace(CPU, slots=None), [run])
    assert tuning.prefill == pytest.approx(1)
    assert latency(replace(CPU, slots=4), LENGTHS, 4, tuning).ttft_s.mid == pytest.approx(alone.ttft_s.mid)


def test_without_a_ttft_the_prefill_stays_a_prior() -> None:
    tuning = calibrate(GPU, [_measured(8, 20.0)])
    assert tuning.prefill == 1.0
    assert tuning.fixed == tuning.growing


def test_parts_are_never_below_nothing() -> None:
    """A TPOT that falls with the load cannot be: what grows is then nothing, not less."""
    tuning = calibrate(GPU, [_measured(1, 20.0), _measured(64, 10.0)])
    assert tuning.growing == 0.0
    assert tuning.fixed > 0.0
    steep = calibrate(GPU, [_measured(1, 1.0), _measured(64, 1000.0)])
    assert steep.fixed == 0.0


def test_the_basis_says_whose_run_it_was() -> None:
    run = replace(_measured(8, 20.0), when="2026-12-03")
    assert latency(GPU, LENGTHS, 8, calibrate(GPU, [run])).basis == "your run of 2026-12-03"
    assert calibrate(GPU, [_measured(8, 20.0)]).basis == "your run"


def test_two_loads_narrow_what_one_leaves_open() -> None:
    one = calibrate(GPU, [_measured(1, 7.0, 30.0)])
    two = calibrate(GPU, [_measured(1, 7.0, 30.0), _measured(16, 9.0, 80.0)])
    far = [latency(GPU, LENGTHS, 64, tuning).tpot_s for tuning in (one, two)]
    assert far[1].high / far[1].mid < far[0].high / far[0].mid


@pytest.mark.parametrize("tpot_ms", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_without_a_tpot_is_refused(tpot_ms: float) -> None:
    with pytest.raises(SpecError, match="calibration_unusable"):
        calibrate(GPU, [_measured(1, tpot_ms)])


def test_no_run_is_refused() -> None:
    with pytest.raises(SpecError, match="calibration_empty"):
        calibrate(GPU, [])
