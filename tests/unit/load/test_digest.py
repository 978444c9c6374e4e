"""From bytes and stamps to a Record: which stamp stands where, which frames shared a read, what a failure is called."""

from __future__ import annotations

from array import array
from typing import cast

import pytest
from tests.loopback.driving import DONE, SHORT, event, finish, frame, usage
from tests.unit.load.made import MS, S, exchange

from nilometer.core.mask import NO_SECRETS, WORD_CHARS, Mask
from nilometer.core.record import LATE, SHARED, Record
from nilometer.load.digest import Digest
from nilometer.load.exchange import Exchange
from nilometer.load.pulse import Pulse
from nilometer.wire.dialects import DIALECTS

NEVER = 1 << 62
WALL = 1_700_000_000 * S
"""Wall clock minus monotonic clock."""


class Clock:
    """What a digest asks of the pulse: the offsets, each from its moment on, and where the wall clock stepped."""

    def __init__(self, *offsets: tuple[int, int], steps: list[tuple[int, int]] | None = None) -> None:
        self._offsets = offsets or ((0, WALL),)
        self._steps = steps or []

    def stepped(self, start_ns: int, end_ns: int) -> bool:
        return any(a <= end_ns and start_ns <= b for a, b in self._steps)

    def offsets(self, start_ns: int, end_ns: int) -> int | None:
        return self._offsets[0][1] if len(self._offsets) == 1 else None

    def offset_at(self, at_ns: int) -> int:
        return [offset for since, offset in self._offsets if since <= at_ns][-1]


def read(x: Exchange, clock: Clock | None = None, keep_text: bool = False, mask: Mask = NO_SECRETS) -> Record:
    digest = Digest(x, DIALECTS["chat"], keep_text, mask)
    assert digest.step(NEVER)
    return digest.record(cast(Pulse, clock or Clock()), worker=2)


def at(ms: float) -> int:
    return S + round(ms * MS)


def stream(ending: str = "whole", lag_us: int = 0, stamps: bool = True) -> Exchange:
    """a at 10 ms, b at 20, c at 30 with the end; the loop reads each `lag_us` after the kernel."""
    parts = [(10, [event("a")]), (20, [event("b")]), (30, [event("c") + finish() + usage(7, 3) + DONE])]
    late = lag_us * 1000
    return exchange([(at(ms) + late, WALL + at(ms) if stamps else None, pieces) for ms, pieces in parts], ending)


def test_kernel_stamps_stand_on_the_monotonic_clock_with_the_loops_beside_them() -> None:
    record = read(stream(lag_us=300))
    assert record.stamp_source == "kernel"
    assert [f.kernel_ns for f in record.frames] == [at(10), at(20), at(30)]
    assert [f.user_ns for f in record.frames] == [at(10.3), at(20.3), at(30.3)]
    assert (record.first_byte_ns, record.first_token_ns, record.first_answer_ns) == (at(10),) * 3
    assert (record.last_token_ns, record.end_ns) == (at(30), at(30))
    assert (record.sent_ns, record.outcome, record.output_tokens, record.token_source) == (S, "ok", 3, "usage")
    assert (record.id, record.seq, record.worker, record.phase) == ("2-3", 3, 2, "measured")


def test_without_kernel_stamps_the_loops_own_stand() -> None:
    record = read(stream(lag_us=300, stamps=False))
    assert record.stamp_source == "user"
    assert record.frames.kernel == b""
    assert (record.first_token_ns, record.last_token_ns, record.end_ns) == (at(10.3), at(30.3), at(30.3))


def test_a_read_without_a_kernel_stamp_has_its_own_and_the_source_is_mixed() -> None:
    x = stream(lag_us=300)
    x.kernel[16:32] = b"\xff" * 16
    record = read(x)
    assert record.stamp_source == "mixed"
    assert [f.at_ns for f in record.frames] == [at(10), at(20.3), at(30)]
    assert list(memoryview(record.frames.kernel).cast("q")) == [at(10), -1, at(30)]


def test_a_kernel_stamp_is_never_after_the_loops_own() -> None:
    """Offsets are good to some microseconds: what comes out later than the read cannot be."""
    record = read(stream(), Clock((0, WALL - 5_000)))
    assert [f.kernel_ns for f in record.frames] == [at(10), at(20), at(30)]
    assert record.first_byte_ns == at(10)


def test_offsets_that_drift_are_each_that_of_its_moment() -> None:
    record = read(stream(lag_us=300), Clock((0, WALL), (at(15), WALL + 50_000), (at(25), WALL + 100_000)))
    assert [f.kernel_ns for f in record.frames] == [at(10), at(20) - 50_000, at(30) - 100_000]


