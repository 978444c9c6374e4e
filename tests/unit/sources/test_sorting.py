"""Requests by their stamps, from any number of batches, with nothing lost on the way through the file."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from nilometer.sources import sorting
from nilometer.sources.sorting import by_time
from nilometer.workload.entry import Batch, Entry, Part, batch


def _batch(entries: list[Entry]) -> Batch:
    return batch(entries, [0] * len(entries), [0] * len(entries))


def _entries(n: int) -> list[Entry]:
    random = Random(1)
    return [
        Entry(
            line=line,
            at_ns=None if line % 7 == 0 else random.randrange(50),
            input_tokens=line,
            parts=(Part("user", f"No. {line}: 水位"), Part("assistant", None, 3)),
            hash_ids=(line, -(1 << 63)),
            session="s",
        )
        for line in range(1, n + 1)
    ]


@pytest.mark.parametrize("block_bytes", [1, 200, 1 << 16])
@pytest.mark.parametrize("size", [1, 13, 1000])
def test_as_sorting_them_all_at_once(
    block_bytes: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "BLOCK_BYTES", block_bytes)
    entries = _entries(200)
    batches = [_batch(entries[at : at + size]) for at in range(0, len(entries), size)]
    assert list(by_time(batches, tmp_path)) == sorted(entries, key=lambda entry: entry.at_ns or 0)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_nothing(tmp_path: Path) -> None:
    assert list(by_time([], tmp_path)) == []


def test_what_is_held_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Forty batches of 100 kB of text: far less than their 4 MB is ever held."""

    def batches() -> Iterator[Batch]:
        for number in range(40):
            rows = [
                Entry(line=line, at_ns=(line * 7919) % 1000, parts=(Part("user", "x" * 1000),)) for line in range(100)
            ]
            yield _batch([*rows, Entry(line=100, at_ns=number)])

    tracemalloc.start()
    try:
        assert sum(1 for _ in by_time(batches(), tmp_path)) == 40 * 101
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * 101 * 1000
