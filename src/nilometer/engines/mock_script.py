"""What a mock server is scripted to do: timing, lengths, faults. Pure: no socket, no clock, no stored randomness.

Everything that is drawn is drawn from (seed, request number) alone, so the same requests in the same order get the
same answers in every run.
"""

from __future__ import annotations

import math
from random import Random
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.clock import NS_PER_MS
from nilometer.core.errors import SpecError
from nilometer.core.record import ErrorKind, Outcome

UsageStyle = Literal["own", "finish", "running", "none"]
ReasoningField = Literal["reasoning_content", "reasoning"]


class FaultKind(NamedTuple):
    """What a fault should look like to a client that judges well; `after` is the default of its parameter."""

    outcome: Outcome | None
    error: ErrorKind | None
    after: int
    says: str


FAULTS: dict[str, FaultKind] = {
    "http_400": FaultKind("error", "http_4xx", 0, "status 400 with a JSON error"),
    "http_429": FaultKind("error", "http_429", 2, "status 429, Retry-After of AFTER seconds"),
    "http_500": FaultKind("error", "http_5xx", 0, "status 500 with a JSON error"),
    "http_503": FaultKind("error", "http_5xx", 0, "status 503 with a JSON error"),
    "drop": FaultKind("incomplete", None, 0, "connection closed before the first byte"),
    "mute": FaultKind("error", "timeout_first_token", 0, "request read, never answered"),
    "cut": FaultKind("incomplete", None, 5, "connection closed after AFTER tokens"),
    "stall": FaultKind("error", "timeout_idle", 5, "silent after AFTER tokens, connection open"),
    "stream_error": FaultKind("error", "stream_error", 5, "error object inside the 200 stream after AFTER tokens"),
    "html200": FaultKind("error", "not_a_model_answer", 0, "an HTML page with status 200"),
    "garbage": FaultKind("error", "malformed", 5, "data that is not JSON after AFTER tokens"),
    "noise": FaultKind("error", "malformed", 0, "bytes that are not HTTP"),
    "drip": FaultKind(None, None, 1000, "the stream one byte every AFTER ms"),
    "flood": FaultKind(None, None, 64, "one line of AFTER MiB without an end"),
}
"""Faults by name. An outcome of None depends on the client's limits."""