def test_where_the_wall_clock_stepped_the_loops_own_stamps_stand() -> None:
    clock = Clock((0, WALL), (at(25), WALL + S), steps=[(at(15), at(25))])
    x = exchange([
        (at(10.3), WALL + at(10), [event("a")]),
        (at(20.3), WALL + S + at(20), [event("b")]),
        (at(30.3), WALL + S + at(30), [event("c") + finish() + usage(7, 3) + DONE]),
    ])  # fmt: skip
    record = read(x, clock)
    assert record.stamp_source == "mixed"
    assert [f.kernel_ns for f in record.frames] == [at(10), None, at(30)]
    assert [f.at_ns for f in record.frames] == [at(10), at(20.3), at(30)]
    assert (record.first_token_ns, record.last_token_ns, record.end_ns) == (at(10), at(30), at(30))


def test_frames_of_one_read_are_flagged_and_late_where_the_loop_was_away() -> None:
    x = exchange([
        (at(10), WALL + at(10), [event("a")]),
        (at(20), WALL + at(20), [event("b"), event("c")]),
        (at(30), WALL + at(30), [event("d") + event("e")]),
        (at(40), WALL + at(40), [event("f"), finish() + usage(7, 6) + DONE]),
    ])  # fmt: skip
    x.late = {at(30), at(40)}
    record = read(x)
    assert list(record.frames.flags) == [0, SHARED, SHARED, SHARED | LATE, SHARED | LATE, 0]
    assert [f.shared_read for f in record.frames] == [False, True, True, True, True, False]
    assert [f.at_ns for f in record.frames] == [at(ms) for ms in (10, 20, 20, 30, 30, 40)]


def test_a_late_read_of_one_frame_is_not_flagged() -> None:
    x = stream()
    x.late = {at(20)}
    assert read(x).frames.flags == b""


def test_a_frame_counts_where_its_blank_line_is_complete() -> None:
    body = event("a") + event("b") + finish() + usage(7, 2) + DONE
    border = len(event("a")) - 1
    x = exchange([
        (at(10), WALL + at(10), [body[:border]]),
        (at(20), WALL + at(20), [body[border : border + 40]]),
        (at(30), WALL + at(30), [body[border + 40 :]]),
    ])  # fmt: skip
    record = read(x)
    assert (record.first_byte_ns, record.first_token_ns, record.last_token_ns) == (at(10), at(20), at(30))


def test_reasoning_is_a_token_and_no_answer() -> None:
    thought = frame(choices=[{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}])
    x = exchange([
        (at(10), WALL + at(10), [frame(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])]),
        (at(20), WALL + at(20), [thought]),
        (at(30), WALL + at(30), [event("yes")]),
        (at(40), WALL + at(40), [finish() + usage(7, 2) + DONE]),
    ])  # fmt: skip
    record = read(x, keep_text=True)
    assert (record.first_byte_ns, record.first_token_ns, record.first_answer_ns) == (at(10), at(20), at(30))
    assert (record.last_token_ns, record.end_ns) == (at(30), at(40))
    assert (record.text, record.reasoning) == ("yes", "hm")


def test_running_usage_gives_each_frame_its_tokens() -> None:
    told = [{"prompt_tokens": 7, "completion_tokens": n} for n in (1, 5, 9)]
    pieces = [event(text, usage=counts) for text, counts in zip("abc", told, strict=True)]
    x = exchange([(at(i), WALL + at(i), [piece]) for i, piece in enumerate([*pieces, finish() + DONE], 1)])
    record = read(x)
    assert list(memoryview(record.frames.tokens).cast("i")) == [1, 4, 4]
    assert record.output_tokens == 9


def test_without_stated_tokens_there_is_no_column_of_them() -> None:
    assert read(stream()).frames.tokens == b""


@pytest.mark.parametrize("ending", ["cancelled", "censored"])
def test_what_we_cut_off_is_cancelled_and_keeps_its_times(ending: str) -> None:
    x = exchange([(at(10), WALL + at(10), [event("a")])], ending)
    x.ended_ns = at(500)
    record = read(x)
    assert (record.outcome, record.error, record.finish_reason) == ("cancelled", None, None)
    assert (record.first_token_ns, record.last_token_ns, record.end_ns) == (at(10), at(10), at(500))
    assert (record.output_tokens, record.token_source) == (None, "none")


