"""The workload file: read as it was written, and refused where anything in it was touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nilometer.core.errors import NiloError
from nilometer.sources.workload_file import read_head, read_workload, write_workload
from nilometer.workload.entry import Part, Row
from nilometer.workload.traffic import recorded_s

ROWS = [
    Row(offset_s=0.0, input_tokens=3, output_tokens=4, parts=(Part("user", "你好 \n x"),), session="s"),
    Row(offset_s=1.25, input_tokens=3, hash_ids=(0, 1), turns=2, guessed_input=True),
    Row(),
]
FACTS = {"source_format": "auto", "text": "kept", "ks": {"input": 0.01}, "representative": True, "seed": 3}


def _write(folder: Path) -> Path:
    path = folder / "mix.toml"
    write_workload(path, ROWS, **FACTS)
    return path


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = read_workload(_write(tmp_path))
    assert list(found.rows) == ROWS
    assert (found.head.rows, found.head.name, found.head.data, found.head.seed) == (3, "mix", "mix.jsonl", 3)
    assert found.hash == found.head.sha256
    assert len(found.hash) == 64
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mix.jsonl", "mix.toml"]


def test_rows_out_of_order_are_read_in_order_of_time(tmp_path: Path) -> None:
    at = [7.0, 5.0, 9.5, 5.0]
    rows = [Row(offset_s=offset, input_tokens=number) for number, offset in enumerate(at)]
    write_workload(tmp_path / "mix.toml", rows, **FACTS)
    found = read_workload(tmp_path / "mix.toml")
    assert [(row.offset_s, row.input_tokens) for row in found.rows] == [(5.0, 1), (5.0, 3), (7.0, 0), (9.5, 2)]
    assert recorded_s(found, 1.0) == (0.0, 0.0, 2.0, 4.5)


def test_the_same_rows_have_the_same_hash(tmp_path: Path) -> None:
    one = write_workload(tmp_path / "a.toml", ROWS, **FACTS)
    other = write_workload(tmp_path / "b.toml", ROWS, **FACTS)
    changed = write_workload(tmp_path / "c.toml", ROWS[:2], **FACTS)
    assert one.sha256 == other.sha256 != changed.sha256


def _slug(path: Path) -> str:
    with pytest.raises(NiloError) as caught:
        read_workload(path)
    assert caught.value.exit_code == 2
    return caught.value.slug


def test_data_that_changed_are_refused(tmp_path: Path) -> None:
    path = _write(tmp_path)
    data = tmp_path / "mix.jsonl"
    data.write_bytes(data.read_bytes().replace(b"1.25", b"1.26"))
    assert _slug(path) == "workload_changed"
    data.unlink()
    assert _slug(path) == "file_unreadable"


@pytest.mark.parametrize(
    ("old", "new", "slug"),
    [
        ("nilometer_workload = 1", "nilometer_workload = 2", "workload_newer"),
        ("nilometer_workload = 1", "", "workload_wrong"),
        ("rows = 3", "rows = 4", "workload_wrong"),
        ("rows = 3", "rows = 'x'", "workload_wrong"),
        ("rows = 3", "rows = 3\nspeed = 1", "workload_wrong"),
        ('data = "mix.jsonl"', 'data = "../mix.jsonl"', "workload_wrong"),
        ('data = "mix.jsonl"', 'data = "', "workload_wrong"),
    ],
)
def test_a_head_that_was_touched_is_refused(old: str, new: str, slug: str, tmp_path: Path) -> None:
    path = _write(tmp_path)
    path.write_text(path.read_text().replace(old, new))
    assert _slug(path) == slug


@pytest.mark.parametrize(
    ("line", "slug"),
    [
        (b'{"input_tokens":-1}', "length_wrong"),
        (b'{"turns":-1}', "length_wrong"),
        (b'{"parts":[{"role":"user","tokens":-1}]}', "length_wrong"),
        (b'{"hash_ids":[99999999999999999999]}', "blocks_wrong"),
        (b'{"offset_s":-1}', "stamp_wrong"),
        (b'{"offset_s":1e300}', "stamp_wrong"),
        (b'{"speed":1}', "field_wrong"),
        (b'{"input_tokens":', "json_broken"),
    ],
)
def test_rows_that_cannot_be_are_refused_though_the_hash_holds(line: bytes, slug: str, tmp_path: Path) -> None:
    path = _write(tmp_path)
    head = read_head(path)
    data = tmp_path / "mix.jsonl"
    data.write_bytes(data.read_bytes().splitlines(keepends=True)[0] + line + b"\n")
    import hashlib

    changed = msgspec.structs.replace(head, sha256=hashlib.sha256(data.read_bytes()).hexdigest(), rows=2)
    path.write_text(path.read_text().replace(head.sha256, changed.sha256).replace("rows = 3", "rows = 2"))
    with pytest.raises(NiloError) as caught:
        read_workload(path)
    assert (caught.value.slug, caught.value.params["line"]) == (slug, 2)


def test_nothing_is_left_where_it_could_not_be_written(tmp_path: Path) -> None:
    def rows() -> object:
        yield ROWS[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_workload(tmp_path / "mix.toml", rows(), **FACTS)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NiloError) as caught:
        write_workload(tmp_path / "none" / "mix.toml", ROWS, **FACTS)
    assert caught.value.slug == "file_unwritable"
    with pytest.raises(NiloError) as caught:
        write_workload(tmp_path / "mix.json", ROWS, **FACTS)
    assert caught.value.slug == "workload_name"


def test_a_head_without_an_end_or_of_no_such_size_is_not_read_to_its_end(tmp_path: Path) -> None:
    assert _slug(Path("/dev/zero")) == "file_piped"
    long, deep = tmp_path / "long.toml", tmp_path / "deep.toml"
    long.write_bytes(b"#" * (2 << 20))
    deep.write_text("a = " + "[" * 50_000)
    assert (_slug(long), _slug(deep)) == ("workload_wrong", "workload_wrong")
    path = _write(tmp_path)
    data = path.with_name(read_head(path).data)
    data.unlink()
    data.symlink_to("/dev/zero")
    assert _slug(path) == "file_piped"
