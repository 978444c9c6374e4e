"""What queueing theory and arithmetic say, against what the machine does."""

from __future__ import annotations

from itertools import accumulate
from math import erf, exp, log, sqrt
from random import Random
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from nilometer.core.record import Record
from nilometer.sim.cost import Linear
from nilometer.sim.drive import ORIGIN_NS, Played
from nilometer.sim.setting import Ask, Setting, Speculation

from .made import LIKE_A_GPU, STEADY, asks, closed, machine, mixed, of_keys, opened, seconds, setting

STEP_S = 0.010


def _arrivals(count: int, rate_per_s: float, seed: int) -> list[float]:
    """Poisson, the gaps being evenly spread quantiles in a random order: the rate is then no matter of chance."""
    gaps_s = [-log(1 - (i + 0.5) / count) / rate_per_s for i in range(count)]
    Random(seed).shuffle(gaps_s)
    return list(accumulate(gaps_s))


def _waits(played: Played, outputs: list[int]) -> list[float]:
    """Seconds before service: with one slot and steady steps a service takes a step for each token."""
    records = of_keys(played.records)
    spent = ((seconds(records[i].end_ns) - seconds(records[i].sent_ns), n) for i, n in enumerate(outputs))
    return [e2e_s - n * STEP_S for e2e_s, n in spent]


def _lindley(due_s: list[float], outputs: list[int]) -> list[float]:
    """W(n+1) = max(0, W(n) + S(n) - gap)."""
    waits = [0.0]
    for i in range(len(due_s) - 1):
        waits.append(max(0.0, waits[-1] + outputs[i] * STEP_S - (due_s[i + 1] - due_s[i])))
    return waits


@pytest.mark.parametrize("rho", [0.5, 0.8, 0.95])
def test_one_slot_waits_as_lindley_says(rho: float) -> None:
    random = Random(3)
    outputs = [1 + int(random.expovariate(1 / 4)) for _ in range(2_000)]
    due_s = _arrivals(2_000, rho / (STEP_S * sum(outputs) / 2_000), 4)
    played = opened(machine(setting(slots=1)), due_s, asks([8] * 2_000, outputs))
    assert _waits(played, outputs) == pytest.approx(_lindley(due_s, outputs), rel=1e-6, abs=1e-7)


def test_the_mean_wait_of_a_fixed_service() -> None:
    """M/D/1: rho S / 2 (1 - rho)."""
    n = 25_000
    played = opened(machine(setting(slots=1)), _arrivals(n, 50.0, 7), asks([8] * n, [1] * n))
    assert np.mean(_waits(played, [1] * n)) == pytest.approx(0.5 * STEP_S / (2 * 0.5), rel=0.03)