@pytest.mark.parametrize(
    "kind", ["connect", "tls", "timeout_connect", "timeout_first_token", "timeout_idle", "timeout_total"]
)
def test_what_the_net_or_a_limit_ended_is_an_error_of_that_kind(kind: str) -> None:
    x = exchange([], kind, status=None)
    x.detail = "x" * 300
    record = read(x)
    assert (record.outcome, record.error, record.status) == ("error", kind, None)
    assert record.error_detail == "x" * 200
    assert record.first_byte_ns is None
    assert record.end_ns == S


def test_what_was_counted_before_a_cut_is_kept_where_the_server_said_it() -> None:
    told = {"prompt_tokens": 7, "completion_tokens": 4}
    record = read(exchange([(at(10), WALL + at(10), [event("a", usage=told)])], "cut"))
    assert (record.outcome, record.output_tokens, record.token_source) == ("incomplete", 4, "usage")
    record = read(exchange([(at(10), WALL + at(10), [event("a")])], "cut"))
    assert (record.outcome, record.output_tokens, record.token_source) == ("incomplete", None, "none")


def test_refill_counts_from_the_end_before_it_on_the_best_clock() -> None:
    x = stream()
    x.previous_user, x.previous_kernel = S - 200_000, array("q", divmod(WALL + S - 500_000, S)).tobytes()
    assert read(x).refill_ns == 500_000
    x = stream()
    x.previous_user = S - 200_000
    assert read(x).refill_ns == 200_000
    x.due_ns = S
    assert read(x).refill_ns is None  # in an open loop nobody waits for a slot


def test_a_step_at_a_time_gives_the_same_as_all_at_once() -> None:
    pieces = [event(str(i)) for i in range(100)] + [finish() + usage(7, 100) + DONE]
    reads = [(at(i), WALL + at(i), [piece]) for i, piece in enumerate(pieces)]
    x = exchange(reads)
    digest = Digest(x, DIALECTS["chat"], False)
    steps = 1
    while not digest.step(0):
        steps += 1
    assert steps > 3
    assert set(x.pieces) == {b""}  # read pieces are let go
    assert digest.record(cast(Pulse, Clock()), 2) == read(exchange(reads))


def test_a_stream_is_read_on_while_it_comes() -> None:
    x = exchange([(at(1), WALL + at(1), [b"da"])])
    digest = Digest(x, DIALECTS["chat"], False)
    seen = []
    for i, byte in enumerate(SHORT[2:], 2):
        digest.step(NEVER)
        x.pieces.append(bytes((byte,)))
        x.user.append(at(i))
        x.kernel += x.kernel[:16]
        seen.append((digest.has_matter, digest.complete))
    digest.step(NEVER)
    assert (digest.has_matter, digest.complete, digest.streams) == (True, True, True)
    assert seen.index((True, False)) + 2 == len(event("a"))  # of the step that read the frame's last byte
    assert digest.record(cast(Pulse, Clock()), 2).output_tokens == 3


def test_a_look_before_the_first_byte_decides_nothing() -> None:
    """A limit may look into a response of which only headers are there, and those name no kind."""
    x = exchange([], content_type="")
    digest = Digest(x, DIALECTS["chat"], False)
    assert digest.step(NEVER)
    assert (digest.has_matter, digest.streams, digest.complete) == (False, True, False)
    for i, byte in enumerate(SHORT):
        x.pieces.append(bytes((byte,)))
        x.user.append(at(i))
        x.kernel += b"\xff" * 16
        digest.step(NEVER)
    record = digest.record(cast(Pulse, Clock()), 2)
    assert (record.outcome, record.output_tokens, len(record.frames)) == ("ok", 3, 3)
    assert record.first_token_ns == at(len(event("a")) - 1)


@pytest.mark.parametrize(
    ("status", "kind", "streams"),
    [(200, "text/event-stream", True), (200, "", True), (200, "application/json", False), (500, "", False)],
)
def test_whether_a_response_may_still_turn_out_to_stream(status: int, kind: str, streams: bool) -> None:
    assert Digest(exchange([], status=status, content_type=kind), DIALECTS["chat"], False).streams is streams


def test_a_long_answer_that_is_none_is_let_go() -> None:
    x = exchange([(at(1), WALL + at(1), [b"<html>" + b"x" * 1000])], content_type="text/html")
    digest = Digest(x, DIALECTS["chat"], False)
    assert not digest.streams or digest.step(NEVER)
    digest.step(NEVER)
    assert x.pieces == []
    x.pieces.append(b"y" * 100)
    x.user.append(at(2))
    digest.step(NEVER)
    record = digest.record(cast(Pulse, Clock()), 2)
    assert (record.error, record.status) == ("not_a_model_answer", 200)
    assert (record.error_detail or "").startswith("<html>")


