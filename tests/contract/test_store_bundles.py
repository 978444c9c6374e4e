"""Runs as files and from store to store: what comes out is what went in, and nothing half-way stays."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from tests.captures.archive.make import contents
from tests.contract.cluster import Server
from tests.contract.conftest import ON_SERVER, Past
from tests.contract.test_store_contract import GROUP, SEEN, slug_of
from tests.unit.archive.samples import int64, make_record, make_records, make_run, make_spec

from nilometer.archive import bundle
from nilometer.archive.guests import HostArchive
from nilometer.archive.protocol import Filter, Note, Ref
from nilometer.archive.store import open_archive
from nilometer.archive.transfer import everything
from nilometer.core.errors import ArchiveError, DataError, NiloError
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.telemetry import Telemetry

KEPT = Path(__file__).parents[1] / "captures" / "archive"
RUN = Ref("run", "run1")
NOTE = Note(7, "before the new driver")
TOLD = Telemetry(looks=SEEN, host={"at": int64(1, 2), "rss": int64(4096, 8192)})


def put_some(archive: HostArchive) -> dict[str, tuple[Run, list[Record]]]:
    """Three runs, two in a group; tags and notes of both kinds."""
    held = {
        f"run{i}": (make_run(f"run{i}", group=GROUP.id if i > 1 else None, order=i), list(make_records(20 * i)))
        for i in (1, 2, 3)
    }
    archive.put_group(GROUP)
    for run, records in held.values():
        archive.put(run, records, TOLD)
    archive.tag("base", "run1")
    archive.tag_group("whole", GROUP.id)
    archive.note(RUN, NOTE)
    archive.note(Ref("group", GROUP.id), NOTE)
    return held


@pytest.fixture
def held(url: str) -> dict[str, tuple[Run, list[Record]]]:
    with open_archive(url) as archive:
        return put_some(archive)


def hold(archive: HostArchive, held: dict[str, tuple[Run, list[Record]]]) -> None:
    assert {row.id for row in archive.list_runs()} == set(held)
    for run_id, (run, records) in held.items():
        assert archive.get(run_id) == run
        assert list(archive.records(run_id)) == records
        assert archive.telemetry(run_id) == (TOLD if run_id.startswith("run") else Telemetry(looks=[]))
    assert archive.check().problems == []


def test_an_exported_run_comes_back(url: str, held: dict[str, tuple[Run, list[Record]]], tmp_path: Path) -> None:
    file = tmp_path / "out" / "run.nilo"
    file.parent.mkdir()
    with open_archive(url) as archive:
        assert bundle.export(archive.db, RUN, file) == 1
        assert slug_of(lambda: bundle.export(archive.db, RUN, file)) == "file_exists"
    assert list(file.parent.iterdir()) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_bytes()
    with open_archive(str(tmp_path / "other.sqlite")) as other:
        assert [(one.of, one.new) for one in bundle.import_into(other.db, file)] == [(RUN, True)]
        assert [(one.of, one.new) for one in bundle.import_into(other.db, file)] == [(RUN, False)]
        hold(other, {"run1": held["run1"]})
        assert other.remarks(RUN) == ([], [NOTE])
    assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


def test_an_exported_group_comes_back(url: str, held: dict[str, tuple[Run, list[Record]]], tmp_path: Path) -> None:
    file, group = tmp_path / "g.nilo", Ref("group", GROUP.id)
    with open_archive(url) as archive:
        assert bundle.export(archive.db, group, file) == 2
        archive.remove("run2")
        archive.remove("run3")
        assert [one.new for one in bundle.import_into(archive.db, file)] == [True, True]
        hold(archive, held)
        assert archive.get_group(GROUP.id) == GROUP
        assert archive.remarks(group) == ([], [NOTE])


def test_one_run_of_a_group_goes_without_the_others(
    url: str, held: dict[str, tuple[Run, list[Record]]], tmp_path: Path
) -> None:
    with open_archive(url) as archive:
        bundle.export(archive.db, Ref("run", "run2"), tmp_path / "run.nilo")
    with open_archive(str(tmp_path / "other.sqlite")) as other:
        bundle.import_into(other.db, tmp_path / "run.nilo")
        hold(other, {"run2": held["run2"]})
        assert slug_of(lambda: other.get_group(GROUP.id)) == "group_unknown"


def test_a_file_is_read_as_if_it_were_in_the_archive(
    url: str, held: dict[str, tuple[Run, list[Record]]], tmp_path: Path
) -> None:
    run, group = str(tmp_path / "run.nilo"), str(tmp_path / "group.nilo")
    with open_archive(url) as archive:
        bundle.export(archive.db, RUN, Path(run))
        bundle.export(archive.db, Ref("group", GROUP.id), Path(group))
    with open_archive(str(tmp_path / "other.sqlite")) as other:
        assert other.resolve_either(run) == RUN
        assert other.resolve(run) == "run1"
        assert other.resolve_group(group) == GROUP.id
        assert slug_of(lambda: other.resolve(group)) == "run_is_group"
        assert slug_of(lambda: other.resolve_group(run)) == "group_unknown"
        assert (other.get("run1"), list(other.records("run1"))) == held["run1"]
        assert [one.id for one in other.find(GROUP.id)] == ["run2", "run3"]
        assert other.row("run3").records == 60
        assert other.remarks(RUN).notes == [NOTE]
        assert other.list_runs() == []
        assert slug_of(lambda: other.tag("base", "run1")) == "run_unknown"
        assert _refusal(lambda: other.resolve(str(tmp_path / "none.nilo"))).slug == "file_unreadable"


@pytest.mark.parametrize("version", sorted(path.stem for path in KEPT.glob("v*.sqlite")))
def test_a_file_of_a_former_schema_is_read_and_left_as_it_is(version: str, tmp_path: Path) -> None:
    file = Path(shutil.copy(KEPT / f"{version}.sqlite", tmp_path / "old.nilo"))
    with open_archive(str(tmp_path / "a.sqlite")) as archive:
        assert archive.resolve_group(str(file)) == GROUP.id
        assert len(bundle.import_into(archive.db, file)) == 2
        assert [list(archive.records(run.id)) for run in archive.find(GROUP.id)] == [rows for _, rows in contents()]
    assert file.read_bytes() == (KEPT / f"{version}.sqlite").read_bytes()


def _renamed(name: str) -> str:
    """The statements that give the run of a file another id, everywhere."""
    tables = {"run": "id", "summary_value": "run", "record_segment": "run", "telemetry_segment": "run", "note": "run"}
    return "; ".join(f"UPDATE {table} SET {column} = '{name}'" for table, column in tables.items())


CHANGES: dict[str, tuple[str, str]] = {
    "of a newer schema": ("PRAGMA user_version = 99", "export_newer"),
    "of another program": ("PRAGMA application_id = 7", "export_unreadable"),
    "with a trigger": ("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END", "export_unreadable"),
    "with a view": ("CREATE VIEW v AS SELECT 1", "export_unreadable"),
    "without a segment": ("DELETE FROM record_segment", "export_unreadable"),
    "without its run": ("DELETE FROM run", "export_unreadable"),
    "with another run": ("UPDATE run SET id = 'nobody'", "export_unreadable"),
    "with a path for an id": (_renamed("../../x"), "export_unreadable"),
    "with a word for an id": (_renamed("latest"), "export_unreadable"),
    "with a text for a moment": ("UPDATE run SET started_wall_ns = 'abc'", "export_unreadable"),
    "with another moment than its run": ("UPDATE run SET started_wall_ns = 9e18", "export_unreadable"),
    "with bytes for a service": ("UPDATE run SET service = x'ff'", "export_unreadable"),
    "with bytes for a note": ("UPDATE note SET text = x'ff00'", "export_unreadable"),
    "with an endless note": ("UPDATE note SET text = hex(zeroblob(3000))", "export_unreadable"),
    "without a table": ("DROP TABLE note", "export_unreadable"),
    "of a schema below none": ("PRAGMA user_version = -5", "export_unreadable"),
    "with a run of a newer format": ("UPDATE run SET format = 99", "run_newer"),
}


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    with open_archive(str(tmp_path / "from.sqlite")) as archive:
        put_some(archive)
        bundle.export(archive.db, RUN, tmp_path / "run.nilo")
    return tmp_path / "run.nilo"


@pytest.mark.parametrize(("change", "slug"), CHANGES.values(), ids=CHANGES.keys())
def test_a_file_that_is_not_as_it_was_written_is_refused_whole(
    url: str, exported: Path, change: str, slug: str
) -> None:
    db = sqlite3.connect(exported, isolation_level=None)
    db.executescript(change)
    db.close()
    with open_archive(url) as archive:
        fault = _refusal(lambda: bundle.import_into(archive.db, exported))
        assert (fault.slug, fault.exit_code) == (slug, 3 if slug == "run_newer" else 2)
        assert archive.check() == (0, 0, [])


def test_one_file_that_is_amiss_refuses_those_beside_it(url: str, exported: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.nilo"
    cut.write_bytes(exported.read_bytes()[:20_000])
    with open_archive(url) as archive:
        assert _refusal(lambda: bundle.import_into(archive.db, exported, cut)).slug == "export_unreadable"
        assert archive.check() == (0, 0, [])
        assert len(bundle.import_into(archive.db, exported, exported)) == 2


def test_a_group_that_is_none_is_refused_and_keeps_no_other_from_being_copied(url: str, tmp_path: Path) -> None:
    file, group = tmp_path / "g.nilo", Ref("group", GROUP.id)
    with open_archive(str(tmp_path / "from.sqlite")) as archive:
        put_some(archive)
        bundle.export(archive.db, group, file)
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("UPDATE run_group SET type = 'of tomorrow'")
    db.close()
    with open_archive(url) as archive, open_archive(str(file)) as old:
        assert _refusal(lambda: bundle.import_into(archive.db, file)).slug == "export_unreadable"
        moved = list(everything(old.db, archive.db))
        assert [one.fault and one.fault.slug for one in moved] == [None, None, "group_damaged"]
        assert slug_of(lambda: old.get_group(GROUP.id)) == "group_damaged"


def test_an_export_takes_the_place_of_a_file_alone(exported: Path, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link.nilo"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "behind.nilo")
    with open_archive(str(tmp_path / "from.sqlite")) as archive:
        for place in (pipe, tmp_path, Path()):
            onto = partial(bundle.export, archive.db, RUN, place, force=True)
            assert slug_of(onto) == "file_unwritable"
        bundle.export(archive.db, RUN, link, force=True)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert (tmp_path / "behind.nilo").read_bytes() == exported.read_bytes()


def _refusal(action: Callable[[], object]) -> NiloError:
    with pytest.raises(NiloError) as caught:
        action()
    return caught.value


def test_flipped_bits_are_refused_or_were_of_no_matter(exported: Path, tmp_path: Path) -> None:
    content, random, refused = exported.read_bytes(), Random(1), 0
    with open_archive(str(tmp_path / "a.sqlite")) as archive:
        for _ in range(40):
            spoilt = bytearray(content)
            for _ in range(8):
                spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
            exported.write_bytes(spoilt)
            try:
                bundle.import_into(archive.db, exported)
            except DataError:
                refused += 1
            else:
                assert list(archive.records("run1")) == list(make_records(20))
                archive.remove("run1")
            assert archive.check() == (0, 0, [])
    assert refused > 5


def test_no_half_file_stays_where_an_export_fails(url: str, past: Past, tmp_path: Path) -> None:
    with open_archive(url) as archive:
        archive.put(make_run("run1"), make_records(20))
        past("UPDATE run SET records = 21")
        (tmp_path / "out").mkdir()
        assert slug_of(lambda: bundle.export(archive.db, RUN, tmp_path / "out" / "run.nilo")) == "run_damaged"
        assert slug_of(lambda: bundle.export(archive.db, RUN, tmp_path / "no" / "run.nilo")) == "file_unwritable"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.fixture(params=["sqlite", ON_SERVER])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a second archive may be made."""
    if request.param == "sqlite":
        return str(tmp_path / "other.sqlite")
    running: Server = request.getfixturevalue("server")
    return running.fresh()


