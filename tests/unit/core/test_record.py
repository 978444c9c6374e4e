"""Call, Frame and Record: what a missing stamp is, where a latency starts, when TPOT may be computed."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import pytest

from nilometer.core.record import LATE, SHARED, Call, Frame, Frames, Record


def record(**fields: Any) -> Record:
    return Record(**{"id": "0-0", "seq": 0, "phase": "measured", "outcome": "ok", **fields})


def packed(*values: int, kind: str = "q") -> bytes:
    return array(kind, values).tobytes()


def test_no_frames_are_no_frames() -> None:
    assert len(Frames()) == 0
    assert list(Frames()) == []


def test_frames_with_user_stamps_alone() -> None:
    frames = Frames(user=packed(10, 20))
    assert len(frames) == 2
    assert list(frames) == [Frame(None, 10, None, False), Frame(None, 20, None, False)]


def test_frames_with_every_column() -> None:
    frames = Frames(
        user=packed(10, 20, 30),
        kernel=packed(9, -1, 0),
        tokens=packed(-1, 4, 0, kind="i"),
        flags=bytes([0, SHARED, LATE]),
    )
    assert list(frames) == [
        Frame(9, 10, None, False),
        Frame(None, 20, 4, True),
        Frame(0, 30, 0, False),  # 0 is a stamp and a count; only -1 is unknown
    ]
    assert [frame.at_ns for frame in frames] == [9, 20, 0]


def test_frames_can_be_walked_more_than_once() -> None:
    frames = Frames(user=packed(1, 2))
    assert list(frames) == list(frames)


@pytest.mark.parametrize(
    ("fields", "start"), [({}, None), ({"sent_ns": 5}, 5), ({"due_ns": 3}, 3), ({"due_ns": 0, "sent_ns": 5}, 0)]
)
def test_a_latency_starts_when_due_else_when_sent(fields: dict[str, int], start: int | None) -> None:
    assert record(**fields).start_ns == start


GOOD = {"first_token_ns": 1, "output_tokens": 2, "token_source": "usage"}


def test_tpot_needs_two_counted_tokens_that_were_streamed() -> None:
    assert record(**GOOD).has_tpot
    assert record(**{**GOOD, "first_token_ns": 0}).has_tpot  # 0 is a stamp


@pytest.mark.parametrize(
    "lack",
    [
        {"first_token_ns": None},
        {"output_tokens": None},
        {"output_tokens": 1},
        {"output_tokens": 0},
        {"choices": 2},
        {"choices": 0},
        {"hidden_tokens": True},
        {"token_source": "estimated"},
        {"token_source": "none"},
    ],
)
def test_tpot_is_unknown_where_anything_of_it_is(lack: dict[str, Any]) -> None:
    assert not record(**{**GOOD, **lack}).has_tpot


@pytest.mark.parametrize("source", ["usage", "server_tokenizer", "local_tokenizer"])
def test_every_counted_source_will_do(source: str) -> None:
    assert record(**{**GOOD, "token_source": source}).has_tpot


def test_values_are_frozen() -> None:
    for value, name in ((record(), "seq"), (Call(seq=0, request=b""), "seq"), (Frames(), "user")):
        with pytest.raises(AttributeError):
            setattr(value, name, 1)


def test_a_stamp_that_was_not_taken_is_none_and_takes_no_room() -> None:
    whole = record()
    assert [name for name in whole.__struct_fields__ if name.endswith("_ns") and getattr(whole, name) == 0] == []
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(whole)) == {
        "id": "0-0", "seq": 0, "phase": "measured", "outcome": "ok",
    }  # fmt: skip
