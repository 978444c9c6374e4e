"""Runs with known streams for the tests of the evidence; moments in seconds of the run, as in the tests of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.unit.metrics.made import answered, phases, spec

from nilometer.core.environment import Environment
from nilometer.core.record import Record
from nilometer.core.run import Health, Run
from nilometer.diagnose.streams import Streams, streams_of
from nilometer.metrics.summary import summarise


def about(value: float, n: int, *, rel: float = 1e-6, abs: float = 1e-9) -> object:  # noqa: A002 - as approx has it
    """Equal to a Figure with this count and nearly this value."""
    return pytest.approx(value, rel=rel, abs=abs), n


def near(*values: float | None) -> object:
    """Equal to a tuple of nearly these values."""
    return tuple(None if value is None else pytest.approx(value) for value in values)


def run_of(
    records: Sequence[Record], stop_s: float, *, start_s: float = 0.0, level: int | None = 1, **changes: Any
) -> Run:
    """A closed loop whose window is `start_s` to `stop_s`."""
    asked = changes.pop("spec", None) or spec(concurrency=level or 1, window=f"{start_s}..{max(stop_s, start_s + 1)}")
    borders = phases(0, stop_s)
    health = changes.pop("health", Health())
    server = changes.pop("server", {})
    summary = summarise(iter(records), asked, borders, health)
    run = Run(
        id="run",
        spec=asked,
        environment=Environment(),
        phases=borders,
        health=health,
        summary=msgspec.structs.replace(summary, server={**summary.server, **server}),
        findings=[],
        verdict="admissible",
        level=None if level is None else str(level),
    )
    return msgspec.structs.replace(run, **changes)


def streams(records: Sequence[Record], stop_s: float = 10.0, **changes: Any) -> Streams:
    """The streams of these requests."""
    return streams_of(run_of(records, stop_s, **changes), iter(records))


def stream(sent_s: float, first_s: float, gaps_s: Sequence[float], **changes: Any) -> Record:
    """An ok request: its first token at `first_s`, then one after each gap; it ends with its last."""
    moments: list[float] = (first_s + np.concatenate([[0.0], np.cumsum(gaps_s)])).tolist()
    return answered(sent_s, moments, **changes)


def even(sent_s: float, first_s: float, tokens: int, gap_s: float = 0.1, **changes: Any) -> Record:
    """The same with equal gaps."""
    return stream(sent_s, first_s, [gap_s] * (tokens - 1), **changes)


def shifted(record: Record, by_ns: int) -> Record:
    """The same request later on the clock."""
    stamps = {
        name: value + by_ns
        for name in ("due_ns", "sent_ns", "first_token_ns", "first_answer_ns", "last_token_ns", "end_ns")
        if (value := getattr(record, name)) is not None
    }
    user = (np.frombuffer(record.frames.user, dtype="<i8") + by_ns).astype("<i8").tobytes()
    return msgspec.structs.replace(record, frames=msgspec.structs.replace(record.frames, user=user), **stamps)