def test_an_archive_is_copied_whole(url: str, other_url: str, held: dict[str, tuple[Run, list[Record]]]) -> None:
    with open_archive(url) as old, open_archive(other_url) as new:
        cut_off = list(islice(everything(old.db, new.db), 2))
        assert [(one.of.id, one.new) for one in cut_off] == [("run1", True), ("run2", True)]
        for again in (False, True):
            told = [(one.of.id, one.new) for one in everything(old.db, new.db)]
            assert told == [("run1", False), ("run2", False), ("run3", not again), (GROUP.id, not again)]
        hold(new, held)
        assert new.get_group(GROUP.id) == GROUP
        for of in (RUN, Ref("group", GROUP.id)):
            assert new.remarks(of) == old.remarks(of)
        assert [row.id for row in new.list_runs(only=Filter(tag="whole"))] == ["run2", "run3"]


def test_a_copy_leaves_tags_that_are_taken_and_goes_on_past_damage(
    url: str, held: dict[str, tuple[Run, list[Record]]], past: Past, tmp_path: Path
) -> None:
    past("DELETE FROM record_segment WHERE run = 'run2'")
    with open_archive(url) as old, open_archive(str(tmp_path / "other.sqlite")) as new:
        new.put(make_run("theirs"), [make_record(0)])
        new.tag("base", "theirs")
        moved = {one.of.id: one for one in everything(old.db, new.db)}
        fault = moved["run2"].fault
        assert isinstance(fault, ArchiveError)
        assert (fault.slug, fault.params["run"]) == ("run_damaged", "run2")
        assert moved["run1"].taken == ("base",)
        assert new.resolve("base") == "theirs"
        hold(new, {key: held[key] for key in ("run1", "run3")} | {"theirs": (make_run("theirs"), [make_record(0)])})


def test_what_is_copied_can_be_searched_for(url: str, other_url: str) -> None:
    with open_archive(url) as old, open_archive(other_url) as new:
        old.put(make_run("run1", spec=make_spec(service="chat")), [])
        assert [one.new for one in everything(old.db, new.db)] == [True]
        assert [row.id for row in new.list_runs(only=Filter(service="chat", model="lla"))] == ["run1"]
