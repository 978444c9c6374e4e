"""The journal: whole entries come back whatever becomes of the file, and nothing else does."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from tests.unit.load.made import header, record, trailer

from nilometer.core.errors import ArchiveError, DataError
from nilometer.core.record import Record
from nilometer.load import journal


def write(path: Path, n: int = 3, end: bool = True) -> list[journal.Entry]:
    """A journal of `n` records; returns what is in it."""
    entries: list[journal.Entry] = [header(), *(record(seq) for seq in range(n))]
    journal.create(path, header()).close()
    writer = journal.Writer(path)
    for seq in range(n):
        writer.record(record(seq))
    if end:
        writer.trailer(trailer())
        entries.append(trailer())
    writer.close()
    return entries


def borders(path: Path) -> list[int]:
    """Where the entries end, by the documented layout: [u32 length][u32 CRC][body]."""
    data = path.read_bytes()
    at = len(journal.MAGIC)
    ends = []
    while at < len(data):
        at += 8 + int.from_bytes(data[at : at + 4], "little")
        ends.append(at)
    assert at == len(data)
    return ends


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "j"
    assert write(path) == list(journal.read(path))
    assert list(journal.read(path)) == [header(), record(0), record(1), record(2), trailer()]
    assert list(journal.records([path, path])) == [record(0), record(1), record(2)] * 2


def test_cut_at_every_byte_it_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path, cut = tmp_path / "j", tmp_path / "cut"
    entries = write(path, n=2)
    ends = borders(path)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        assert list(journal.read(cut)) == entries[: sum(end <= size for end in ends)]
        assert journal.ending(cut)[1:] == (0, 0)  # what a kill leaves is no damage


def test_a_flipped_bit_loses_the_entry_that_holds_it_and_no_other(tmp_path: Path) -> None:
    path, flipped = tmp_path / "j", tmp_path / "flipped"
    entries = write(path, n=2)
    starts = [len(journal.MAGIC), *borders(path)]
    data = path.read_bytes()
    for at in range(len(journal.MAGIC), len(data)):
        wrong = bytearray(data)
        wrong[at] ^= 1 << at % 8
        flipped.write_bytes(wrong)
        hit = max(i for i, start in enumerate(starts) if start <= at)
        assert list(journal.read(flipped)) == entries[:hit] + entries[hit + 1 :], at
        lost = (starts[hit + 1] - starts[hit], 1)
        length = int.from_bytes(wrong[starts[hit] : starts[hit] + 4], "little")
        looks_cut_off = hit == len(entries) - 1 and len(data) < starts[hit] + 8 + length < 1 << 30
        assert journal.ending(flipped)[1:] == ((0, 0) if looks_cut_off else lost), at


def test_a_wiped_stretch_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    """Whatever stands there: nothing, noise, or what looks like the beginning of an entry."""
    whole, path = tmp_path / "whole", tmp_path / "j"
    entries = write(whole, n=3)
    data, ends = whole.read_bytes(), borders(whole)
    like_an_entry = b"\xff\xff\xff\x00abcdR\x82\xa2id" * 1000
    for wiped in (bytes(8_000_000), Random(5).randbytes(3_000_000), like_an_entry, b"R", b"nilometer"):
        path.write_bytes(data[: ends[1]] + wiped + data[ends[2] :])
        tracemalloc.start()
        try:
            assert list(journal.read(path)) == entries[:2] + entries[3:]
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 6_000_000
        assert journal.ending(path) == (entries[-1], len(wiped), 1)


def test_every_place_of_damage_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entries = write(path, n=4)
    ends = borders(path)
    wrong = bytearray(path.read_bytes())
    wrong[ends[0] + 30] ^= 1
    wrong[ends[2] + 30] ^= 1
    path.write_bytes(wrong)
    assert list(journal.read(path)) == [entries[0], entries[2], entries[4], entries[5]]
    lost = ends[1] - ends[0] + ends[3] - ends[2]
    assert journal.ending(path) == (entries[-1], lost, 2)


def test_a_journal_that_grows_over_damage_is_read_on(tmp_path: Path) -> None:
    path, growing = tmp_path / "j", tmp_path / "g"
    entries = write(path, n=3)
    wrong = bytearray(path.read_bytes())
    wrong[borders(path)[1] + 20] ^= 1
    for step in (1, 7, 64):
        growing.write_bytes(wrong[: len(journal.MAGIC)])
        tail = journal.Tail(growing)
        seen: list[journal.Entry] = []
        for at in range(len(journal.MAGIC), len(wrong), step):
            with open(growing, "ab") as file:
                file.write(wrong[at : at + step])
            seen += tail.new()
        assert seen == entries[:2] + entries[3:]
        assert tail.gaps == 1
        tail.close()


def test_a_journal_that_must_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(journal.read(tmp_path))
    assert (caught.value.slug, caught.value.params["file"]) == ("file_unreadable", str(tmp_path))
    assert caught.value.params["detail"]


@pytest.mark.parametrize("data", [b"x", b"nilometer diary", b"nilometer journal 2\n", b"SQLite format 3\0" * 4])
def test_what_is_no_journal_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(journal.read(path))
    assert caught.value.slug == "not_a_journal"
    assert caught.value.params["file"] == str(path)


def test_an_entry_of_an_unknown_kind_or_of_other_content_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for body in (b"X\x80", b"R\x80", b"R\xc1", b""):
        path.unlink(missing_ok=True)
        write(path, n=1, end=False)
        with open(path, "ab") as file:
            file.write(len(body).to_bytes(4, "little") + crc32(body).to_bytes(4, "little") + body)
        write_more = journal.Writer(path)
        write_more.record(record(7))
        write_more.close()
        assert list(journal.read(path)) == [header(), record(0), record(7)]
        assert journal.ending(path)[1:] == (8 + len(body), 1)


def test_a_length_that_no_entry_has_is_not_waited_for(tmp_path: Path) -> None:
    """... and does not make the reader collect the rest of the file in hope."""
    path = tmp_path / "j"
    write(path, n=1, end=False)
    with open(path, "ab") as file:
        file.write((0xFFFFFFF0).to_bytes(4, "little") + bytes(4))
        file.write(bytes(16_000_000))
    tracemalloc.start()
    try:
        assert len(list(journal.read(path))) == 2
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 6_000_000


def test_a_growing_journal_is_read_as_it_grows(tmp_path: Path) -> None:
    path, growing = tmp_path / "j", tmp_path / "g"
    entries = write(path, n=2)
    data = path.read_bytes()
    seen: list[journal.Entry] = []
    for step in (1, 7, 64):
        growing.write_bytes(data[: len(journal.MAGIC)])
        tail = journal.Tail(growing)
        seen = []
        for at in range(len(journal.MAGIC), len(data), step):
            with open(growing, "ab") as file:
                file.write(data[at : at + step])
            fresh = list(tail.new())
            assert len(fresh) <= 2
            seen += fresh
        assert seen == entries
        assert list(tail.new()) == []
        tail.close()


def test_a_reader_that_stops_halfway_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entries = write(path, n=3)
    tail = journal.Tail(path)
    first = next(iter(tail.new()))
    assert [first, *tail.new()] == entries
    tail.close()


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path)
    with pytest.raises(ArchiveError) as caught:
        journal.create(path, header())
    assert caught.value.slug == "journal_unwritable"
    assert len(list(journal.read(path))) == 5


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ArchiveError) as caught:
        journal.create(tmp_path / "file" / "j", header())
    assert caught.value.slug == "journal_unwritable"
    assert str(caught.value.params["file"]).endswith("/file/j")
    assert caught.value.params["detail"]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "j"
    journal.create(path, header()).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_disk_that_fills_leaves_whole_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    write(path, n=1, end=False)
    size = path.stat().st_size
    really = os.write
    room = [100]

    def write_some(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = really(fd, data[: room[0]])
        room[0] -= done
        return done

    writer = journal.Writer(path)
    monkeypatch.setattr(journal.os, "write", write_some)  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="No space"):
        writer.record(record(1, frames=40))
    assert path.stat().st_size == size
    room[0] = 10_000
    writer.trailer(trailer())
    writer.close()
    assert list(journal.read(path)) == [header(), record(0), trailer()]


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    journal.create(path, header()).close()
    really = os.write
    monkeypatch.setattr(journal.os, "write", lambda fd, data: really(fd, data[:7]))  # type: ignore[attr-defined]
    writer = journal.Writer(path)
    writer.record(record(2))
    writer.close()
    assert list(journal.read(path)) == [header(), record(2)]


def test_it_is_abandoned_when_nobody_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    held = journal.create(path, header())
    assert not journal.abandoned(path)
    writer = journal.Writer(path)
    held.close()
    assert not journal.abandoned(path)
    writer.close()
    assert journal.abandoned(path)
    assert journal.abandoned(path)  # asking leaves no lock behind


def test_the_death_of_its_holder_abandons_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal.create(path, header()).close()
    script = (
        "import sys, pathlib; from nilometer.load.journal import Writer\n"
        "w = Writer(pathlib.Path(sys.argv[1])); print(1, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert not journal.abandoned(path)
        child.kill()
        child.wait()
        assert journal.abandoned(path)


def test_a_record_of_every_field_comes_back(tmp_path: Path) -> None:
    full = Record(
        id="0-1",
        seq=1,
        phase="drain",
        outcome="error",
        error="http_429",
        retry_after_s=1.5,
        server={"predicted_ms": 1.25, "x": None, "n": 2, "s": "t"},
        text="\ud83c\udf0a".encode("utf-16", "surrogatepass").decode("utf-16"),
        server_request_id="r",
    )
    path = tmp_path / "j"
    journal.create(path, header()).close()
    writer = journal.Writer(path)
    writer.record(full)
    writer.sync()
    writer.close()
    assert list(journal.records([path])) == [full]
