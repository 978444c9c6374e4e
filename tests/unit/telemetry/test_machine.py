"""The facts of a machine, read from texts as the kernel writes them."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from nilometer.telemetry import machine
from nilometer.telemetry.machine import container_bytes, container_cpus, cpu_model, read_client, read_machine


@pytest.mark.parametrize(
    ("line", "cpus"),
    [
        ("200000 100000", 2.0),
        ("150000 100000", 1.5),
        ("max 100000", None),
        (None, None),
        ("", None),
        ("200000", None),
        ("200000 0", None),
        ("-1 100000", None),
    ],
)
def test_a_quota_in_processors(line: str | None, cpus: float | None) -> None:
    assert container_cpus(line) == cpus


@pytest.mark.parametrize(("line", "size"), [("1073741824", 1 << 30), ("max", None), (None, None), ("", None)])
def test_a_memory_limit_in_bytes(line: str | None, size: int | None) -> None:
    assert container_bytes(line) == size


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 7B13\nmodel name\t: another\n", "AMD EPYC 7B13"),
        ("model name: A: with colon \n", "A: with colon"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", platform.processor() or None),
    ],
)
def test_the_name_of_the_processor(
    text: str, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model() == name


def test_what_cannot_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_CPUINFO", "_GOVERNOR", "_CGROUP"):
        monkeypatch.setattr(machine, name, tmp_path / "not there")
    seen = read_machine()
    assert seen.cpu_governor is None
    assert seen.container_cpu_limit is None
    assert seen.container_memory_limit_bytes is None
    assert seen.kernel == platform.release()


def test_the_limits_of_a_container_are_read_from_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text("536870912\n")
    seen = read_machine()
    assert (seen.container_cpu_limit, seen.container_memory_limit_bytes) == (0.5, 512 << 20)


@pytest.mark.parametrize(
    ("limit", "used", "free"), [("1000\n", "400\n", 600), ("1000", "1200", 0), ("1000", None, 1000), ("max", "5", None)]
)
def test_what_is_left_of_a_memory_limit(
    limit: str, used: str | None, free: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(limit)
    if used is not None:
        (tmp_path / "memory.current").write_text(used)
    assert machine.container_free_bytes() == free


def test_the_client_names_what_its_figures_depend_on() -> None:
    client = read_client("uvloop")
    assert client.python == platform.python_version()
    assert client.event_loop == "uvloop"
    assert (client.http_parser or "").startswith("httptools ")
