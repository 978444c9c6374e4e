"""A workload file says what its source says; a sample of any source keeps its margins or says that it does not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sources.files import EXAMPLES, write

from nilometer.sources.reading import Reading
from nilometer.sources.workload_file import read_workload, write_workload
from nilometer.workload.entry import Batch, Part, Row, in_order
from nilometer.workload.privacy import Text, rows
from nilometer.workload.sample import Gatherer, chains, choose, distances
from nilometer.workload.shape import Measure, Shape, counted, ks

quickly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
tokens = st.none() | st.integers(0, 1_000_000_000)
parts = st.lists(st.builds(Part, st.sampled_from(["user", "assistant"]), st.none() | st.text(), tokens)).map(tuple)
some_rows = st.lists(
    st.builds(
        Row,
        offset_s=st.none() | st.floats(0, 1e9),
        input_tokens=tokens,
        output_tokens=tokens,
        turns=st.integers(1, 100),
        parts=parts,
        hash_ids=st.none() | st.lists(st.integers(0, 1 << 60)).map(tuple),
        session=st.none() | st.text(),
        guessed_input=st.booleans(),
    ),
    max_size=8,
)


@given(some_rows)
@quickly
def test_rows_are_read_as_they_were_written(tmp_path: Path, found: list[Row]) -> None:
    path = tmp_path / "x.toml"
    head = write_workload(path, found, source_format="auto", text="kept")
    workload = read_workload(path)
    assert (list(workload.rows), workload.head) == (list(in_order(found, lambda row: row.offset_s)), head)


def _shape(reading: Reading) -> tuple[Shape, int | None]:
    measure = Measure()
    for batch in reading.batches():
        measure.add(batch)
    return measure.shape(), measure.least_ns


@pytest.mark.parametrize("text", ["kept", "redacted", "lengths"])
@pytest.mark.parametrize("name", list(EXAMPLES))
def test_every_source_has_the_same_shape_as_a_workload_file(name: str, text: Text, tmp_path: Path) -> None:
    source = Reading(write(tmp_path, name))
    shape, first_ns = _shape(source)
    entries = [entry for batch in source.batches() for entry in batch.rows()]
    path = tmp_path / "made.toml"
    facts = {"source_format": name, "block_tokens": source.format.block_tokens}
    write_workload(path, map(rows(text, first_ns), entries), text=text, **facts)
    again = Reading(path)
    made, _ = _shape(again)
    assert (again.usable, again.problems) == (source.usable, [])
    near = msgspec.structs.replace
    assert made.arrivals.span_s == pytest.approx(shape.arrivals.span_s, abs=1e-6)
    assert made.arrivals.gap_cv == pytest.approx(shape.arrivals.gap_cv, abs=1e-5)
    assert near(made, arrivals=shape.arrivals) == shape
    assert (again.guessed_input, again.guessed_output) == (source.guessed_input, source.guessed_output)


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 500), st.integers(1, 4)), min_size=1, max_size=300),
    st.integers(1, 60),
    st.integers(0, 5),
)
@quickly
def test_a_sample_is_of_its_source_and_its_distances_are_true(
    found: list[tuple[int, int, int]], count: int, seed: int
) -> None:
    asked, answered, turns = (np.array(column) for column in zip(*found, strict=True))
    place = np.arange(len(found))
    batch = Batch(place, place, asked, answered, turns, np.zeros_like(place), place)
    gatherer, measure = Gatherer(), Measure()
    gatherer.add(batch)
    measure.add(batch)
    pool = gatherer.pool()
    rows_ = choose(pool, count, seed)
    chosen = rows_.line.tolist()
    assert len(chosen) == len(set(chosen)) == min(count, len(found))
    assert [found[at] for at in chosen] == [
        tuple(row) for row in zip(*(column.tolist() for column in rows_[3:6]), strict=True)
    ]
    told = distances(pool, measure.margins(), rows_, chains(rows_, 64), 64)
    for name, column in (("input", 0), ("output", 1), ("turns", 2)):
        right = ks(counted(row[column] for row in found), counted(found[at][column] for at in chosen))
        assert told[name] == pytest.approx(right)


@given(st.integers(0, 1000), st.sampled_from([0.3, 1.0, 2.0]), st.floats(-0.9, 0.9))
@settings(quickly, max_examples=20)
def test_two_hundred_of_any_log_normal_mix_keep_both_margins(seed: int, sigma: float, correlation: float) -> None:
    random = np.random.default_rng(seed)
    pair = random.multivariate_normal([6, 4], [[sigma**2, correlation * sigma], [correlation * sigma, 1]], 5_000)
    asked, answered = np.maximum(np.exp(pair), 1).astype(np.int64).T
    place = np.arange(5_000)
    batch = Batch(place, place, asked, answered, np.ones_like(place), np.full_like(place, -1), np.full_like(place, -1))
    gatherer, measure = Gatherer(), Measure()
    gatherer.add(batch)
    measure.add(batch)
    rows_ = choose(gatherer.pool(), 200, seed)
    told = distances(gatherer.pool(), measure.margins(), rows_, chains(rows_, 64), 64)
    assert max(told.values()) <= 0.05
