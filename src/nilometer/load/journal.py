"""The journal of one worker: a file that holds each ended request before it is counted anywhere.

Layout: MAGIC, then entries of [u32 length][u32 CRC-32][kind byte + msgpack], little-endian. Kinds: H header (written by
the parent before the worker starts), R one Record, T the trailer. A journal that ends inside an entry is read up to
there: that is what a kill or a full disk leaves. Where the bytes are not what was written they are passed over, up to
the next entry that is whole, and counted. `archive` never reads this; who hands it over iterates `records`.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

import msgspec

from nilometer.core.environment import Environment
from nilometer.core.errors import ArchiveError, DataError
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Health, Phases

MAGIC = b"nilometer journal 1\n"
_PREFIX = struct.Struct("<II")
_ENTRY_LIMIT = 1 << 30
_READ_BYTES = 1 << 20
_OPENING = re.compile(rb"(?:R(?:[\x80-\x8f]|\xde..)\xa2id|T[\x80-\x8f]\xa6phases)", re.DOTALL)
"""How the body of an entry begins that may stand behind damage: its kind, a map, the first key. The CRC decides."""
_SEEN_BYTES = 32
"""More than a prefix and an opening: so much is looked at again when more has come."""


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
    series: Group | None = None
    """The group itself: it is filed with its runs, so that one without any leaves nothing."""
    findings: list[Finding] = []
    """What the probe found."""


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
    """Whether nobody who could still file this run is alive; raises FileNotFoundError, slug `file_unreadable`."""
    with _readable(path), open(path, "rb") as file:
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

    `lost_bytes` in `gaps` places were not what was written, as far as was read. Raises FileNotFoundError; slugs
    `not_a_journal`, `file_unreadable`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending = bytearray()
        self._in_gap = False
        self.lost_bytes = 0
        self.gaps = 0
        with _readable(path):
            self._file = open(path, "rb")  # noqa: SIM115 - closed by `close`
        if not MAGIC.startswith(self._read(len(MAGIC))):  # one cut off before its first entry is a journal still
            self._file.close()
            raise DataError("not_a_journal", file=str(path))

    def new(self, *, over: bool = False) -> Iterator[Entry]:
        """The entries since the last call; `over`: the journal grows no more, what is not whole now never will be."""
        while True:
            yield from self._whole(over=False)
            chunk = self._read(_READ_BYTES)
            if not chunk:
                break
            self._pending += chunk
        if over:
            yield from self._whole(over=True)

    def _whole(self, *, over: bool) -> Iterator[Entry]:
        """The entries that are whole among what was read, each taken out as it is handed over."""
        data, at = self._pending, 0
        try:
            while True:
                if not self._in_gap:
                    size = _whole_size(data, at)
                    entry = _decode(data, at, size) if size else None
                    if entry is not None:
                        at += size
                        yield entry
                        continue
                    if not size and not (over and _resume(data, at, over=True)[1]):
                        return  # it may become whole yet, or the journal was cut off here
                    self._in_gap = True
                    self.gaps += 1
                place, found = _resume(data, at, over=over)
                self.lost_bytes += place - at
                at, self._in_gap = place, not found
                if not found:
                    return
        finally:
            del data[:at]

    def _read(self, size: int) -> bytes:
        with _readable(self._path):
            return self._file.read(size)

    def close(self) -> None:
        self._file.close()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the file system refuses gets a slug; a file that is gone does not: its run was filed meanwhile."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None


def _entry_size(data: bytearray, at: int) -> int:
    """Bytes of the entry at `at`, prefix included, as its prefix says; 0 when even that is not whole."""
    if at + _PREFIX.size > len(data):
        return 0
    length, _ = _PREFIX.unpack_from(data, at)
    return _PREFIX.size + int(length)


def _whole_size(data: bytearray, at: int) -> int:
    """The same, and 0 where the entry is not whole; a size that no entry has is not waited for."""
    size = _entry_size(data, at)
    return size if at + size <= len(data) or size > _ENTRY_LIMIT else 0


def _decode(data: bytearray, at: int, size: int) -> Entry | None:
    """The entry, or None where its bytes are not what was written."""
    if size > _ENTRY_LIMIT:
        return None
    _, crc = _PREFIX.unpack_from(data, at)
    body = bytes(data[at + _PREFIX.size : at + size])
    if crc32(body) != crc or body[:1] not in _DECODERS:
        return None
    try:
        entry: Entry = _DECODERS[body[:1]].decode(body[1:])
    except msgspec.DecodeError:
        return None
    return entry


def _resume(data: bytearray, at: int, *, over: bool) -> tuple[int, bool]:
    """Where a whole entry stands behind damage, and True; else up to where was looked in vain, and False."""
    for opening in _OPENING.finditer(data, at + _PREFIX.size):
        place = opening.start() - _PREFIX.size
        size = _whole_size(data, place)
        if size and _decode(data, place, size) is not None:
            return place, True
        if not size and not over:
            return place, False
    return (len(data) if over else max(at, len(data) - _SEEN_BYTES)), False


def read(path: Path) -> Iterator[Entry]:
    """All whole entries of a journal that grows no more, lazily. Slugs as `Tail`."""
    with closing(Tail(path)) as tail:
        yield from tail.new(over=True)


class Ending(NamedTuple):
    """How a journal ends, and what of it could not be read back: bytes, in so many places."""

    trailer: Trailer | None
    lost_bytes: int
    gaps: int


def ending(path: Path) -> Ending:
    """Read all of it for its ending. Slugs as `Tail`."""
    trailer = None
    with closing(Tail(path)) as tail:
        for entry in tail.new(over=True):
            if isinstance(entry, Trailer):
                trailer = entry
        return Ending(trailer, tail.lost_bytes, tail.gaps)


def records(paths: Sequence[Path]) -> Iterator[Record]:
    """The Records of a run's journals, worker by worker, each in order of ending."""
    for path in paths:
        for entry in read(path):
            if isinstance(entry, Record):
                yield entry


def aside(path: Path) -> Path:
    """Where a damaged journal is kept once its run is filed: a name under which nobody looks for a run to file."""
    return path.with_name(f"{path.name}.damaged")
