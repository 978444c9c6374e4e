"""A conversation in the form of each API, by its documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nilometer.wire.ask import Turn
from nilometer.wire.dialects import DIALECTS, Ask

SAID = (Turn("system", "Be brief."), Turn("user", "Who?"), Turn("assistant", "I."))
TALK = Ask(model="m", prompt="Why?", max_tokens=5, turns=SAID)
PLAIN = [
    {"role": "user", "content": "Who?"},
    {"role": "assistant", "content": "I."},
    {"role": "user", "content": "Why?"},
]
WHOLE = [{"role": "system", "content": "Be brief."}, *PLAIN]
AS_TEXT = "Be brief.\n\nWho?\n\nI.\n\nWhy?"


def body(api: str, ask: Ask = TALK) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(DIALECTS[api].body(ask))
    return made


@pytest.mark.parametrize("api", ["chat", "ollama"])
def test_messages_hold_it_in_order(api: str) -> None:
    assert body(api)["messages"] == WHOLE


def test_responses_take_it_as_input() -> None:
    assert body("responses")["input"] == WHOLE
    assert body("responses", Ask(model="m", prompt="Why?", max_tokens=5))["input"] == "Why?"


def test_anthropic_takes_the_system_apart() -> None:
    assert body("anthropic")["messages"] == PLAIN
    assert body("anthropic")["system"] == "Be brief."
    assert "system" not in body("anthropic", Ask(model="m", prompt="Why?", max_tokens=5))


def test_gemini_calls_the_assistant_the_model() -> None:
    made = body("gemini")
    assert [(content["role"], content["parts"][0]["text"]) for content in made["contents"]] == [
        ("user", "Who?"), ("model", "I."), ("user", "Why?"),
    ]  # fmt: skip
    assert made["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


@pytest.mark.parametrize(("api", "key"), [("completions", "prompt"), ("tgi", "inputs"), ("llamacpp", "prompt")])
def test_without_messages_it_is_one_text(api: str, key: str) -> None:
    assert body(api)[key] == AS_TEXT
