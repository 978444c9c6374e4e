"""Archives of every former schema open, and hold what they held: files kept from each release in `captures/archive`."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from nilometer.archive import migrate
from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.errors import ArchiveError
from nilometer.core.record import Record
from nilometer.core.run import Run

KEPT = Path(__file__).parents[1] / "captures" / "archive"
VERSIONS = sorted(path.stem for path in KEPT.glob("v*.sqlite"))


def expected(version: str) -> dict[str, tuple[Run, list[Record]]]:
    runs = [msgspec.json.decode(path.read_bytes(), type=Run) for path in sorted(KEPT.glob(f"{version}.*.run.json"))]
    return {
        run.id: (
            run,
            [
                msgspec.json.decode(line, type=Record)
                for line in (KEPT / f"{version}.{run.id}.records.jsonl").read_bytes().splitlines()
            ],
        )
        for run in runs
    }


def tables(path: Path) -> set[tuple[str, ...]]:
    db = sqlite3.connect(path)
    try:
        return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    finally:
        db.close()


def test_there_is_a_file_for_each_version() -> None:
    assert [f"v{i + 1}" for i in range(len(migrate.migrations()))] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_archive_opens_with_all_it_held(version: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / f"{version}.sqlite", tmp_path / "a.sqlite"))
    held = expected(version)
    assert len(held) == 2
    with SqliteArchive(path) as archive:
        assert {row.id for row in archive.list_runs()} == set(held)
        for run_id, (run, records) in held.items():
            assert archive.get(run_id) == run
            assert list(archive.records(run_id)) == records
        assert [run.id for run in archive.find("groupgroup22")] == ["k3v9c2mq7x1d", "m22222222222"]
        assert archive.get_group("groupgroup22").type == "sweep"
        assert archive.resolve("base") == "k3v9c2mq7x1d"
        assert archive.check().problems == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_archive_comes_up_to_the_schema_of_a_new_one(version: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / f"{version}.sqlite", tmp_path / "a.sqlite"))
    for opened in (path, tmp_path / "new.sqlite"):
        with SqliteArchive(opened):
            pass
    assert tables(path) == tables(tmp_path / "new.sqlite")


def test_a_migration_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(shutil.copy(KEPT / f"{VERSIONS[-1]}.sqlite", tmp_path / "a.sqlite"))
    before, scripts = tables(path), migrate.migrations()
    second = "CREATE TABLE later (a TEXT);\nINSERT INTO run_group (nonsense) VALUES (1);\n"
    with monkeypatch.context() as future:
        future.setattr(migrate, "migrations", lambda: (*scripts, second))
        with pytest.raises(ArchiveError, match="archive_failed"):
            SqliteArchive(path)
    assert tables(path) == before
    with monkeypatch.context() as future:
        future.setattr(migrate, "migrations", lambda: (*scripts, "CREATE TABLE later (a);"))
        with SqliteArchive(path) as archive:
            assert archive.check().problems == []
    assert "later" in {name for _, name, _, _ in tables(path)}
    with pytest.raises(ArchiveError, match="archive_newer"):
        SqliteArchive(path)
