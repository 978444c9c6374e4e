"""Whatever a file holds: rows, problems with lines, or one refusal of ours. Never anything else."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sources.files import EXAMPLES

from nilometer.core.errors import NiloError
from nilometer.sources.mapped import read_map
from nilometer.sources.reading import Reading
from nilometer.sources.workload_file import read_workload, write_workload
from nilometer.text.i18n import Catalogue
from nilometer.workload.privacy import rows as rows_of
from nilometer.workload.sample import Gatherer, chains, choose, distances
from nilometer.workload.shape import Measure

NOW_NS = 1_790_000_000_000_000_000
PIECES = [
    b"",
    b'"',
    b"\n",
    b"\r",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\0",
    b"\xff",
    b"-",
    b"NaN",
    b"1e999",
    b"null",
    b" ",
]
PIECES += [
    b"9" * 30,
    b"true",
    b"\xf0\x9f",
    b"\\ud800",
    b"2024-13-45",
    b"\xef\xbb\xbf",
    b"[[[[" * 200,
    b"\x1f\x8b",
    b"-0",
    b"0.5",
]
WORDS = Catalogue("en")
MAP = "at=Timestamp:ms,input_tokens=Request tokens,output_tokens=Response tokens,prompt=prompt"

quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """The file with up to four places cut, doubled or overwritten."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(whole)))
        stop = min(len(whole), start + draw(st.integers(0, 40)))
        piece = draw(st.sampled_from(PIECES) | st.just(whole[start:stop] * 2) | st.binary(max_size=6))
        whole = whole[:start] + piece + whole[stop:]
    return whole


def _held(path: Path, data: bytes, name: str | None = None, the_map: str | None = None) -> None:
    """Everything a command does with a file, but for writing."""
    path.write_bytes(data)
    try:
        reading = Reading(path, name=name, the_map=None if the_map is None else read_map(the_map), now_ns=NOW_NS)
        measure, gatherer = Measure(), Gatherer()
        for batch in reading.batches():
            measure.add(batch)
            gatherer.add(batch)
    except NiloError as refused:
        assert refused.exit_code == 2
        WORDS.say(f"error.{refused.slug}.what", **refused.params)
        return
    unread = reading.records - reading.usable - sum(reading.skipped.values())
    assert reading.problem_count - unread in (0, 1)  # that an array never ends is no row's fault
    lines = len(re.split(rb"\n", data)) + 1
    for problem in reading.problems:
        assert 1 <= problem.line <= lines
        assert WORDS.say(f"error.{problem.slug}.what", **problem.error(path).params)
    measure.shape()
    made = path.with_name("made.toml")
    entries = (entry for batch in reading.batches() for entry in batch.rows())
    write_workload(made, map(rows_of("kept", measure.least_ns), entries), source_format="x", text="kept")
    assert len(read_workload(made).rows) == reading.usable
    if reading.usable:
        rows = choose(gatherer.pool(), 2, 0)
        found = distances(gatherer.pool(), measure.margins(), rows, chains(rows, 64), 64)
        assert all(0 <= distance <= 1 for distance in found.values())


@pytest.mark.parametrize("name", list(EXAMPLES))
@given(data=st.data())
@quickly
def test_a_file_that_was_touched(name: str, data: st.DataObject, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    text = data.draw(mutated(example.text.encode()))
    _held(tmp_path / example.name, text, name if data.draw(st.booleans()) else None)


@pytest.mark.parametrize("name", list(EXAMPLES))
@given(data=st.data())
@settings(quickly, max_examples=15)
def test_any_file_read_as_this_format(name: str, data: st.DataObject, tmp_path: Path) -> None:
    other = data.draw(st.sampled_from([each.text.encode() for each in EXAMPLES.values()]) | st.binary(max_size=60))
    _held(tmp_path / data.draw(st.sampled_from(["x.jsonl", "x.csv", "x.txt", "x"])), other, name)


@given(data=st.data())
@quickly
def test_any_file_read_by_a_map(data: st.DataObject, tmp_path: Path) -> None:
    example = EXAMPLES[data.draw(st.sampled_from(["burstgpt", "vllm-custom"]))]
    _held(tmp_path / example.name, data.draw(mutated(example.text.encode())), the_map=MAP)


@given(data=st.data())
@quickly
def test_a_packed_file_that_was_touched(data: st.DataObject, tmp_path: Path) -> None:
    packed = gzip.compress(EXAMPLES["mooncake"].text.encode(), mtime=0)
    _held(tmp_path / "x.jsonl.gz", data.draw(mutated(packed)))
