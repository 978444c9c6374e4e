"""Archives of every former schema open, and hold what they held: files kept from each release in `captures/archive`."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import msgspec
import psycopg
import pytest
from tests.captures.archive.make import NOTE
from tests.contract.cluster import Server

from nilometer.archive import migrate
from nilometer.archive.database import insert
from nilometer.archive.protocol import Archive, Filter, Ref
from nilometer.archive.sqlite import SqliteArchive
from nilometer.archive.store import open_archive
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


def hold_all(archive: Archive, version: str) -> None:
    """What the file of a version was filled with by `make.py` is there."""
    held = expected(version)
    assert len(held) == 2
    assert {row.id for row in archive.list_runs()} == set(held)
    for run_id, (run, records) in held.items():
        assert archive.get(run_id) == run
        assert list(archive.records(run_id)) == records
    assert [run.id for run in archive.find("groupgroup22")] == ["k3v9c2mq7x1d", "m22222222222"]
    assert archive.get_group("groupgroup22").type == "sweep"
    assert archive.resolve("base") == "k3v9c2mq7x1d"
    assert [row.concurrency for row in archive.list_runs(only=Filter(model="llama", group="groupgroup22"))] == [16, 16]
    assert archive.check().problems == []


def hold_remarks(archive: Archive) -> None:
    """Kept from version 2 on."""
    assert archive.remarks(Ref("group", "groupgroup22")).tags == ["whole"]
    assert archive.remarks(Ref("run", "k3v9c2mq7x1d")).notes == [NOTE]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_archive_opens_with_all_it_held(version: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / f"{version}.sqlite", tmp_path / "a.sqlite"))
    with SqliteArchive(path) as archive:
        hold_all(archive, version)
        if version != "v1":
            hold_remarks(archive)


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_archive_of_each_version_on_a_server_comes_up_too(
    version: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kept file holds is laid into the schema that a server had at that version."""
    url = server.fresh()
    known = migrate.migrations()[: int(version[1:])]
    with monkeypatch.context() as then:
        then.setattr(migrate, "migrations", lambda: known)
        open_archive(url).__exit__()
    kept = sqlite3.connect(f"file:{KEPT / version}.sqlite?mode=ro&immutable=1", uri=True)
    with psycopg.connect(url) as laid:
        for table in ("run_group", "run", "summary_value", "record_segment", "telemetry_segment", "tag", "note"):
            rows = kept.execute(f"SELECT * FROM {table}")
            statement = insert(table, [column[0] for column in rows.description]).replace("?", "%s")
            laid.cursor().executemany(statement.encode(), rows.fetchall())
    kept.close()
    with open_archive(url) as archive:
        hold_all(archive, version)
        if version != "v1":
            hold_remarks(archive)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_archive_comes_up_to_the_schema_of_a_new_one(version: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / f"{version}.sqlite", tmp_path / "a.sqlite"))
    for opened in (path, tmp_path / "new.sqlite"):
        with SqliteArchive(opened):
            pass
    assert tables(path) == tables(tmp_path / "new.sqlite")
