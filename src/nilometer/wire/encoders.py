"""The dialects of models that generate nothing: `/v1/embeddings` and `/v1/rerank`.

An answer comes whole: it has an end and input tokens, but no output tokens, no TTFT and no TPOT.
"""

from __future__ import annotations

import msgspec

from ..core.record import TokenSource
from .ask import Ask, written
from .frame import shape
from .native import NativeFrame, NativeTally
from .reader import Reader, reader_of

RERANK_QUERY = "How high does the river rise?"
"""What each prompt is ranked by, unless the extra body says otherwise."""


class Usage(msgspec.Struct, gc=False):
    """Counts; some servers state the total alone."""

    prompt_tokens: int | None = None
    total_tokens: int | None = None


class Row(msgspec.Struct, gc=False):
    """One vector or score; what it holds is of no matter here."""


class Encoded(NativeFrame, gc=False):
    """A whole answer: `data` holds vectors, `results` scores."""

    id: object = None
    model: object = None
    data: list[Row] | None = None
    results: list[Row] | None = None
    usage: Usage | None = None


_ENCODED = shape(Encoded)


class EncoderTally(NativeTally[Encoded, Encoded]):
    """Counts an answer and its input."""

    def read(self, frame: Encoded) -> int:
        """Count what an answer holds; it is never generated matter."""
        if frame.data or frame.results:
            self.mark(0, None)
        self.name(frame.id, frame.model)
        if frame.usage is not None:
            stated = frame.usage.prompt_tokens
            self.counts.state(prompt=stated or frame.usage.total_tokens)
        return 0

    def output_tokens(self) -> tuple[int | None, TokenSource]:
        """None: nothing is generated."""
        return None, "none"


def embeddings_body(ask: Ask) -> bytes:
    """The JSON body of a request for one vector."""
    return written(ask, {"model": ask.model, "input": ask.text()})


def rerank_body(ask: Ask) -> bytes:
    """The JSON body of a request that ranks one document, the prompt."""
    return written(ask, {"model": ask.model, "query": RERANK_QUERY, "documents": [ask.text()]})


def reader(event_stream: bool, keep_text: bool) -> Reader:
    """A fresh reader of one response body."""
    return reader_of(EncoderTally(_ENCODED, _ENCODED, keep_text), event_stream)
