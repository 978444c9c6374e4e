"""The next turn of a conversation, made when the answer before it is known. Bytes only; no dialect is known here."""

from __future__ import annotations

import msgspec

from nilometer.core.record import Call, FollowUp

from .exchange import Exchange


def goes_on(exchange: Exchange) -> bool:
    """Whether a later turn follows; what was answered is read when that is due."""
    answered = exchange.ending in ("whole", "closed") and 200 <= (exchange.status or 0) < 300
    return answered and bool(exchange.call.later)


def following(call: Call, answer: str) -> Call:
    """The call after this one, its body's holes filled with all answers so far, in order."""
    turn, *later = call.later
    answers = (*call.answers, msgspec.json.encode(answer)[1:-1])
    return Call(
        seq=turn.seq,
        request=_request(turn, answers),
        asked_output=turn.asked_output,
        scenario=call.scenario,
        conversation=call.conversation,
        turn=(call.turn or 0) + 1,
        target=call.target,
        later=tuple(later),
        answers=answers,
    )


def _request(turn: FollowUp, answers: tuple[bytes, ...]) -> bytes:
    first, *rest = turn.parts
    payload = first + b"".join(piece for pair in zip(answers, rest, strict=True) for piece in pair)
    return turn.head + b"Content-Length: %d\r\n\r\n" % len(payload) + payload
