"""What is to be sent (`Call`) and what was seen (`Record`). The simulator and the load generator make the same Record.

All stamps are ns on the run's monotonic clock. A stamp that was not taken is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

Outcome = Literal["ok", "error", "incomplete", "cancelled"]
Phase = Literal["warmup", "measured", "drain"]
TokenSource = Literal["usage", "server_tokenizer", "local_tokenizer", "estimated", "none"]
StampSource = Literal["kernel", "user", "mixed", "simulated"]
ErrorKind = Literal[
    "connect",
    "tls",
    "timeout_connect",
    "timeout_first_token",
    "timeout_idle",
    "timeout_total",
    "http_4xx",
    "http_429",
    "http_5xx",
    "stream_error",
    "not_a_model_answer",
    "malformed",
]

SHARED = 1
"""Flag of a frame: its read held more than one frame with generated matter."""
LATE = 2
"""Flag of a frame: when its read came, the load loop had been away for longer than it ever should be."""


class FollowUp(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A later turn of a conversation: its body with holes for the answers before it, which nobody knows yet.

    `parts` are the pieces between the holes, one more than there are answers; `head` is the request up to, not
    including, Content-Length. It is due `think_ns` after the end of the answer before it.
    """

    seq: int
    head: bytes
    parts: tuple[bytes, ...]
    think_ns: int = 0
    asked_output: int | None = None


class Call(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One request, ready to be written to the socket.

    `request` is the whole HTTP/1.1 request; `due_ns` counts from the start of the load,
    None for a closed-loop slot.
    """

    seq: int
    request: bytes
    due_ns: int | None = None
    asked_input: int | None = None
    asked_output: int | None = None
    scenario: str | None = None
    conversation: str | None = None
    turn: int | None = None
    target: int = 0
    later: tuple[FollowUp, ...] = ()
    """The turns that follow, in order."""
    answers: tuple[bytes, ...] = ()
    """What was answered to the turns before this one, as it stands inside a JSON string."""


class Frame(NamedTuple):
    """One stream frame that carried generated matter."""

    kernel_ns: int | None
    user_ns: int
    tokens: int | None
    shared_read: bool

    @property
    def at_ns(self) -> int:
        """The best stamp there is: the kernel's, else the loop's own."""
        return self.user_ns if self.kernel_ns is None else self.kernel_ns


class Frames(msgspec.Struct, frozen=True, gc=False):
    """The frames with generated matter of one request, as packed little-endian columns (nothing per event on the heap).

    `user` int64 ns each; `kernel` int64 ns, -1 where a read had no kernel stamp, or empty where none had;
    `tokens` int32 stated by the server for that frame, -1 unknown, or empty where none was stated;
    `flags` uint8 of SHARED and LATE, or empty where all are 0.
    """

    user: bytes = b""
    kernel: bytes = b""
    tokens: bytes = b""
    flags: bytes = b""

    def __len__(self) -> int:
        return len(self.user) // 8

    def __iter__(self) -> Iterator[Frame]:
        user = memoryview(self.user).cast("q")
        kernel = memoryview(self.kernel).cast("q") if self.kernel else None
        tokens = memoryview(self.tokens).cast("i") if self.tokens else None
        for i, user_ns in enumerate(user):
            yield Frame(
                kernel[i] if kernel and kernel[i] >= 0 else None,
                user_ns,
                tokens[i] if tokens and tokens[i] >= 0 else None,
                bool(self.flags and self.flags[i] & SHARED),
            )


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One request as it was seen. A request that failed keeps the times it had."""

    id: str
    seq: int
    phase: Phase
    outcome: Outcome
    due_ns: int | None = None
    connect_ns: int | None = None
    tls_ns: int | None = None
    sent_ns: int | None = None
    sent_end_ns: int | None = None
    first_byte_ns: int | None = None
    first_token_ns: int | None = None
    first_answer_ns: int | None = None
    last_token_ns: int | None = None
    end_ns: int | None = None
    error: ErrorKind | None = None
    error_detail: str | None = None
    retry_after_s: float | None = None
    status: int | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    token_source: TokenSource = "none"
    choices: int = 1
    hidden_tokens: bool = False
    asked_input: int | None = None
    asked_output: int | None = None
    scenario: str | None = None
    conversation: str | None = None
    turn: int | None = None
    target: int = 0
    worker: int = 0
    connection: int | None = None
    new_connection: bool = False
    refill_ns: int | None = None
    server_request_id: str | None = None
    stamp_source: StampSource = "user"
    server: dict[str, float | int | str | bool | None] | None = None
    frames: Frames = Frames()
    text: str | None = None
    reasoning: str | None = None
    tool_arguments: str | None = None

    @property
    def start_ns(self) -> int | None:
        """Where a latency starts: `due` where there is one, else `sent`."""
        return self.sent_ns if self.due_ns is None else self.due_ns

    @property
    def has_tpot(self) -> bool:
        """Whether TPOT may be computed: counted (not estimated), streamed, one choice, two tokens or more."""
        return (
            self.first_token_ns is not None
            and self.output_tokens is not None
            and self.output_tokens >= 2
            and self.choices == 1
            and not self.hidden_tokens
            and self.token_source not in ("estimated", "none")
        )
