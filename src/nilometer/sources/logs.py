"""Logs of services in production: LiteLLM, Langfuse, vLLM's request log, OpenTelemetry gen_ai spans.

They may hold text: a row is one request with all that was said before it. Lengths are those the service counted, where
it did. Rows of calls that failed, or that are no generation, are passed over by reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nilometer.workload.entry import RENDERED, Entry, Part

from .row import Broken, Got, Message, Piece, Skipped, iso_ns, length, number_ns, part, told

_GENERATIONS = ("completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses")


class Chat(msgspec.Struct, gc=False):
    """An object that may hold messages."""

    messages: list[Message] = []


Prompt = list[Message] | Chat | str | None
_PROMPT = msgspec.json.Decoder(list[Message] | Chat)
_PIECES = msgspec.json.Decoder(list[Piece | str])
_REDACTED = "redacted-by-litellm"


class LiteLLM(msgspec.Struct, gc=False):
    """A StandardLoggingPayload, or a row of the spend logs."""

    startTime: float | str  # noqa: N815 - the name is LiteLLM's
    call_type: str | None = None
    status: str | None = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    messages: Prompt = None
    trace_id: str | None = None
    session_id: str | None = None


def litellm(row: LiteLLM, line: int) -> Sequence[Got]:
    """`startTime` as a number is in seconds since 1970, as text a date."""
    if row.status is not None and row.status != "success":
        return (Skipped("failed_call"),)
    if row.call_type and row.call_type not in _GENERATIONS:
        return (Skipped("not_text_generation"),)
    start = row.startTime
    return (
        _logged(
            line,
            iso_ns(start) if isinstance(start, str) else number_ns(start, "s"),
            length(row.prompt_tokens, "prompt_tokens"),
            length(row.completion_tokens, "completion_tokens"),
            _parts(row.messages),
            row.session_id or row.trace_id,
        ),
    )


def _logged(
    line: int, at_ns: int, asked: int | None, answered: int | None, parts: tuple[Part, ...], session: str | None
) -> Got:
    """A request of a log; without a prompt in it its lengths are all there is."""
    if asked is None and not parts:
        return Skipped("no_lengths")
    if not asked and not parts:
        return Skipped("empty_prompt")
    turns = 1 if len(parts) < 3 else max(1, [each.role for each in parts].count("user"))
    entry = Entry(
        line=line,
        at_ns=at_ns,
        input_tokens=asked,
        output_tokens=answered,
        turns=turns,
        parts=parts,
        session=session,
    )
    return told(entry)


def _parts(prompt: Prompt) -> tuple[Part, ...]:
    """Messages in whatever form a log keeps a prompt in; nothing where it is none that can be sent again."""
    if isinstance(prompt, str):
        if prompt[:1] not in ("[", "{"):
            return (Part("user", prompt),) if prompt and not prompt.startswith(_REDACTED) else ()
        try:
            prompt = _PROMPT.decode(prompt)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return (Part("user", str(prompt)),)
    if isinstance(prompt, Chat):
        prompt = prompt.messages
    parts = tuple([part(each) for each in prompt]) if isinstance(prompt, list) else ()
    return () if any((each.text or "").startswith(_REDACTED) for each in parts) else parts


class Langfuse(msgspec.Struct):
    """An observation of an export, in the names of the API or of the blob storage."""

    type: str
    startTime: str | None = None  # noqa: N815 - the name is Langfuse's
    start_time: str | None = None
    usageDetails: Any = None  # noqa: N815
    usage_details: Any = None
    usage: Any = None
    input: Prompt = None
    level: str | None = None
    traceId: str | None = None  # noqa: N815
    trace_id: str | None = None


def langfuse(row: Langfuse, line: int) -> Sequence[Got]:
    """A generation; its stamps are dates, UTC where they have no zone."""
    if row.type.upper() != "GENERATION":
        return (Skipped("not_text_generation"),)
    if row.level == "ERROR":
        return (Skipped("failed_call"),)
    stamp = row.startTime or row.start_time
    if not stamp:
        raise Broken("stamp_wrong", "startTime: -")
    usage = next((_table(each) for each in (row.usageDetails, row.usage_details, row.usage) if each), {})
    return (
        _logged(
            line,
            iso_ns(stamp),
            length(usage.get("input"), "usage input"),
            length(usage.get("output"), "usage output"),
            _parts(row.input),
            row.traceId or row.trace_id,
        ),
    )


def _table(value: Any) -> Mapping[str, Any]:
    """A table, also one that a CSV holds as JSON text."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise Broken("field_wrong", "usageDetails") from None
    if not isinstance(value, dict):
        raise Broken("field_wrong", "usageDetails")
    return value


