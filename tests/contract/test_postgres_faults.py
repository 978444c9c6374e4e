"""The archive on a server when that is not there, goes away, refuses, is full or rots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import psycopg
import pytest
from tests.contract.cluster import Server
from tests.unit.archive.samples import make_record, make_records, make_run

from nilometer.archive import postgres
from nilometer.archive.spool import Part, Spool
from nilometer.archive.store import open_archive
from nilometer.core.errors import NiloError
from nilometer.core.record import Frames, Record

pytestmark = pytest.mark.xdist_group("postgres")
RUN_ID = make_run().id


def fault_of(action: Callable[[], object]) -> NiloError:
    with pytest.raises(NiloError) as caught:
        action()
    return caught.value


def noisy_records(n: int) -> Iterator[Record]:
    """Records that nothing makes smaller: 160 kB each."""
    return (make_record(seq, frames=Frames(user=Random(seq).randbytes(160_000))) for seq in range(n))


@pytest.fixture
def filled(server: Server) -> str:
    url = server.fresh()
    with open_archive(url) as archive:
        archive.put(make_run(), make_records(30))
    return url


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("geheim%2F%C3%9F", "geraten"),
        ("geheim%2F%C3%9F", "gera?ten"),
        ("/postgres", "/nowhere"),
        ("127.0.0.1:", "127.0.0.1:1"),
        ("127.0.0.1", "no.invalid"),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(server: Server, right: str, wrong: str) -> None:
    fault = fault_of(lambda: open_archive(server.url.replace(right, wrong)))
    assert (fault.slug, fault.exit_code) == ("archive_unreachable", 3)
    told = str(fault)
    assert "\n" not in told
    assert "geheim" not in told
    assert "gera" not in told
    assert "postgresql://***@" in told


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nilo:ge/heim@host/db",
        "postgresql://host:geheim/db",
        "postgresql://nilo:geheim@host/db?nonsense=1",
        "postgres://nilo:geheim@host:port/db",
    ],
)
def test_an_address_that_cannot_be_is_told_without_the_password(url: str) -> None:
    fault = fault_of(lambda: open_archive(url))
    assert (fault.slug, fault.exit_code) == ("archive_server_url", 2)
    assert "heim" not in str(fault).replace("host:geheim", "")  # where a port stands is no secret


def test_who_only_reads_makes_no_archive(server: Server) -> None:
    url = server.fresh()
    assert fault_of(lambda: open_archive(url, must_exist=True)).slug == "archive_missing"
    assert server.sql("SELECT count(*) FROM pg_class WHERE relname = 'run' AND pg_table_is_visible(oid)", url) == [(0,)]


def test_another_programs_tables_are_refused_and_left_alone(server: Server) -> None:
    url = server.fresh()
    server.sql("CREATE TABLE run (kilometres INT)", url)
    assert fault_of(lambda: open_archive(url)).slug == "archive_unreadable"
    assert server.sql("SELECT to_regclass('summary_value')", url) == [(None,)]


def test_two_archives_share_a_database(server: Server, filled: str) -> None:
    with open_archive(server.fresh()) as other, open_archive(filled) as first:
        other.put(make_run("other"), [])
        assert [row.id for row in other.list_runs()] == ["other"]
        assert [row.id for row in first.list_runs()] == [RUN_ID]


def cut_within_put(server: Server, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do it when two parts of the run are written."""
    kept = Spool.parts

    def parts(spool: Spool) -> Iterator[Part]:
        for i, part in enumerate(kept(spool)):
            if i == 2:
                action()
            yield part

    monkeypatch.setattr("nilometer.archive.codec.SEGMENT_WEIGHT_BYTES", 400_000)
    monkeypatch.setattr(Spool, "parts", parts)


def test_a_connection_cut_in_the_midst_leaves_nothing_half_written(
    server: Server, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_archive(filled) as archive:
        with monkeypatch.context() as now:
            cut_within_put(server, now, server.cut_all)
            fault = fault_of(lambda: archive.put(make_run("other"), noisy_records(12)))
        assert (fault.slug, fault.exit_code) == ("archive_lost", 3)
        assert [row.id for row in archive.list_runs()] == [RUN_ID]
        archive.put(make_run("other"), noisy_records(2))
        assert archive.check() == (2, 32, [])


def test_a_connection_cut_while_it_lay_idle_is_made_anew(server: Server, filled: str) -> None:
    def cut() -> Iterator[Record]:
        yield make_record(0)
        server.cut_all()

    with open_archive(filled) as archive:
        archive.put(make_run("other"), cut())
        server.cut_all()
        assert archive.check() == (2, 31, [])


def test_a_server_that_ends_in_the_midst_leaves_a_whole_archive(
    server: Server, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_archive(filled) as archive:
        try:
            with monkeypatch.context() as now:
                cut_within_put(server, now, server.stop)
                assert fault_of(lambda: archive.put(make_run("other"), noisy_records(12))).slug == "archive_lost"
            assert fault_of(archive.list_runs).slug == "archive_unreachable"
        finally:
            server.start()
        assert archive.check() == (1, 30, [])


def test_a_lock_held_too_long_is_told(server: Server, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_BUSY", "SET LOCAL lock_timeout = '50ms'")
    with psycopg.connect(filled) as holder, open_archive(filled) as archive:
        holder.execute("LOCK TABLE run IN EXCLUSIVE MODE")
        assert fault_of(lambda: archive.put(make_run("other"), [])).slug == "archive_locked"
        assert archive.get(RUN_ID) == make_run()
        holder.rollback()
        archive.put(make_run("other"), [])


def test_who_may_only_read_can_read(server: Server, filled: str) -> None:
    (schema,) = server.sql("SELECT current_schema()", filled)[0]
    server.sql("CREATE ROLE reader LOGIN PASSWORD 'x'")
    server.sql(f"GRANT USAGE ON SCHEMA {schema} TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    with open_archive(filled.replace("nilo:geheim%2F%C3%9F", "reader:x"), must_exist=True) as archive:
        assert archive.get(RUN_ID) == make_run()
        assert fault_of(lambda: archive.put(make_run("other"), [])).slug == "archive_unwritable"


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON record_segment FOR EACH ROW EXECUTE FUNCTION full_disk()
"""


def test_no_room_leaves_nothing_half_written(server: Server, filled: str) -> None:
    server.sql(FULL, filled)
    with open_archive(filled) as archive:
        assert fault_of(lambda: archive.put(make_run("other"), make_records(3))).slug == "archive_full"
        assert archive.check() == (1, 30, [])


def test_text_that_this_server_cannot_hold_is_refused(filled: str) -> None:
    with open_archive(filled) as archive:
        assert fault_of(lambda: archive.put(make_run("other", level="a\0b"), [])).slug == "run_unstorable"
        assert archive.check() == (1, 30, [])


def test_a_rotten_page_is_found_and_the_other_runs_still_read(server: Server, filled: str) -> None:
    with open_archive(filled) as archive:
        archive.put(make_run("other"), noisy_records(10))
    where = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'record_segment'::regclass"
    (path,) = server.sql(where, filled)[0]
    server.sql("CHECKPOINT")
    server.stop()
    with (server.folder / "data" / path).open("r+b") as file:
        file.seek(file.seek(0, 2) // 2 // 8192 * 8192)
        file.write(b"\xff" * 8192)
    server.start()
    with open_archive(filled) as archive:
        assert [(fault.slug, fault.params["run"]) for fault in archive.check().problems] == [("run_damaged", "other")]
        assert list(archive.records(RUN_ID)) == list(make_records(30))
