"""Journals of runs that are over, as a worker leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.unit.load.made import header, record

from nilometer.core.record import Record
from nilometer.core.run import Health, Phases
from nilometer.load import journal
from nilometer.load.journal import Header, Trailer

RUN = "abcdefghijkl"
RECORDS = 30
_END = Trailer(phases=Phases(started_wall_ns=5, start_ns=0, measured_ns=0, stop_ns=4000, end_ns=4000), health=Health())


def records(n: int = RECORDS) -> list[Record]:
    """Requests in order of ending."""
    return [record(seq) for seq in range(n)]


def leave(folder: Path, run: str = RUN, head: Header | None = None, n: int = RECORDS, workers: int = 1) -> list[Path]:
    """The journals of a run whose every worker ended well; its requests are worker 0's."""
    head = msgspec.structs.replace(head or header(), run=run, workers=workers)
    paths = [folder / f"{run}-{i}.journal" for i in range(workers)]
    for i, path in enumerate(paths):
        journal.create(path, msgspec.structs.replace(head, worker=i)).close()
        writer = journal.Writer(path)
        for one in records(n) if i == 0 else []:
            writer.record(one)
        writer.trailer(_END)
        writer.close()
    return paths


def borders(path: Path) -> list[int]:
    """Where each entry begins, and where the last one ends, by the documented layout."""
    data, found = path.read_bytes(), [len(journal.MAGIC)]
    while found[-1] < len(data):
        at = found[-1]
        found.append(at + 8 + int.from_bytes(data[at : at + 4], "little"))
    return found


def damage(path: Path, entries: Sequence[int]) -> int:
    """Flip a bit in each of these entries (0 is the head); returns the bytes that are lost with them."""
    starts, data = borders(path), bytearray(path.read_bytes())
    for i in entries:
        data[starts[i] + 20] ^= 1
    path.write_bytes(data)
    return sum(starts[i + 1] - starts[i] for i in entries)