class Fault(msgspec.Struct, frozen=True):
    """One kind of fault and the share of requests that meet it."""

    kind: str
    share: float
    after: int


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """The whole behaviour of one mock server. Times in ms, counted from the moment a request was fully read."""

    models: tuple[str, ...] = ("mock",)
    ttft_ms: float = 200.0
    gap_ms: float = 20.0
    gap_ms_per_stream: float = 0.0
    """Added to every gap for each other request in service: a step of a larger batch takes longer."""
    prefill_ms_per_token: float = 0.0
    noise: float = 0.0
    """Each request is faster or slower than scripted by a factor of its own: the sd of its log, which is normal."""
    slots: int = 0
    """Requests served at once; the others queue in order of arrival. 0 = no limit."""
    aligned: bool = False
    """Token frames of all streams are written on one common grid of `gap_ms`."""
    tokens: int = 64
    """Output tokens where the request names no limit."""
    stop_after: tuple[int, int] | None = None
    """The model ends by itself after this many tokens (drawn between both), unless told to ignore its end mark."""
    honours_ignore_eos: bool = True
    tokens_per_frame: int = 1
    role_lead_ms: float | None = None
    """An empty role frame this long before the first token, at once where the wait is shorter; None = no such frame."""
    late_headers: bool = False
    """The response headers leave together with the first frame instead of at once."""
    usage: UsageStyle = "own"
    reasoning_tokens: int = 0
    reasoning_field: ReasoningField = "reasoning_content"
    faults: list[Fault] = []
    crlf: bool = False
    comments: bool = False
    refuse_stream_options: bool = False
    any_model: bool = False
    tokenize: bool = True
    api_key: str | None = None
    template_tokens: int = 5
    """Tokens the chat template adds to every prompt."""
    null: bool = False
    """Answers at once and without gaps, as fast as the server can."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be served: slug `mock_option`."""
        _require(bool(self.models), "models")
        _require(min(self.ttft_ms, self.gap_ms, self.gap_ms_per_stream, self.prefill_ms_per_token) >= 0, "a time < 0")
        _require(0 <= self.noise <= 1, "noise")
        _require(not (self.aligned and self.noise), "aligned and noise")
        _require(not self.aligned or self.gap_ms > 0 or self.null, "aligned needs a gap")
        _require(self.tokens >= 1, "tokens")
        _require(self.tokens_per_frame >= 1, "tokens_per_frame")
        _require(self.slots >= 0, "slots")
        _require(self.reasoning_tokens >= 0, "reasoning_tokens")
        _require(sum(fault.share for fault in self.faults) <= 1 + 1e-9, "the shares of all faults exceed 1")
        if self.stop_after is not None:
            _require(1 <= self.stop_after[0] <= self.stop_after[1], "stop_after")

    @property
    def gap_ns(self) -> int:
        """Time between two tokens; 0 for the null server."""
        return 0 if self.null else round(self.gap_ms * NS_PER_MS)

    def slowdown_ns(self, in_service: int) -> int:
        """By how much each gap is longer than `gap_ns` while so many requests are in service."""
        return 0 if self.null else round(self.gap_ms_per_stream * max(0, in_service - 1) * NS_PER_MS)

    def first_token_ns(self, prompt_tokens: int) -> int:
        """Time from the start of service to the first token: base plus prefill; 0 for the null server."""
        if self.null:
            return 0
        return round((self.ttft_ms + self.prefill_ms_per_token * prompt_tokens) * NS_PER_MS)

    def on_grid_ns(self, at_ns: int) -> int:
        """The next point of the common grid at or after `at_ns`; `at_ns` itself where streams are not aligned."""
        if not self.aligned or self.gap_ns == 0:
            return at_ns
        return -(-at_ns // self.gap_ns) * self.gap_ns


def _require(condition: bool, option: str) -> None:
    if not condition:
        raise SpecError("mock_option", option=option)


def parse_fault(text: str) -> Fault:
    """`KIND:SHARE[:AFTER]` with a share as 0.1 or 10%; refuses with slug `mock_fault`."""
    kind, _, rest = text.partition(":")
    share_text, _, after_text = rest.partition(":")
    if kind not in FAULTS:
        raise SpecError("mock_fault", text=text, known=", ".join(FAULTS))
    try:
        share = float(share_text[:-1]) / 100 if share_text.endswith("%") else float(share_text)
        after = int(after_text) if after_text else FAULTS[kind].after
    except ValueError:
        raise SpecError("mock_fault", text=text, known=", ".join(FAULTS)) from None
    if not 0 <= share <= 1 or after < 0:
        raise SpecError("mock_fault", text=text, known=", ".join(FAULTS))
    return Fault(kind, share, after)


def draw_fault(script: Script, number: int) -> Fault | None:
    """The fault that request `number` meets, None for a sound answer."""
    if not script.faults:
        return None
    left = _random(script, number, "fault").random()
    for fault in script.faults:
        left -= fault.share
        if left < 0:
            return fault
    return None


def paced(script: Script, number: int) -> Script:
    """The script as request `number` meets it: with its noise drawn."""
    if not script.noise:
        return script
    factor = math.exp(_random(script, number, "pace").gauss(0, script.noise))
    times = ("ttft_ms", "gap_ms", "prefill_ms_per_token")
    return msgspec.structs.replace(script, **{name: factor * getattr(script, name) for name in times})


class Length(NamedTuple):
    """How many tokens come and why they end."""

    tokens: int
    finish_reason: Literal["stop", "length"]


def draw_length(script: Script, number: int, limit: int | None, ignore_eos: bool, min_tokens: int) -> Length:
    """Output length of request `number`: the request's limit, cut where the model would end by itself."""
    ceiling = script.tokens if limit is None else limit
    own_end = _own_end(script, number, ignore_eos, min_tokens)
    if own_end is not None and own_end <= ceiling:
        return Length(own_end, "stop")
    return Length(ceiling, "stop" if limit is None else "length")


def _own_end(script: Script, number: int, ignore_eos: bool, min_tokens: int) -> int | None:
    if script.stop_after is None:
        return None
    if not script.honours_ignore_eos:
        return _random(script, number, "length").randint(*script.stop_after)
    if ignore_eos:
        return None
    return max(min_tokens, _random(script, number, "length").randint(*script.stop_after))


def _random(script: Script, number: int, purpose: str) -> Random:
    return Random(f"{script.seed}/{purpose}/{number}")  # noqa: S311 - a script, not a secret
