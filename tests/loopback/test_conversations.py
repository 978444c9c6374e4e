"""Conversations over real sockets: each turn repeats what was really answered, and is due its think time later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.loopback.driving import DONE, MS, S, drive_here, event, finish, order, usage
from tests.loopback.replay import Exchange, Replay, Reply
from tests.unit.workload import toy

from nilometer.core.record import Call
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.load.probe_terms import Terms, bodies
from nilometer.wire.dialects import DIALECTS
from nilometer.workload import plan, ruler

ODD = 'He said "up\\down"\n水位 \U0001f30a '
"""What a body must not carry as it stands."""


def said(body: bytes) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in json.loads(body)["messages"]]


def answering(exchange: Exchange) -> Reply:
    """Answers with odd signs and the number of messages that it was sent."""
    text = f"{ODD}{len(said(exchange.body))}"
    body = event(text[:9]) + event(text[9:]) + finish() + usage(9, 2) + DONE
    return Reply(body, ((5.0, 20), (10.0, len(body) - 20)), ending="keep")


def talks(prompts: dict[str, Any], load: Load, server: Replay) -> Iterator[Call]:
    spec = Spec(target=server.url, load=load, prompts=Prompts(input_tokens="30", output_tokens="8", **prompts))
    made = ruler.measure(toy.Counting(toy.pieces), toy.text(), 400, ruler.CHEAP, "server_tokenizer")
    body = bodies(spec, Terms(api="chat", model="m"))
    return plan.calls(spec, made, body=body, host="h", target="/v1/chat/completions")


def test_each_turn_repeats_what_was_answered_and_is_due_after_its_think_time(tmp_path: Path) -> None:
    with Replay(answering) as server:
        supply = talks({"turns": "3", "think_s": "0.05"}, Load(concurrency=2), server)
        outcome = drive_here(order(tmp_path, server.url, lanes=2, requests=12), supply)
        bodies_seen = [said(exchange.body) for exchange in server.exchanges]
    records = sorted(outcome.records, key=lambda record: record.seq)
    assert {record.outcome for record in records} == {"ok"}
    by_talk: dict[str, list[Any]] = {}
    for record in records:
        by_talk.setdefault(record.conversation or "", []).append(record)
    for talk in by_talk.values():
        assert [record.turn for record in talk] == list(range(len(talk)))
        assert talk[0].due_ns is None
        for before, after in pairwise(talk):
            assert after.due_ns == pytest.approx(before.end_ns + 50 * MS, abs=2 * MS)
            assert after.sent_ns >= after.due_ns
    third = next(seen for seen in bodies_seen if len(seen) == 5)
    assert [role for role, _ in third] == ["user", "assistant", "user", "assistant", "user"]
    assert third[1][1] == f"{ODD}1"
    assert third[3][1] == f"{ODD}3"
    assert all(record.text is None for record in records)


def test_think_time_of_zero_sends_the_next_turn_at_once(tmp_path: Path) -> None:
    with Replay(answering) as server:
        supply = talks({"turns": "4"}, Load(concurrency=1), server)
        outcome = drive_here(order(tmp_path, server.url, requests=8), supply)
        lengths = [len(said(exchange.body)) for exchange in server.exchanges]
    assert lengths == [1, 3, 5, 7, 1, 3, 5, 7]
    lags = [record.sent_ns - record.due_ns for record in outcome.records if record.due_ns and record.sent_ns]
    assert len(lags) == 6
    assert 0 <= median(lags) < 20 * MS


def test_in_an_open_loop_conversations_start_when_they_are_due(tmp_path: Path) -> None:
    with Replay(answering) as server:
        load = Load(rate_per_s=20, arrivals="constant", warmup_s=0)
        supply = talks({"turns": "2", "think_s": "0.1"}, load, server)
        outcome = drive_here(order(tmp_path, server.url, lanes=None, duration_ns=S // 2), supply)
    first = sorted(record.due_ns or 0 for record in outcome.records if record.turn == 0 and record.phase != "drain")
    assert len(first) == 10
    assert [due - first[0] for due in first] == [50 * MS * i for i in range(10)]
    assert sum(record.turn == 1 for record in outcome.records) >= 7


def test_a_load_as_long_as_its_calls_sends_all_their_turns(tmp_path: Path) -> None:
    with Replay(answering) as server:
        load = Load(rate_per_s=20, arrivals="constant", warmup_s=0)
        supply = islice(talks({"turns": "3", "think_s": "0.25"}, load, server), 2)
        outcome = drive_here(order(tmp_path, server.url, lanes=None), supply)
    assert [record.turn for record in outcome.records] == [0, 0, 1, 1, 2, 2]
    assert {record.phase for record in outcome.records} == {"measured"}


def test_a_conversation_ends_with_an_answer_that_failed(tmp_path: Path) -> None:
    def failing(exchange: Exchange) -> Reply:
        if len(said(exchange.body)) == 3:
            return Reply(b'{"error":{"message":"no"}}', status=500, content_type="application/json",
                         framing="length", ending="keep")  # fmt: skip
        return answering(exchange)

    with Replay(failing) as server:
        supply = talks({"turns": "3"}, Load(concurrency=1), server)
        outcome = drive_here(order(tmp_path, server.url, requests=6), supply)
        lengths = [len(said(exchange.body)) for exchange in server.exchanges]
    assert lengths == [1, 3, 1, 3, 1, 3]
    assert outcome.kinds() == {("ok", None): 3, ("error", "http_5xx"): 3}


@pytest.mark.parametrize("api", [name for name in DIALECTS if name not in ("embeddings", "rerank")])
def test_every_dialect_that_generates_has_room_for_the_answers(api: str) -> None:
    spec = Spec(target="http://t", prompts=Prompts(input_tokens="30", output_tokens="8", turns="2"))
    made = ruler.measure(toy.Counting(toy.pieces), toy.text(), 400, ruler.CHEAP, "server_tokenizer")
    call = next(plan.calls(spec, made, body=bodies(spec, Terms(api=api, model="m")), host="h", target="/"))
    (later,) = call.later
    assert len(later.parts) == 2
    json.loads(b"known".join(later.parts))