def test_the_mean_wait_of_services_of_any_length() -> None:
    """M/G/1: lambda E[S^2] / 2 (1 - rho), a half of 1 token, a quarter of 2, a quarter of 6."""
    n, rho = 24_000, 0.3
    outputs = [1, 1, 2, 6] * (n // 4)
    Random(11).shuffle(outputs)
    mean_s = STEP_S * sum(outputs) / n
    square = STEP_S**2 * sum(o * o for o in outputs) / n
    played = opened(machine(setting(slots=1)), _arrivals(n, rho / mean_s, 13), asks([8] * n, outputs))
    assert np.mean(_waits(played, outputs)) == pytest.approx(rho / mean_s * square / (2 * (1 - rho)), rel=0.03)


@pytest.mark.parametrize("slots", [3, 64])
@pytest.mark.parametrize("policy", ["chunked", "blocking", "static"])
def test_a_closed_loop_has_all_its_users_in_flight(policy: str, slots: int) -> None:
    """N = X R: over any stretch, the time spent by all requests is N times its length."""
    made = machine(setting(LIKE_A_GPU, policy=policy, slots=slots))
    played = closed(made, 16, mixed(5_000, 64, 16), stop_s=30.0)
    from_s, to_s = 3.21, 29.87
    spent = [_within(record, from_s, to_s) for record in played.records]
    assert sum(spent) == pytest.approx(16 * (to_s - from_s), rel=1e-8)


def _within(record: Record, from_s: float, to_s: float) -> float:
    return max(0.0, min(seconds(record.end_ns), to_s) - max(seconds(record.sent_ns), from_s))


def _mean_of_greatest(cv: float, batch: int) -> float:
    """E[max of B] / E[one] of log-normal lengths: the integral of 1 - F(x)^B."""
    var = log(1 + cv * cv)
    x = np.linspace(1e-6, 60.0, 300_001)
    cdf = np.array([0.5 * (1 + erf(z)) for z in (np.log(x) + var / 2) / sqrt(2 * var)])
    return float(np.trapezoid(1 - cdf**batch, x))


def _spread(count: int, cv: float, seed: int) -> list[int]:
    """Log-normal lengths of mean 150: evenly spread quantiles in a random order."""
    var = log(1 + cv * cv)
    spread = NormalDist(log(150) - var / 2, sqrt(var))
    lengths = [max(1, round(exp(spread.inv_cdf((i + 0.5) / count)))) for i in range(count)]
    Random(seed).shuffle(lengths)
    return lengths


STATIC_USE = {
    (8, 0.3): (0.67, 1.43),
    (8, 0.5): (0.54, 1.76),
    (8, 1.0): (0.37, 2.55),
    (16, 0.3): (0.61, 1.55),
    (16, 0.5): (0.46, 2.00),
    (16, 1.0): (0.29, 3.27),
    (32, 0.3): (0.56, 1.61),
    (32, 0.5): (0.41, 2.19),
    (32, 1.0): (0.23, 4.03),
}
"""Published of a prototype: use of the slots, and how much more continuous batching writes."""


@pytest.mark.parametrize(("batch", "cv"), STATIC_USE)
def test_a_static_batch_waits_for_its_longest(batch: int, cv: float) -> None:
    """With steady steps: E[O] / E[max of B] of the slots' time is used, and continuous batching uses all of it."""
    outputs = _spread(batch * (200 if batch == 8 else 100), cv, seed=batch)
    wanted = asks([8] * len(outputs), outputs)
    rates = []
    for policy in ("static", "chunked"):
        played = closed(machine(setting(policy=policy, slots=batch)), 3 * batch, wanted)
        ends = sorted(seconds(r.end_ns) for r in played.records)
        halfway = ends[len(ends) * 3 // 4]
        stamps_ns = np.concatenate([np.frombuffer(r.frames.user, np.int64) for r in played.records])
        written = int((stamps_ns <= ORIGIN_NS + halfway * 1e9 + 1).sum())
        rates.append(written * STEP_S / halfway / batch)
    use, ratio = rates[0], rates[1] / rates[0]
    assert rates[1] == pytest.approx(1.0, rel=0.005)
    assert use == pytest.approx(1 / _mean_of_greatest(cv, batch), rel=0.06)
    published_use, published_ratio = STATIC_USE[batch, cv]
    assert use == pytest.approx(published_use, rel=0.06)
    assert ratio == pytest.approx(published_ratio, rel=0.15)  # its prompts took time, which both ways pay
    assert ratio > published_ratio * 0.97


def test_a_static_batch_of_exponential_lengths_uses_one_part_in_harmonic_number() -> None:
    random = Random(5)
    batch = 8
    outputs = [1 + int(random.expovariate(1 / 200)) for _ in range(batch * 500)]
    played = closed(machine(setting(policy="static", slots=batch)), batch, asks([8] * len(outputs), outputs))
    span_s = max(seconds(r.end_ns) for r in played.records)
    harmonic = sum(1 / i for i in range(1, batch + 1))
    assert sum(outputs) * STEP_S / span_s / batch == pytest.approx(1 / harmonic, rel=0.03)


@pytest.mark.parametrize(
    ("drafts", "acceptance", "share", "gain"),
    [(2, 0.4, 0.1, 1.30), (3, 0.6, 0.1, 1.67), (6, 0.8, 0.1, 2.47), (1, 0.4, 0.2, 1.17), (4, 0.8, 0.2, 1.87)],
)
def test_the_gain_of_speculation(drafts: int, acceptance: float, share: float, gain: float) -> None:
    """(1 - a^(k + 1)) / (1 - a) / (1 + k c) while verifying is free; the last column is the published table's."""
    exact = (1 - acceptance ** (drafts + 1)) / (1 - acceptance) / (1 + drafts * share)
    spoken = Speculation(drafts=drafts, acceptance=acceptance, draft_share=share)
    spans = []
    for speculation in (None, spoken):
        played = closed(machine(setting(speculation=speculation)), 4, asks([8] * 8, [2_000] * 8))
        spans.append(max(seconds(r.end_ns) for r in played.records))
    assert spans[0] / spans[1] == pytest.approx(exact, rel=0.03)
    assert spans[0] / spans[1] == pytest.approx(gain, rel=0.04)


LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=30)


def _span_s(of: Setting, users: int, wanted: list[Ask]) -> float:
    return max(seconds(r.end_ns) for r in closed(machine(of), users, wanted).records)


@given(LENGTHS, st.integers(1, 8), st.integers(1, 40))
@effort(max_examples=60, deadline=None)
def test_more_slots_never_take_longer_where_steps_are_steady(
    lengths: list[tuple[int, int]], slots: int, users: int
) -> None:
    wanted = asks(*zip(*lengths, strict=True))
    few, more = (_span_s(setting(slots=n, max_batched_tokens=10**6), users, wanted) for n in (slots, slots + 1))
    assert more <= few + 1e-9


@given(LENGTHS, st.integers(1, 8), st.sampled_from([0.5, 3.0]))
@effort(max_examples=40, deadline=None)
def test_a_machine_so_many_times_slower_takes_so_many_times_longer(
    lengths: list[tuple[int, int]], users: int, factor: float
) -> None:
    wanted = asks(*zip(*lengths, strict=True))
    cost = Linear(fixed_s=0.004, prefill_token_s=1e-4, decode_token_s=2e-4, cached_token_s=1e-6)
    slower = Linear(
        fixed_s=cost.fixed_s * factor,
        prefill_token_s=cost.prefill_token_s * factor,
        decode_token_s=cost.decode_token_s * factor,
        cached_token_s=cost.cached_token_s * factor,
    )
    spans = [_span_s(setting(one, kv_blocks=8), users, wanted) for one in (cost, slower)]
    assert spans[1] == pytest.approx(factor * spans[0], rel=1e-9, abs=1e-8)


def test_throughput_keeps_to_its_bounds() -> None:
    """X(N) <= min(N X(1), X_max); with one slot X_max = X(1)."""
    made = {n: 400 / _span_s(setting(LIKE_A_GPU), n, mixed(400, 100, 30)) for n in (1, 4, 16)}
    assert made[1] < made[4] < 4.05 * made[1]
    assert made[4] < made[16] < 16.2 * made[1]
    alone = 400 / _span_s(setting(LIKE_A_GPU, slots=1), 16, mixed(400, 100, 30))
    assert alone == pytest.approx(made[1], rel=1e-6)


def test_a_step_with_everything_in_it_by_hand() -> None:
    """Two requests of 5 and 3 prompt tokens, chunks of 4: 4 | 1 + 3 | decode two, then the one that is left."""
    cost = Linear(fixed_s=1.0, prefill_token_s=0.1, decode_token_s=0.01, cached_token_s=0.001)
    played = closed(machine(setting(cost, max_batched_tokens=4)), 2, asks([5, 3], [3, 2]))
    records = of_keys(played.records)
    first = 1.4  # 4 prompt tokens
    second = first + 1.4 + 0.004  # 1 + 3 prompt tokens; 4 of the first are there and read
    third = second + 1.0 + 0.02 + 0.010  # both decode, on 5 + 1 and 3 + 1 tokens
    fourth = third + 1.0 + 0.01 + 0.007
    assert [seconds(f.at_ns) for f in records[0].frames] == pytest.approx([second, third, fourth], abs=1e-8)
    assert [seconds(f.at_ns) for f in records[1].frames] == pytest.approx([second, third], abs=1e-8)
    assert STEADY.seconds(100, 100, 100) == STEP_S
