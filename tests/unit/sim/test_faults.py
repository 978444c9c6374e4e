"""Each fault shows on the client's side as the table of faults says. The features are written here anew, from their
definitions: F1 median(TTFT / E2E), F2 share of gaps under 1 ms, F3 share of first tokens at which another stream that
began over 3 gaps before still goes on, F4 simultaneity of long gaps, F7 evenness of first tokens, F9 slow head.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles

import pytest

from nilometer.core.record import Record
from nilometer.core.run import Health
from nilometer.core.spec import Load, Spec
from nilometer.metrics.summary import summarise
from nilometer.sim.cost import Linear
from nilometer.sim.drive import Played
from nilometer.sim.faults import WHOLE_ANSWER, Faults
from nilometer.sim.setting import Ask, Setting

from .made import closed, machine, mixed, opened, seconds, setting, stamps

QUICK = Linear(fixed_s=0.008, prefill_token_s=20e-6, decode_token_s=0.15e-3, cached_token_s=0.1e-6)
"""About 8 ms a token alone, 10 ms in a batch of 16; a prompt of 200 tokens in 4 ms."""
USERS = 16


def play(of: Setting, faults: Faults | None = None, users: int = USERS, count: int = 320, **lengths: float) -> Played:
    wanted = mixed(count, lengths.get("prompt", 200), lengths.get("output", 40), lengths.get("cv", 0.5))
    return closed(machine(of, faults or Faults()), users, wanted, ramp_s=0.5)


def ok(played: Played) -> list[Record]:
    return [record for record in played.records if record.outcome == "ok"]


def ttft_s(record: Record) -> float:
    return seconds(record.first_token_ns) - seconds(record.sent_ns)


def e2e_s(record: Record) -> float:
    return seconds(record.end_ns) - seconds(record.sent_ns)


def gaps(record: Record) -> list[tuple[float, float]]:
    at = stamps(record)
    return list(pairwise(at))


def widths(records: list[Record]) -> list[float]:
    return [to - since for record in records for since, to in gaps(record)]


def stream(records: list[Record]) -> float:
    """F1."""
    return median(ttft_s(record) / e2e_s(record) for record in records)


def burst(records: list[Record]) -> float:
    """F2."""
    found = widths(records)
    return sum(width < 0.001 for width in found) / len(found)


def join(records: list[Record]) -> float:
    """F3."""
    typical = median(widths(records))
    spans = [(stamps(record)[0], stamps(record)[-1]) for record in records]
    joined = [any(a + 3 * typical < first < b for a, b in spans) for first, _ in spans]
    return sum(joined) / len(joined)


def long_gaps(records: list[Record]) -> list[tuple[int, float, float]]:
    least = max(5 * median(widths(records)), 0.05)
    return [(r.seq, a, b) for r in records for a, b in gaps(r) if b - a > least]


def simultaneity(records: list[Record]) -> float:
    """F4: of the other streams that live through a long gap, the share with a long gap over more than half of it."""
    found = long_gaps(records)
    spans = [(r.seq, stamps(r)[0], stamps(r)[-1]) for r in records]
    shares = []
    for seq, a, b in found[:: max(1, len(found) // 100)]:
        live = [s for s, first, last in spans if s != seq and first <= a and last >= b]
        also = {s for s, c, d in found if min(b, d) - max(a, c) > (b - a) / 2}
        if live:
            shares.append(sum(s in also for s in live) / len(live))
    return sum(shares) / len(shares)


def decoding(records: list[Record]) -> tuple[float, float]:
    """Mean and greatest number of streams between first and last token, looked at on a grid."""
    spans = [(stamps(r)[0], stamps(r)[-1]) for r in records]
    end = max(b for _, b in spans)
    seen = [sum(a <= end * i / 400 < b for a, b in spans) for i in range(80, 320)]
    return sum(seen) / len(seen), max(seen)


HEALTHY = setting(QUICK, slots=64)


def test_a_healthy_service_shows_nothing() -> None:
    records = ok(play(HEALTHY))
    assert len(records) == 320
    assert stream(records) < 0.15
    assert burst(records) == 0.0
    assert join(records) > 0.9
    assert long_gaps(records) == []
    mean, most = decoding(records)
    assert mean > 13
    assert most == 16


def test_too_few_slots_queue() -> None:
    """Streams level off at the slots, token gaps stay as they were, most of a request's time is waiting."""
    slots = setting(QUICK, slots=3)
    records = ok(play(slots))
    assert decoding(records)[1] == 3
    assert stream(records) > 0.7
    alone = median(widths(ok(play(slots, users=1, count=40))))
    assert median(widths(records)) / alone < 1.1
    assert join(records) > 0.8


