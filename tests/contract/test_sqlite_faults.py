"""The SQLite archive when things go wrong: other files, no room, no right, other processes, kill -9, rotten bytes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tests.contract.children import ROOT, command_of
from tests.unit.archive.samples import make_record, make_records, make_run

from nilometer.archive.migrate import migrations
from nilometer.archive.protocol import Note, Ref
from nilometer.archive.sqlite import APPLICATION_ID, SqliteArchive
from nilometer.core.errors import ArchiveError
from nilometer.core.record import Frames, Record

RUN_ID = make_run().id
AS_ROOT = os.geteuid() == 0


def noisy_records(n: int) -> Iterator[Record]:
    """Records that nothing makes smaller: 160 kB each."""
    return (make_record(seq, frames=Frames(user=Random(seq).randbytes(160_000))) for seq in range(n))


def slug_of(action: Callable[[], object]) -> str:
    with pytest.raises(ArchiveError) as caught:
        action()
    return caught.value.slug


def filled(path: Path) -> Path:
    with SqliteArchive(path) as archive:
        archive.put(make_run(), make_records(30))
    return path


def sql(path: Path, statement: str, *params: object) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    try:
        with db:
            return db.execute(statement, params).fetchall()
    finally:
        db.close()


def test_a_new_archive_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "nilometer" / "archive.sqlite"
    with SqliteArchive(path) as archive:
        archive.put(make_run(), [])
        modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert path.name in modes
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    assert sql(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert sql(path, "PRAGMA user_version") == [(len(migrations()),)]
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(path, "PRAGMA auto_vacuum") == [(2,)]


def test_a_newer_archive_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    sql(path, "PRAGMA user_version = 99")
    with pytest.raises(ArchiveError) as caught:
        SqliteArchive(path)
    assert caught.value.slug == "archive_newer"
    assert caught.value.params == {"path": str(path), "found": 99, "known": len(migrations())}
    assert sql(path, "PRAGMA user_version") == [(99,)]


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be looked at " * 40, b"SQLite format 3\0junk"]
)
def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    assert slug_of(lambda: SqliteArchive(path)) == "archive_unreadable"
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    sql(path, "CREATE TABLE bookmarks (url TEXT)")
    assert slug_of(lambda: SqliteArchive(path)) == "archive_unreadable"
    assert sql(path, "SELECT name FROM sqlite_master") == [("bookmarks",)]


def test_an_empty_file_becomes_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.touch()
    assert len(sql(filled(path), "SELECT * FROM run")) == 1


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert slug_of(lambda: SqliteArchive(tmp_path / "file" / "a.sqlite")) == "archive_unwritable"
    assert slug_of(lambda: SqliteArchive(tmp_path / "folder")) == "archive_unwritable"
    assert slug_of(lambda: SqliteArchive(Path("/proc/a.sqlite"))) == "archive_unwritable"


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_file_or_folder_without_the_right_to_write_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    path.chmod(0o400)
    assert slug_of(lambda: filled(path)) == "archive_unwritable"
    tmp_path.chmod(0o500)
    try:
        assert slug_of(lambda: SqliteArchive(tmp_path / "b.sqlite")) == "archive_unwritable"
    finally:
        tmp_path.chmod(0o700)


def test_a_lock_held_too_long_is_told(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        with SqliteArchive(path, busy_s=0.05) as archive:
            assert slug_of(lambda: archive.put(make_run("other"), [])) == "archive_locked"
            assert archive.get(RUN_ID) == make_run()
            holder.execute("ROLLBACK")
            archive.put(make_run("other"), [])
    finally:
        holder.close()


def test_no_room_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    with SqliteArchive(path) as archive:
        (pages,) = archive.db.rows("PRAGMA page_count")[0]
        archive.db.execute(f"PRAGMA max_page_count = {pages + 10}")
        assert slug_of(lambda: archive.put(make_run("other"), noisy_records(20))) == "archive_full"
        assert [row.id for row in archive.list_runs()] == [RUN_ID]
        archive.db.execute("PRAGMA max_page_count = 1000000")
        archive.put(make_run("other"), noisy_records(20))
        assert archive.check() == (2, 50, [])


FULL_DISK = """
import subprocess
from random import Random
folder = Path(sys.argv[1])
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], stderr=subprocess.DEVNULL).returncode:
    print("no mount")
    sys.exit()
