"""Segments on their way into the database: in order, cut to rows, gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.archive import spool
from nilometer.archive.spool import Part, Spool


def test_segments_come_back_in_order_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BLOB_LIMIT_BYTES", 4)
    with Spool(tmp_path) as held:
        held.add("columns-1", 3, b"abcdefghi")
        held.add("json-1", 2, b"jklm")
        assert held.records == 5
        assert list(held.parts()) == [
            Part(0, 0, "columns-1", 3, b"abcd"),
            Part(0, 1, "columns-1", 3, b"efgh"),
            Part(0, 2, "columns-1", 3, b"i"),
            Part(1, 0, "json-1", 2, b"jklm"),
        ]
        assert list(tmp_path.iterdir()) == []


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    with Spool(tmp_path) as held:
        assert (held.records, list(held.parts())) == (0, [])