def test_static_batching_lets_nobody_join() -> None:
    records = ok(play(setting(QUICK, slots=8, policy="static")))
    assert join(records) == 0.0
    assert decoding(records)[1] == 8
    assert stream(records) > 0.5


def test_a_prefill_that_blocks_stalls_all_streams_at_once() -> None:
    slow = Linear(fixed_s=0.008, prefill_token_s=0.4e-3)
    blocked = ok(play(setting(slow, slots=64, policy="blocking"), prompt=400, cv=0.2))
    assert len(long_gaps(blocked)) / len(blocked) > 1
    assert simultaneity(blocked) > 0.99
    chunked = ok(play(setting(slow, slots=64, max_batched_tokens=64), prompt=400, cv=0.2))
    assert long_gaps(chunked) == []


def test_preemption_stalls_one_stream() -> None:
    played = closed(
        made := machine(setting(QUICK, slots=64, kv_blocks=170)), USERS, mixed(320, 200, 120, 0.5), ramp_s=0.5
    )
    records = ok(played)
    assert made.gauges[0].preemptions > 20
    assert len(long_gaps(records)) > 20
    assert simultaneity(records) < 0.3
    assert decoding(records)[1] < 16


def test_the_pool_moves_the_plateau_with_the_lengths_and_slots_do_not() -> None:
    """Half as long: a pool holds twice as many, slots as many."""

    def plateau(of: Setting, factor: float) -> float:
        return decoding(ok(play(of, prompt=400 * factor, output=200 * factor, cv=0.2)))[0]

    pool = setting(QUICK, slots=64, kv_blocks=160, reserve="max_tokens")
    assert plateau(pool, 0.5) / plateau(pool, 1.0) == pytest.approx(2.0, rel=0.2)
    slots = setting(QUICK, slots=4)
    assert plateau(slots, 0.5) / plateau(slots, 1.0) == pytest.approx(1.0, rel=0.05)


def test_a_proxy_that_buffers_gives_the_answer_in_one_piece() -> None:
    records = ok(play(HEALTHY, Faults(buffer_frames=WHOLE_ANSWER)))
    assert stream(records) == 1.0
    assert burst(records) == 1.0
    by_parts = ok(play(HEALTHY, Faults(buffer_frames=8)))
    assert burst(by_parts) == pytest.approx(7 / 8, abs=0.05)
    assert sum(r.output_tokens or 0 for r in by_parts) == sum(r.output_tokens or 0 for r in records)


def test_a_rate_limit_refuses() -> None:
    played = play(HEALTHY, Faults(rate_per_s=12.0, rate_burst=6, refuse_s=0.1), count=3_000)
    refused = [r for r in played.records if r.error == "http_429"]
    assert {r.status for r in refused} == {429}
    good = ok(played)
    span_s = max(seconds(r.end_ns) for r in played.records)
    assert len(good) / span_s == pytest.approx(12.0, rel=0.05)
    assert stream(good) < 0.15


def test_a_cold_start_is_over_after_the_first() -> None:
    """F9: mean TTFT of the first 3 over the median of the rest, at one user."""
    records = sorted(ok(play(HEALTHY, Faults(cold_requests=6, cold_s=2.5), users=1, count=40)), key=lambda r: r.seq)
    firsts = [ttft_s(record) for record in records]
    assert sum(firsts[:3]) / 3 / median(firsts[6:]) > 100
    assert max(firsts[6:]) < 0.05


def test_it_is_cold_again_after_a_pause() -> None:
    wanted = mixed(6, 200, 40, 0.5)
    faults = Faults(cold_requests=1, cold_s=2.0, cold_again_s=5.0)
    due_s = [0.0, 4.0, 6.0, 20.0, 23.0, 30.0]  # an answer takes half a second
    records = sorted(opened(machine(HEALTHY, faults), due_s, wanted).records, key=lambda r: r.seq)
    assert [ttft_s(record) > 2.0 for record in records] == [True, False, False, True, False, True]


def test_a_serial_front_end_spaces_first_tokens_evenly() -> None:
    """F7 p10 / p50 of first tokens: 60 ms each; the engine's own gaps do not grow, most of its slots stand free."""
    records = ok(play(HEALTHY, Faults(front_s=0.060)))
    firsts = sorted(stamps(record)[0] for record in records)
    spacing = [b - a for a, b in pairwise(firsts)]
    assert median(spacing) == pytest.approx(0.060, abs=0.012)
    assert quantiles(spacing, n=10)[0] / median(spacing) > 0.75
    assert decoding(records)[1] < 0.75 * USERS
    assert median(widths(records)) < 1.2 * median(widths(ok(play(HEALTHY, users=1, count=40))))


