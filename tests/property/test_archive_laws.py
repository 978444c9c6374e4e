"""Laws of the archive: what goes in comes out, for every Record, Run and stretch of bytes."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nilometer.archive import codec, series
from nilometer.archive.columns import DamagedError, fold, ints, unfold
from nilometer.archive.seal import seal_run
from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.record import Frames, Record
from nilometer.core.run import FORMAT, Run

INT64 = st.integers(-(2**63), 2**63 - 1)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=8),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    NoneType: st.none(),
    Any: st.recursive(st.none() | st.booleans() | INT64 | st.text(max_size=4), st.lists, max_leaves=4),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, structs field by field."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs_of(kind)
    arguments = get_args(kind)
    match get_origin(kind):
        case origin if origin is Literal:
            return st.sampled_from(arguments)
        case origin if origin in (Union, UnionType):
            return st.one_of([values_of(argument) for argument in arguments])
        case origin if origin in (list, tuple):
            return st.lists(values_of(arguments[0]), max_size=3).map(origin)
        case origin if origin is dict:
            return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    raise NotImplementedError(kind)


def structs_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = {name: values_of(hint) for name, hint in get_type_hints(kind).items()}
    return st.fixed_dictionaries(fields).map(lambda given_fields: kind(**given_fields))


@st.composite
def regular_frames(draw: st.DrawFn) -> Frames:
    """Every column empty or of one length, stamps anywhere in 64 bits or near each other."""
    n = draw(st.integers(0, 6))
    stamps = INT64 | st.integers(10**9, 10**9 + 10**6) | st.just(-1)

    def column(code: str, numbers: st.SearchStrategy[int]) -> bytes:
        return array(code, draw(st.lists(numbers, min_size=n, max_size=n))).tobytes() if draw(st.booleans()) else b""

    user = array("q", draw(st.lists(stamps, min_size=n, max_size=n))).tobytes()
    tokens = column("i", st.integers(-1, 2**31 - 1))
    return Frames(user=user, kernel=column("q", stamps), tokens=tokens, flags=column("B", st.integers(0, 255)))


def records_of(frames: st.SearchStrategy[Frames]) -> st.SearchStrategy[list[Record]]:
    """Most fields of most records at their defaults, as in life; each field set somewhere."""
    hints = get_type_hints(Record)
    required = {name: values_of(hints[name]) for name in ("id", "seq", "phase", "outcome")}
    optional = {name: values_of(hint) for name, hint in hints.items() if name not in (*required, "frames")}
    optional["frames"] = frames
    one = st.fixed_dictionaries(required, optional=optional).map(lambda fields: Record(**fields))
    return st.lists(one, min_size=1, max_size=5)


@settings(deadline=None)
@given(records_of(regular_frames()))
def test_records_come_back_through_columns(records: list[Record]) -> None:
    name, blob = codec.encode(records)
    assert name == codec.COLUMNS
    assert codec.decode(name, blob) == records


@settings(deadline=None)
@given(records_of(structs_of(Frames)))
def test_records_with_odd_frames_come_back(records: list[Record]) -> None:
    assert codec.decode(*codec.encode(records)) == records


@settings(deadline=None)
@given(st.lists(INT64, max_size=50))
def test_numbers_come_back_through_planes(numbers: list[int]) -> None:
    assert unfold(fold(ints(numbers))).tolist() == numbers


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["at", "cpu", "lag"]), st.binary(max_size=64)))
def test_series_come_back(columns: dict[str, bytes]) -> None:
    kept = {name: column for name, column in columns.items() if column}
    assert series.decode({series.SERIES}, series.encode(columns)) == kept


@settings(deadline=None)
@given(records_of(regular_frames()), st.data())
def test_rotten_bytes_are_refused_or_harmless(records: list[Record], data: st.DataObject) -> None:
    name, blob = codec.encode(records)
    rotten = bytearray(blob)
    for _ in range(data.draw(st.integers(1, 3))):
        rotten[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = codec.decode(name, bytes(rotten))
    except DamagedError:
        return
    assert found == records


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteArchive]:
    path: Path = tmp_path_factory.mktemp("archive") / "archive.sqlite"
    with SqliteArchive(path) as opened:
        yield opened
        checked = opened.check()
        assert checked.problems == []
        assert checked.runs == len(opened.list_runs(10_000)) > 0


_numbers = itertools.count()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(structs_of(Run), records_of(regular_frames()))
def test_a_run_comes_back(archive: SqliteArchive, run: Run, records: list[Record]) -> None:
    run = seal_run(replace(run, id=f"{next(_numbers):012}", format=FORMAT))
    archive.put(run, records)
    assert archive.get(run.id) == run
    assert list(archive.records(run.id)) == records
    assert seal_run(run) == run
