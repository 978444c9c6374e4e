"""JSON lines: what a line is, what a whole answer is, the last line that lacks its end."""

from __future__ import annotations

import pytest

from nilometer.wire import ollama
from nilometer.wire.ndjson import LineReader, Lines

DONE = b'{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":2}'


def line(text: str) -> bytes:
    return b'{"message":{"content":"%s"},"done":false}\n' % text.encode()


def fed(*chunks: bytes) -> tuple[LineReader, int]:
    reader = ollama.reader(True, True)
    assert isinstance(reader, LineReader)
    return reader, sum(reader.feed(chunk) for chunk in chunks)


def test_lines_end_with_lf_and_blank_ones_are_none() -> None:
    lines = Lines()
    assert lines.feed(b"\xef\xbb\xbf\n{1}\r\n\n {2} \n{3") == [b"{1}", b"{2}"]
    assert lines.rest == b"{3"
    assert lines.feed(b"}\n") == [b"{3}"]


def test_a_line_that_begins_and_ends_the_answer_is_no_event() -> None:
    for end in (b"", b"\n"):
        reader, events = fed(b'{"message":{"content":"abc"},"done":true,"eval_count":2}' + end)
        answer = reader.close()
        assert (events, reader.tokens, reader.first_answer) == (0, [], None)
        assert (answer.complete, answer.text, answer.output_tokens, answer.matter_events) == (True, "abc", 2, 0)


def test_one_object_over_many_lines_is_a_whole_answer() -> None:
    reader, events = fed(b'{\n "message": {"content": "abc"},\n', b' "done": true\n}\n')
    answer = reader.close()
    assert (events, answer.complete, answer.text, answer.fault) == (0, True, "abc", None)


def test_an_object_that_is_cut_is_no_answer_and_no_fault() -> None:
    answer = fed(b'{\n "message": {"content": "abc"},\n')[0].close()
    assert (answer.complete, answer.choices, answer.fault) == (False, 0, None)


def test_the_last_line_counts_without_its_end() -> None:
    reader, events = fed(line("a"), line("b"), DONE)
    answer = reader.close()
    assert (events, answer.complete, answer.output_tokens, answer.finish_reason) == (2, True, 2, "stop")


def test_matter_in_a_last_line_without_end_has_no_moment() -> None:
    reader, events = fed(line("a"), line("b").rstrip())
    answer = reader.close()
    assert (events, len(reader.tokens), answer.matter_events, answer.text) == (1, 1, 1, "ab")


@pytest.mark.parametrize("cut", range(1, len(DONE) - 1))
def test_a_last_line_that_is_cut_counts_for_nothing(cut: int) -> None:
    answer = fed(line("a"), DONE[:cut])[0].close()
    assert (answer.complete, answer.fault) == (False, None)


def test_a_broken_line_in_the_middle_is_malformed() -> None:
    answer = fed(line("a"), b"{broken\n", line("b"), DONE + b"\n")[0].close()
    assert answer.fault is not None
    assert (answer.fault.kind, answer.text) == ("malformed", "ab")
