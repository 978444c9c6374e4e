"""Columns over time: exact, cut into pieces, odd bytes kept."""

from __future__ import annotations

import pytest

from nilometer.archive import series
from nilometer.archive.columns import DamagedError

from .samples import int64


def test_columns_come_back_and_empty_ones_are_left_out() -> None:
    held = {"at": int64(5, 105, 206), "cpu": int64(-(2**63), 2**63 - 1), "lag": b"", "odd": b"123"}
    segments = series.encode(held)
    assert len(segments) == 1
    assert series.decode({series.SERIES}, segments) == {name: column for name, column in held.items() if column}


def test_nothing_makes_no_segment() -> None:
    assert series.encode({"at": b"", "cpu": b""}) == []
    assert series.decode(set(), []) == {}


def test_long_columns_are_cut_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "PIECE_BYTES", 16)
    held = {"at": int64(*range(5)), "cpu": int64(7), "odd": bytes(21)}
    segments = series.encode(held)
    assert len(segments) == 3
    assert series.decode({series.SERIES}, segments) == held


def test_a_steady_clock_takes_next_to_nothing() -> None:
    ticks = int64(*range(0, 100_000_000_000, 100_000_000))
    (segment,) = series.encode({"at": ticks})
    assert len(ticks) == 8_000
    assert len(segment) < 400


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(DamagedError, match="series-2"):
        series.decode({"series-2"}, [])
