from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nilometer.core.spec import Prompts, Sampling, Spec
from nilometer.load.probe_terms import Terms, bodies, body, wanted_length_fields
from nilometer.wire.dialects import DIALECTS

CHAT = DIALECTS["chat"]


def sent(spec: Spec, terms: Terms, max_tokens: int = 5) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(bodies(spec, terms)("hello", max_tokens, ()))
    return told


def test_a_chat_body_says_all_that_the_server_takes() -> None:
    terms = Terms(api="chat", model="m", length_fields=("ignore_eos", "min_tokens"))
    assert sent(Spec(target="t"), terms) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "ignore_eos": True,
        "min_tokens": 5,
    }


def test_what_is_not_taken_is_left_out() -> None:
    told = sent(Spec(target="t", stream=False), Terms(api="completions", model=None, include_usage=False))
    assert told == {"prompt": "hello", "max_tokens": 5, "stream": False, "temperature": 0.0}


def test_the_limit_goes_by_the_name_the_server_wants() -> None:
    told = sent(Spec(target="t"), Terms(api="chat", model="m", limit_field="max_completion_tokens"))
    assert told["max_completion_tokens"] == 5
    assert "max_tokens" not in told


def test_sampling_is_the_specs() -> None:
    sampling = Sampling(temperature="none", top_p=0.9, seed=7, extra_body={"min_p": 0.1})
    told = sent(Spec(target="t", sampling=sampling), Terms(api="chat", model="m"))
    assert "temperature" not in told
    assert (told["top_p"], told["seed"], told["min_p"]) == (0.9, 7, 0.1)


def test_the_users_extra_body_wins() -> None:
    spec = Spec(target="t", sampling=Sampling(extra_body={"ignore_eos": False, "model": "mine"}))
    told = sent(spec, Terms(api="chat", model="m", length_fields=("ignore_eos",)))
    assert (told["ignore_eos"], told["model"]) == (False, "mine")


def test_a_probe_may_ask_for_a_whole_answer_of_a_streaming_spec() -> None:
    told = msgspec.json.decode(body(Spec(target="t"), Terms(api="chat", model="m"), "hello", 1, stream=False))
    assert told["stream"] is False
    assert "stream_options" not in told


def test_answers_are_held_to_their_length_by_default() -> None:
    assert wanted_length_fields(Spec(target="t"), CHAT) == ("ignore_eos", "min_tokens")


def test_a_spec_can_leave_the_end_to_the_model() -> None:
    assert wanted_length_fields(Spec(target="t", prompts=Prompts(ignore_eos=False)), CHAT) == ()


@pytest.mark.parametrize("key", ["tools", "response_format", "grammar", "guided_json", "structured_outputs"])
def test_nothing_is_held_on_against_a_grammar(key: str) -> None:
    spec = Spec(target="t", sampling=Sampling(extra_body={key: {}}))
    assert wanted_length_fields(spec, CHAT) == ()
