"""Requests in the order of their stamps, however many: batches are sorted one by one, kept in one temporary file, and
merged; in memory is one batch, and after that a block of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from nilometer.workload.entry import Batch, Entry, in_order

BLOCK_BYTES = 1 << 16


def by_time(batches: Iterable[Batch], folder: Path) -> Iterator[Entry]:
    """The requests of all batches by their stamps, those without one first, like ones in the order they came.

    The file has no name and is gone when it is closed. Raises OSError where `folder` takes none.
    """
    encode = msgspec.msgpack.Encoder().encode
    with TemporaryFile(dir=folder) as file:
        stretches: list[list[tuple[int, int]]] = []
        end = 0
        for batch in batches:
            blocks: list[tuple[int, int]] = []
            held = bytearray()
            for entry in sorted(batch.rows(), key=_at):
                one = encode(entry)
                held += len(one).to_bytes(4) + one
                if len(held) >= BLOCK_BYTES:
                    blocks.append((end, len(held)))
                    end += file.write(held)
                    held.clear()
            blocks.append((end, len(held)))
            end += file.write(held)
            stretches.append(blocks)
        file.flush()
        yield from merge(*(_read(file.fileno(), blocks) for blocks in stretches), key=_at)


def in_time(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The same of requests that are held anyway; those whose stamps do not go back stay as they are."""
    return in_order(entries, lambda entry: entry.at_ns)


def _read(file: int, blocks: Iterable[tuple[int, int]]) -> Iterator[Entry]:
    decode = msgspec.msgpack.Decoder(Entry).decode
    for start, size in blocks:
        held = os.pread(file, size, start)
        at = 0
        while at < len(held):
            end = at + 4 + int.from_bytes(held[at : at + 4])
            yield decode(held[at + 4 : end])
            at = end


def _at(entry: Entry) -> int:
    return entry.at_ns or 0
