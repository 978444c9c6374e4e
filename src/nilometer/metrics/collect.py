"""One pass over the records of a run: their columns and frames, and the arrivals that both tell of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nilometer.core.record import Record

from .frames import FrameStore
from .quantiles import Floats, Ints
from .table import NONE, Rows, Table


class Seen(NamedTuple):
    """A run's requests and their frames, in the same order."""

    table: Table
    frames: FrameStore

    def arrivals(self) -> Iterator[tuple[Ints, Floats]]:
        """Stamps, and the output tokens that arrived at them: of ok requests, estimates included.

        A frame counts the tokens the server states for it, else the request's rest is spread evenly over its frames; a
        whole answer counts at its last byte.
        """
        table = self.table
        counts = table.of("ok") & (table.output_tokens != NONE)
        tokens = np.where(counts, table.output_tokens, 0).astype(np.float64)
        whole = counts & (table.frames == 0) & (table.end_ns != NONE)
        yield table.end_ns[whole], tokens[whole]
        yield from self.frames.arrivals(tokens)


def collect(records: Iterable[Record]) -> Seen:
    """Take the records once, in any order, and keep none of them."""
    rows, frames = Rows(), FrameStore()
    for record in records:
        rows.add(record)
        frames.add(record.frames)
    frames.close()
    return Seen(rows.table(), frames)