from nilometer.core.errors import ArchiveError
from nilometer.core.record import Frames
big = [make_record(i, frames=Frames(user=Random(i).randbytes(400_000))) for i in range(30)]
with open_archive(f"sqlite:///{folder}/a.sqlite") as archive:
    archive.put(make_run(), make_records(30))
    for amount in (8, 30):
        try:
            archive.put(make_run("other"), big[:amount])
        except ArchiveError as fault:
            print(fault.slug)
    print([row.id for row in archive.list_runs()], archive.check())
"""


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine")
    flags = ["-m"] if AS_ROOT else ["-rm"]
    command = ["unshare", *flags, *command_of(FULL_DISK, tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "no mount" in done.stdout or "unshare" in done.stderr:
        pytest.skip("no right to mount")
    whole = f"['{RUN_ID}'] Checked(runs=1, records=30, problems=[])"
    assert done.stdout.splitlines() == ["archive_full", "archive_full", whole], done.stderr


def problems(path: Path) -> list[tuple[str, object]]:
    with SqliteArchive(path) as archive:
        return [(fault.slug, fault.params.get("run")) for fault in archive.check().problems]


def test_what_belongs_to_no_run_is_found(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    sql(path, "INSERT INTO tag (name, run) VALUES ('lost', 'nobody')")
    assert problems(path) == [("archive_damaged", None)]


def test_a_rotten_page_is_found_and_the_other_runs_still_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    with SqliteArchive(path) as archive:
        archive.put(make_run("other"), noisy_records(10))
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(bytes(4096))
    found = problems(path)
    assert ("archive_damaged", None) in found
    assert [run for _, run in found if run] == ["other"]
    with SqliteArchive(path) as archive:
        assert list(archive.records(RUN_ID)) == list(make_records(30))


def test_a_removed_run_gives_its_room_back(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    before = path.stat().st_size
    with SqliteArchive(path) as archive:
        archive.put(make_run("other"), noisy_records(10))
    assert path.stat().st_size > before + 1_500_000
    with SqliteArchive(path) as archive:
        archive.remove("other")
    assert path.stat().st_size <= before + 3 * 4096


def test_a_row_that_rotted_hides_none_of_the_others_and_is_not_old(tmp_path: Path) -> None:
    """SQLite keeps any kind of value in any column."""
    with SqliteArchive(filled(tmp_path / "a.sqlite")) as archive:
        archive.put(make_run("other"), [])
        archive.note(Ref("run", "other"), Note(1, "kept"))
    odd = "started_wall_ns = 'abc', service = x'ff', verdict = 'odd', records = 'many', concurrency = 'x'"
    sql(tmp_path / "a.sqlite", f"UPDATE run SET {odd} WHERE id = 'other'")
    sql(tmp_path / "a.sqlite", "UPDATE note SET text = x'ff00'")
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        told = {row.id: row for row in archive.list_runs()}
        assert told[RUN_ID].ttft_p95_ms == 480.125
        rotten = told["other"]
        assert (rotten.started_wall_ns, rotten.service, rotten.verdict, rotten.concurrency) == (
            0,
            None,
            "inadmissible",
            None,
        )
        assert {point.id for point in archive.series([("latency_ms", "ttft", "p95")])} == {RUN_ID, "other"}
        assert archive.remarks(Ref("run", "other")).notes == []
        assert slug_of(lambda: archive.get("other")) == "run_damaged"
        assert [fault.slug for fault in archive.check().problems] == ["archive_damaged", "run_damaged"]
        before = make_run().phases.started_wall_ns + 1
        assert [lot.runs for lot in archive.lots(keep=0, before_wall_ns=before)] == [[RUN_ID]]
        archive.remove("other")
        assert archive.check().problems == []


def test_columns_that_say_another_thing_than_the_run_are_found(tmp_path: Path) -> None:
    sql(filled(tmp_path / "a.sqlite"), "UPDATE run SET started_wall_ns = started_wall_ns + 1, model = 'other'")
    with SqliteArchive(tmp_path / "a.sqlite") as archive:
        (fault,) = archive.check().problems
        assert fault.slug == "run_damaged"
        assert str(fault.params["detail"]).endswith("model, started_wall_ns")
