"""Foreign faults by their codes: each gets the slug that says what to do."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from nilometer.archive.faults import mapped
from nilometer.core.errors import ArchiveError, SpecError

PATH = Path("/nowhere/archive.sqlite")


def sqlite_fault(code: int, name: str) -> sqlite3.OperationalError:
    fault = sqlite3.OperationalError("told")
    fault.sqlite_errorcode = code
    fault.sqlite_errorname = name
    return fault


@pytest.mark.parametrize(
    ("code", "name", "slug"),
    [
        (5, "SQLITE_BUSY", "archive_locked"),
        (517, "SQLITE_BUSY_SNAPSHOT", "archive_locked"),
        (13, "SQLITE_FULL", "archive_full"),
        (26, "SQLITE_NOTADB", "archive_unreadable"),
        (11, "SQLITE_CORRUPT", "archive_unreadable"),
        (14, "SQLITE_CANTOPEN", "archive_unwritable"),
        (8, "SQLITE_READONLY", "archive_unwritable"),
        (778, "SQLITE_IOERR_WRITE", "archive_failed"),
        (1, "SQLITE_ERROR", "archive_failed"),
    ],
)
def test_sqlite_faults(code: int, name: str, slug: str) -> None:
    with pytest.raises(ArchiveError) as caught, mapped(PATH):
        raise sqlite_fault(code, name)
    assert caught.value.slug == slug
    assert caught.value.params == {"path": str(PATH), "detail": f"{name}: told"}


def test_a_fault_of_the_module_itself_has_no_code() -> None:
    with pytest.raises(ArchiveError) as caught, mapped(PATH):
        raise sqlite3.ProgrammingError("closed")
    assert (caught.value.slug, caught.value.params["detail"]) == ("archive_failed", "ProgrammingError: closed")


@pytest.mark.parametrize(
    ("number", "slug"),
    [
        (errno.ENOSPC, "archive_full"),
        (errno.EDQUOT, "archive_full"),
        (errno.EACCES, "archive_unwritable"),
        (errno.EROFS, "archive_unwritable"),
        (errno.ENOTDIR, "archive_unwritable"),
        (errno.EIO, "archive_failed"),
    ],
)
def test_file_faults(number: int, slug: str) -> None:
    with pytest.raises(ArchiveError) as caught, mapped(PATH):
        raise OSError(number, "told")
    assert (caught.value.slug, caught.value.params["detail"]) == (slug, "told")


def test_text_that_rotted_is_rot() -> None:
    db = sqlite3.connect(":memory:")
    with pytest.raises(ArchiveError) as caught, mapped(PATH):
        db.execute("SELECT CAST(x'ff' AS TEXT)").fetchall()
    db.close()
    assert caught.value.slug == "archive_unreadable"


def test_our_own_errors_pass() -> None:
    with pytest.raises(SpecError), mapped(PATH):
        raise SpecError("run_unknown", run="x")
