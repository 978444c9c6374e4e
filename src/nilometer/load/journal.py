"""The journal of one worker: a file that holds each ended request before it is counted anywhere.

Layout: MAGIC, then entries of [u32 length][u32 CRC-32][kind byte + msgpack], little-endian. Kinds: H header (written by
the parent before the worker starts), R one Record, T the trailer. A journal that ends inside an entry is read up to
there: that is what a kill or a full disk leaves. `archive` never reads this; who hands it over iterates `records`.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import msgspec

from nilometer.core.environment import Environment
from nilometer.core.errors import ArchiveError, DataError
from nilometer.core.record import Record
from nilometer.core.run import Health, Phases

MAGIC = b"nilometer journal 1\n"
_PREFIX = struct.Struct("<II")
_ENTRY_LIMIT = 1 << 30
_READ_BYTES = 1 << 20


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before the load starts: enough to file the run when nobody lives to do it."""

    run: str
    worker: int
    workers: int
    spec: dict[str, Any]
    environment: Environment
    started_wall_ns: int
    tool_version: str
    group: str | None = None
    role: str | None = None
    level: str | None = None
    order: int | None = None
    parent: str | None = None


class Trailer(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker knows at its end. A journal without one belongs to a worker that was killed."""

    phases: Phases
    health: Health


_encoder = msgspec.msgpack.Encoder()
_record_decoder = msgspec.msgpack.Decoder(Record)
_DECODERS: dict[bytes, msgspec.msgpack.Decoder[Any]] = {
    b"H": msgspec.msgpack.Decoder(Header),
    b"R": _record_decoder,
    b"T": msgspec.msgpack.Decoder(Trailer),
}
Entry = Header | Record | Trailer


def create(path: Path, header: Header) -> BinaryIO:
    """Start a journal with its header; slug `journal_unwritable` (exit 3) when the place cannot be written.

    The file that is handed back holds the journal for this run: while it is open, `abandoned` says no.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "xb")  # noqa: SIM115 - handed back open
        fcntl.flock(file, fcntl.LOCK_SH)
        os.fchmod(file.fileno(), 0o600)
        file.write(MAGIC + _entry(b"H", header))
        file.flush()
    except OSError as fault:
        raise ArchiveError("journal_unwritable", file=str(path), detail=fault.strerror or str(fault)) from None
    return file


def abandoned(path: Path) -> bool:
    """Whether nobody who could still file this run is alive."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Writer:
    """Appends to a journal with plain write(2): what was written survives the death of the process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def record(self, record: Record) -> None:
        """Write one request. Raises OSError (disk full, quota)."""
        self._write(_entry(b"R", record))

    def trailer(self, trailer: Trailer) -> None:
        self._write(_entry(b"T", trailer))

    def sync(self) -> None:
        """Force it to the disk; called once a second, off the loop."""
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, data: bytes) -> None:
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            if done:  # half an entry would hide what may still follow
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - done)
            raise


def _entry(kind: bytes, value: Entry) -> bytes:
    body = kind + _encoder.encode(value)
    return _PREFIX.pack(len(body), crc32(body)) + body


class Tail:
    """Reads a journal that is still growing: each call of `new` yields what has become whole since the last one.

    Where the bytes are not what was written the journal ends: from there on nothing can be trusted.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed by `close`
        self._pending = bytearray()
        self._broken = False
        if self._file.read(len(MAGIC)) != MAGIC:
            self._file.close()
            raise DataError("not_a_journal", file=str(path))

    def new(self) -> Iterator[Entry]:
        while not self._broken:
            yield from self._whole()
            chunk = b"" if self._broken else self._file.read(_READ_BYTES)
            if not chunk:
                return
            self._pending += chunk

    def _whole(self) -> Iterator[Entry]:
        """The entries that are whole among what was read, each taken out as it is handed over."""
        data, at = self._pending, 0
        try:
            while (size := _entry_size(data, at)) and (at + size <= len(data) or size > _ENTRY_LIMIT):
                entry = _decode(bytes(data[at + _PREFIX.size : at + size]), data, at)
                if entry is None:
                    self._broken = True
                    return
                at += size
                yield entry
        finally:
            del data[:at]

    def close(self) -> None:
        self._file.close()


def _entry_size(data: bytearray, at: int) -> int:
    """Bytes of the entry at `at`, prefix included; 0 when even the prefix is not whole."""
    if at + _PREFIX.size > len(data):
        return 0
    length, _ = _PREFIX.unpack_from(data, at)
    return _PREFIX.size + int(length)


def _decode(body: bytes, data: bytearray, at: int) -> Entry | None:
    """The entry, or None where its bytes are not what was written."""
    length, crc = _PREFIX.unpack_from(data, at)
    if length > _ENTRY_LIMIT or crc32(body) != crc or body[:1] not in _DECODERS:
        return None
    try:
        entry: Entry = _DECODERS[body[:1]].decode(body[1:])
    except msgspec.DecodeError:
        return None
    return entry


def read(path: Path) -> Iterator[Entry]:
    """All whole entries of a journal, lazily. Refuses what is no journal: slug `not_a_journal`."""
    tail = Tail(path)
    try:
        yield from tail.new()
    finally:
        tail.close()


def records(paths: Sequence[Path]) -> Iterator[Record]:
    """The Records of a run's journals, worker by worker, each in order of ending."""
    for path in paths:
        for entry in read(path):
            if isinstance(entry, Record):
                yield entry
