"""Requests with known times for the tests of the metrics; moments in seconds of the run, which starts at 1,000 s."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

from nilometer.core.record import ErrorKind, Frames, Record
from nilometer.core.run import Health, Phases
from nilometer.core.spec import Load, Spec
from nilometer.core.summary import Summary
from nilometer.metrics.summary import summarise

ORIGIN_NS = 1_000 * 10**9


def at(second: float) -> int:
    """A moment of the run, ns on its monotonic clock."""
    return ORIGIN_NS + round(second * 1e9)


def frames(
    user_s: Sequence[float],
    *,
    kernel_s: Sequence[float | None] | None = None,
    tokens: Sequence[int] | None = None,
    flags: Sequence[int] | None = None,
) -> Frames:
    """Packed columns; a kernel stamp of None is one that was not taken."""
    return Frames(
        user=array("q", [at(s) for s in user_s]).tobytes(),
        kernel=b"" if kernel_s is None else array("q", [-1 if s is None else at(s) for s in kernel_s]).tobytes(),
        tokens=b"" if tokens is None else array("i", tokens).tobytes(),
        flags=bytes(flags or []),
    )


def answered(sent_s: float, token_s: Sequence[float], end_s: float | None = None, **changes: Any) -> Record:
    """An ok request whose frames, one token each, came at `token_s`; counted by usage."""
    record = Record(
        id=f"r{sent_s}",
        seq=0,
        phase="measured",
        outcome="ok",
        sent_ns=at(sent_s),
        first_token_ns=at(token_s[0]),
        first_answer_ns=at(token_s[0]),
        last_token_ns=at(token_s[-1]),
        end_ns=at(token_s[-1] if end_s is None else end_s),
        prompt_tokens=100,
        output_tokens=len(token_s),
        token_source="usage",
        frames=frames(token_s),
    )
    return msgspec.structs.replace(record, **changes)


def whole(sent_s: float, end_s: float, tokens: int | None, **changes: Any) -> Record:
    """An ok request answered in one piece."""
    record = Record(
        id=f"w{sent_s}",
        seq=0,
        phase="measured",
        outcome="ok",
        sent_ns=at(sent_s),
        end_ns=at(end_s),
        prompt_tokens=100,
        output_tokens=tokens,
        token_source="none" if tokens is None else "usage",
    )
    return msgspec.structs.replace(record, **changes)


def failed(sent_s: float, end_s: float, error: ErrorKind | None = "http_5xx", **changes: Any) -> Record:
    """A request that ended in an error of this kind, or was cut (None)."""
    record = Record(
        id=f"f{sent_s}",
        seq=0,
        phase="measured",
        outcome="error" if error else "incomplete",
        sent_ns=at(sent_s),
        end_ns=at(end_s),
        error=error,
    )
    return msgspec.structs.replace(record, **changes)


def phases(warmup_s: float, stop_s: float, end_s: float | None = None, **changes: Any) -> Phases:
    """A run that starts at 0: `stop_s` and `end_s` are seconds of the run too."""
    borders = Phases(
        started_wall_ns=0,
        start_ns=at(0),
        measured_ns=at(warmup_s),
        stop_ns=at(stop_s),
        end_ns=at(stop_s if end_s is None else end_s),
    )
    return msgspec.structs.replace(borders, **changes)


def health(lag_ms: Sequence[float], *, cpu_share: float = 0.1, **changes: Any) -> Health:
    """One row every 100 ms from second 0 on."""
    rows = [at(i / 10) for i in range(len(lag_ms))]
    seen = Health(
        at=array("q", rows).tobytes(),
        wall_offset=array("q", [0] * len(rows)).tobytes(),
        lag_max=array("q", [round(lag * 1e6) for lag in lag_ms]).tobytes(),
        in_flight=array("q", [0] * len(rows)).tobytes(),
        cpu=array("q", [round(i * 1e8 * cpu_share) for i in range(len(rows))]).tobytes(),
    )
    return msgspec.structs.replace(seen, **changes)


def spec(**load: Any) -> Spec:
    """A load test with these load settings; a closed loop of one where nothing else is said."""
    return Spec(target="http://127.0.0.1:8000", load=Load(**({"concurrency": 1} | load)))


def summary(
    records: Sequence[Record], borders: Phases, asked: Spec | None = None, seen: Health | None = None
) -> Summary:
    """The Summary of these requests."""
    return summarise(iter(records), asked or spec(), borders, seen or Health())
