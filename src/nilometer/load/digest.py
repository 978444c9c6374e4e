"""From an Exchange to a Record, after the fact: feed the pieces to the dialect's reader, in slices, and stamp frames.

It runs when the response has ended and the slot has been refilled (or while it comes, for a very long one). It must not
hold the loop longer than it is told.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping
from itertools import islice

from nilometer.core.mask import NO_SECRETS, Mask
from nilometer.core.record import LATE, SHARED, ErrorKind, Frames, Outcome, Record, StampSource
from nilometer.net.connection import NO_STAMP
from nilometer.wire.answer import Answer, Scalar
from nilometer.wire.dialects import Dialect
from nilometer.wire.outcome import is_stream, judge
from nilometer.wire.reader import Reader

from .exchange import Exchange
from .outage import NO_SOCKET
from .pulse import Pulse

_NS_PER_S = 1_000_000_000
_PIECES_PER_LOOK = 16
"""Pieces between two looks at the clock: about 30 us of work."""
_HEAD_BYTES = 400
_FIRST_WORDS = (b"data:", b"event:", b"id:", b"retry:")
_TIMINGS_MOST = 100
_TIMEOUTS = ("timeout_connect", "timeout_first_token", "timeout_idle", "timeout_total")
_OWN_KINDS = ("connect", "tls", "malformed", *_TIMEOUTS)


class Digest:
    """The reading of one response, which may be interrupted and gone on with."""

    __slots__ = (
        "_answer",
        "_at",
        "_begun",
        "_dialect",
        "_exchange",
        "_head",
        "_keep_text",
        "_marks",
        "_mask",
        "_reader",
        "_stream",
    )

    def __init__(self, exchange: Exchange, dialect: Dialect, keep_text: bool, mask: Mask = NO_SECRETS) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self._keep_text = keep_text
        self._mask = mask
        self._marks: list[int] = []
        self._at = 0
        self._begun = False
        self._reader: Reader | None = None
        self._answer: Answer | None = None
        self._look()

    def _look(self) -> None:
        """See by the first bytes what this is."""
        self._head = _head(self._exchange.pieces)
        self._stream = is_stream(self._exchange.headers.get("content-type"), self._head, lines=self._dialect.lines)

    def _begin(self) -> None:
        """Choose the reader once enough has come to tell; of what nothing can read only the head is kept."""
        self._look()
        if self._accepted and self._stream is not None and self._head:
            self._reader = self._dialect.reader(self._stream, self._keep_text or bool(self._exchange.call.later))
            self._begun = True
        elif len(self._head) == _HEAD_BYTES:
            self._begun = True

    @property
    def _accepted(self) -> bool:
        return 200 <= (self._exchange.status or 0) < 300

    def step(self, deadline_ns: int) -> bool:
        """Read on until nothing is left (True) or the deadline has passed (False). Read pieces are dropped."""
        if not self._begun:
            self._begin()
        if self._reader is None:
            if self._begun:
                self._exchange.pieces.clear()
            return True
        pieces, feed, marks = self._exchange.pieces, self._reader.feed, self._marks
        at, end = self._at, len(pieces)
        while at < end:
            stop = min(at + _PIECES_PER_LOOK, end)
            for i in range(at, stop):
                count = feed(pieces[i])
                if count == 1:
                    marks.append(i)
                elif count:
                    marks.extend((i,) * count)
                pieces[i] = b""
            at = self._at = stop
            if at < end and time.monotonic_ns() > deadline_ns:
                return False
        return True

    @property
    def has_matter(self) -> bool:
        """Whether generated matter has come so far."""
        return bool(self._marks)

    @property
    def streams(self) -> bool:
        """Whether the response is a stream, or may still turn out to be one."""
        return self._accepted and self._stream is not False

    @property
    def complete(self) -> bool:
        """Whether the answer said that it was over, though the connection did not."""
        return self._reader is not None and self._reader.complete

    def give_up(self, why: str) -> None:
        """Take the response for one that cannot be read; its record then has the times it had."""
        self._reader = self._answer = None
        self._begun = True
        self._marks = []
        self._exchange.ending, self._exchange.detail = "malformed", why

    def record(self, pulse: Pulse, worker: int) -> Record:
        """The Record of the exchange; call it once, when `step` has returned True."""
        x, mask = self._exchange, self._mask
        answer = self._closed()
        outcome, error, detail = self._verdict(answer)
        stamps = _Stamps(x, pulse)
        frames = stamps.frames(self._marks, self._reader.tokens if self._reader is not None else [])
        first_answer = None
        if self._reader is not None and self._reader.first_answer is not None:
            first_answer = stamps.at(self._marks[self._reader.first_answer])
        counted = answer if answer is not None and (outcome == "ok" or answer.token_source == "usage") else None
        return Record(
            id=f"{worker}-{x.call.seq}",
            seq=x.call.seq,
            phase=x.phase,
            outcome=outcome,
            due_ns=x.due_ns,
            connect_ns=x.connect_ns,
            tls_ns=x.tls_ns,
            sent_ns=x.sent_ns,
            sent_end_ns=x.sent_end_ns,
            first_byte_ns=stamps.moment(x.first_user, x.first_kernel),
            first_token_ns=stamps.at(self._marks[0]) if self._marks else None,
            first_answer_ns=first_answer,
            last_token_ns=stamps.at(self._marks[-1]) if self._marks else None,
            end_ns=_end(x, stamps),
            error=error,
            error_detail=_told(detail, mask.cut),
            retry_after_s=_seconds(x.headers.get("retry-after")),
            status=x.status,
            finish_reason=answer.finish_reason if answer else None,
            native_finish_reason=_told(answer.native_finish_reason, mask.word) if answer else None,
            prompt_tokens=answer.prompt_tokens if answer else None,
            cached_tokens=answer.cached_tokens if answer else None,
            output_tokens=counted.output_tokens if counted else None,
            reasoning_tokens=counted.reasoning_tokens if counted else None,
            token_source=counted.token_source if counted else "none",
            choices=answer.choices if answer else 1,
            hidden_tokens=answer.hidden_tokens if answer else False,
            asked_input=x.call.asked_input,
            asked_output=x.call.asked_output,
            scenario=x.call.scenario,
            conversation=x.call.conversation,
            turn=x.call.turn,
            target=x.call.target,
            worker=worker,
            connection=x.connection,
            new_connection=x.new_connection,
            refill_ns=_refill(x, stamps),
            server_request_id=_told(
                x.headers.get("x-request-id") or (answer.server_request_id if answer else None), mask.word
            ),
            stamp_source=stamps.source,
            server=_timings(answer.server if answer else None, x.headers, mask),
            frames=frames,
            text=_told(answer.text, mask) if answer and self._keep_text else None,
            reasoning=_told(answer.reasoning, mask) if answer and self._keep_text else None,
            tool_arguments=_told(answer.tool_arguments, mask) if answer and self._keep_text else None,
        )

    def answer_text(self) -> str | None:
        """What a later turn repeats of the answer: its text without the reasoning; None where it was not ok."""
        answer = self._closed()
        if answer is None or self._verdict(answer)[0] != "ok":
            return None
        return answer.text or ""

    def _closed(self) -> Answer | None:
        """The answer, once `step` has returned True."""
        if self._answer is None and self._reader is not None:
            self._answer = self._reader.close()
        return self._answer

    def _verdict(self, answer: Answer | None) -> tuple[Outcome, ErrorKind | None, str | None]:
        x = self._exchange
        if x.ending in ("cancelled", "censored"):
            return "cancelled", None, None
        if x.ending == NO_SOCKET:
            return "error", "connect", x.detail
        if x.ending in _OWN_KINDS:
            return "error", x.ending, x.detail[:200] if x.detail else None  # type: ignore[return-value]
        if x.status is None:
            return "incomplete", None, x.detail
        verdict = judge(
            status=x.status,
            content_type=x.headers.get("content-type"),
            head=self._head,
            answer=answer,
            whole=x.ending in ("whole", "closed"),
            lines=self._dialect.lines,
            encoding=x.headers.get("content-encoding"),
        )
        if x.ending == "closed" and self._accepted and self._broken_off(verdict.error):
            return "incomplete", None, None  # nobody said how long it would be: it was closed before its end
        return verdict.outcome, verdict.error, verdict.detail

    def _broken_off(self, error: ErrorKind | None) -> bool:
        """Whether the body is only the start of one: of JSON, or of the first word of a stream."""
        if self._stream is False:
            return not self._head or error == "malformed"
        return any(word.startswith(self._head) for word in _FIRST_WORDS)


class _Stamps:
    """Moments of an exchange: the kernel's stamp on the run's clock where it can be had, else the loop's own."""

    def __init__(self, exchange: Exchange, pulse: Pulse) -> None:
        self._x = exchange
        self._pulse = pulse
        start = exchange.sent_ns or exchange.started_ns
        end = exchange.end_user or start
        self._offset = pulse.offsets(start, end)
        self._stepped = pulse.stepped(start, end)
        self._raw = memoryview(exchange.kernel).cast("q")
        self._used: set[bool] = set()

    def _kernel(self, seconds: int, ns: int, user: int) -> int:
        """A kernel stamp on the monotonic clock, or -1 where there is none to be trusted."""
        if seconds < 0:
            return -1
        if self._stepped and self._pulse.stepped(user, user):
            return -1
        offset = self._offset if self._offset is not None else self._pulse.offset_at(user)
        return min(seconds * _NS_PER_S + ns - offset, user)

    def moment(self, user: int | None, kernel: bytes) -> int | None:
        if user is None:
            return None
        seconds, ns = memoryview(kernel).cast("q")
        at = self._kernel(seconds, ns, user)
        return user if at < 0 else at

    def at(self, piece: int) -> int:
        """The best stamp of a piece."""
        user = self._x.user[piece]
        at = self._kernel(self._raw[2 * piece], self._raw[2 * piece + 1], user)
        return user if at < 0 else at

    def frames(self, marks: list[int], tokens: list[int]) -> Frames:
        users = _chosen(self._x.user, marks)
        kernels = self._kernels(users, marks)
        self._used = {stamp >= 0 for stamp in kernels}
        stated = any(count >= 0 for count in tokens)
        return Frames(
            user=array("q", users).tobytes(),
            kernel=array("q", kernels).tobytes() if True in self._used else b"",
            tokens=array("i", tokens).tobytes() if stated else b"",
            flags=_flags(users, self._x.late),
        )

    def _kernels(self, users: list[int], marks: list[int]) -> list[int]:
        """The kernel stamps of these pieces on the monotonic clock, -1 where there is none to be trusted."""
        seconds = _chosen(self._raw[::2].tolist(), marks)
        parts = _chosen(self._raw[1::2].tolist(), marks)
        offset = self._offset
        if offset is None or self._stepped or (seconds and min(seconds) < 0):
            return [self._kernel(s, ns, user) for s, ns, user in zip(seconds, parts, users, strict=True)]
        stamps = [s * _NS_PER_S + ns - offset for s, ns in zip(seconds, parts, strict=True)]
        return list(map(min, stamps, users))

    @property
    def source(self) -> StampSource:
        if not self._used:
            return "user" if self._x.end_kernel == NO_STAMP else "kernel"
        return "mixed" if len(self._used) > 1 else "kernel" if True in self._used else "user"


