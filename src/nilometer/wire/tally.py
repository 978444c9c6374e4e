"""What has been counted of one answer so far: matter, tokens, finish reasons, the first fault.

One object per request; per event it keeps an int and nothing the garbage collector would have to scan. It raises
nothing: what cannot be read becomes a fault, and the events after it are still counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..core.record import ErrorKind, TokenSource
from .answer import FAILED_FINISHES, Answer, Fault, estimate_tokens, normal_finish
from .frame import complaint, excerpt, is_json, scalars
from .matter import ANSWER, REASONING, Kept, Piece
from .usage import Counts


class Tally(ABC):
    """The counts of one answer. A dialect's subclass reads its events and whole answers into them."""

    def __init__(self, keep_text: bool) -> None:
        self.tokens: list[int] = []
        self.first_answer: int | None = None
        self.done = False
        """The end mark, or the end of a whole answer, was seen."""
        self.kept = Kept() if keep_text else None
        self.text_bytes = 0
        self.reasoned = False
        self.hidden = False
        """The server said that it generated what it does not stream."""
        self.last_index = -1
        self.counts = Counts()
        self.timings: object = None
        self._seen: set[int] = set()
        self._finished: dict[int, str] = {}
        self._fault: Fault | None = None
        self._id: str | None = None
        self._model: str | None = None

    @property
    def complete(self) -> bool:
        """Every choice seen so far has finished, or the end mark came."""
        return self.done or (bool(self._seen) and len(self._finished) == len(self._seen))

    @abstractmethod
    def event(self, data: bytes) -> int:
        """Count one event of a stream; 1 if it carried generated matter, else 0."""

    @abstractmethod
    def whole(self, data: bytes) -> None:
        """Count an answer that came in one piece; its end is its end mark. Other JSON counts for nothing."""

    def piece(self, data: bytes) -> Piece | None:  # noqa: ARG002 - the dialects whose frames repeat look at it
        """The one piece of text of an event that carries nothing else to be counted or noted; None for any other.

        None also while the answer's names are not known yet.
        """
        return None

    def end(self, data: bytes) -> int:
        """An event that is no JSON object, stripped; 0, or what `event` makes of it."""
        if data == b"[DONE]":
            self.done = True
            return 0
        return self.event(data) if data else 0

    def error_event(self, data: bytes) -> None:
        """Count an event of the type `error`: all its data is the server's complaint."""
        self.fail("stream_error", complaint(data, marked=True))

    def say(self, index: int, matter: int, text: str) -> int:
        """Count a piece of text of a choice; its matter."""
        self.text_bytes += len(text) if text.isascii() else len(text.encode())
        if self.kept is not None and index == 0:
            self.kept.add(matter, text)
        if matter == REASONING:
            self.reasoned = True
        return matter

    def call(self, index: int, number: int, name: str, arguments: str) -> int:
        """Count a piece of tool call `number` of a choice; its matter."""
        self.text_bytes += len(name.encode()) + len(arguments.encode())
        if self.kept is not None and index == 0:
            self.kept.add_arguments(number, arguments)
        return ANSWER

    def matter(self, bits: int, tokens: int = -1) -> int:
        """Count a frame by the bits of what it carried and the tokens the server states for it; 1, or 0 for none."""
        if not bits:
            return 0
        if bits >= ANSWER and self.first_answer is None:
            self.first_answer = len(self.tokens)
        self.tokens.append(tokens)
        return 1

    def unmark(self) -> None:
        """What has been counted came in one piece: it has texts and tokens but no events."""
        self.tokens.clear()
        self.first_answer = None

    def mark(self, index: int, finish_reason: object) -> None:
        """A choice was seen, perhaps its end. An empty reason is none; a later one of the same choice wins.

        Some servers wrap the reason as `{"type": reason}`.
        """
        self.last_index = index
        self._seen.add(index)
        if not finish_reason:
            return
        if isinstance(finish_reason, dict):
            finish_reason = finish_reason.get("type")
        native = finish_reason if isinstance(finish_reason, str) else "other"
        self._finished[index] = native
        if native.lower() in FAILED_FINISHES:
            self.fail("stream_error", native)

    def name(self, answer_id: object, model: object) -> bool:
        """Take over what names the answer, where it is not known yet; whether both are known now."""
        self._id = self._id or _word(answer_id)
        self._model = self._model or _word(model)
        return bool(self._id and self._model)

    def fail(self, kind: ErrorKind, detail: str | None) -> None:
        """Something makes the answer an error; only the first such thing is kept."""
        if self._fault is None:
            self._fault = Fault(kind, detail)

    def complain(self, data: bytes) -> bool:
        """Take JSON of whatever shape for an error where it says that it is one; whether it does."""
        words = complaint(data)
        if words is not None:
            self.fail("stream_error", words)
        return words is not None

    def fail_unreadable(self, data: bytes, *, whole: bool = False) -> None:
        """An event could not be read; or a whole answer, where JSON of another shape is no fault unless it says so."""
        if self.complain(data):
            return
        if not whole or (data.strip() and not is_json(data)):
            self.fail("malformed", excerpt(data))

    def close_whole(self) -> None:
        """A whole answer has been counted: where it held a choice it is complete."""
        self.done = bool(self._seen)

    def answer(self) -> Answer:
        """All that was counted, with what follows from it."""
        counts, kept = self.counts, self.kept
        output_tokens, source = self.output_tokens()
        native = self._finished[min(self._finished)] if self._finished else None
        return Answer(
            finish_reason=normal_finish(native),
            native_finish_reason=native,
            complete=self.complete,
            matter_events=len(self.tokens),
            first_answer=self.first_answer,
            prompt_tokens=counts.prompt,
            cached_tokens=counts.cached,
            output_tokens=output_tokens,
            reasoning_tokens=counts.reasoning,
            token_source=source,
            choices=len(self._seen),
            hidden_tokens=self.hidden or (bool(counts.reasoning) and not self.reasoned),
            fault=self._fault,
            model=self._model,
            server=scalars(self.timings) or None,
            server_request_id=self._id,
            text=None if kept is None else kept.text,
            reasoning=None if kept is None else kept.reasoning,
            tool_arguments=None if kept is None else kept.tool_arguments,
            usage_seen=counts.seen,
        )

    def output_tokens(self) -> tuple[int | None, TokenSource]:
        """The output tokens and who counted them."""
        stated = self.counts.output
        if stated == 0 and self.text_bytes:
            self.tokens[:] = [-1] * len(self.tokens)  # a placeholder: text was generated, so it counted nothing
        elif stated is not None:
            return stated, "usage"
        if self._fault is not None or not self.complete:
            return None, "none"
        return estimate_tokens(len(self.tokens), self.text_bytes), "estimated"


def _word(value: object) -> str | None:
    """A name as text; some servers send a number for it."""
    return str(value) if value and isinstance(value, str | int) else None
