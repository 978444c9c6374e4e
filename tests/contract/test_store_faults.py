"""Every store when things go wrong: other processes, kill -9, rotten rows, a schema or a run from the future."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
from tests.contract.children import child
from tests.contract.conftest import Past
from tests.unit.archive.samples import make_record, make_records, make_run

from nilometer.archive import migrate
from nilometer.archive.migrate import migrations
from nilometer.archive.store import open_archive
from nilometer.core.errors import ArchiveError
from nilometer.core.record import Record

RUN_ID = make_run().id


@pytest.fixture
def filled(url: str) -> str:
    with open_archive(url) as archive:
        archive.put(make_run(), make_records(30))
    return url


def problems(url: str) -> list[tuple[str, object]]:
    with open_archive(url) as archive:
        return [(fault.slug, fault.params.get("run")) for fault in archive.check().problems]


def test_a_slow_source_of_records_keeps_nobody_waiting(url: str) -> None:
    def slow() -> Iterator[Record]:
        yield make_record(0)
        with open_archive(url) as other:
            other.put(make_run("other"), [])
        yield make_record(1)

    with open_archive(url) as archive:
        archive.put(make_run(), slow())
        assert {row.id for row in archive.list_runs()} == {RUN_ID, "other"}


EIGHT_WRITERS = """
def write(name, n):
    for i in range(n):
        with open_archive(sys.argv[1]) as archive:
            archive.put(make_run(f"{name}{i}"), make_records(200))
            archive.list_runs()
        print(f"{name}{i}", flush=True)

victim, lines = start(write, "v", 1_000)
others = [start(write, name, 4) for name in "abcdefg"]
told = [lines.readline().strip() for _ in range(3)]
os.kill(victim, 9)
told += lines.read().split()
for _, lines in others:
    told += lines.read().split()
ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, _ in [(victim, None), *others]]
print(json.dumps([ends, told]))
"""


@pytest.mark.fresh
def test_eight_processes_write_at_once_from_the_first_moment_and_one_is_killed(url: str) -> None:
    """The one that is killed goes on until then. What was said to be there is there."""
    with child(EIGHT_WRITERS, url) as writers:
        output = writers.communicate()[0]
    ends, told = json.loads(output)
    assert ends == [-signal.SIGKILL, *[0] * 7]
    assert {f"{name}{i}" for name in "abcdefg" for i in range(4)} <= {*told}
    with open_archive(url) as archive:
        there = {row.id for row in archive.list_runs(2_000)}
        assert {*told} <= there
        assert len(there) <= len(told) + 1
        assert archive.check() == (len(there), 200 * len(there), [])


KILLED_IN_PUT = """
from nilometer.archive.spool import Spool
kept = Spool.parts
def parts(spool):
    for i, part in enumerate(kept(spool)):
        if i == 3:
            print("written", i, flush=True)
            os.kill(os.getpid(), 9)
        yield part
Spool.parts = parts
from nilometer.archive import codec
codec.SEGMENT_WEIGHT_BYTES = 400_000
with open_archive(sys.argv[1]) as archive:
    if sys.argv[1].startswith("sqlite"):
        archive.db.execute("PRAGMA cache_size = 4")
    archive.put(make_run("other"), (make_record(i, n_frames=5_000) for i in range(40)))
"""
KILLED_WHILE_READING = """
def broken():
    for i in range(1_000_000):
        if i == 300:
            print("read", flush=True)
            os.kill(os.getpid(), 9)
        yield make_record(i, n_frames=2_000)
with open_archive(sys.argv[1]) as archive:
    archive.put(make_run("other"), broken())
