"""Texts are asked straight from their file, and are the same as of a workload file made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.sources.files import EXAMPLES, write

from nilometer.cli.root import nilo
from nilometer.core.errors import NiloError
from nilometer.sources.texts import read_asked

WITH_TEXT = ["sharegpt", "vllm-custom", "openai-batch", "auto", "text"]


@pytest.mark.parametrize("name", WITH_TEXT)
def test_a_source_is_asked_as_the_workload_that_is_made_of_it(name: str, tmp_path: Path) -> None:
    source, made = write(tmp_path, name), tmp_path / "made.toml"
    done = CliRunner().invoke(nilo, ["workload", "make", str(source), "-o", str(made), "--keep-text"])
    assert done.exit_code == 0, done.output
    straight, by_file = read_asked(source), read_asked(made)
    assert straight.rows == by_file.rows
    assert (straight.hash, straight.head.block_tokens) == (by_file.hash, by_file.head.block_tokens)
    assert len(straight.rows) == len(EXAMPLES[name].rows)


@pytest.mark.parametrize("name", ["prompts", "prompts.md", "prompts.txt"])
@pytest.mark.parametrize("first", ["What feeds a weir?", "Lock, weir, sluice: which is oldest?"])
def test_a_plain_file_is_a_prompt_a_line(name: str, first: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(f"{first}\n\n水位怎么测？\n", "utf-8")
    found = read_asked(path)
    assert [row.parts[0].text for row in found.rows] == [first, "水位怎么测？"]
    assert {row.output_tokens for row in found.rows} == {None}


@pytest.mark.parametrize(
    ("name", "text", "slug"),
    [
        ("x.csv", "a,b\n1,2\n", "format_unknown"),
        ("x.jsonl", '{"a": 1}\n', "format_unknown"),
        ("x.jsonl", '{"prompt": "a"}\n{"prompt": \n', "json_broken"),
        ("x.jsonl", '{"timestamp":0,"input_length":5,"output_length":5,"hash_ids":[0]}\n', "prompts_without_text"),
        ("x.txt", "\n", "file_empty"),
        ("none", None, "file_unreadable"),
    ],
)
def test_what_holds_no_prompts_is_refused(name: str, text: str | None, slug: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(NiloError) as caught:
        read_asked(path)
    assert (caught.value.slug, caught.value.exit_code) == (slug, 2)
