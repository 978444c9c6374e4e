"""A Run as a row and back: one truth for each field, nothing lost."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from nilometer.archive import rows
from nilometer.core.run import FORMAT, Run
from nilometer.core.summary import Window

from .samples import STARTED_WALL_NS, make_run, make_spec, make_summary


def back_and_forth(run: Run) -> Run:
    return rows.to_run(rows.from_run(run), rows.health_columns(run.health))


def test_every_field_of_a_run_has_its_column() -> None:
    assert {*rows.SAME, *rows.RENAMED, *rows.JSON} == set(Run.__struct_fields__)


def test_a_run_comes_back() -> None:
    run = make_run(group="g", role="a", level="16", order=2, parent="p", condition_hash="h", origin="simulated")
    assert back_and_forth(run) == run


def test_columns_to_sort_and_search_by_are_filled() -> None:
    row = rows.from_run(make_run(spec=make_spec(service="chat")))
    assert (row["started_wall_ns"], row["service"]) == (STARTED_WALL_NS, "chat")


def test_findings_are_stored_in_the_words_of_the_contract() -> None:
    (finding,) = json.loads(rows.from_run(make_run())["findings"])
    assert finding["class"] == "validity"


def test_packed_health_stays_out_of_the_text() -> None:
    health = json.loads(rows.from_run(make_run())["health"])
    assert health["at"] == ""
    assert health["wall_steps"] == 1


def test_a_newer_format_is_told_apart() -> None:
    row = rows.from_run(make_run()) | {"format": FORMAT + 1}
    with pytest.raises(rows.NewerFormatError) as caught:
        rows.to_run(row, {})
    assert (caught.value.found, caught.value.known) == (FORMAT + 1, FORMAT)


def test_a_required_figure_that_is_no_number_is_refused() -> None:
    summary = msgspec.structs.replace(make_summary(), window=Window(start_s=math.nan, end_s=1.0, rule="auto"))
    with pytest.raises(msgspec.ValidationError):
        rows.from_run(make_run(summary=summary))


def test_unknown_health_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="heat"):
        rows.to_run(rows.from_run(make_run()), {"heat": b""})


def test_what_is_searched_by_is_read_from_a_spec_of_a_later_version() -> None:
    spec = {
        "target": "t",
        "new": 1,
        "load": {"concurrency": 4, "rate_per_s": None, "new": 2},
        "labels": {"service": "chat", "quantisation": "q4_0", "extra": {}},
    }
    assert rows.searched(json.dumps(spec)) == {
        "target": "t",
        "model": None,
        "service": "chat",
        "service_version": None,
        "model_version": None,
        "quantisation": "q4_0",
        "concurrency": 4,
        "rate_per_s": None,
        "arrivals": None,
    }


def test_a_spec_that_cannot_be_read_is_searched_by_nothing() -> None:
    assert set(rows.searched("{").values()) == {None}
    assert set(rows.searched("{")) == set(rows.SEARCHED)
