"""Data sets: prompts, conversations and batch files, one row each. No stamps but where a format has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nilometer.workload.entry import Entry, Part

from .row import (
    ASSISTANTS,
    USERS,
    Broken,
    Got,
    Message,
    Skipped,
    blocks,
    chat,
    length,
    number_ns,
    part,
    prompt,
    stamp_ns,
    told,
)


class Utterance(msgspec.Struct, rename={"who": "from"}):
    """One turn of the dialect of ShareGPT that vLLM, SGLang and aiperf read."""

    who: str
    value: str | None = None


class Exchange(msgspec.Struct):
    """One turn of the dialect of ModelScope: a question with its answer."""

    human: str | None = None
    assistant: str | None = None


class Shared(msgspec.Struct):
    """A conversation of either dialect."""

    id: str | int | None = None
    conversation_id: str | int | None = None
    conversations: list[Utterance] | None = None
    conversation: list[Exchange] | None = None


def sharegpt(row: Shared, line: int) -> Sequence[Got]:
    """Its first question, a system message before it kept, and the length of the answer to it, as vLLM and SGLang ask
    it. How many turns it has is told; the later ones are not asked.

    Without a user turn that is answered there is nothing to ask.
    """
    turns = _exchanges(row.conversation) if row.conversation is not None else row.conversations
    if turns is None:
        raise Broken("field_wrong", "conversations")
    if not turns:
        return (Skipped("no_turns"),)
    start = next((place for place, turn in enumerate(turns) if turn.who in USERS), None)
    if start is None:
        return (Skipped("no_user_turn"),)
    question = turns[start].value
    if not question:
        return (Skipped("empty_prompt"),)
    reply = turns[start + 1].value if len(turns) > start + 1 and turns[start + 1].who in ASSISTANTS else None
    if not reply:
        return (Skipped("no_reply"),)
    before = [Part("system", turn.value) for turn in turns[:start] if turn.who == "system" and turn.value]
    name = row.id if row.id is not None else row.conversation_id
    entry = Entry(
        line=line,
        turns=sum(turn.who in USERS for turn in turns),
        parts=(*before, Part("user", question)),
        session=None if name is None else str(name),
    )
    return (told(entry, reply),)


def _exchanges(turns: list[Exchange]) -> list[Utterance]:
    return [Utterance(who, value) for turn in turns for who, value in (("human", turn.human), ("gpt", turn.assistant))]


class Custom(msgspec.Struct):
    """vLLM's custom data set."""

    prompt: str
    output_tokens: Any = None


def vllm_custom(row: Custom, line: int) -> Sequence[Got]:
    """A missing `output_tokens` takes the run's default: None, never 0; -1 is the same."""
    asked = None if row.output_tokens == -1 else length(row.output_tokens, "output_tokens")
    return (prompt(line, row.prompt, output_tokens=asked),)


class Ask(msgspec.Struct):
    """The body of a request to a model server, as far as it says how long prompt and answer are."""

    messages: list[Message] | None = None
    prompt: Any = None
    input: Any = None
    """Of the responses API: one text, or messages; of embeddings, texts or tokens."""
    instructions: str | None = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None


class BatchIn(msgspec.Struct):
    """A line of an OpenAI batch file."""

    custom_id: str
    url: str
    body: Ask
    method: str = "POST"


class OpenAIBatch:
    """Reads the lines of one batch file; a custom_id may stand in it once."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def __call__(self, row: BatchIn, line: int) -> Sequence[Got]:
        if not row.url.rstrip("/").endswith(("/chat/completions", "/completions", "/responses")):
            return (Skipped("not_text_generation"),)
        name = hash(row.custom_id)
        if name in self._ids:
            return (Skipped("custom_id_repeated"),)
        self._ids.add(name)
        body = row.body
        limits = (body.max_completion_tokens, body.max_tokens, body.max_output_tokens)
        limit = next((each for each in limits if each is not None), None)
        facts: dict[str, Any] = {"output_tokens": length(limit, "max_tokens"), "custom_id": row.custom_id}
        messages = body.messages if body.messages is not None else _of_responses(body)
        if messages is not None:
            return (chat(line, messages, **facts),)
        if not isinstance(body.prompt, str):
            return (Skipped("not_text"),)
        return (prompt(line, body.prompt, **facts),)


def _of_responses(body: Ask) -> list[Message] | None:
    """The messages of a request to the responses API; None where it is none, or not of text."""
    try:
        given = msgspec.convert(body.input, type=str | list[Message] | None)
    except msgspec.ValidationError:
        return None
    if given is None:
        return None
    asked = [Message("user", given)] if isinstance(given, str) else given
    return [Message("system", body.instructions), *asked] if body.instructions else asked


class Usage(msgspec.Struct):
    """Tokens as the server counted them, in either of its two sets of names."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    input_tokens: Any = None
    output_tokens: Any = None


class AnswerBody(msgspec.Struct):
    """The part of a response that counts."""

    usage: Usage | None = None
    created: Any = None


class Answer(msgspec.Struct):
    """A response in a batch's output."""

    status_code: int | None = None
    body: AnswerBody | None = None


