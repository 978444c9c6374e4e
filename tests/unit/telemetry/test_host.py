"""What /proc says, read from texts as kernels write them; and the trees of processes, by hand."""

from __future__ import annotations

from pathlib import Path

from nilometer.telemetry.control_group import Quota, Quotas, quota_of
from nilometer.telemetry.host import machine, stat_of, trees

PROC_STAT = b"""cpu  100 20 30 400 50 6 7 8 9 10
cpu0 100 20 30 400 50 6 7 8 9 10
intr 27114460 0 0
ctxt 64277332
btime 1796244990
processes 403593
procs_running 3
procs_blocked 0
"""
TICK_NS = 10_000_000


def test_the_machine_by_its_counters() -> None:
    """Busy: 100 + 20 + 30 + 6 + 7; a guest's 9 and 10 are within the first two. One of three that run is who looks."""
    assert machine(PROC_STAT) == {
        "machine_cpu": 163 * TICK_NS,
        "steal": 8 * TICK_NS,
        "cpu_time": (163 + 400 + 50 + 8) * TICK_NS,
        "running": 2,
        "switches": 64277332,
    }
    assert machine(b"") == {}
    assert machine(b"cpu  1 2 3\n") == {}


def test_a_process_whose_name_holds_brackets_and_spaces(tmp_path: Path) -> None:
    file = tmp_path / "stat"
    rest = "T 7 1 1 0 -1 4194304 99 0 5 0 250 50 0 0 20 0 1 0 5396683 3133440 380 18446744073709551615 1 1\n"
    file.write_text(f"14396 (a) b (c)) {rest}")
    found = stat_of(str(file))
    assert found is not None
    assert (found.state, found.parent, found.faults, found.cpu, found.born) == (b"T", 7, 5, 300 * TICK_NS, 5396683)
    assert found.rss % 380 == 0
    assert found.rss >= 380 * 4096
    file.write_text("14396 (cat")
    assert stat_of(str(file)) is None
    assert stat_of(str(tmp_path / "none")) is None


def test_a_server_that_we_started_is_not_counted_as_ours() -> None:
    """1 - 10 (we) - 11 (a worker), 12 (the server) - 13 (its child); 20 is somebody else's."""
    parents = {1: 0, 10: 1, 11: 10, 12: 10, 13: 12, 20: 1}
    assert trees(parents, 12, 10) == ([12, 13], [10, 11])
    assert trees(parents, 20, 10) == ([20], [10, 11, 12, 13])


def test_a_server_that_started_us_is_counted_without_us() -> None:
    parents = {5: 1, 10: 5, 11: 10, 12: 5}
    assert trees(parents, 5, 10) == ([5, 12], [10, 11])
    assert trees(parents, 10, 10) == ([10, 11], [])  # served from within this process


V2 = "usage_usec 900\nuser_usec 1\nsystem_usec 2\nnr_periods 50\nnr_throttled 20\nthrottled_usec 3000\nnr_bursts 0\n"
V1 = "nr_periods 7\nnr_throttled 3\nthrottled_time 2000000\nnr_bursts 0\n"


def test_both_ages_of_control_groups_count_alike() -> None:
    assert quota_of(V2) == Quota(50, 20, 3_000_000)
    assert quota_of(V1) == Quota(7, 3, 2_000_000)
    assert quota_of("usage_usec 900\nuser_usec 1\n") is None  # the root's
    assert quota_of("") is None


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_quota_counts_on_any_group_above(tmp_path: Path) -> None:
    write(tmp_path / "a.slice" / "b.scope" / "cpu.stat", V2.replace("50", "0").replace("20", "0").replace("3000", "0"))
    write(tmp_path / "a.slice" / "cpu.stat", V2)
    write(tmp_path / "cpu.stat", "usage_usec 1\n")
    assert Quotas(0, tmp_path, "0::/a.slice/b.scope\n").read() == Quota(50, 20, 3_000_000)


def test_the_group_of_a_container_is_what_is_mounted(tmp_path: Path) -> None:
    """The path is the machine's, what is mounted is the container's: its root is the process's group."""
    write(tmp_path / "cpu,cpuacct" / "cpu.stat", V1)
    told = "4:memory:/docker/4711\n3:cpu,cpuacct:/docker/4711\n0::/../..\n"
    assert Quotas(0, tmp_path, told).read() == Quota(7, 3, 2_000_000)
    assert Quotas(0, tmp_path / "none", told).read() == Quota()
    assert Quotas(0, tmp_path, "").read() == Quota()
