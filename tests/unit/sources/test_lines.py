"""Bytes as lines: packed or not, whatever ends them, in blocks of any size."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from tests.unit.sources.files import zstd_compress

from nilometer.core.errors import DataError
from nilometer.sources import lines
from nilometer.sources.lines import Stream


def _read(folder: Path, data: bytes) -> tuple[list[tuple[int, bytes | None]], list[str]]:
    path = folder / "x"
    path.write_bytes(data)
    stream = Stream(path)
    return list(stream.lines()), list(stream.quirks)


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("data", "found", "quirks"),
    [
        (b"a\nb\n", [(1, b"a"), (2, b"b")], []),
        (b"a\r\n\r\nb", [(1, b"a"), (3, b"b")], ["crlf", "blank_lines", "no_final_line_end"]),
        (b"\n\n", [], ["blank_lines"]),
        (b"\xef\xbb\xbfa\n", [(1, b"a")], ["byte_order_mark"]),
        (b"", [], []),
    ],
)
def test_lines(
    data: bytes,
    found: list[tuple[int, bytes]],
    quirks: list[str],
    block: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not data.startswith(b"\xef"):  # a mark is looked for in the first block
        monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    assert _read(tmp_path, data) == (found, quirks)


@pytest.mark.parametrize("pack", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_packing_is_told_by_its_first_bytes(pack: object, tmp_path: Path) -> None:
    packed = pack(b"a\nb\n")  # type: ignore[operator]
    assert _read(tmp_path, packed)[0] == [(1, b"a"), (2, b"b")]
    for broken in (packed[:-4], packed[:12], packed[:12] + b"\0" * 20):
        with pytest.raises(DataError) as caught:
            _read(tmp_path, broken)
        assert caught.value.slug == "packed_broken"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)  # else a reader without the refusal would wait for ever
    try:
        for odd in (path, Path("/dev/zero")):
            with pytest.raises(DataError) as caught:
                next(Stream(odd).blocks())
            assert caught.value.slug == "file_piped"
    finally:
        os.close(held)


def test_a_line_over_the_bound_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 4)
    monkeypatch.setattr(lines, "LINE_LIMIT_BYTES", 10)
    found, _ = _read(tmp_path, b"a\n" + b"x" * 50 + b"\nb\n" + b"y" * 50)
    assert found == [(1, b"a"), (2, None), (3, b"b"), (4, None)]


def test_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a\n" * (1 << 20))
    stream = Stream(path)
    assert stream.share is None
    chunks = stream.chunks()
    next(chunks)
    assert stream.share == 0.5
