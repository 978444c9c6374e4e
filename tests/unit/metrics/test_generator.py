"""The verdict on runs made to have one fault each; what is the server's doing must not be laid to the generator."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.core.record import LATE, SHARED, Record
from nilometer.core.run import Health, Phases
from nilometer.core.summary import Generator
from nilometer.metrics.collect import collect
from nilometer.metrics.generator import Signs, gather, generator, reasons
from nilometer.metrics.window import choose, rule_of, stretch_of

from .made import answered, at, failed, frames, health, phases, spec, whole

CALM = health([1.0] * 400)
BOTH = SHARED | LATE
OPEN: dict[str, Any] = {"concurrency": None, "rate_per_s": 10.0}


def stream(start_s: float, n: int = 20, *, flagged: dict[int, int] | None = None, **changes: Any) -> Record:
    """A request of `n` frames 50 ms apart with kernel stamps; `flagged` maps the first frame of a pair to its flags."""
    kernel = [start_s + 0.2 + 0.05 * i for i in range(n)]
    user = [k + 0.001 for k in kernel]
    flags = [0] * n
    for first, flag in (flagged or {}).items():
        flags[first] = flags[first + 1] = flag
        user[first] = user[first + 1]
        kernel[first] = kernel[first + 1]
    made = answered(start_s, kernel, stamp_source="kernel", frames=frames(user, kernel_s=kernel, flags=flags))
    return msgspec.structs.replace(made, **changes)


def slot(n: int = 30, refill_s: float = 0.001, **changes: Any) -> list[Record]:
    """One closed-loop slot: requests one after the other, each lasting 1.15 s."""
    step = 0.2 + 0.05 * 19 + refill_s
    return [stream(i * step, refill_ns=round(refill_s * 1e9) if i else None, **changes) for i in range(n)]


def seen_by(
    records: list[Record], seen: Health = CALM, borders: Phases | None = None, **load: Any
) -> tuple[Generator, list[str]]:
    """The verdict and the reasons for it."""
    asked = spec(**({"window": "0..30"} | load)).load
    limits = borders or phases(0, 30, 40)
    collected = collect(records)
    stretch = stretch_of(choose(rule_of(asked), limits, collected.table), collected.table)
    made = generator(collected, stretch, asked, limits, seen)
    return made, reasons(gather(collected, stretch, asked, limits, seen))


def test_a_calm_run_is_fit_and_says_what_it_saw() -> None:
    made, why = seen_by(slot())
    assert (made.verdict, why) == ("fit", [])
    assert made.loop_lag_ms.p50 == pytest.approx(1.0)
    assert (made.shared_reads_share, made.late_reads_share, made.stamp_source) == (0.0, 0.0, "kernel")
    assert made.achieved_over_asked == pytest.approx(1.15 / 1.151, rel=1e-3)
    assert made.cpu_share == pytest.approx(0.1)


def test_late_reads_with_several_frames_are_the_generators() -> None:
    made, why = seen_by([*slot(28), stream(28.9, flagged={5: BOTH, 9: BOTH, 14: BOTH})])
    assert made.late_reads_share == pytest.approx(3 / (28 * 20 - 2 * 20 + 17 + 40), rel=0.1)
    assert (made.verdict, why) == ("limited", ["late_reads_share"])


def test_one_hiccup_is_no_verdict() -> None:
    made, _ = seen_by([*slot(3), stream(5.0, flagged={5: BOTH})], concurrency=1)
    assert made.late_reads_share is not None
    assert made.late_reads_share > 0.005
    assert made.verdict == "fit"


def test_a_server_that_writes_several_frames_at_once_is_not_accused() -> None:
    records = slot(26, flagged=dict.fromkeys(range(0, 20, 2), SHARED))
    made, why = seen_by(records)
    assert (made.shared_reads_share, made.late_reads_share, why) == (1.0, 0.0, [])
    late_too = slot(26, flagged={i: BOTH if i == 4 else SHARED for i in range(0, 20, 2)})
    made, why = seen_by(late_too)
    assert (made.late_reads_share, why) == (0.0, []), "as many frames as this server always writes"


def test_more_frames_than_the_server_writes_at_once_are_late() -> None:
    pairs = dict.fromkeys(range(0, 20, 2), SHARED)
    merged = stream(0.0, flagged=pairs)
    user = [at_ns / 1e9 - 1000 for at_ns in memoryview(merged.frames.user).cast("q")]
    user[4:8] = [user[7]] * 4
    flags = [SHARED] * 4 + [BOTH] * 4 + [SHARED] * 12
    both = msgspec.structs.replace(merged, frames=frames(user, kernel_s=user, flags=flags))
    assert seen_by([*slot(26, flagged=pairs), both, both])[1] == ["late_reads_share"]


def test_first_tokens_in_late_reads_count_by_themselves() -> None:
    """300 requests of 20 frames: 4 reads of 6,000 are few, 4 of 300 first tokens are too many."""
    calm = [stream(0.05 * i) for i in range(296)]
    made, why = seen_by([*calm, *(stream(20.0 + i, flagged={0: BOTH}) for i in range(4))], **OPEN)
    assert why == ["late_first_tokens_share"]
    made, why = seen_by([*calm, *(stream(20.0 + i, flagged={7: BOTH}) for i in range(4))], **OPEN)
    assert (made.verdict, why) == ("fit", [])


def test_lag_is_no_error_with_kernel_stamps() -> None:
    made, why = seen_by(slot(), health([20.0] * 400))
    assert (made.verdict, why) == ("fit", [])


def without_kernel(records: list[Record]) -> list[Record]:
    return [
        msgspec.structs.replace(
            r, stamp_source="user", frames=frames([(ns - at(0)) / 1e9 for ns in memoryview(r.frames.user).cast("q")])
        )
        for r in records
    ]


def test_without_kernel_stamps_lag_is_the_error() -> None:
    made, why = seen_by(without_kernel(slot()), health([20.0] * 400))
    assert (made.verdict, why) == ("limited", ["loop_lag"])
    assert made.loop_lag_ms.p99 == pytest.approx(20.0)
    assert made.stamp_source == "user"


def test_without_kernel_stamps_rare_lag_does_not_reach_p99() -> None:
    """30 ms every 3 s: 1 in 120 moments waits longer than 5 ms."""
    rare = [30.0 if i % 30 == 0 else 1.0 for i in range(400)]
    made, why = seen_by(without_kernel(slot()), health(rare))
    assert (made.verdict, why) == ("fit", [])
    often = [30.0 if i % 20 == 0 else 1.0 for i in range(400)]
    assert seen_by(without_kernel(slot()), health(often))[1] == ["loop_lag"]


def test_without_any_sign_the_verdict_is_unknown() -> None:
    assert seen_by(without_kernel(slot()), Health())[0].verdict == "unknown"
    assert seen_by([], Health())[0].verdict == "unknown"
    assert seen_by(slot(), Health())[0].verdict == "fit"


def test_late_refills_of_a_late_loop_are_the_generators() -> None:
    slow = slot(26, refill_s=0.020)
    assert seen_by(slow, health([20.0] * 400))[1] == ["refill"]
    assert seen_by(slow)[1] == [], "the loop was there: then it waited for something else"
    fresh = [msgspec.structs.replace(r, new_connection=True) for r in slow]
    assert seen_by(fresh, health([20.0] * 400))[1] == [], "a new connection takes what it takes"


def test_many_slots_that_end_together_may_take_their_time() -> None:
    """1,024 refills one after the other take tens of ms."""
    made = seen_by(slot(26, refill_s=0.050), health([12.0] * 400), concurrency=1024)[1]
    assert "refill" not in made


def test_idle_slots_are_the_generators() -> None:
    made, why = seen_by(slot(24, refill_s=0.1))
    assert made.achieved_over_asked == pytest.approx(1.15 / 1.25, rel=0.01)
    assert why == ["achieved_over_asked"]


def test_short_answers_make_slots_idle_without_fault() -> None:
    """2 ms an answer and 0.5 ms to the next: a fifth of the time is turnaround."""
    records = [whole(i * 0.0025, i * 0.0025 + 0.002, 5, refill_ns=500_000) for i in range(12_000)]
    made, why = seen_by(records)
    assert made.achieved_over_asked == pytest.approx(0.8, rel=0.01)
    assert (made.verdict, why) == ("fit", [])


def test_reconnecting_is_not_idle() -> None:
    records = [
        whole(i * 0.5, i * 0.5 + 0.4, 5, refill_ns=100_000_000, new_connection=True, connect_ns=99_000_000)
        for i in range(60)
    ]
    assert seen_by(records)[1] == []


def test_the_opening_wave_and_the_drain_are_not_idle() -> None:
    """Four slots opened over 8 s; counted requests, the last of them sent at 20 s."""
    waves = [stream(2.0 * s + 1.15 * i, refill_ns=1_000_000 if i else None) for s in range(4) for i in range(13 - s)]
    made, why = seen_by(waves, borders=phases(0, 18, 20), concurrency=4, requests=46, window="count")
    assert made.achieved_over_asked == pytest.approx(1.0, abs=0.08)
    assert why == []


def test_a_target_that_refuses_connections_leaves_slots_idle() -> None:
    refused = [failed(0, 0, "connect", sent_ns=None, end_ns=None) for _ in range(5)]
    assert seen_by(slot(24, refill_s=0.1) + refused)[1] == []


def test_think_time_is_not_idle() -> None:
    turns = [stream(i * 2.0, due_ns=at(i * 2.0 - 0.0001)) for i in range(15)]
    made, why = seen_by(turns)
    assert made.achieved_over_asked is None
    assert why == []


def test_an_open_loop_that_starts_late_is_limited() -> None:
    def due(lag_s: float, every: int = 1) -> list[Record]:
        return [stream(i * 0.1, due_ns=at(i * 0.1 - (lag_s if i % every == 0 else 0.0001))) for i in range(1, 290)]

    assert seen_by(due(0.001), **OPEN)[1] == []
    assert seen_by(due(0.010), **OPEN)[1] == ["start_lag"]
    assert seen_by(due(0.010, every=50), **OPEN)[1] == ["start_lag"], "2 % of the starts"
    assert seen_by(due(0.010, every=289), **OPEN)[1] == [], "one late start"
    assert seen_by(due(0.001), **OPEN)[0].achieved_over_asked == pytest.approx(1.0, abs=0.01)


def test_what_an_open_loop_never_came_to_was_asked_all_the_same() -> None:
    """10 a second over 30 s; the loop came as far as the call due at 14.9 s, and that one 15 s late."""
    behind = [stream(i * 0.2, due_ns=at(i * 0.1)) for i in range(150)]
    made, why = seen_by(behind, **OPEN)
    assert made.achieved_over_asked == pytest.approx(150 / 302, rel=0.001)
    assert "start_lag" in why


def test_a_pause_before_the_end_is_no_lag() -> None:
    poisson = [stream(i * 0.1, due_ns=at(i * 0.1 - 0.0001)) for i in range(1, 270)]
    assert seen_by(poisson, **OPEN)[0].achieved_over_asked == 1.0


def test_without_a_socket_the_load_was_not_what_was_asked() -> None:
    unsent = failed(5.0, 5.0, "connect", sent_ns=None)
    short = msgspec.structs.replace(CALM, socketless=1)
    assert seen_by([*slot(), unsent])[0].verdict == "fit"
    made, why = seen_by([*slot(), unsent], short)
    assert (made.verdict, why) == ("limited", ["requests_without_socket"])


def test_connecting_is_no_start_lag() -> None:
    opened = [
        stream(i * 0.1, due_ns=at(i * 0.1 - 0.0301), new_connection=True, connect_ns=30_000_000) for i in range(1, 290)
    ]
    assert seen_by(opened, **OPEN)[1] == []


def test_health_outside_the_window_does_not_count() -> None:
    early = health([50.0] * 100 + [1.0] * 300)
    made, _ = seen_by(without_kernel(slot()), early, phases(10, 30, 40), window="0..20")
    assert made.verdict == "fit"
    assert made.loop_lag_ms.max == 1.0


def test_the_limits_themselves() -> None:
    calm = Signs(
        reads=1000,
        late_reads=0,
        frames=1100,
        late_frames=0,
        requests=500,
        late_first=0,
        unstamped_share=0.0,
        lag_time_share=0.0,
        late_rows_share=0.0,
        refill_p95_ms=1.0,
        refills=500,
        slots=8,
        achieved=1.0,
        idle_share=0.0,
        start_lag_p99_ms=None,
        late_starts=0,
        socketless=0,
    )
    assert reasons(calm) == []
    assert reasons(calm._replace(late_reads=4)) == []
    assert reasons(calm._replace(late_reads=5)) == ["late_reads_share"]
    assert reasons(calm._replace(requests=500, late_first=5)) == []
    assert reasons(calm._replace(requests=499, late_first=5)) == ["late_first_tokens_share"]
    assert reasons(calm._replace(idle_share=0.051)) == ["achieved_over_asked"]
    assert reasons(calm._replace(idle_share=0.05)) == []
    assert reasons(calm._replace(late_reads=3, late_frames=9)) == []
    assert reasons(calm._replace(late_reads=3, late_frames=10)) == ["late_reads_share"]
    assert reasons(calm._replace(late_reads=1, late_frames=10)) == []
    assert reasons(calm._replace(refill_p95_ms=5.41, late_rows_share=0.05)) == ["refill"]
    assert reasons(calm._replace(refill_p95_ms=5.39, late_rows_share=0.05)) == []
    assert reasons(calm._replace(refill_p95_ms=5.41, late_rows_share=0.04)) == []
    assert reasons(calm._replace(unstamped_share=1.0, lag_time_share=0.011)) == ["loop_lag"]
    assert reasons(calm._replace(unstamped_share=0.5, lag_time_share=0.011)) == []
