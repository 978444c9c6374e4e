"""Figures and requests as comma-separated values, read back by the standard reader."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.metrics.made import answered, at, failed, phases

from nilometer.core.errors import SpecError
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.report import csv_rows, parquet

from .reported import run_of


def read(lines: Iterable[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(lines), newline="")))


@pytest.fixture
def pair() -> tuple[Run, list[Record]]:
    records = [
        answered(12.0, [12.5, 13.0], 13.5, server_request_id="=1+1", finish_reason='a,"b"\nc'),
        failed(13.0, 14.0, status=503, error_detail="@no slot"),
    ]
    return run_of(records, phases(10, 30, 40)), records


def test_every_figure_by_the_names_of_the_machine_form(pair: tuple[Run, list[Record]]) -> None:
    rows = {
        (row["scope"], row["metric"], row["stat"]): (row["value"], row["unit"])
        for row in read(csv_rows.figure_lines([pair[0]]))
    }
    assert rows["latency_ms", "ttft", "p95"] == ("500.0", "ms")
    assert rows["latency_ms", "ttft", "n"] == ("1.0", "samples")
    assert rows["requests", "error", "value"] == ("1.0", "requests")
    assert rows["window", "end_s", "value"][1] == "s"
    assert rows["throughput", "output_tokens_per_s", "value"][1] == "tokens/s"
    assert ("latency_ms", "start_lag", "p95") not in rows
    two = read(csv_rows.figure_lines([pair[0], replace(pair[0], id="other")]))
    assert {row["run"] for row in two} == {pair[0].id, "other"}


def test_every_request_with_its_latencies(pair: tuple[Run, list[Record]]) -> None:
    one, other = read(csv_rows.record_lines([pair]))
    assert tuple(one) == csv_rows.RECORDS
    assert (one["ttft_ms"], one["tpot_ms"], one["e2e_ms"], one["frame_count"]) == ("500.0", "500.0", "1500.0", "2")
    assert (one["sent_ns"], one["outcome"], one["new_connection"]) == (str(at(12.0)), "ok", "0")
    assert one["finish_reason"] == 'a,"b"\nc'
    assert (other["ttft_ms"], other["status"], other["error"]) == ("", "503", "http_5xx")


def test_no_text_of_a_server_is_a_formula(pair: tuple[Run, list[Record]]) -> None:
    one, other = read(csv_rows.record_lines([pair]))
    assert (one["server_request_id"], other["error_detail"]) == ("'=1+1", "'@no slot")


def test_parquet_holds_the_same_in_types(pair: tuple[Run, list[Record]], tmp_path: Path) -> None:
    parquet_file = pytest.importorskip("pyarrow.parquet")
    run, records = pair
    huge = replace(records[0], prompt_tokens=10**30)
    with open(tmp_path / "r.parquet", "wb") as sink:
        parquet.write(sink, [(run, [*records, huge])])
    table = parquet_file.read_table(tmp_path / "r.parquet")
    assert tuple(table.column_names) == csv_rows.RECORDS
    rows = table.to_pylist()
    assert (rows[0]["ttft_ms"], rows[0]["sent_ns"], rows[0]["new_connection"]) == (500.0, at(12.0), False)
    assert (rows[1]["ttft_ms"], rows[1]["error"], rows[1]["run"]) == (None, "http_5xx", run.id)
    assert (rows[2]["prompt_tokens"], rows[2]["server_request_id"]) == (None, "=1+1")


def test_parquet_without_its_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SpecError) as fault:
        parquet.libraries()
    assert fault.value.slug == "parquet_missing"
