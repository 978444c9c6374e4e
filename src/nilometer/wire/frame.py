"""The parts of an OpenAI-like frame that its dialects share, and the two ways to decode one.

The quick way is one typed decode. What it refuses is tried once more by the rules a browser and Python's own `json`
follow (broken UTF-8 becomes U+FFFD, lone surrogates and NaN are let pass), so that a server's harmless oddity is not
called a failure. Nothing is counted here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from .answer import Scalar
from .usage import Usage

C = TypeVar("C")

_DETAIL_BYTES = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


class Frame(msgspec.Struct, Generic[C], gc=False):
    """One event of a stream, as far as it is counted."""

    choices: list[C] | None = None
    usage: Usage | None = None
    error: object = None
    timings: object = None


class HeadFrame(Frame[C], Generic[C], gc=False):
    """The same with what names the answer: read until that is known, then left out for speed."""

    id: object = None
    model: object = None


class Complaint(msgspec.Struct, gc=False):
    """An error object, in the forms servers give it."""

    error: object = None
    message: object = None
    detail: object = None
    kind: object = msgspec.field(name="type", default=None)
    class_: object = msgspec.field(name="object", default=None)


class Shape(NamedTuple):
    """One way to read a frame: a typed decoder, and its type for the lenient second try."""

    quick: Callable[[bytes], Any]
    kind: Any


def shape(kind: Any) -> Shape:
    """The shape of frames of the type `kind`."""
    return Shape(msgspec.json.Decoder(kind).decode, kind)


_COMPLAINT, _COMPLAINTS = shape(Complaint), shape(list[Complaint])


def decode(data: bytes, form: Shape) -> Any:
    """`data` as a value of the shape's type, or None where it is no JSON object of that shape."""
    try:
        return form.quick(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_leniently(data, form.kind)


def decode_leniently(data: bytes, kind: Any) -> Any:
    """The second try: None where even Python's `json` finds no object of the type `kind`."""
    try:
        tree = json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
        clean = _SURROGATE.sub("\ufffd", json.dumps(tree, ensure_ascii=False))
        return msgspec.convert(json.loads(clean), kind, strict=False)
    except (ValueError, RecursionError):
        return None


def excerpt(said: bytes | str) -> str | None:
    """At most 200 bytes of what the server said, cut between characters, white space run together; None if blank."""
    text = said if isinstance(said, str) else said[: 4 * _DETAIL_BYTES].decode("utf-8", "replace")
    words = " ".join(text[: 4 * _DETAIL_BYTES].split())
    return words.encode()[:_DETAIL_BYTES].decode("utf-8", "ignore") or None


def complaint(data: bytes, marked: bool = False) -> str | None:
    """The words of an error object, at most 200 bytes; None where `data` is none.

    It is one if it has a key `error` with something in it, or calls itself an error, or if the event was `marked` as
    one: then all of `data` is the complaint where it has no message.
    """
    told = _complaint(data)
    if not (marked or told.error or "error" in (told.kind, told.class_)):
        return None
    for error in (told.error, told.message, told.detail):
        if words := words_of(error):
            return words
    return excerpt(data)


def _complaint(data: bytes) -> Complaint:
    """The error object; the first of a list, as Gemini's stream of an array has it."""
    if data.lstrip().startswith(b"["):
        return next(iter(decode(data, _COMPLAINTS) or ()), Complaint())
    return decode(data, _COMPLAINT) or Complaint()


def words_of(error: object) -> str | None:
    """The words of an error: itself, or its `message`; None where it has none."""
    words = error.get("message") if isinstance(error, dict) else error
    return excerpt(words) if isinstance(words, str) else None


def is_json(data: bytes) -> bool:
    """Whether `data` is JSON of any shape."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def scalars(tree: object, prefix: str = "", depth: int = 8) -> dict[str, Scalar]:
    """The scalars of a JSON tree by their dotted path: `{"a": {"b": 1}}` gives `{"a.b": 1}`, down to `depth`."""
    if depth and isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
    elif depth and isinstance(tree, list):
        items = [(str(index), value) for index, value in enumerate(tree)]
    else:
        return {prefix: tree} if prefix and isinstance(tree, float | int | str | bool | None) else {}
    flat: dict[str, Scalar] = {}
    for key, value in items:
        flat |= scalars(value, f"{prefix}.{key}" if prefix else key, depth - 1)
    return flat