def _chosen(values: list[int], marks: list[int]) -> list[int]:
    """The values at these places; mostly they are one run of places, which is quicker to take."""
    if marks and marks == list(range(marks[0], marks[0] + len(marks))):
        return values[marks[0] : marks[-1] + 1]
    return [values[i] for i in marks]


def _flags(users: list[int], late: set[int]) -> bytes:
    """SHARED where a read held several frames, LATE beside it where the loop had been away; empty where neither."""
    if len(set(users)) == len(users):
        return b""
    flags = bytearray(len(users))
    for i in range(1, len(users)):
        if users[i] == users[i - 1]:
            flags[i - 1] = flags[i] = SHARED | (LATE if users[i] in late else 0)
    return bytes(flags)


def _head(pieces: list[bytes]) -> bytes:
    """The first bytes of the body, however small the pieces are."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    return head[:_HEAD_BYTES]


def _told(text: str | None, fit: Callable[[str], str]) -> str | None:
    """What a server says, made fit to be kept."""
    return None if text is None else fit(text)


def _timings(server: dict[str, Scalar] | None, headers: Mapping[str, str], mask: Mask) -> dict[str, Scalar] | None:
    """What the server says of its own times, as far as it is kept, and in a header which replica answered."""
    said: dict[str, Scalar] = {}
    if (replica := headers.get("x-replica")) is not None:
        said["replica"] = int(replica) if replica.isdecimal() and len(replica) < 10 else replica
    named = islice({**(server or {}), **said}.items(), _TIMINGS_MOST)
    told = {mask.word(name): mask.word(value) if isinstance(value, str) else value for name, value in named}
    return told or None


def end_ns(exchange: Exchange, pulse: Pulse) -> int:
    """When the last byte of a whole response came, on the run's clock."""
    return _Stamps(exchange, pulse).moment(exchange.end_user, exchange.end_kernel) or exchange.started_ns


def _end(x: Exchange, stamps: _Stamps) -> int | None:
    """The last byte; where none came, or where we ended it, the moment it was given up."""
    if x.end_user is not None and x.ending in ("whole", "closed", "cut", "malformed"):
        return stamps.moment(x.end_user, x.end_kernel)
    return x.ended_ns


def _refill(x: Exchange, stamps: _Stamps) -> int | None:
    if x.due_ns is not None or x.previous_user is None or x.sent_ns is None:
        return None
    previous = stamps.moment(x.previous_user, x.previous_kernel)
    return None if previous is None else x.sent_ns - previous


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; the date form is not a span and stays None, and so does what is no number of them."""
    try:
        seconds = float(retry_after or "nan")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
