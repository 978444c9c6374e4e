"""What is wrong with a row is told with its line and its kind, and reading goes on behind it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from nilometer.sources import lines, reading
from nilometer.sources.reading import Reading

NOW_NS = 1_790_000_000_000_000_000
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,10,5\n{}\n2024-05-10 00:00:09+00:00,11,6\n"
MOONCAKE = (
    '{{"timestamp":0,"input_length":10,"output_length":5,"hash_ids":[0]}}\n{}\n'
    '{{"timestamp":9000,"input_length":11,"output_length":6,"hash_ids":[0]}}\n'
)
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n0,m,10,5,15,x\n{}\n9,m,11,6,17,x\n"
LITELLM = (
    '{{"startTime":1.7e9,"call_type":"completion","prompt_tokens":10,"completion_tokens":5}}\n{}\n'
    '{{"startTime":1700000009,"call_type":"completion","prompt_tokens":11,"completion_tokens":6}}\n'
)

BAD = [
    (AZURE, "2024-05-10 00:00:01+00:00,10", "columns_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,10,5,6", "columns_wrong"),
    (AZURE, '2024-05-10 00:00:01+00:00,10,"5', "columns_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,-10,5", "length_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,10,nan", "length_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,10,1.5", "length_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,,5", "length_wrong"),
    (AZURE, "2024-05-10 00:00:01+00:00,10,99999999999", "length_wrong"),
    (AZURE, "2024-05-10 00:00:01,10,5", "zone_wrong"),
    (AZURE, "2024-02-30 00:00:01+00:00,10,5", "stamp_wrong"),
    (AZURE, "2024-05-10 24:00:01+00:00,10,5", "stamp_wrong"),
    (AZURE, "1715299200,10,5", "stamp_wrong"),
    (AZURE, ",10,5", "stamp_wrong"),
    (AZURE, "2034-05-10 00:00:01+00:00,10,5", "stamp_future"),
    (AZURE, "1970-01-01 00:00:01+00:00,10,5", "stamp_range"),
    (BURST, "-1,m,10,5,15,x", "stamp_range"),
    (BURST, "inf,m,10,5,15,x", "stamp_wrong"),
    (BURST, "1e15,m,10,5,15,x", "stamp_range"),
    (MOONCAKE, '{"timestamp":1,', "json_broken"),
    (MOONCAKE, '{"timestamp":1.5,"input_length":10,"output_length":5,"hash_ids":[0]}', "field_wrong"),
    (MOONCAKE, '{"timestamp":1700000000000000,"input_length":10,"output_length":5,"hash_ids":[0]}', "stamp_range"),
    (MOONCAKE, '{"timestamp":1,"input_length":NaN,"output_length":5,"hash_ids":[0]}', "json_broken"),
    (MOONCAKE, '{"timestamp":1,"input_length":10,"output_length":-5,"hash_ids":[0]}', "length_wrong"),
    (MOONCAKE, '{"timestamp":1,"input_length":1000,"output_length":5,"hash_ids":[0]}', "blocks_wrong"),
    (MOONCAKE, '{"timestamp":1,"input_length":10,"output_length":5,"hash_ids":[1' + "0" * 30 + "]}", "blocks_wrong"),
    (MOONCAKE, '{"timestamp":1,"input_length":10,"output_length":5}', "field_wrong"),
    (MOONCAKE, "[" * 100_000, "field_wrong"),
    (LITELLM, '{"startTime":1700000000000,"call_type":"completion","prompt_tokens":1}', "stamp_future"),
    (LITELLM, '{"startTime":"yesterday","call_type":"completion","prompt_tokens":1}', "stamp_wrong"),
    (LITELLM, '{"startTime":"2023-11-14T22:13:20+25:00","call_type":"completion","prompt_tokens":1}', "zone_wrong"),
    (LITELLM, '{"startTime":1700000000,"call_type":"completion","prompt_tokens":true}', "length_wrong"),
]


def opened(folder: Path, text: str | bytes, name: str = "") -> Reading:
    data = text.encode() if isinstance(text, str) else text
    path = folder / (name or ("x.csv" if data[:1] != b"{" else "x.jsonl"))
    path.write_bytes(data)
    return Reading(path, now_ns=NOW_NS)


def columns(read: Reading) -> list[tuple[int, int, int]]:
    return [
        row
        for batch in read.batches()
        for row in zip(batch.line.tolist(), batch.input_tokens.tolist(), batch.output_tokens.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("text", "bad", "slug"), BAD, ids=[f"{slug} {bad[:40]}" for _, bad, slug in BAD])
def test_a_broken_row_is_told_by_its_line_and_the_others_are_read(
    text: str, bad: str, slug: str, tmp_path: Path
) -> None:
    read = opened(tmp_path, text.format(bad))
    first = 2 if text[0] != "{" else 1
    assert columns(read) == [(first, 10, 5), (first + 2, 11, 6)]
    assert [(problem.line, problem.slug) for problem in read.problems] == [(first + 1, slug)]
    assert (read.records, read.usable, read.problem_count) == (3, 2, 1)


@pytest.mark.parametrize("text", [AZURE, MOONCAKE, BURST])
def test_a_line_that_is_no_utf8_is_one_problem(text: str, tmp_path: Path) -> None:
    before, after = (part.replace("{{", "{").replace("}}", "}") for part in text.split("{}\n"))
    read = opened(tmp_path, before.encode() + b"\xff\xfe\xfa\n" + after.encode())
    assert len(columns(read)) == 2
    assert [problem.line for problem in read.problems] == [3 if text is not MOONCAKE else 2]


@pytest.mark.parametrize("text", [AZURE, MOONCAKE])
def test_a_line_without_end_is_bounded(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT_BYTES", 1 << 21)
    read = opened(tmp_path, text.format("7" * (5 << 20)))
    assert [found[1:] for found in columns(read)] == [(10, 5), (11, 6)]
    assert [problem.slug for problem in read.problems] == ["line_too_long"]


def test_lines_are_counted_on_behind_blank_and_broken_ones(tmp_path: Path) -> None:
    text = AZURE.format("\n\n2024-05-10 00:00:01+00:00,x,1\n")
    read = opened(tmp_path, text)
    assert [found[0] for found in columns(read)] == [2, 7]
    assert [problem.line for problem in read.problems] == [5]
    assert (read.records, "blank_lines" in read.quirks) == (3, True)


def test_more_problems_than_can_be_told_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PROBLEMS", 3)
    read = opened(tmp_path, AZURE.format("x\n" * 10))
    assert len(columns(read)) == 2
    assert (len(read.problems), read.problem_count) == (3, 10)


def test_reading_again_begins_anew(tmp_path: Path) -> None:
    read = opened(tmp_path, AZURE.format("x"))
    assert columns(read) == columns(read)
    assert (read.records, read.problem_count) == (3, 1)


def test_what_is_read_by_lines_is_the_same_as_whole(tmp_path: Path) -> None:
    read = opened(tmp_path, "".join(json.dumps({"prompt": f"number {n}"}) + "\n" for n in range(50)))
    whole = [entry for batch in read.batches() for entry in batch.rows()]
    some = [entry for batch in read.batches(frozenset({7, 31})) for entry in batch.rows()]
    assert [entry.parts for entry in some] == [whole[6].parts, whole[30].parts]


def _array(elements: list[Any], indent: int | None) -> str:
    return json.dumps(elements, indent=indent, ensure_ascii=False)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_element_by_element(indent: int | None, tmp_path: Path) -> None:
    talks = [[{"from": "human", "value": 'a "[{" \\ b' * n}, {"from": "gpt", "value": "]}"}] for n in range(1, 2000)]
    rows = [{"id": str(n), "conversations": talk} for n, talk in enumerate(talks)]
    read = opened(tmp_path, _array(rows, indent), "x.json")
    assert (len(columns(read)), read.problems) == (1999, [])


def test_a_second_array_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    read = opened(tmp_path, '[{"prompt":"a"}]\n[{"prompt":"b"}]\n', "x.json")
    assert len(columns(read)) == 1
    assert [(problem.line, problem.slug) for problem in read.problems] == [(2, "json_broken")]


def test_blank_lines_in_a_quoted_text_are_part_of_it(tmp_path: Path) -> None:
    read = opened(tmp_path, 'prompt,output_tokens_count\n\n"one\n\n \ntwo",7\n\nthree,8\n', "x.csv")
    texts = [entry.parts[0].text for batch in read.batches() for entry in batch.rows()]
    assert (texts, read.problems) == (["one\n\n \ntwo", "three"], [])


def test_an_array_that_ends_too_soon_is_told(tmp_path: Path) -> None:
    row = {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
    text = _array([row, row], None)
    for cut in range(len(text) // 2 + 2, len(text)):
        read = opened(tmp_path, text[:cut], "x.json")
        assert len(columns(read)) in (1, 2)
        assert read.problem_count >= 1


def test_shared_prefixes_of_hashes_and_of_texts(tmp_path: Path) -> None:
    rows = [(1000, [0, 1]), (512, [0]), (1537, [0, 1, 2, 3])]
    text = "".join(
        json.dumps({"timestamp": 0, "input_length": n, "output_length": 1, "hash_ids": ids}) + "\n" for n, ids in rows
    )
    shared = [batch.shared_tokens.tolist() for batch in opened(tmp_path, text).batches()]
    assert shared == [[0, 512, 1024]]
    prompts = "".join(json.dumps({"prompt": "x" * 256 + name + "y" * 300}) + "\n" for name in "aba")
    shared = [batch.shared_tokens.tolist() for batch in opened(tmp_path, prompts, "y.jsonl").batches()]
    assert shared == [[0, 64, 128]]


@pytest.mark.parametrize(
    ("bad", "lost", "line"),
    [
        pytest.param('"three,8', 1, 4, id="nothing quoted behind"),
        pytest.param('three,"8', 1, 4, id="last column"),
        pytest.param('"thr""ee,8', 1, 4, id="with a quote in the text"),
        pytest.param('a 3" pipe,"8', 1, 4, id="behind a sign for inches"),
        pytest.param('"thr\nee","8', 2, 5, id="behind a text of two lines"),
    ],
)
@pytest.mark.parametrize("behind", ["four,9\n" * 3, '"four",9\n' * 3, '"ni\nne",9\n' * 3, '"ni""ne",9\n' * 3, ""])
def test_a_quote_that_nobody_closes_costs_its_line(bad: str, lost: int, line: int, behind: str, tmp_path: Path) -> None:
    read = opened(tmp_path, f'prompt,output_tokens_count\none,7\n"two",7\n{bad}\n{behind}', "x.csv")
    answered = [answered for _, _, answered in columns(read)]
    assert answered == [7, 7, *[9] * behind.count("9")]
    assert [(problem.line, problem.slug) for problem in read.problems][:1] == [(line, "quote_open")]
    assert read.problem_count == len(read.problems) <= lost
    assert read.records == len(answered) + len(read.problems)


def test_a_quote_left_open_in_a_long_file_is_bounded(tmp_path: Path) -> None:
    field = csv.field_size_limit(1 << 16)
    try:
        read = opened(tmp_path, 'prompt,output_tokens_count\n"one,7\n' + "two,8\n" * 50_000, "x.csv")
        assert len(columns(read)) == 50_000
    finally:
        csv.field_size_limit(field)
    assert [(problem.line, problem.slug) for problem in read.problems] == [(2, "quote_open")]
