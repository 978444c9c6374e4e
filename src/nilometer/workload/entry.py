"""The value between a file of requests and the load: batches of columns, rows where a format has more than numbers.

A Batch holds at most `ROWS` requests, so that a trace of any length goes through in constant memory. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
T = TypeVar("T")

ROWS = 65_536
"""The most rows of a batch."""
UNKNOWN = -1
"""A length, number of turns or shared prefix that the file does not state."""
NO_TIME = int(np.iinfo(np.int64).min)
"""A stamp that the file does not state."""
NS_PER_S = 1_000_000_000


class Part(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message: who speaks and what; `tokens` in place of the text where that is private."""

    role: str
    text: str | None = None
    tokens: int | None = None


RENDERED = "rendered"
"""In place of a role: a whole conversation as one text, written out by a chat template."""


def is_prompt(parts: Sequence[Part]) -> bool:
    """Whether the parts can be asked as they stand: all have their text, and the last says what the user asks.

    It does not where it begins the answer (a prefill), or where it would go through a chat template a second time.
    """
    if not parts or not all(part.text is not None for part in parts):
        return False
    return bool(parts[-1].text) and parts[-1].role not in ("assistant", RENDERED)


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request as its source tells it. None is what the source does not say.

    `parts` are what is sent, in order, and what `input_tokens` counts: the last is the prompt, and no answer to it is
    among them. `turns` counts the user's turns of the conversation that the request is, or that it begins.
    `at_ns` counts on the clock of the source. Lengths are tokens; `guessed_input` and `guessed_output` mark estimates.
    `output_tokens` is what was answered, or what was asked for where only that is known. `hash_ids` name the blocks of
    the prompt from its start: two requests that begin with the same ids begin with the same text; what lies behind the
    last is the request's own.
    """

    line: int
    at_ns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    turns: int = 1
    parts: tuple[Part, ...] = ()
    hash_ids: tuple[int, ...] | None = None
    session: str | None = None
    scenario: str | None = None
    custom_id: str | None = None
    guessed_input: bool = False
    guessed_output: bool = False


class Batch(NamedTuple):
    """Columns of at most `ROWS` requests, in the order of the file.

    `shared_tokens`: leading tokens of the prompt that an earlier request began with too. `root`: the number of its
    first block, UNKNOWN without one. `entries` only where the format has more than these columns.
    """

    line: Ints
    at_ns: Ints
    input_tokens: Ints
    output_tokens: Ints
    turns: Ints
    shared_tokens: Ints
    root: Ints
    entries: Sequence[Entry] = ()

    @property
    def size(self) -> int:
        """How many requests it holds."""
        return len(self.line)

    def rows(self) -> Iterator[Entry]:
        """The requests one by one; made from the columns where there is nothing else."""
        if self.entries:
            yield from self.entries
            return
        columns = (self.line, self.at_ns, self.input_tokens, self.output_tokens, self.turns)
        for line, at_ns, asked, answered, turns in zip(*(column.tolist() for column in columns), strict=True):
            yield Entry(
                line=line,
                at_ns=None if at_ns == NO_TIME else at_ns,
                input_tokens=None if asked == UNKNOWN else asked,
                output_tokens=None if answered == UNKNOWN else answered,
                turns=turns,
            )


def batch(entries: Sequence[Entry], shared_tokens: Sequence[int], root: Sequence[int]) -> Batch:
    """The entries as columns, with what they share with those before."""
    return Batch(
        line=_column([entry.line for entry in entries]),
        at_ns=_column([NO_TIME if entry.at_ns is None else entry.at_ns for entry in entries]),
        input_tokens=_column([UNKNOWN if entry.input_tokens is None else entry.input_tokens for entry in entries]),
        output_tokens=_column([UNKNOWN if entry.output_tokens is None else entry.output_tokens for entry in entries]),
        turns=_column([entry.turns for entry in entries]),
        shared_tokens=_column(shared_tokens),
        root=_column(root),
        entries=entries,
    )


def _column(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One request of a workload file. `offset_s` counts from its first row; lengths are tokens."""

    offset_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    turns: int = 1
    parts: tuple[Part, ...] = ()
    hash_ids: tuple[int, ...] | None = None
    session: str | None = None
    scenario: str | None = None
    custom_id: str | None = None
    guessed_input: bool = False
    guessed_output: bool = False


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a workload file says of its rows.

    `sha256` is that of the data file: the hash of the workload, a part of a run's condition. `text` says what is left
    of the prompts. `source_stamps` is the unit of the stamps there, `source_skipped` and `source_unread` count what was
    left out of it. `block_tokens` is the length of the block that a hash id names. `representative` is None where
    nothing was sampled; `ks` holds the KS distance of each margin then.
    """

    nilometer_workload: int
    name: str
    data: str
    sha256: str
    source_format: str
    rows: int
    text: str
    source_rows: int | None = None
    source_stamps: str | None = None
    source_skipped: dict[str, int] = {}
    source_unread: int = 0
    block_tokens: int | None = None
    seed: int | None = None
    representative: bool | None = None
    ks: dict[str, float] = {}


class Workload(NamedTuple):
    """A workload file, read and checked; its rows in the order of their offsets."""

    head: Head
    rows: tuple[Row, ...]

    @property
    def hash(self) -> str:
        """What tells two workloads apart in a run's condition."""
        return self.head.sha256


def in_order(given: Sequence[T], at: Callable[[T], float | None]) -> Sequence[T]:
    """The same where their stamps do not go back; else by stamp, those without one first, like ones as they came."""
    known = (stamp for stamp in map(at, given) if stamp is not None)
    if all(one <= other for one, other in pairwise(known)):
        return given
    return sorted(given, key=lambda each: at(each) or 0)
