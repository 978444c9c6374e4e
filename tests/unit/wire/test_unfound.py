"""Which places of a protocol had nothing in any answer, and which of them are worth a word."""

from __future__ import annotations

from nilometer.core.finding import Finding
from nilometer.wire.answer import Answer
from nilometer.wire.unfound import places_not_found, seen_in

PROTOCOL = {
    "stream": {"text": "a.t", "finish": "f", "end_mark": "END", "error": "e", "model": "m", "reasoning": "r"},
    "whole": {"text": "t", "prompt_tokens": "u.in", "output_tokens": "u.out"},
}


def named(found: list[Finding]) -> list[object]:
    return [finding.params["places"] for finding in found]


def test_an_answer_shows_what_was_found() -> None:
    nothing = Answer()
    assert seen_in(nothing, text=False, ended=False) == set()
    told = Answer(native_finish_reason="x", prompt_tokens=1, output_tokens=2, token_source="usage")
    seen = seen_in(told, text=True, ended=True)
    assert seen == {"text", "finish", "end", "end_mark", "prompt_tokens", "output_tokens"}
    assert "output_tokens" not in seen_in(Answer(output_tokens=2, token_source="estimated"), text=True, ended=True)


def test_places_without_anything_are_named_with_their_table() -> None:
    seen = {"text", "end", "end_mark"}
    assert named(places_not_found(PROTOCOL, seen, streamed=True)) == ["stream.finish = f"]
    told = named(places_not_found(PROTOCOL, seen, streamed=False))
    assert told == ["whole.prompt_tokens = u.in, whole.output_tokens = u.out"]


def test_thoughts_an_error_and_a_name_may_be_absent_and_what_is_not_given_is_not_missed() -> None:
    assert places_not_found(PROTOCOL, {"text", "finish", "end_mark"}, streamed=True) == []
    assert places_not_found({"whole": None}, set(), streamed=False) == []
