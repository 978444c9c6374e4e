"""What SQLite and the file system report, as errors with a slug."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nilometer.core.errors import ArchiveError

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_UNWRITABLE_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT)
_FULL_BELOW_BYTES = 1 << 20

_SLUGS = {
    sqlite3.SQLITE_BUSY: "archive_locked",
    sqlite3.SQLITE_LOCKED: "archive_locked",
    sqlite3.SQLITE_FULL: "archive_full",
    sqlite3.SQLITE_NOTADB: "archive_unreadable",
    sqlite3.SQLITE_CORRUPT: "archive_unreadable",
    sqlite3.SQLITE_CANTOPEN: "archive_unwritable",
    sqlite3.SQLITE_READONLY: "archive_unwritable",
    sqlite3.SQLITE_PERM: "archive_unwritable",
}


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Turn sqlite3.Error and OSError of the block into an ArchiveError about the archive at `path`."""
    try:
        with mapped_files(str(path)):
            yield
    except sqlite3.Error as fault:
        raise ArchiveError(_sqlite_slug(fault, path), path=str(path), detail=_told(fault)) from None


@contextmanager
def mapped_files(place: str) -> Iterator[None]:
    """The same of OSError alone, about the archive at `place`."""
    try:
        yield
    except OSError as fault:
        raise ArchiveError(_os_slug(fault), path=place, detail=fault.strerror or str(fault)) from None


def _sqlite_slug(fault: sqlite3.Error, path: Path) -> str:
    code = primary_code(fault)
    if code == sqlite3.SQLITE_IOERR and _no_room(path):
        return "archive_full"
    if code < 0 and "UTF-8" in str(fault):  # text that rotted, met by Python's module
        return "archive_unreadable"
    return _SLUGS.get(code, "archive_failed")


def primary_code(fault: sqlite3.Error) -> int:
    """SQLite's result code without its refinement; -1 for a fault of the Python module itself."""
    code: int = getattr(fault, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1


def _os_slug(fault: OSError) -> str:
    if fault.errno in _FULL_ERRNOS:
        return "archive_full"
    return "archive_unwritable" if fault.errno in _UNWRITABLE_ERRNOS else "archive_failed"


def _told(fault: sqlite3.Error) -> str:
    return f"{getattr(fault, 'sqlite_errorname', type(fault).__name__)}: {fault}"


def _no_room(path: Path) -> bool:
    """A full disk shows as an I/O error where the file that could not grow was not the database itself."""
    try:
        return shutil.disk_usage(path.parent).free < _FULL_BELOW_BYTES
    except OSError:
        return False
