"""The sampler's file: what is written is read again, whatever was cut off."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.core.telemetry import Look
from nilometer.telemetry.scrape import HEAD, ScrapeOrder, looks, packed
from nilometer.telemetry.scrape_child import run

LOOKS = [Look(1, 2, "vllm:num_requests_running 3\n中文"), Look(3, 9, fault="timeout"), Look(10, 11, "")]
WHOLE = b"".join(map(packed, LOOKS))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "looks"
    file.write_bytes(WHOLE)
    assert list(looks(file)) == LOOKS
    assert list(looks(tmp_path / "none")) == []


def test_a_look_that_was_cut_off_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "looks"
    ends = [len(b"".join(map(packed, LOOKS[:n]))) for n in range(len(LOOKS) + 1)]
    for n in range(len(WHOLE) + 1):
        file.write_bytes(WHOLE[:n])
        assert list(looks(file)) == LOOKS[: sum(end <= n for end in ends[1:])]


@given(data=st.binary(max_size=200), at=st.integers(0, len(WHOLE)))
@settings(max_examples=40, deadline=None)
def test_any_bytes_are_looks_or_none(data: bytes, at: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(WHOLE[:at] + data)
    assert len(list(looks(file))) <= len(WHOLE + data) // HEAD.size


def test_a_full_file_ends_it(tmp_path: Path) -> None:
    order = ScrapeOrder(url="http://127.0.0.1:1", file=str(tmp_path / "looks"), every_s=0.001, most_bytes=200)

    def never(seconds: float) -> bool:
        time.sleep(seconds)
        return False

    run(order, never)
    found = list(looks(tmp_path / "looks"))
    assert 2 < len(found) < 20
    assert {one.fault for one in found} == {"connect_refused"}