def test_slow_spells_come_in_time_and_at_one_user_too() -> None:
    """Five times slower for 1 s after about 2 s: the 99th percentile of gaps leaves the median, at one user."""
    records = ok(play(HEALTHY, Faults(spell_s=1.0, quiet_s=2.0, spell_slowness=5.0), users=1, count=120))
    found = widths(records)
    assert quantiles(found, n=100)[98] / median(found) > 4
    assert 0.03 < sum(width > 2 * median(found) for width in found) / len(found) < 0.35
    assert max(widths(ok(play(HEALTHY, users=1, count=120)))) < 1.5 * median(found)


def test_decoding_bound_by_arithmetic_grows_with_the_users() -> None:
    slow = setting(Linear(fixed_s=0.002, decode_token_s=0.008, prefill_token_s=20e-6), slots=64)
    gap = {n: median(widths(ok(play(slow, users=n, count=20 * n)))) for n in (2, 16)}
    assert gap[16] / gap[2] == pytest.approx((2 + 16 * 8) / (2 + 2 * 8), rel=0.1)


def test_prefill_bound_raises_gaps_to_a_chunk() -> None:
    slow = setting(Linear(fixed_s=0.008, prefill_token_s=1 / 8_000), slots=64, max_batched_tokens=512)
    many = ok(play(slow, prompt=2_000, output=16, cv=0.3))
    few = ok(play(slow, prompt=2_000, output=16, cv=0.3, users=1, count=20))
    assert stream(many) > 0.6
    assert median(widths(many)) / median(widths(few)) == pytest.approx((0.008 + 512 / 8_000) / 0.008, rel=0.1)


def test_a_leak_slows_and_a_throttle_steps() -> None:
    one = {"users": 1, "count": 150}
    leaky = ok(play(HEALTHY, Faults(leak_per_s=0.02), **one))
    last = leaky[-1]
    middle = (stamps(last)[0] + stamps(last)[-1]) / 2
    assert median(b - a for a, b in gaps(last)) / median(b - a for a, b in gaps(leaky[0])) == pytest.approx(
        1 + 0.02 * middle, rel=0.02
    )
    hot = ok(play(HEALTHY, Faults(throttle_after_s=10.0, throttle_slowness=1.8), **one))
    before = [b - a for r in hot for a, b in gaps(r) if b < 10.0]
    after = [b - a for r in hot for a, b in gaps(r) if a > 10.0]
    assert median(after) / median(before) == pytest.approx(1.8, rel=0.01)


def test_a_duty_cycle_stops_everything_at_once() -> None:
    records = ok(play(HEALTHY, Faults(duty_period_s=0.5, duty_share=0.8)))
    assert simultaneity(records) > 0.95
    stops = {round(b, 6) for _, _, b in long_gaps(records)}
    assert all(0.0 < b % 0.5 < 0.02 for b in stops)
    busy = sum(r.output_tokens or 0 for r in records) / max(seconds(r.end_ns) for r in records)
    free = ok(play(HEALTHY))
    whole = sum(r.output_tokens or 0 for r in free) / max(seconds(r.end_ns) for r in free)
    assert busy / whole == pytest.approx(0.8, abs=0.04)


def test_early_ends_are_short_and_say_stop() -> None:
    records = ok(play(HEALTHY, Faults(early_eos_share=0.9, early_eos_at=0.3)))
    early = [r for r in records if r.finish_reason == "stop"]
    assert len(early) / len(records) == pytest.approx(0.9, abs=0.05)
    assert all(
        r.output_tokens == max(1, round(0.3 * (r.asked_output or 0))) for r in early if (r.asked_output or 0) > 1
    )


