"""All requests of a run as columns: what the figures are made from, once the records have gone by.

A Record is looked at once and let go; a request leaves about 200 bytes here, its frames lie in `frames`. Nothing is
computed from more than one request.
"""

from __future__ import annotations

import math
from array import array
from operator import attrgetter
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import ErrorKind, Outcome, Phase, Record, StampSource, TokenSource

from .catalogue import PER_REQUEST
from .quantiles import Floats, Ints
from .request import is_counted, one_token_a_frame

Mask = npt.NDArray[np.bool_]

NONE = -(2**63)
"""Stands for None in a column of ints."""

OUTCOMES: tuple[str, ...] = get_args(Outcome)
PHASES: tuple[str, ...] = get_args(Phase)
ERRORS: tuple[str, ...] = get_args(ErrorKind)
SOURCES: tuple[str, ...] = get_args(TokenSource)
STAMPS: tuple[str, ...] = get_args(StampSource)

_PLAIN = (
    "due_ns",
    "sent_ns",
    "first_token_ns",
    "end_ns",
    "connect_ns",
    "refill_ns",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "asked_input",
    "asked_output",
)
_plain = attrgetter(*_PLAIN)
_OUTCOME, _PHASE, _ERROR, _SOURCE, _STAMP = (
    {word: code for code, word in enumerate(words)} for words in (OUTCOMES, PHASES, ERRORS, SOURCES, STAMPS)
)
_COLUMNS = len(_PLAIN) + 11
_LONGEST_WAIT_S = 1e9
"""A server may ask for any wait; what is longer is as good as never."""


class Table(NamedTuple):
    """One row a request, in the order of the records; ns and tokens, NONE where None."""

    due_ns: Ints
    sent_ns: Ints
    first_token_ns: Ints
    end_ns: Ints
    connect_ns: Ints
    refill_ns: Ints
    prompt_tokens: Ints
    cached_tokens: Ints
    output_tokens: Ints
    asked_input: Ints
    asked_output: Ints
    outcome: Ints
    phase: Ints
    error: Ints
    token_source: Ints
    stamp_source: Ints
    new_connection: Ints
    frames: Ints
    streamed_count: Ints
    """1 where the output tokens were counted and all of them streamed, so that frames can be held against them."""
    one_token_a_frame: Ints
    retry_after_ns: Ints
    scenario: Ints
    """Place in `scenarios`, NONE where it is of none."""
    latency_ns: Floats
    """(requests, latencies of catalogue.PER_REQUEST), NaN where None."""
    scenarios: tuple[str, ...] = ()
    """Their names, in the order in which they first came."""

    def of(self, outcome: Outcome) -> Mask:
        """Which requests ended so."""
        mask: Mask = self.outcome == _OUTCOME[outcome]
        return mask

    def in_phase(self, phase: Phase) -> Mask:
        """Which requests belong to this phase."""
        mask: Mask = self.phase == _PHASE[phase]
        return mask

    @property
    def start_ns(self) -> Ints:
        """Where each request's latencies start: due, else sent; NONE for one that was never due nor sent."""
        start: Ints = np.where(self.due_ns != NONE, self.due_ns, self.sent_ns)
        return start

    def latency(self, name: str) -> Floats:
        """The column of one latency, NaN where it is None."""
        column: Floats = self.latency_ns[:, LATENCY_COLUMN[name]]
        return column


LATENCY_COLUMN = {name: column for column, (name, _) in enumerate(PER_REQUEST)}


class Rows:
    """Takes records one by one; `table` hands out the columns."""

    def __init__(self) -> None:
        self._ints = array("q")
        self._latencies = array("d")
        self._scenarios: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Note one request."""
        self._ints.extend([NONE if value is None else value for value in _plain(record)])
        self._ints.extend(_codes(record))
        self._ints.append(self._scenario(record.scenario))
        self._latencies.extend([math.nan if (value := of(record)) is None else value for _, of in PER_REQUEST])

    def table(self) -> Table:
        """All rows so far, as columns that share no memory with what is added later."""
        ints = np.array(self._ints, dtype=np.int64).reshape(-1, _COLUMNS).T.copy()
        latencies = np.array(self._latencies, dtype=np.float64).reshape(-1, len(PER_REQUEST))
        return Table._make([*ints, latencies, tuple(self._scenarios)])

    def _scenario(self, name: str | None) -> int:
        return NONE if name is None else self._scenarios.setdefault(name, len(self._scenarios))


def _codes(record: Record) -> tuple[int, ...]:
    return (
        _OUTCOME[record.outcome],
        _PHASE[record.phase],
        NONE if record.error is None else _ERROR[record.error],
        _SOURCE[record.token_source],
        _STAMP[record.stamp_source],
        record.new_connection,
        len(record.frames),
        is_counted(record) and not record.hidden_tokens,
        one_token_a_frame(record),
        NONE if record.retry_after_s is None else round(min(record.retry_after_s, _LONGEST_WAIT_S) * NS_PER_S),
    )
