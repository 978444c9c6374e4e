"""Files of no known format, by a map of their columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sources.test_formats import NOW_NS

from nilometer.core.errors import NiloError
from nilometer.sources.mapped import read_map
from nilometer.sources.reading import Reading
from nilometer.workload.entry import Entry

ACCESS = (
    '{"time":"2024-05-10T08:00:00+08:00","path":"/v1/chat/completions","status":200,"usage":{"in":"12","out":5}}\n'
    '{"time":"2024-05-10T08:00:02+08:00","path":"/health","status":200,"usage":{"in":"-","out":"-"}}\n'
    '{"time":"2024-05-10T08:00:03+08:00","path":"/v1/chat/completions","status":503,"usage":{"in":"12","out":"-"}}\n'
    '{"time":"2024-05-10T08:00:04+08:00","path":"/v1/chat/completions","status":200,"usage":{"in":"-","out":"-"}}\n'
)
ACCESS_MAP = """
at = "time"
unit = "iso"
input_tokens = "usage.in"
output_tokens = "usage.out"
status = "status"
[only]
path = "/v1/chat/completions"
"""


def _read(path: Path, the_map: str) -> tuple[Reading, list[Entry]]:
    reading = Reading(path, the_map=read_map(the_map), now_ns=NOW_NS)
    return reading, [entry for batch in reading.batches() for entry in batch.rows()]


def test_an_access_log_by_a_map_in_toml(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(ACCESS_MAP)
    log = tmp_path / "access.log"
    log.write_text(ACCESS)
    reading, entries = _read(log, str(tmp_path / "map.toml"))
    assert [(entry.at_ns, entry.input_tokens, entry.output_tokens) for entry in entries] == [
        (1_715_299_200_000_000_000, 12, 5)
    ]
    assert dict(reading.skipped) == {"not_asked_for": 1, "failed_call": 1, "no_lengths": 1}


@pytest.mark.parametrize(("unit", "stamp"), [("s", "1.5"), ("ms", "1500"), ("us", "1500000"), ("ns", "1500000000")])
def test_a_csv_by_pairs_with_the_unit_that_is_named(unit: str, stamp: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f'when,"in",question,kind\n0,7,,a\n{stamp},8,"two\nlines",b\n')
    _, entries = _read(path, f"at=when:{unit},input_tokens=in,prompt=question,scenario=kind")
    assert [(entry.at_ns, entry.input_tokens, entry.scenario) for entry in entries] == [
        (0, 7, "a"),
        (1_500_000_000, 8, "b"),
    ]
    assert entries[1].parts[0].text == "two\nlines"
    assert entries[1].line == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "at=when",
        "at=when:years,input_tokens=a",
        "input_tokens",
        "output_tokens=a",
        "speed=a",
        "input_tokens=a,input_tokens=b",
    ],
)
def test_a_map_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(NiloError) as caught:
        read_map(text)
    assert (caught.value.slug, caught.value.exit_code) == ("map_wrong", 2)


def test_a_map_file_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    for text in ("at = ", 'speed = "a"', "input_tokens = 3", 'at = "a"\ninput_tokens = "b"'):
        path.write_text(text)
        with pytest.raises(NiloError) as caught:
            read_map(str(path))
        assert caught.value.slug == "map_wrong"


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(NiloError) as caught:
        _read(path, "input_tokens=c")
    assert (caught.value.slug, caught.value.params["known"]) == ("map_absent", "a, b")


@pytest.mark.parametrize(
    "wrong",
    [
        "at=when:s,input_tokens=usage.in,output_tokens=usage.answered",
        "at=when:s,input_tokens=usage.in,output_tokens=answered",
        "at=when:s,input_tokens=usage.in,session=users",
        "at=when:s,input_tokens=usage.in,status=code.",
    ],
)
@pytest.mark.parametrize("layout", ["{}\n{}\n{}\n", "[{},{},{}]"])
def test_a_key_that_no_row_has_is_refused(wrong: str, layout: str, tmp_path: Path) -> None:
    rows = (
        '{"when":1,"usage":{"in":2},"code":200}',
        '{"when":2,"usage":{"in":2,"out":3}}',
        '{"when":3,"usage":{"in":4}}',
    )
    path = tmp_path / "x.json"
    path.write_text(layout.format(*rows))
    with pytest.raises(NiloError) as caught:
        _read(path, wrong)
    assert (caught.value.slug, caught.value.exit_code) == ("map_absent", 2)
    assert caught.value.params["columns"] == wrong.rpartition("=")[2]
    assert caught.value.params["known"] == "when, usage.in, code"


def test_a_key_that_few_rows_have_is_none_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"n":1}\n' * 2000 + '{"n":2,"a":{"out":null},"b.c":"x"}\n')
    _, entries = _read(path, "input_tokens=n,output_tokens=a.out,session=b.c")
    assert (len(entries), entries[-1].session) == (2001, "x")


def test_a_file_of_broken_rows_alone_is_not_blamed_on_the_map(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"n":1\n{"n":\n{"n": }\n["n"]\n')
    reading, _ = _read(path, "input_tokens=m")
    assert reading.usable == 0
    assert len(reading.problems) >= 1


def test_a_row_without_the_stamp_that_was_named_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"when":1,"n":2}\n{"n":3}\n{"when":"soon","n":3}\n')
    reading, entries = _read(path, "at=when:s,input_tokens=n")
    assert len(entries) == 1
    assert [(problem.line, problem.slug) for problem in reading.problems] == [(2, "stamp_wrong"), (3, "stamp_wrong")]
