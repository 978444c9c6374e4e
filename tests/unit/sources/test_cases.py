"""The cases of data sets and traces, read as the command does, held against the values that are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nilometer.cli.root import nilo
from nilometer.sources.reading import Reading
from nilometer.workload.entry import Entry

CASES = Path(__file__).parents[2] / "cases" / "datasets"
NAMES = sorted(path.name for path in CASES.iterdir() if not path.name.endswith(".expected.json"))


def _right(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.expected.json").read_text("utf-8"))
    return found


def _told(name: str) -> dict[str, Any]:
    done = CliRunner().invoke(nilo, ["workload", "inspect", str(CASES / name), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _entries(name: str) -> list[Entry]:
    return [entry for batch in Reading(CASES / name).batches() for entry in batch.rows()]


@pytest.mark.parametrize("name", NAMES)
def test_format_and_counts(name: str) -> None:
    right, told = _right(name), _told(name)
    usable = right.get("usable", right.get("usable_single_turn", right["records"]))
    assert told["kind"] == "workload"
    assert (told["format"], told["records"], told["usable"]) == (right["format"], right["records"], usable)
    assert sum(told["skipped"].values()) == len(right.get("skipped", ()))
    assert (told["problems"], len(told["first"])) == ([], usable)


@pytest.mark.parametrize("name", NAMES)
def test_figures(name: str) -> None:
    right, told = _right(name), _told(name)
    for column, key in (("offset_s", "offset_s"), ("input_tokens", "input_tokens"), ("turns_user", "turns")):
        if column in right:
            got = [row[key] for row in told["first"]]
            assert got == pytest.approx(right[column], abs=right.get("tolerance_s", 1e-9))
    answered = right.get("output_tokens", right.get("max_output"))
    if answered is not None:
        assert [row["output_tokens"] for row in told["first"]] == answered


def test_the_case_of_sharegpt() -> None:
    name = "d01_sharegpt.json"
    right, entries = _right(name), _entries(name)
    assert [entry.session for entry in entries] == right["used"]
    prompts = {entry.session: next(each.text for each in entry.parts if each.role == "user") for entry in entries}
    assert prompts == right["first_prompt"]
    systems = {entry.session: entry.parts[0].text for entry in entries if entry.parts[0].role == "system"}
    assert systems == right["system"]
    assert _told(name)["skipped"] == {why.replace(" ", "_"): 1 for why in right["skipped"].values()}


def test_the_case_of_vllm() -> None:
    name = "d03_vllm_custom.jsonl"
    assert [entry.parts[0].text for entry in _entries(name)] == _right(name)["prompts"]
    assert set(_told(name)["quirks"]) == {"byte_order_mark", "blank_lines", "output_length_optional"}


def test_the_case_of_azure() -> None:
    quirks = {"crlf", "fraction_100ns", "no_zone", "no_final_line_end"}
    assert set(_told("d05_azure2023.csv")["quirks"]) == quirks


def test_the_case_of_mooncake() -> None:
    name = "d07_mooncake_ms.jsonl"
    right, entries = _right(name), _entries(name)
    first = entries[0].hash_ids or ()
    common = [sum(a == b for a, b in zip(first, entry.hash_ids or (), strict=False)) for entry in entries]
    assert common == right["shared_prefix_blocks_with_first"]
    assert _told(name)["stamp_unit"] == right["unit"]
    assert Reading(CASES / name).format.block_tokens == right["block_tokens"]


def test_the_case_of_messages() -> None:
    name = "d15_messages_arrays.jsonl"
    last = [[each.text for each in entry.parts if each.role == "user"][-1] for entry in _entries(name)]
    assert last == _right(name)["last_user"]
