"""Every format of the table is recognised by its file alone, and read as it is; what is not clear is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.unit.sources.files import EXAMPLES, Example, write, zstd_compress

from nilometer.core.errors import NiloError
from nilometer.sources import documents, lines
from nilometer.sources.formats import FORMATS, NAMES
from nilometer.sources.mapped import read_map
from nilometer.sources.reading import Reading
from nilometer.workload import estimate
from nilometer.workload.entry import Entry

NOW_NS = 1_790_000_000_000_000_000
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")


def read(path: Path, name: str | None = None) -> tuple[Reading, list[Entry]]:
    reading = Reading(path, name=name, now_ns=NOW_NS)
    return reading, [entry for batch in reading.batches() for entry in batch.rows()]


def _holds(
    entry: Entry, row: tuple[float | None, int | str | None, int | str | None, int], first_ns: int | None
) -> None:
    offset_s, asked, answered, turns = row
    if offset_s is None:
        assert entry.at_ns is None
    else:
        assert first_ns is not None
        assert entry.at_ns is not None
        assert (entry.at_ns - first_ns) / 1e9 == pytest.approx(offset_s, abs=1e-9)
    for got, guessed, right in (
        (entry.input_tokens, entry.guessed_input, asked),
        (entry.output_tokens, entry.guessed_output, answered),
    ):
        if isinstance(right, str):
            assert (got, guessed) == (estimate.tokens(right), True)
        elif right is not None:
            assert (got, guessed) == (right, False)
    if answered is None:
        assert entry.output_tokens is None
    assert entry.turns == turns


def test_every_format_of_the_table_has_an_example() -> None:
    assert set(EXAMPLES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_recognised_and_read(name: str, tmp_path: Path) -> None:
    reading, entries = read(write(tmp_path, name))
    example: Example = EXAMPLES[name]
    assert reading.format.name == name
    assert reading.problems == []
    assert dict(reading.skipped) == example.skipped
    assert reading.records == len(example.rows) + sum(example.skipped.values())
    assert len(entries) == reading.usable == len(example.rows)
    for entry, row in zip(entries, example.rows, strict=True):
        _holds(entry, row, entries[0].at_ns)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pack", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_a_packed_file_reads_the_same(name: str, pack: object, tmp_path: Path) -> None:
    plain = read(write(tmp_path, name))[1]
    packed = tmp_path / (EXAMPLES[name].name + ".gz")
    packed.write_bytes(pack(EXAMPLES[name].text.encode()))  # type: ignore[operator]
    assert read(packed)[1] == plain


@pytest.mark.parametrize("name", NAMES)
def test_a_format_can_be_named(name: str, tmp_path: Path) -> None:
    reading, entries = read(write(tmp_path, name), name)
    assert (reading.format.name, len(entries)) == (name, len(EXAMPLES[name].rows))


@pytest.mark.parametrize("name", NAMES)
def test_no_other_format_claims_an_example(name: str, tmp_path: Path) -> None:
    seen = Reading(write(tmp_path, name)).seen
    assert [each.name for each in FORMATS if each.claims(seen)] == [name]


def _refused(path: Path, name: str | None = None) -> str:
    with pytest.raises(NiloError) as caught:
        read(path, name)
    assert caught.value.exit_code == 2
    return caught.value.slug


def test_a_trace_whose_unit_is_not_stated_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 1000, "input_length": 5, "output_length": 6}\n' * 2)
    assert _refused(path) == "format_ambiguous"
    assert read(path, "aiperf")[1][0].at_ns == 1_000_000_000
    assert read(path, "guidellm")[1][0].at_ns == 1_000_000_000_000


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff", "[ ]\n"])
def test_an_empty_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    assert _refused(path) == "file_empty"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", '{"a": 1}\n'),
        ("x.csv", "a,b\n1,2\n"),
        ("x.log", "hello\n"),
        ("x.json", "[1, 2]"),
    ],
)
def test_what_is_not_known_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert _refused(path) == "format_unknown"


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.csv", "x"])
@pytest.mark.parametrize("data", [b"\0" * 99, *('{"prompt": "a"}\n'.encode(each) for each in UTF16)])
def test_what_is_no_utf8_text_is_no_row_of_odd_signs(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert _refused(path) == _refused(path, "text") == "file_no_text"


@pytest.mark.parametrize(
    ("header", "the_map"),
    [
        ("at,in,in,out\n1,2,3,4\n", "input_tokens=in"),
        ("TIMESTAMP,ContextTokens,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,1,2,3\n", None),
        ("prompt,prompt,output_tokens_count\na,b,3\n", None),
    ],
)
def test_a_column_of_which_there_are_two_is_refused(header: str, the_map: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header)
    with pytest.raises(NiloError) as caught:
        Reading(path, the_map=None if the_map is None else read_map(the_map))
    assert caught.value.slug == "columns_twice"


def test_two_columns_of_a_name_that_is_not_asked_for_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("note,in,note\na,7,b\n")
    assert [batch.input_tokens.tolist() for batch in Reading(path, the_map=read_map("input_tokens=in")).batches()] == [
        [7]
    ]


def test_a_map_and_a_name_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(NiloError) as caught:
        Reading(write(tmp_path, "burstgpt"), name="burstgpt", the_map=read_map("input_tokens=Request tokens"))
    assert caught.value.slug == "format_mapped"


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
@pytest.mark.parametrize("start", [b'{"prompt":"', b'[{"prompt":"'])
def test_a_first_row_over_the_bound_is_called_so(
    name: str, start: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (lines, documents):
        monkeypatch.setattr(module, "LINE_LIMIT_BYTES", 2 << 20)
    path = tmp_path / name
    path.write_bytes(start + b"x" * (5 << 20) + b'"}\n{"prompt":"a"}\n')
    assert _refused(path) == "line_too_long"


def test_a_file_of_another_format_than_named_is_refused(tmp_path: Path) -> None:
    assert _refused(write(tmp_path, "mooncake"), "burstgpt") == "format_other"
    assert _refused(write(tmp_path, "azure-llm-2024"), "burstgpt") == "format_other"
    assert _refused(write(tmp_path, "azure-llm-2024"), "azure") == "format_unnamed"


def test_a_file_that_is_not_there_or_is_cut_is_refused(tmp_path: Path) -> None:
    assert _refused(tmp_path / "none.csv") == "file_unreadable"
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(EXAMPLES["burstgpt"].text.encode())[:-20])
    assert _refused(path) == "packed_broken"
