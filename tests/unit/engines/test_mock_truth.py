"""The truth log keeps what happened and hands it out as JSON lines."""

from __future__ import annotations

import json

from nilometer.engines.mock_truth import Entry, TruthLog, read_truth


def entry(number: int, end_ns: int | None) -> Entry:
    made = Entry(number, 3, "/v1/completions", 1000 * number, "abc")
    made.write_ns.extend([2000, 2500])
    made.write_tokens.extend([4, 1])
    made.end_ns = end_ns
    return made


def test_lines_carry_every_stamp_and_read_back() -> None:
    log = TruthLog()
    log.add(entry(1, 3000))
    text = b"".join(log.lines(unfinished=False))
    told = json.loads(text)
    assert (told["id"], told["client_id"], told["connection"]) == ("mock-1", "abc", 3)
    assert (told["read_ns"], told["writes"], told["end_ns"]) == (1000, [[2000, 4], [2500, 1]], 3000)
    assert told["output_tokens"] == 5
    assert told["left_ns"] is None
    (line,) = read_truth(text)
    assert line.writes == [(2000, 4), (2500, 1)]


def test_unfinished_requests_show_only_when_asked_for_and_survive_clearing() -> None:
    log = TruthLog()
    log.add(entry(1, 3000))
    log.add(entry(2, None))
    assert [line.n for line in read_truth(b"".join(log.lines(unfinished=False)))] == [1]
    assert [line.n for line in read_truth(b"".join(log.lines(unfinished=True)))] == [1, 2]
    log.clear()
    assert [line.n for line in read_truth(b"".join(log.lines(unfinished=True)))] == [2]


def test_a_client_that_left_has_ended() -> None:
    made = entry(1, None)
    assert not made.ended
    made.left_ns = 5
    assert made.ended