_VLLM = re.compile(
    r"(?:\((?P<process>[^)]*)\) )?INFO (?P<month>\d\d)-(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)(?:\.\d+)? \[[^\]]*\] "
    r"Received request (?P<id>\S+): prompt: (?P<prompt>.*), params: (?P<params>.*)",
    re.DOTALL,
)
_TOKEN_IDS = re.compile(r"prompt_token_ids: \[([^\]]*)\]")
_MAX_TOKENS = re.compile(r"max_tokens=(\d+|None)")
_LEAP_YEAR = 2000
_YEAR_NS = 366 * 86_400 * 1_000_000_000


class VllmLog:
    """Reads the log of one server. Its stamps have no year: they count from the first, on into the next January.

    The prompt of a chat stands in it as the template wrote it out, so that no message can be made of it.
    """

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self._years = 0

    def __call__(self, row: str, line: int) -> Sequence[Got]:
        found = _VLLM.search(row)
        if found is None:
            return (Skipped("other_line"),)
        at_ns = self._stamp(f"{_LEAP_YEAR}-{found['month']}-{found['day']} {found['time']}")
        ids = _TOKEN_IDS.search(found["params"])
        limit = _MAX_TOKENS.search(found["params"])
        asked = (ids[1].count(",") + 1) if ids is not None and ids[1] else None
        answered = length(limit[1], "max_tokens") if limit is not None and limit[1] != "None" else None
        text = _unquoted(found["prompt"])
        parts = (Part(RENDERED if found["id"].startswith("chatcmpl") else "user", text),) if text else ()
        return (_logged(line, at_ns, asked, answered, parts, None),)

    def _stamp(self, text: str) -> int:
        at_ns = iso_ns(text) + self._years * _YEAR_NS
        if self._last_ns is not None and self._last_ns - at_ns > _YEAR_NS // 2:
            self._years += 1
            at_ns += _YEAR_NS
        self._last_ns = at_ns
        return at_ns


def _unquoted(text: str) -> str | None:
    """A Python string as the log prints it; None where there was no text."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return None
    return re.sub(r"\\(n|t|\\|'|\")", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text[1:-1])


class Spans(msgspec.Struct):
    """Spans of one instrumentation."""

    spans: list[Span] = []


class Resource(msgspec.Struct):
    """Spans of one service."""

    scopeSpans: list[Spans] = []  # noqa: N815 - the name is OTLP's


class Otlp(msgspec.Struct):
    """An export of traces in OTLP JSON."""

    resourceSpans: list[Resource]  # noqa: N815


class Attribute(msgspec.Struct):
    """A key with a value of one of OTLP's kinds."""

    key: str
    value: dict[str, Any] = {}

    def plain(self) -> Any:
        """The value; whole numbers are text in OTLP JSON."""
        return next(iter(self.value.values()), None)


class Status(msgspec.Struct, frozen=True):
    """2 is an error."""

    code: Any = 0


class Span(msgspec.Struct):
    """One operation."""

    startTimeUnixNano: str | int  # noqa: N815
    traceId: str = ""  # noqa: N815
    attributes: list[Attribute] = []
    status: Status = Status()


def otlp(row: Otlp, line: int) -> Sequence[Got]:
    """Every span of a line; stamps are ns since 1970. Instructions to the system come before the messages."""
    return [
        _span(span, line) for resource in row.resourceSpans for scope in resource.scopeSpans for span in scope.spans
    ]


def _span(span: Span, line: int) -> Got:
    told_of = {each.key: each.plain() for each in span.attributes}
    operation = told_of.get("gen_ai.operation.name")
    if not any(key.startswith("gen_ai.") for key in told_of) or operation not in (None, "chat", "text_completion"):
        return Skipped("not_text_generation")
    if span.status.code in (2, "STATUS_CODE_ERROR") or "error.type" in told_of:
        return Skipped("failed_call")
    asked = told_of.get("gen_ai.usage.input_tokens", told_of.get("gen_ai.usage.prompt_tokens"))
    answered = told_of.get("gen_ai.usage.output_tokens", told_of.get("gen_ai.usage.completion_tokens"))
    return _logged(
        line,
        number_ns(span.startTimeUnixNano, "ns"),
        length(asked, "gen_ai.usage.input_tokens"),
        length(answered, "gen_ai.usage.output_tokens"),
        _said(told_of),
        told_of.get("gen_ai.conversation.id") or span.traceId or None,
    )


def _said(told_of: Mapping[str, Any]) -> tuple[Part, ...]:
    messages = _parts(told_of.get("gen_ai.input.messages", told_of.get("gen_ai.prompt")))
    try:
        system = part(Message("system", _PIECES.decode(told_of.get("gen_ai.system_instructions", "[]"))))
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
        return messages
    return (system, *messages) if system.text and messages else messages
