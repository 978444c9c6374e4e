"""A file in memory: its shape, its objects, and what is refused with which line."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from nilometer.core.errors import DataError
from nilometer.sources.results import opened as module
from nilometer.sources.results.opened import Opened


def opened(folder: Path, data: bytes) -> Opened:
    path = folder / "x.json"
    path.write_bytes(data)
    return Opened(path)


def refused(folder: Path, data: bytes) -> DataError:
    with pytest.raises(DataError) as fault:
        list(opened(folder, data).objects())
    return fault.value


@pytest.mark.parametrize(
    ("data", "shape", "names"),
    [
        (b'{"a": 1}', "object", {"a"}),
        (b'\xef\xbb\xbf{"a": 1}\n', "object", {"a"}),
        (b'{\n "a": 1,\n "b": {}\n}\n', "object", {"a", "b"}),
        (b'{"a": 1}\n\n{"b": 2}\n', "lines", {"a"}),
        (b'[{"a": 1}, {"b": 2}]', "array", {"a"}),
        (b"[]", "array", set()),
        (b"a,b\n1,2\n", "text", set()),
        (module.SQLITE + b"\1" * 100, "sqlite", set()),
    ],
)
def test_the_shape_and_the_names_of_the_first_object(tmp_path: Path, data: bytes, shape: str, names: set[str]) -> None:
    found = opened(tmp_path, data)
    assert (str(found.shape), set(found.names)) == (shape, names)


def test_lines_have_numbers_and_blank_ones_count(tmp_path: Path) -> None:
    assert [line for line, _ in opened(tmp_path, b'{"a": 1}\n\n{"a": 2}\n').objects()] == [1, 3]


def test_numbers_that_are_none_are_null_and_infinities_are_named(tmp_path: Path) -> None:
    """Python writes them bare; within a text they are a text."""
    text = b'{"a": NaN, "b": Infinity, "c": -Infinity, "d": "NaN, \\"Infinity", "e": {"f": [NaN]}}'
    ((_, members),) = opened(tmp_path, text).objects()
    told = {name: msgspec.json.decode(raw) for name, raw in members.items()}
    assert told == {"a": None, "b": "inf", "c": "-inf", "d": 'NaN, "Infinity', "e": {"f": [None]}}


@pytest.mark.parametrize(
    ("data", "slug", "line"),
    [
        (b"", "result_empty", None),
        (b" \n ", "result_empty", None),
        (b'{"a": 1, "b"', "result_cut_off", 1),
        (b'{\n "a": 1,\n "b": [1, 2', "result_cut_off", 3),
        (b'{"a": 1}\n{"a": 2', "result_cut_off", 2),
        (b'{"a": 1}\n{"a": x}\n', "result_broken", 2),
        (b'{\n "a": 1,\n "b": x\n}', "result_broken", 3),
        (b'{"a": \xff}', "result_broken", 1),
        (b"[1, 2]", "result_broken", 1),
        (b"\xff\xfe{\0", "file_no_text", None),
        (b'{"a":' + b"[" * 5000, "result_broken", 1),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, data: bytes, slug: str, line: int | None) -> None:
    fault = refused(tmp_path, data)
    assert (fault.exit_code, fault.slug, fault.params.get("line")) == (2, slug, line)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file_unreadable"):
        Opened(tmp_path / "none.json")


def test_a_packed_file_is_unpacked_within_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b'{"a": "' + b"x" * 5000 + b'"}')
    assert opened(tmp_path, packed).names == {"a"}
    monkeypatch.setattr(module, "MOST_BYTES", 4000)
    fault = refused(tmp_path, packed)
    assert (fault.slug, fault.params["limit_bytes"]) == ("result_too_large", 4000)


def test_a_file_beside_it_is_read_if_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"b": 1}')
    (tmp_path / "bad.json").write_text("{")
    found = opened(tmp_path, b'{"a": 1}')
    good = found.beside("good.json")
    assert good is not None and good.names == {"b"}
    assert (found.beside("bad.json"), found.beside("none.json")) == (None, None)
