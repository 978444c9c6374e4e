"""Texts are asked straight from their file, and are the same as of a workload file made of it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.sources.files import EXAMPLES, write
from tests.unit.workload.test_traffic import RULER

from nilometer.cli.root import nilo
from nilometer.core.errors import NiloError
from nilometer.sources.reading import Reading
from nilometer.sources.texts import read_asked
from nilometer.workload import estimate
from nilometer.workload.entry import Workload
from nilometer.workload.lengths import Fixed
from nilometer.workload.privacy import rows as rows_of
from nilometer.workload.prompts import Maker
from nilometer.workload.traffic import Asked, Otherwise, asked

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


@pytest.mark.parametrize("stamps_ms", [(5000, 1000, 3000, 1000), (None, 5000, 1000, None, 3000), (1000, None, 3000)])
def test_a_source_out_of_order_is_asked_in_order_of_time(stamps_ms: tuple[int | None, ...], tmp_path: Path) -> None:
    """Each text at its own moment, as in the workload made of it."""
    rows = [{"type": "single_turn", "text": f"at {at}", "timestamp": at} for at in stamps_ms]
    source, made = tmp_path / "x.jsonl", tmp_path / "made.toml"
    source.write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows))
    done = CliRunner().invoke(nilo, ["workload", "make", str(source), "-o", str(made), "--keep-text"])
    assert done.exit_code == 0, done.output
    straight, by_file = read_asked(source), read_asked(made)
    assert (straight.rows, straight.hash) == (by_file.rows, by_file.hash)
    known = [row for row in straight.rows if row.offset_s is not None]
    assert [row.parts[0].text for row in known] == [f"at {round(1000 + 1000 * (row.offset_s or 0))}" for row in known]
    assert known == sorted(known, key=lambda row: row.offset_s or 0)
    assert known[0].offset_s == 0


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


def test_a_file_without_texts_is_refused_before_it_is_all_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows its first batch is not read: the broken line there is not told."""
    monkeypatch.setattr("nilometer.sources.reading.ROWS", 2)
    rows = '{"timestamp":0,"input_length":5,"output_length":5,"hash_ids":[0]}\n' * 5
    (tmp_path / "x.jsonl").write_text(rows + '{"timestamp":\n')
    with pytest.raises(NiloError) as caught:
        read_asked(tmp_path / "x.jsonl")
    assert (caught.value.slug, caught.value.params["line"]) == ("prompts_without_text", 1)


TALK = [("system", "Be brief."), ("user", "Who reads it?"), ("assistant", "The priests."), ("user", "And why?")]
ANSWERED = [*TALK, ("assistant", "For the tax of the coming harvest.")]
BEGUN = [("user", "Who reads it, and why?"), ("assistant", "The priests, since")]
FIRST = TALK[:2]


def _messages(said: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in said]


def _parts(said: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]


def _batch(said: list[tuple[str, str]]) -> dict[str, Any]:
    return {"custom_id": "a", "url": "/v1/chat/completions", "body": {"messages": _messages(said), "max_tokens": 7}}


def _responses(said: list[tuple[str, str]]) -> dict[str, Any]:
    (_, system), *turns = said
    kind = {"assistant": "output_text"}
    rows = [{"role": role, "content": [{"type": kind.get(role, "input_text"), "text": text}]} for role, text in turns]
    body = {"instructions": system, "input": rows, "max_output_tokens": 7}
    return {"custom_id": "a", "url": "/v1/responses", "body": body}


def _litellm(said: list[tuple[str, str]]) -> dict[str, Any]:
    counted = {"prompt_tokens": 40, "completion_tokens": 7}
    return {"startTime": 1.7e9, "call_type": "acompletion", "messages": _messages(said), **counted}


def _langfuse(said: list[tuple[str, str]]) -> dict[str, Any]:
    told = {"startTime": "2024-05-10T00:00:00Z", "traceId": "t", "usageDetails": {"input": 40, "output": 7}}
    return {"type": "GENERATION", "input": _messages(said), **told}


def _otel(said: list[tuple[str, str]], system: str = "") -> dict[str, Any]:
    told: dict[str, Any] = {"gen_ai.input.messages": {"stringValue": json.dumps(_parts(said))}}
    told |= {f"gen_ai.usage.{way}_tokens": {"intValue": n} for way, n in (("input", "40"), ("output", "7"))}
    if system:
        told["gen_ai.system_instructions"] = {"stringValue": json.dumps([{"type": "text", "content": system}])}
    attributes = [{"key": key, "value": value} for key, value in told.items()]
    span = {"traceId": "ab", "startTimeUnixNano": "1700000000000000000", "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _sharegpt(said: list[tuple[str, str]]) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt"}
    return {"id": "x", "conversations": [{"from": names.get(role, role), "value": text} for role, text in said]}


def _aiperf(said: list[tuple[str, str]]) -> dict[str, Any]:
    turns = [{"role": role, "text": text, "output_length": 7} for role, text in said if role != "assistant"]
    return {"type": "multi_turn", "session_id": "s", "turns": turns}