class BatchOut(msgspec.Struct):
    """A line of the output of an OpenAI batch."""

    custom_id: str
    response: Answer | None = None
    error: Any = None


def openai_batch_output(row: BatchOut, line: int) -> Sequence[Got]:
    """The lengths that the server counted; the prompts are in the file that went in. It has no stamps of requests."""
    answer = row.response
    if answer is None or row.error is not None or (answer.status_code or 200) >= 400 or answer.body is None:
        return (Skipped("failed_call"),)
    usage = answer.body.usage
    if usage is None:
        return (Skipped("no_lengths"),)
    asked = usage.prompt_tokens if usage.prompt_tokens is not None else usage.input_tokens
    answered = usage.completion_tokens if usage.completion_tokens is not None else usage.output_tokens
    return (
        Entry(
            line=line,
            input_tokens=length(asked, "prompt_tokens"),
            output_tokens=length(answered, "completion_tokens"),
            custom_id=row.custom_id,
        ),
    )


class Chat(msgspec.Struct):
    """An object with messages."""

    messages: list[Message]


def mixed(row: list[Message] | Chat | str, line: int) -> Sequence[Got]:
    """A line of any of: an array of messages, an object with one, a text.

    Messages that end with the assistant's hold the answer, as data for training do: it is not asked, its length is.
    """
    if isinstance(row, str):
        return (prompt(line, row),)
    messages = row if isinstance(row, list) else row.messages
    end = len(messages)
    while end and messages[end - 1].role in ASSISTANTS:
        end -= 1
    reply = "".join(part(each).text or "" for each in messages[end:])
    return (chat(line, messages[:end], reply) if end or not messages else Skipped("no_user_turn"),)


class Aiperf(msgspec.Struct):
    """A line of aiperf's input: one request, a conversation of them, or a row of a trace."""

    type: str | None = None
    text: str | None = None
    texts: list[Any] | None = None
    turns: list[Aiperf] | None = None
    timestamp: float | None = None
    delay: float | None = None
    role: str | None = None
    session_id: str | None = None
    text_input: str | None = None
    input_length: Any = None
    output_length: Any = None
    hash_ids: list[int] | None = None


def aiperf(row: Aiperf, line: int) -> Sequence[Got]:
    """Stamps are milliseconds. A row of kind `mooncake_trace` may hold its prompt in place of its length.

    Of a conversation the first turn is asked, a system message before it kept.
    """
    if row.timestamp is not None and row.delay is not None:
        raise Broken("field_wrong", "timestamp, delay")
    turns = row.turns if row.turns is not None else [row]
    users = [place for place, turn in enumerate(turns) if turn.role in (None, *USERS)]
    start = users[0] if users else 0
    first = turns[start] if turns else row
    facts: dict[str, Any] = {
        "at_ns": stamp_ns(row.timestamp if row.timestamp is not None else first.timestamp, "ms"),
        "input_tokens": length(row.input_length, "input_length"),
        "output_tokens": length(row.output_length if row.turns is None else first.output_length, "output_length"),
        "hash_ids": None if row.hash_ids is None else blocks(row.hash_ids),
        "session": row.session_id,
    }
    if not turns:
        return (Skipped("no_turns"),)
    if not users:
        return (Skipped("no_user_turn"),)
    question = _text(first)
    if not question:
        return (Entry(line=line, **facts) if facts["input_tokens"] is not None else Skipped("empty_prompt"),)
    before = [Part("system", _text(turn)) for turn in turns[:start] if turn.role == "system"]
    return (told(Entry(line=line, turns=len(users), parts=(*before, Part("user", question)), **facts)),)


def _text(turn: Aiperf) -> str:
    if turn.text is not None or turn.text_input is not None:
        return turn.text or turn.text_input or ""
    return "".join(
        each if isinstance(each, str) else "".join(_strings(each.get("contents")))
        for each in turn.texts or ()
        if isinstance(each, str | dict)
    )


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


class Guidellm(msgspec.Struct):
    """A row of guidellm's data, JSON or CSV: a prompt, or the lengths of a trace."""

    prompt: str | None = None
    output_tokens_count: Any = None
    prompt_tokens_count: Any = None
    timestamp: Any = None
    input_length: Any = None
    output_length: Any = None


def guidellm(row: Guidellm, line: int) -> Sequence[Got]:
    """Stamps of a trace are seconds."""
    asked = row.prompt_tokens_count if row.input_length is None else row.input_length
    answered = row.output_tokens_count if row.output_length is None else row.output_length
    stamp = row.timestamp
    facts: dict[str, Any] = {
        "at_ns": None if stamp is None or stamp == "" else number_ns(_number(stamp), "s"),
        "input_tokens": length(asked, "input_length"),
        "output_tokens": length(answered, "output_length"),
    }
    if row.prompt is not None:
        return (prompt(line, row.prompt, **facts),)
    return (Entry(line=line, **facts) if facts["input_tokens"] is not None else Skipped("empty_prompt"),)


def _number(value: object) -> float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Broken("stamp_wrong", f"{value!s:.60} (s)")
    return value


def text(row: str, line: int) -> Sequence[Got]:
    """A line is a prompt."""
    return (prompt(line, row),)
