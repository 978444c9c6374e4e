"""A machine's rows over a window: every figure by hand from made-up rows."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.metrics.host_figures import UNSEEN, HostRow, host_told

S = 1_000_000_000


def columns(*rows: HostRow) -> dict[str, bytes]:
    return {
        name: array("q", column).tobytes()
        for name, column in zip(HostRow._fields, zip(*rows, strict=True), strict=True)
    }


def row(second: float, **seen: int) -> HostRow:
    return HostRow(round(second * S), **seen)


def test_processors_are_shared_out_between_server_us_and_others() -> None:
    """In 2 s of two processors the server takes 1.5 s, we 0.2 s, all together 2.3 s; 0.4 s of 4 s were stolen."""
    seen = columns(
        row(10, server_cpu=5 * S, own_cpu=1 * S, machine_cpu=100 * S, cpu_time=300 * S, steal=0, running=1),
        row(11, server_cpu=6 * S, own_cpu=S, machine_cpu=101 * S, cpu_time=302 * S, steal=S // 5, running=3),
        row(
            12,
            server_cpu=6 * S + S // 2,
            own_cpu=S + S // 5,
            machine_cpu=102 * S + 3 * S // 10,
            cpu_time=304 * S,
            steal=2 * S // 5,
            running=2,
        ),
    )
    told = host_told(seen, 0, 100 * S, cores=2)
    assert told["cores"] == 2
    assert told["server_cpu_cores"] == 0.75
    assert told["other_cpu_cores"] == pytest.approx(0.3)
    assert told["steal_share"] == pytest.approx(0.1)
    assert told["run_queue_mean"] == 2
    assert "server_cpu_peak_cores" not in told  # there were no 5 s
    assert "gpu_busy_share" not in told
    assert "throttled_share" not in told


def test_only_the_window_counts() -> None:
    """A burner runs before and after it."""
    cpu = [0, 10, 10, 10, 20]
    seen = columns(*(row(at, server_cpu=cpu[at] * S, rss=at) for at in range(5)))
    told = host_told(seen, S, 4 * S)
    assert (told["server_cpu_cores"], told["rss_start_bytes"], told["rss_end_bytes"]) == (0, 1, 3)
    assert host_told(seen, 3 * S, 4 * S) == {}
    assert host_told({}, 0, S, cores=4) == {}


def test_the_peak_is_of_the_busiest_five_seconds() -> None:
    """12 s at 1, then 6 s at 3 processors, of others as well."""
    cpu = [min(at, 12) + 3 * max(0, at - 12) for at in range(19)]
    seen = columns(*(row(at, server_cpu=n * S, own_cpu=0, machine_cpu=2 * n * S) for at, n in enumerate(cpu)))
    told = host_told(seen, 0, 100 * S)
    assert (told["server_cpu_peak_cores"], told["other_cpu_peak_cores"]) == (3, 3)
    assert told["server_cpu_cores"] == pytest.approx(30 / 18)


def test_the_busiest_thread_is_told_less_often() -> None:
    """The first word is of the time before; 1.8 s and 1.0 s over the 4 s behind it."""
    busy = {0: 9 * S, 4: 1_800_000_000, 8: S}
    seen = columns(*(row(i / 2, thread_cpu=busy.get(i, UNSEEN)) for i in range(10)))
    assert host_told(seen, 0, 100 * S)["busiest_thread_share"] == 0.7
    assert "busiest_thread_share" not in host_told(seen, 3 * S, 100 * S)


def test_a_quota_holds_back_in_a_share_of_its_periods() -> None:
    seen = columns(
        row(0, periods=100, throttled=40, throttled_ns=7 * S), row(2, periods=120, throttled=55, throttled_ns=8 * S)
    )
    told = host_told(seen, 0, 100 * S)
    assert (told["throttled_share"], told["throttled_s"]) == (0.75, 1)
    free = columns(row(0, periods=0, throttled=0, throttled_ns=0), row(2, periods=0, throttled=0, throttled_ns=0))
    assert host_told(free, 0, 100 * S)["throttled_share"] == 0  # under no quota nothing is held back


def test_counts_and_states() -> None:
    seen = columns(*(row(at, switches=1000 * at, faults=3 * at, stopped=int(at == 2)) for at in range(5)))
    told = host_told(seen, 0, 100 * S)
    assert (told["context_switches_per_s"], told["major_faults"], told["stopped_share"]) == (1000, 12, 0.2)


def test_devices_by_made_up_counters() -> None:
    """Clocks of 1800, 1800 and 900 MHz for 10 s each; the last row begins a stretch of its own."""
    rows = [
        row(
            at,
            gpu_busy=90,
            gpu_memory_busy=50,
            gpu_clock_mhz=900 if 20 <= at < 30 else 1800,
            gpu_power_mw=300_000,
            gpu_throttled=int(20 <= at < 30),
        )
        for at in range(0, 31, 2)
    ]
    told = host_told(columns(*rows), 0, 100 * S)
    assert (told["gpu_busy_share"], told["gpu_memory_busy_share"], told["gpu_power_mean_w"]) == (0.9, 0.5, 300)
    assert told["gpu_clock_drop"] == 0.5
    assert told["gpu_throttled_share"] == 5 / 16
    assert told["gpu_clock_mean_mhz"] == pytest.approx((11 * 1800 + 5 * 900) / 16)
    assert "gpu_clock_drop" not in host_told(columns(*rows[:9]), 0, 100 * S)  # 16 s: one stretch of 10


def test_what_was_not_seen_throughout_is_not_measured() -> None:
    seen = columns(
        row(0, server_cpu=0, gpu_busy=10), row(1, server_cpu=S, gpu_busy=UNSEEN), row(2, server_cpu=S, gpu_busy=9)
    )
    told = host_told(seen, 0, 100 * S)
    assert told["server_cpu_cores"] == 0.5
    assert "gpu_busy_share" not in told
    assert "other_cpu_cores" not in told


@given(st.lists(st.integers(0, 10**9), min_size=14, max_size=40), st.integers(0, 10**15))
def test_a_peak_is_no_less_than_the_mean_of_whole_stretches(steps: list[int], since: int) -> None:
    """Whatever it took before; and the busiest 5 s are at least as busy as the whole, cut into such."""
    sums = [since + sum(steps[:i]) for i in range(len(steps))]
    told = host_told(columns(*(row(i, server_cpu=n) for i, n in enumerate(sums))), 0, 10**12)
    whole = (len(sums) - 1) // 5 * 5
    assert told["server_cpu_peak_cores"] >= (sums[whole] - sums[0]) / S / whole - 1e-9
    assert told["server_cpu_peak_cores"] <= max(steps) / S + 1e-9