def _vllm(number: str, prompt: str) -> str:
    return (
        f"INFO 12-31 23:59:58 [logger.py:39] Received request {number}: prompt: {prompt!r}, params: "
        "SamplingParams(n=1, max_tokens=7), prompt_token_ids: [1, 5, 9, 2], lora_request: None."
    )


def _asked(row: object, folder: Path) -> tuple[Workload, Asked]:
    """What a file of this one row asks, its text kept, and the file's facts."""
    path = folder / ("x.log" if isinstance(row, str) else "x.jsonl")
    path.write_text((row if isinstance(row, str) else json.dumps(row)) + "\n", "utf-8")
    reading = Reading(path)
    entries = [entry for batch in reading.batches() for entry in batch.rows()]
    assert len(entries) == 1, (reading.skipped, reading.problems)
    rows = tuple(map(rows_of("kept", entries[0].at_ns), entries))
    workload = Workload(None, rows)  # type: ignore[arg-type]
    otherwise = Otherwise(Fixed(50), Fixed(9), Random(1), Random(2))
    head = type("Head", (), {"block_tokens": reading.format.block_tokens})
    (one,) = islice(asked(workload._replace(head=head), Maker(RULER), otherwise), 1)  # type: ignore[arg-type]
    return workload, one


@pytest.mark.parametrize(
    ("row", "said", "answered"),
    [
        pytest.param(_sharegpt(ANSWERED), FIRST, estimate.tokens("The priests."), id="sharegpt"),
        pytest.param({"prompt": "Why?", "output_tokens": 7}, [("user", "Why?")], 7, id="vllm-custom"),
        pytest.param(_batch(TALK), TALK, 7, id="openai-batch"),
        pytest.param(_responses(TALK), TALK, 7, id="responses batch"),
        pytest.param(_messages(TALK), TALK, 9, id="messages"),
        pytest.param(_messages(ANSWERED), TALK, estimate.tokens(ANSWERED[-1][1]), id="messages answered"),
        pytest.param({"messages": _messages(ANSWERED)}, TALK, estimate.tokens(ANSWERED[-1][1]), id="object answered"),
        pytest.param(_aiperf(TALK), FIRST, 7, id="aiperf"),
        pytest.param({"type": "single_turn", "text": "Why?", "output_length": 7}, [("user", "Why?")], 7, id="single"),
        pytest.param({"prompt": "Why?", "output_tokens_count": 7}, [("user", "Why?")], 7, id="guidellm"),
        pytest.param(_litellm(TALK), TALK, 7, id="litellm"),
        pytest.param(_langfuse(TALK), TALK, 7, id="langfuse"),
        pytest.param(_otel(TALK), TALK, 7, id="otel"),
        pytest.param(_otel(TALK[1:], "Be brief."), TALK, 7, id="otel with instructions"),
        pytest.param(_vllm("cmpl-1", "Why?"), [("user", "Why?")], 7, id="vllm-log"),
    ],
)
def test_what_is_sent_is_what_the_lengths_are_of(
    row: object, said: list[tuple[str, str]], answered: int, tmp_path: Path
) -> None:
    workload, one = _asked(row, tmp_path)
    assert [*one.turns, ("user", one.prompt)] == said
    assert one.output_tokens == answered
    (kept,) = workload.rows
    if kept.guessed_input:
        assert kept.input_tokens == sum(estimate.tokens(text) for _, text in said)
    assert read_asked(tmp_path / ("x.log" if isinstance(row, str) else "x.jsonl")).rows == workload.rows


@pytest.mark.parametrize(
    ("row", "input_tokens"),
    [
        pytest.param(_batch(BEGUN), sum(estimate.tokens(text) for _, text in BEGUN), id="openai-batch"),
        pytest.param(_litellm(BEGUN), 40, id="litellm"),
        pytest.param(_langfuse(BEGUN), 40, id="langfuse"),
        pytest.param(_otel(BEGUN), 40, id="otel"),
        pytest.param(_litellm([("user", "redacted-by-litellm")]), 40, id="redacted"),
        pytest.param(_litellm([("user", "")]), 40, id="no text"),
        pytest.param(
            _vllm("chatcmpl-1", "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"), 4, id="rendered"
        ),
    ],
)
def test_what_cannot_be_asked_as_it_stands_has_a_text_of_its_length(
    row: object, input_tokens: int, tmp_path: Path
) -> None:
    _, one = _asked(row, tmp_path)
    assert (one.turns, one.input_tokens, one.output_tokens) == ((), input_tokens, 7)
    assert not any(text in one.prompt for text in ("priests", "redacted", "im_start"))
    with pytest.raises(NiloError) as caught:
        read_asked(tmp_path / ("x.log" if isinstance(row, str) else "x.jsonl"))
    assert caught.value.slug == "prompts_without_text"


def test_messages_of_the_assistant_alone_ask_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('[{"role": "assistant", "content": "So."}]\n')
    reading = Reading(tmp_path / "x.jsonl")
    assert (list(reading.batches()), dict(reading.skipped)) == ([], {"no_user_turn": 1})
