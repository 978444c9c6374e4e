"""A small file of each format, by hand, and what is right for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

try:
    from compression.zstd import compress as zstd_compress  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports.zstd import compress as zstd_compress

__all__ = ["EXAMPLES", "Example", "write", "zstd_compress"]


class Example(NamedTuple):
    """A file: its name, its text, (offset in s, input, output, turns) of its usable rows, reasons of the others.

    A length that is an estimate is given as its text's, by `~`; None where nothing is known.
    """

    name: str
    text: str
    rows: list[tuple[float | None, int | str | None, int | str | None, int]]
    skipped: Mapping[str, int] = MappingProxyType({})


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _spans(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def _span(start_ns: int, asked: int, answered: int, **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.usage.input_tokens": {"intValue": str(asked)},
    }
    attributes["gen_ai.usage.output_tokens"] = {"intValue": str(answered)}
    return {
        "traceId": "ab",
        "startTimeUnixNano": str(start_ns),
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
        **more,
    }


_VLLM = (
    "INFO 12-31 23:59:58 [logger.py:39] Received request cmpl-1: prompt: 'What feeds\\na weir?', params: "
    "SamplingParams(n=1, max_tokens=16, min_tokens=0), prompt_token_ids: [1, 5, 9, 2], lora_request: None.\n"
    "INFO 12-31 23:59:59 [metrics.py:1] Avg prompt throughput: 1.0 tokens/s\n"
    "INFO 01-01 00:00:01 [logger.py:39] Received request cmpl-2: prompt: None, params: "
    "SamplingParams(n=1, max_tokens=8), prompt_token_ids: [1, 2], lora_request: None.\n"
)

EXAMPLES: dict[str, Example] = {
    "sharegpt": Example(
        "modelscope.jsonl",
        _lines(
            {"conversation_id": 1, "category": "x", "conversation": [{"human": "Why?", "assistant": "So."}]},
            {"conversation_id": 2, "conversation": [{"human": "", "assistant": "?"}]},
        ),
        [(None, "Why?", "So.", 1)],
        {"empty_prompt": 1},
    ),
    "vllm-custom": Example(
        "custom.jsonl",
        _lines({"prompt": "What feeds a weir?", "output_tokens": 24}, {"prompt": "And now?", "output_tokens": -1}),
        [(None, "What feeds a weir?", 24, 1), (None, "And now?", None, 1)],
    ),
    "openai-batch": Example(
        "batch.jsonl",
        _lines(
            {"custom_id": "a", "url": "/v1/completions", "body": {"prompt": "Depth?", "max_tokens": 4}},
            {"custom_id": "a", "url": "/v1/completions", "body": {"prompt": "Depth?", "max_tokens": 4}},
            {"custom_id": "b", "url": "/v1/completions", "body": {"prompt": [1, 2]}},
            {"custom_id": "c", "url": "/v1/responses", "body": {"input": "And width?", "max_output_tokens": 6}},
            {"custom_id": "d", "url": "/v1/responses", "body": {"input": [1, 2]}},
            {"custom_id": "e", "url": "/v1/embeddings", "body": {"input": ["Depth?"]}},
        ),
        [(None, "Depth?", 4, 1), (None, "And width?", 6, 1)],
        {"custom_id_repeated": 1, "not_text": 2, "not_text_generation": 1},
    ),
    "openai-batch-output": Example(
        "out.jsonl",
        _lines(
            {
                "custom_id": "a",
                "response": {"status_code": 200, "body": {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}},
            },
            {"custom_id": "b", "response": {"status_code": 500, "body": {}}},
            {"custom_id": "c", "response": None, "error": {"code": "x"}},
        ),
        [(None, 9, 3, 1)],
        {"failed_call": 2},
    ),
    "auto": Example(
        "chats.jsonl",
        _lines([{"role": "user", "content": "One"}], {"messages": [{"role": "user", "content": "Two"}]}, "Three", []),
        [(None, "One", None, 1), (None, "Two", None, 1), (None, "Three", None, 1)],
        {"no_turns": 1},
    ),
    "aiperf": Example(
        "inputs.jsonl",
        _lines(
            {"type": "single_turn", "text": "Depth?", "timestamp": 1000, "output_length": 7},
            {"type": "multi_turn", "session_id": "s", "turns": [{"text": "One", "timestamp": 2500}, {"text": "Two"}]},
            {"type": "mooncake_trace", "timestamp": 3000, "input_length": 600, "output_length": 2, "hash_ids": [4, 5]},
            {"type": "single_turn", "texts": ["One"], "timestamp": 4000},
        ),
        [(0.0, "Depth?", 7, 1), (1.5, None, None, 2), (2.0, 600, 2, 1), (3.0, "One", None, 1)],
    ),
    "guidellm": Example(
        "trace.csv",
        "timestamp,input_length,output_length\n10.5,100,7\n12,200,8\n",
        [(0.0, 100, 7, 1), (1.5, 200, 8, 1)],
    ),
    "text": Example(
        "prompts.txt",
        "What feeds a weir?\n\n水位怎么测？\n",
        [(None, "What feeds a weir?", None, 1), (None, "水位怎么测？", None, 1)],
    ),
    "azure-llm-2023": Example(
        "AzureLLMInferenceTrace_conv.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,374,44\r\n"
        "2023-11-16 18:17:04.0319569,396,109",
        [(0.0, 374, 44, 1), (0.0519969, 396, 109, 1)],
    ),
    "azure-llm-2024": Example(
        "AzureLLMInferenceTrace_conv_1week.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n",
        [(0.0, 2162, 5, 1), (0.99007, 2399, 6, 1)],
    ),
    "azure-llm-2025": Example(
        "AzureLMMInferenceTrace_multimodal.csv",
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
        "2024-10-15 08:00:00,1,300,20\n2024-10-15 08:00:02.5,0,20,7\n",
        [(0.0, 300, 20, 1), (2.5, 20, 7, 1)],
    ),
    "burstgpt": Example(
        "BurstGPT_3.csv",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,,1.5,ChatGPT,472,18,490,Conversation log\n45.5,7,2,GPT-4,1087,0,1087,API log\n"
        "118.25,,3,GPT-4,417,276,693,API log\n",
        [(0.0, 472, 18, 1), (113.25, 417, 276, 1)],
        {"failed_call": 1},
    ),
    "mooncake": Example(
        "conversation_trace.jsonl",
        _lines(
            {"timestamp": 0, "input_length": 1000, "output_length": 52, "hash_ids": [46, 47]},
            {"timestamp": 3000, "input_length": 1537, "output_length": 26, "hash_ids": [46, 47, 48, 49]},
        ),
        [(0.0, 1000, 52, 1), (3.0, 1537, 26, 1)],
    ),
    "litellm": Example(
        "spend.jsonl",
        _lines(
            {
                "startTime": 1.7e9,
                "call_type": "acompletion",
                "status": "success",
                "prompt_tokens": 9,
                "completion_tokens": 3,
            },
            {
                "startTime": "2023-11-14 22:13:21.5",
                "call_type": "completion",
                "prompt_tokens": 8,
                "completion_tokens": 2,
                "messages": [{"role": "user", "content": "My secret"}],
            },
            {"startTime": 1.7e9, "call_type": "aembedding", "status": "success", "prompt_tokens": 9},
            {"startTime": 1.7e9, "call_type": "acompletion", "status": "failure"},
        ),
        [(0.0, 9, 3, 1), (1.5, 8, 2, 1)],
        {"not_text_generation": 1, "failed_call": 1},
    ),
    "langfuse": Example(
        "observations.csv",
        "id,type,start_time,usage_details,input,level,trace_id\n"
        'o1,GENERATION,2024-05-10 00:00:00.250000,"{""input"": 12, ""output"": 5}",'
        '"My secret\nin two lines",DEFAULT,t1\n'
        "o2,SPAN,2024-05-10 00:00:01.000000,,,DEFAULT,t1\n"
        'o3,GENERATION,2024-05-10 00:00:02.000000,"{""input"": 7, ""output"": 1}",,DEFAULT,t2\n',
        [(0.0, 12, 5, 1), (1.75, 7, 1, 1)],
        {"not_text_generation": 1},
    ),
    "vllm-log": Example("server.log", _VLLM, [(0.0, 4, 16, 1), (3.0, 2, 8, 1)], {"other_line": 1}),
    "otel-genai": Example(
        "traces.json",
        json.dumps(
            _spans(
                _span(1_700_000_000_000_000_000, 30, 4),
                _span(1_700_000_000_500_000_000, 31, 5),
                _span(1_700_000_001_000_000_000, 1, 1, status={"code": 2}),
                {"traceId": "ab", "startTimeUnixNano": "1700000000000000000", "attributes": []},
            ),
            indent=1,
        ),
        [(0.0, 30, 4, 1), (0.5, 31, 5, 1)],
        {"failed_call": 1, "not_text_generation": 1},
    ),
}


def write(folder: Path, name: str) -> Path:
    """The example of a format as a file."""
    example = EXAMPLES[name]
    path = folder / example.name
    path.write_bytes(example.text.encode())
    return path