def test_hidden_retries_put_a_second_hump_at_the_timeout() -> None:
    records = ok(play(HEALTHY, Faults(drop_share=0.2, timeout_s=2.0, retries=5)))
    assert len(records) == 320
    late = [ttft_s(r) // 2.0 for r in records]
    assert late.count(1.0) / len(late) == pytest.approx(0.8 * 0.2, abs=0.06)
    assert max(ttft_s(r) % 2.0 for r in records) < 0.2


def test_a_gateway_that_gives_up_tells_504() -> None:
    played = play(HEALTHY, Faults(drop_share=0.5, timeout_s=1.0, retries=1))
    failed = [r for r in played.records if r.status == 504]
    assert len(failed) / 320 == pytest.approx(0.25, abs=0.07)
    assert all(e2e_s(r) == pytest.approx(2.0, abs=1e-6) for r in failed)


def test_one_slow_replica_shows_by_replica() -> None:
    of = machine(HEALTHY, Faults(replica_slowness=(1.0, 3.0)), replicas=2, router="turns")
    records = ok(closed(of, USERS, mixed(320, 200, 40, 0.5)))
    per = {i: median(widths([r for r in records if r.server is not None and r.server["replica"] == i])) for i in (0, 1)}
    assert per[1] / per[0] > 2.5


def test_reserving_for_the_longest_answer_admits_few() -> None:
    """A queue beside a pool that looks full and holds little; answers are a tenth of their limit."""
    wanted = [
        type(one)(one.key, one.prompt_tokens, one.output_tokens, one.output_tokens * 10) for one in mixed(200, 100, 40)
    ]
    levels = {}
    for reserve in ("growing", "max_tokens", "context"):
        of = machine(setting(QUICK, slots=64, kv_blocks=256, reserve=reserve, context_tokens=4096 // 4))
        fitting = [one for one in wanted if of.engines[0].fits(one)]
        levels[reserve] = decoding(ok(closed(of, USERS, fitting)))[0]
    assert levels["growing"] > 2 * levels["max_tokens"]
    assert levels["context"] <= 4.0


def test_adapters_that_take_turns_are_swapped() -> None:
    one = mixed(60, 100, 20, 0.2)
    wanted = [type(ask)(ask.key, ask.prompt_tokens, ask.output_tokens, adapter=ask.key % 2) for ask in one]
    spans = {}
    for slots in (1, 2):
        of = machine(setting(QUICK, adapter_slots=slots, adapter_swap_s=0.5))
        spans[slots] = max(seconds(r.end_ns) for r in closed(of, 1, wanted).records)
    assert spans[1] - spans[2] == pytest.approx(58 * 0.5, rel=1e-6)


def test_requests_for_an_adapter_without_a_slot_wait_and_are_passed_over() -> None:
    of = machine(setting(QUICK, adapter_slots=1))
    for key, adapter in enumerate((0, 1, 0, 1)):
        of.submit(Ask(key, 10, 5, adapter=adapter), 0.0)
    while len(of.gauges) and of.gauges[0].running < 2:
        of.step(of.next_s + 1e-6)
        assert of.engines[0].steps < 10
    engine = of.engines[0]
    assert list(engine.running_by_key) == [0, 2]
    assert [one.ask.key for one in engine.waiting] == [1, 3]
    ends: dict[int, float] = {}
    while of.next_s < 100:
        ends |= {event.key: event.at_s for event in of.step(100)}
    assert max(ends[0], ends[2]) < min(ends[1], ends[3])


def test_cached_prefixes_flatter_the_first_token() -> None:
    slow = Linear(fixed_s=0.008, prefill_token_s=0.4e-3)
    one = mixed(40, 400, 10, 0.0)
    same = [type(ask)(ask.key, 400, 10, hashes=tuple(range(25))) for ask in one]
    records = ok(closed(machine(setting(slow, prefix_cache=True)), 1, same))
    assert records[0].cached_tokens == 0
    assert {r.cached_tokens for r in records[1:]} == {384}  # the last block holds the last token, which is computed
    assert ttft_s(records[0]) == pytest.approx(0.008 + 400 * 0.4e-3, abs=1e-8)
    assert ttft_s(records[1]) == pytest.approx(0.008 + 16 * 0.4e-3, abs=1e-8)


def test_the_summary_takes_them_as_measured_ones() -> None:
    wanted = mixed(600, 200, 40, 0.5)
    played = closed(machine(HEALTHY), 4, wanted, warmup_s=2.0, stop_s=20.0)
    asked = Spec(target="http://127.0.0.1:1", load=Load(concurrency=4, warmup_s=2.0, duration_s=18.0, window="0..18"))
    made = summarise(iter(played.records), asked, played.phases, Health())
    chosen = [r for r in played.records if 2.0 <= seconds(r.sent_ns) < 20.0]
    assert made.requests.ok == len(chosen)
    assert made.latency_ms["ttft"].p50 == pytest.approx(1e3 * median(ttft_s(r) for r in chosen), rel=0.01)
    tokens = [at for r in played.records for at in stamps(r) if 2.0 <= at < 20.0]
    assert made.throughput.output_tokens_per_s == pytest.approx(len(tokens) / 18.0, rel=1e-6)
    assert (made.latency_ms["itl"].n or 0) > 0
    assert made.latency_from == "sent"


def test_the_summary_of_an_open_loop_counts_from_due_and_knows_refusals() -> None:
    due_s = [i / 40 for i in range(1_200)]
    of = machine(HEALTHY, Faults(rate_per_s=30.0, rate_burst=5))
    played = opened(of, due_s, mixed(1_200, 200, 40, 0.5), stop_s=30.0)
    asked = Spec(target="http://127.0.0.1:1", load=Load(rate_per_s=40.0, warmup_s=0.0, duration_s=30.0, window="0..30"))
    made = summarise(iter(played.records), asked, played.phases, Health())
    assert made.latency_from == "due"
    assert made.requests.errors == {"http_429": made.requests.error}
    assert made.requests.ok == pytest.approx(900 + 5, abs=2)
    assert made.latency_ms["start_lag"].max == 0.0