"""


@pytest.mark.parametrize("script", [KILLED_IN_PUT, KILLED_WHILE_READING], ids=["writing", "reading"])
def test_a_kill_in_the_middle_of_put_leaves_a_whole_archive(filled: str, script: str) -> None:
    with child(script, filled) as victim:
        told = victim.communicate()[0]
    assert victim.returncode == -signal.SIGKILL, told
    assert told in ("written 3\n", "read\n")
    with open_archive(filled) as archive:
        assert archive.check() == (1, 30, [])
        archive.put(make_run("other"), make_records(5))
        assert archive.check() == (2, 35, [])


ROT: dict[str, tuple[str, str]] = {
    "a segment cut": ("UPDATE record_segment SET blob = substr(blob, 1, 100)", "run_damaged"),
    "a segment gone": ("DELETE FROM record_segment", "run_damaged"),
    "a part out of place": ("UPDATE record_segment SET part = 1", "run_damaged"),
    "records miscounted": ("UPDATE record_segment SET records = 29", "run_damaged"),
    "an unknown codec": ("UPDATE record_segment SET codec = 'columns-7'", "run_damaged"),
    "a figure changed": ("UPDATE summary_value SET value = 0 WHERE stat = 'p95'", "run_damaged"),
    "a figure gone": ("DELETE FROM summary_value WHERE metric = 'ttft'", "run_damaged"),
    "a summary cut": ("UPDATE run SET summary = substr(summary, 1, 50)", "run_damaged"),
    "an unknown word": ("UPDATE run SET origin = 'dreamt'", "run_damaged"),
    "health cut": ("UPDATE telemetry_segment SET blob = x'00'", "run_damaged"),
    "health out of place": ("UPDATE telemetry_segment SET n = 4", "run_damaged"),
    "a newer format": ("UPDATE run SET format = 99", "run_newer"),
}


@pytest.mark.parametrize(("change", "slug"), ROT.values(), ids=ROT.keys())
def test_rot_is_found_and_the_other_runs_still_read(filled: str, past: Past, change: str, slug: str) -> None:
    past(change)
    with open_archive(filled) as archive:
        archive.put(make_run("other"), make_records(4))
        assert len(archive.list_runs()) == 2
        assert list(archive.records("other")) == list(make_records(4))
    assert problems(filled) == [(slug, RUN_ID)]


def test_missing_records_are_never_passed_over(filled: str, past: Past) -> None:
    past("UPDATE run SET records = 31")
    with open_archive(filled) as archive, pytest.raises(ArchiveError, match="run_damaged"):
        list(archive.records(RUN_ID))


@pytest.mark.fresh
def test_a_newer_archive_is_refused_and_left_alone(filled: str, monkeypatch: pytest.MonkeyPatch, past: Past) -> None:
    with open_archive(filled) as opened_before:
        with monkeypatch.context() as future:
            future.setattr(migrate, "migrations", lambda: (*migrations(), "CREATE TABLE later (a TEXT);"))
            open_archive(filled).__exit__()
        with pytest.raises(ArchiveError, match="archive_newer") as caught:
            open_archive(filled)
        assert (caught.value.params["found"], caught.value.params["known"]) == (
            len(migrations()) + 1,
            len(migrations()),
        )
        with pytest.raises(ArchiveError, match="archive_newer"):
            opened_before.put(make_run("other"), [])
    assert past("SELECT count(*) FROM later") == [(0,)]
    assert past("SELECT id FROM run") == [(RUN_ID,)]


@pytest.mark.fresh
def test_a_migration_that_fails_leaves_the_archive_as_it_was(
    filled: str, monkeypatch: pytest.MonkeyPatch, past: Past
) -> None:
    second = "CREATE TABLE later (a TEXT);\nINSERT INTO run_group (nonsense) VALUES (1);\n"
    with monkeypatch.context() as future:
        future.setattr(migrate, "migrations", lambda: (*migrations(), second))
        with pytest.raises(ArchiveError, match="archive_failed"):
            open_archive(filled)
    with pytest.raises(Exception, match="later"):
        past("SELECT * FROM later")
    with open_archive(filled) as archive:
        assert archive.check() == (1, 30, [])
    with monkeypatch.context() as future:
        future.setattr(migrate, "migrations", lambda: (*migrations(), "CREATE TABLE later (a TEXT);"))
        with open_archive(filled) as archive:
            assert archive.check() == (1, 30, [])


KILLED_IN_MIGRATION = """
from nilometer.archive import migrate
known, cut = migrate.migrations(), migrate.statements
migrate.migrations = lambda: (*known, "CREATE TABLE later (a TEXT);\\nCREATE TABLE latest (a TEXT);")
def statements(script):
    yield from cut(script)[:1]
    os.kill(os.getpid(), 9)
migrate.statements = statements
open_archive(sys.argv[1])
"""


@pytest.mark.fresh
def test_a_kill_in_the_middle_of_a_migration_leaves_a_whole_archive(filled: str, past: Past) -> None:
    with child(KILLED_IN_MIGRATION, filled) as victim:
        assert victim.communicate()[0] == ""
    assert victim.returncode == -signal.SIGKILL
    with open_archive(filled) as archive:
        assert archive.check() == (1, 30, [])
    with pytest.raises(Exception, match="later"):
        past("SELECT * FROM later")


MIGRATE = """
from nilometer.archive import migrate
known = migrate.migrations()
migrate.migrations = lambda: (*known, "CREATE TABLE later (a TEXT);")
def write(name):
    with open_archive(sys.argv[1]) as archive:
        archive.put(make_run(name), make_records(20))
writers = [start(write, name) for name in "abcd"]
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, _ in writers])
"""


@pytest.mark.fresh
def test_several_processes_migrate_at_once(filled: str, past: Past) -> None:
    with child(MIGRATE, filled) as writers:
        assert writers.communicate()[0] == "[0, 0, 0, 0]\n"
    assert past("SELECT count(*) FROM run") == [(5,)]
    assert past("SELECT count(*) FROM later") == [(0,)]
