"""Runs that nobody filed: each is filed once, none is lost, and one that cannot be does not stand before the others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from tests.unit.experiment.made import RECORDS, RUN, damage, leave, records
from tests.unit.load.made import header

from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.telemetry import NOTHING, Telemetry
from nilometer.experiment.recover import Unfiled, recover, waiting
from nilometer.load import journal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "journals"
    made.mkdir()
    return made


@pytest.fixture
def archive(tmp_path: Path) -> Iterable[SqliteArchive]:
    with SqliteArchive(tmp_path / "archive.sqlite", busy_s=0.05) as opened:
        yield opened


def ids(found: Iterable[Run | Unfiled]) -> list[str]:
    """What became of each run: its id, or the slug of what stood in the way."""
    return [one.id if isinstance(one, Run) else one.fault.slug for one in found]


def test_an_abandoned_run_is_filed_whole_and_its_journals_go(folder: Path, archive: SqliteArchive) -> None:
    leave(folder, workers=2)
    assert waiting(folder) == 1
    assert ids(recover(folder, archive)) == [RUN]
    assert list(archive.records(RUN)) == records()
    assert list(folder.iterdir()) == []
    assert waiting(folder) == 0


def test_a_recovered_run_brings_its_group(folder: Path, archive: SqliteArchive) -> None:
    group = Group(id="gggggggggggg", type="repeat", started_wall_ns=1)
    leave(folder, head=msgspec.structs.replace(header(), group=group.id, series=group, order=0))
    assert ids(recover(folder, archive)) == [RUN]
    assert archive.get_group(group.id) == group
    assert [run.id for run in archive.find(group.id)] == [RUN]


@pytest.mark.parametrize("hit", [[1], [RECORDS], [3, 4, 20], [0], [0, 7]])
def test_a_damaged_journal_is_filed_once_and_kept(hit: list[int], folder: Path, archive: SqliteArchive) -> None:
    first, second = leave(folder, workers=2)
    damage(first, hit)
    before = first.read_bytes()
    (run,) = recover(folder, archive)
    assert isinstance(run, Run)
    kept = [one for i, one in enumerate(records(), 1) if i not in hit]
    assert list(archive.records(RUN)) == kept
    assert archive.get(RUN).findings == run.findings
    assert "journal_damaged" in [finding.slug for finding in run.findings]
    aside = journal.aside(first)
    assert run.health.damage[0].file == str(aside)
    assert list(folder.iterdir()) == [aside]
    assert aside.read_bytes() == before
    assert ids(recover(folder, archive)) == []
    assert waiting(folder) == 0
    assert not second.exists()


def test_a_journal_all_of_whose_requests_were_lost_is_no_empty_one(folder: Path, archive: SqliteArchive) -> None:
    (path,) = leave(folder, n=1)
    damage(path, [1])
    assert ids(recover(folder, archive)) == [RUN]
    assert journal.aside(path).exists()


def test_a_journal_without_its_head_is_set_aside(folder: Path, archive: SqliteArchive) -> None:
    (path,) = leave(folder)
    damage(path, [0])
    (unfiled,) = recover(folder, archive)
    assert isinstance(unfiled, Unfiled)
    assert (unfiled.file, unfiled.fault.slug) == (path, "journal_headless")
    assert unfiled.fault.params["file"] == str(journal.aside(path))
    assert len(list(journal.records([journal.aside(path)]))) == RECORDS
    assert ids(recover(folder, archive)) == []


def test_journals_in_which_no_request_ended_go_without_a_word(folder: Path, archive: SqliteArchive) -> None:
    (empty,) = leave(folder, "aaaaaaaaaaaa", n=0)
    (folder / "bbbbbbbbbbbb-0.journal").write_bytes(b"")
    (folder / "cccccccccccc-0.journal").write_bytes(empty.read_bytes()[:60])
    assert waiting(folder) == 0
    assert ids(recover(folder, archive)) == []
    assert list(folder.iterdir()) == []


def test_what_is_filed_already_is_only_cleared_away(folder: Path, archive: SqliteArchive) -> None:
    (path,) = leave(folder)
    saved = path.read_bytes()
    list(recover(folder, archive))
    path.write_bytes(saved)
    assert ids(recover(folder, archive)) == [RUN]
    assert list(folder.iterdir()) == []


def test_a_run_that_goes_on_is_left_alone(folder: Path, archive: SqliteArchive) -> None:
    (path,) = leave(folder)
    writer = journal.Writer(path)
    assert (waiting(folder), ids(recover(folder, archive))) == (0, [])
    writer.close()
    assert path.exists()


def test_one_that_cannot_be_filed_does_not_stand_before_the_others(folder: Path, archive: SqliteArchive) -> None:
    (folder / "aaaaaaaaaaaa-0.journal").write_bytes(b"SQLite format 3\0")
    leave(folder, "bbbbbbbbbbbb", msgspec.structs.replace(header(), spec={"target": "x", "later": 1}))
    leave(folder, "cccccccccccc")
    (folder / "dddddddddddd-0.journal").mkdir()
    leave(folder, "eeeeeeeeeeee")
    told = ["not_a_journal", "toml_key", "cccccccccccc", "file_unreadable", "eeeeeeeeeeee"]
    assert ids(recover(folder, archive)) == told
    left = [name[0] for name in sorted(os.listdir(folder))]
    assert left == ["a", "b", "d"]


def test_one_that_nothing_can_be_made_of_is_told_once(folder: Path, archive: SqliteArchive) -> None:
    leave(folder, "bbbbbbbbbbbb", msgspec.structs.replace(header(), spec={"target": "x", "slo": ""}))
    assert ids(recover(folder, archive)) == ["journal_unusable"]
    assert waiting(folder) == 0
    assert ids(recover(folder, archive)) == []
    assert [name.endswith(".damaged") for name in os.listdir(folder)] == [True]


class Refusing(SqliteArchive):
    """Cannot write one run of them all."""

    def put(self, run: Run, records: Iterable[Record], telemetry: Telemetry = NOTHING) -> None:
        if run.id == "aaaaaaaaaaaa":
            run = msgspec.structs.replace(run, tool_version="\ud800")
        super().put(run, records, telemetry)


def test_an_archive_that_refuses_one_run_gets_the_others(folder: Path, tmp_path: Path) -> None:
    for run in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        leave(folder, run)
    with Refusing(tmp_path / "refusing.sqlite") as archive:
        assert ids(recover(folder, archive)) == ["run_not_archived", "bbbbbbbbbbbb"]
        assert [path.name for path in folder.iterdir()] == ["aaaaaaaaaaaa-0.journal"]