def test_what_a_server_says_is_kept_without_the_secrets_that_it_was_told() -> None:
    mask = Mask(["canary-1"])
    refusal = exchange([(at(1), None, [b'{"error":{"message":"no canary-1 known"}}'])], status=401)
    assert read(refusal, mask=mask).error_detail == "no *** known"
    cut = exchange([(at(1), None, [b'{"error":{"message":"' + b"x" * 193 + b'canary-1"}}'])], status=500)
    assert read(cut, mask=mask).error_detail == "x" * 193 + "***"
    net = exchange([], "connect", status=None)
    net.detail = "the proxy answered canary-1"
    assert read(net, mask=mask).error_detail == "the proxy answered ***"
    said = frame(
        id="r-canary-1", choices=[{"index": 0, "delta": {"content": "a canary-1"}, "finish_reason": "canary-1"}]
    )
    answered = exchange(
        [(at(1), None, [said + frame(choices=[], timings={"t.canary-1": "canary-1", "n": 1.5}) + DONE])]
    )
    record = read(answered, keep_text=True, mask=mask)
    assert (record.server_request_id, record.native_finish_reason, record.text) == ("r-***", "***", "a ***")
    assert record.server == {"t.***": "***", "n": 1.5}


def test_no_word_of_a_server_is_kept_longer_than_a_name_is() -> None:
    long = "x" * 5_000
    said = frame(id=long, choices=[{"index": 0, "delta": {"content": "a"}, "finish_reason": long}])
    timings = frame(choices=[], timings={long: long, **{f"n{i}": i for i in range(1_000)}})
    record = read(exchange([(at(1), None, [said + timings + DONE])]))
    assert (record.outcome, record.finish_reason) == ("ok", "other")
    cut = "x" * WORD_CHARS
    assert (record.server_request_id, record.native_finish_reason) == (cut, cut)
    assert record.server is not None
    assert (len(record.server), record.server[cut]) == (100, cut)
    headed = exchange([(at(1), None, [event("a") + finish() + DONE])])
    headed.headers["x-request-id"] = long
    assert read(headed).server_request_id == cut


def test_given_up_it_has_the_times_it_had_and_no_counts() -> None:
    x = stream()
    digest = Digest(x, DIALECTS["chat"], False)
    digest.step(NEVER)
    digest.give_up("OverflowError()")
    record = digest.record(cast(Pulse, Clock()), 2)
    assert (record.outcome, record.error, record.error_detail) == ("error", "malformed", "OverflowError()")
    assert (record.first_byte_ns, record.end_ns, record.output_tokens) == (at(10), at(30), None)
    assert len(record.frames) == 0


@pytest.mark.parametrize(
    ("body", "content_type", "outcome", "error"),
    [
        (b"", "text/event-stream", "incomplete", None),
        (b"dat", "text/event-stream", "incomplete", None),
        (event("a"), "text/event-stream", "incomplete", None),
        (event("a") + finish(), "text/event-stream", "ok", None),
        (b'{"choices":[{"mess', "application/json", "incomplete", None),
        (b"event", "text/event-stream", "incomplete", None),
        (event("a")[:-1], "text/event-stream", "incomplete", None),
        (b"", "application/json", "incomplete", None),
        (b'{"object":"list"}', "application/json", "error", "not_a_model_answer"),
        (b"upstream error", "text/event-stream", "error", "not_a_model_answer"),
        (b"<html>", "text/html", "error", "not_a_model_answer"),
    ],
)
def test_closed_where_only_the_close_can_tell_the_end(
    body: bytes, content_type: str, outcome: str, error: str | None
) -> None:
    reads = [(at(1), WALL + at(1), [body])] if body else []
    record = read(exchange(reads, "closed", content_type=content_type))
    assert (record.outcome, record.error) == (outcome, error)


def test_the_servers_name_for_the_request_is_kept() -> None:
    x = stream()
    x.headers["x-request-id"] = "req-1"
    assert read(x).server_request_id == "req-1"
    assert read(x).server is None
    x.headers["x-replica"] = "2"
    assert read(x).server == {"replica": 2}
    x.headers["x-replica"] = "pod-7"
    assert read(x).server == {"replica": "pod-7"}
    assert read(stream()).server_request_id == "c"
