"""A protocol of one's own: one TOML file says where a request goes, what it holds and where an answer's parts stand.

The body is a template: `{prompt}` and the like are filled in, and a key whose value is nothing but the name of
something not asked for is left out. Places are dotted paths with indexes and `*`: `outputs.*.text`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from ..core.errors import SpecError
from ..core.header import users_line
from ..core.secrets import in_url
from ..core.toml import located, parsed, refusal, typed
from .ask import Ask, written
from .dialect import BEARER, Dialect, Key, Method
from .frame import decode, shape, words_of
from .matter import ANSWER, REASONING
from .ndjson import LineReader
from .reader import Reader, reader_of
from .tally import Tally

NAMES = ("model", "prompt", "max_tokens", "stream", "temperature", "top_p", "seed")
_SLOT = re.compile(r"\{([a-z_]+)\}")
_MEANT = re.compile(r"\{+\s*[A-Za-z_]\w*\s*\}+")
"""What was meant for a name to be filled in, written right or not."""
_ANY = shape(Any)
COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


Place = Annotated[str, msgspec.Meta(pattern=r"^[^.\s]+(\.[^.\s]+)*$")]
"""A dotted path: keys, indexes from 0 (or from the end, below 0), `*` for each."""


class Places(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the parts of a whole answer stand. Counts are totals; thoughts are part of the output's."""

    text: Place
    reasoning: Place | None = None
    finish: Place | None = None
    error: Place | None = None
    model: Place | None = None
    prompt_tokens: Place | None = None
    cached_tokens: Place | None = None
    output_tokens: Place | None = None
    reasoning_tokens: Place | None = None


class StreamPlaces(Places, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the parts of an event stand, and how the stream ends.

    It ends with a `finish` reason, with something true at `end`, or with an event that is `end_mark`. `cumulative`:
    texts are all there is so far, not what is added.
    """

    framing: Literal["sse", "ndjson"] = "sse"
    end: Place | None = None
    end_mark: str | None = None
    cumulative: bool = False


class Protocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One protocol. `path` is below the address of the service; `key_header` carries an API key."""

    path: str
    stream_path: str | None = None
    method: Method = "POST"
    key_header: str = f"{BEARER.header}: {BEARER.before}{{key}}"
    headers: dict[str, str] = {}
    body: dict[str, Any]
    stream: StreamPlaces | None = None
    whole: Places | None = None


def from_toml(text: str, source: str) -> Protocol:
    """Read a protocol. Refuses with file, key path and line: slugs `toml_invalid` and `toml_key`."""
    tree = parsed(text, source)
    try:
        return from_tree(tree, source)
    except SpecError as fault:
        raise located(fault, text) from None


def from_tree(tree: dict[str, Any], source: str) -> Protocol:
    """The same from plain values, without the line."""
    protocol = typed(tree, Protocol, source)
    for path, text, known in _templates(protocol):
        for meant in _MEANT.findall(text):
            if meant[1:-1] not in known:
                raise refusal(source, f"Unknown name {meant}, known are {', '.join(known)}", path)
    _refuse_routes(protocol, source)
    _refuse_headers(protocol, source)
    for path, value in _leaves(protocol.body, "body"):
        if isinstance(value, float) and not math.isfinite(value):
            raise refusal(source, "Expected a number that JSON can hold", path)
    if not any("{prompt}" in text for path, text, _ in _templates(protocol) if path.startswith("body")):
        raise refusal(source, "Expected {prompt} in it", "body")
    if protocol.stream is None and protocol.whole is None:
        raise refusal(source, "Expected a table [stream] or [whole]", "")
    stream = protocol.stream
    if stream is not None and not (stream.finish or stream.end or stream.end_mark):
        raise refusal(source, "Expected finish, end or end_mark", "stream")
    if not re.fullmatch(r"[^\s:]+: .*\{key\}", protocol.key_header):
        raise refusal(source, "Expected the form `Header: {key}`", "key_header")
    return protocol


def _refuse_routes(protocol: Protocol, source: str) -> None:
    for path, route in (("path", protocol.path), ("stream_path", protocol.stream_path)):
        if route is None:
            continue
        if not re.fullmatch(r"/[^\s\x00-\x1f\x7f]*", route):
            raise refusal(source, "Expected a path: printable characters without a space, `/` the first", path)
        if any(in_url(route)):
            raise refusal(source, "Expected no key in it: a key travels in a header, see key_header", path)


def _refuse_headers(protocol: Protocol, source: str) -> None:
    for name, value in protocol.headers.items():
        try:
            users_line(name, value)
        except SpecError as fault:
            said = f"Expected a header that a request may have ({fault.slug})"
            raise refusal(source, said, f"headers.{name}") from None


def to_tree(protocol: Protocol) -> dict[str, Any]:
    """The protocol as plain values that `from_tree` reads back and TOML can hold."""
    tree: dict[str, Any] = msgspec.to_builtins(protocol)
    return {key: _without_none(value) for key, value in tree.items() if value is not None}


def _without_none(value: Any) -> Any:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _templates(protocol: Protocol) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(dotted key, text, names it may hold) of each text that is filled in."""
    for path, route in (("path", protocol.path), ("stream_path", protocol.stream_path or "")):
        yield path, route, ("model",)
    for path, value in _leaves(protocol.body, "body"):
        if isinstance(value, str):
            yield path, value, NAMES


def _leaves(template: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of all that is no table and no list."""
    if isinstance(template, dict | list):
        items = template.items() if isinstance(template, dict) else enumerate(template)
        for key, value in items:
            yield from _leaves(value, f"{path}.{key}" if isinstance(template, dict) else f"{path}[{key}]")
    else:
        yield path, template


def dialect(protocol: Protocol, name: str) -> Dialect:
    """The dialect that speaks the protocol."""
    header, _, before = protocol.key_header.partition(": ")
    stream, whole = protocol.stream, protocol.whole
    lines = stream is not None and stream.framing == "ndjson"

    def reader(streamed: bool, keep_text: bool) -> Reader:
        tally = CustomTally(protocol, keep_text)
        return LineReader(tally) if lines else reader_of(tally, streamed)

    return Dialect(
        name,
        protocol.path,
        lambda ask: body(protocol, ask),
        reader,
        base="root",
        stream_path=protocol.stream_path,
        method=protocol.method,
        headers=tuple(protocol.headers.items()),
        key=Key(header, before.removesuffix("{key}")),
        lines=lines,
        streams=stream is not None,
        whole=whole is not None,
    )


def body(protocol: Protocol, ask: Ask) -> bytes:
    """The JSON body of a request."""
    values = {name: getattr(ask, name) for name in NAMES} | {"prompt": ask.text()}
    return written(ask, filled(protocol.body, values))


def filled(template: Any, values: dict[str, Any]) -> Any:
    """The template with its names filled in: alone in a text a name is the value itself, among others its words."""
    if isinstance(template, dict):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    alone = _SLOT.fullmatch(template)
    if alone:
        return values[alone[1]]
    return _SLOT.sub(lambda found: "" if values[found[1]] is None else str(values[found[1]]), template)


class CustomTally(Tally):
    """Counts what stands at the places of a protocol."""

    def __init__(self, protocol: Protocol, keep_text: bool) -> None:
        super().__init__(keep_text)
        self._stream = protocol.stream
        self._whole = protocol.whole or protocol.stream
        mark = protocol.stream.end_mark if protocol.stream is not None else None
        self._mark = None if mark is None else mark.encode()
        self._so_far = {ANSWER: "", REASONING: ""}
        self._events = 0

    def event(self, data: bytes) -> int:
        """Count one event of a stream; 1 if it carried generated matter, else 0.

        The first may be a whole answer on a line of its own.
        """
        self._events += 1
        if self._ends(data.strip()):
            return 0
        places, tree = self._stream, decode(data, _ANY)
        if places is None or tree is None:
            self.fail_unreadable(data)
            return 0
        matter = self._read(places, tree)
        if places.end is not None and any(found(tree, places.end)):
            self.done = True
        if self._events == 1 and not self._seen and places.framing == "ndjson":
            self.whole(data)
        if not matter:
            return 0
        total = _count(tree, places.output_tokens)
        return self.matter(matter, self.counts.of_frame(len(self.tokens), total))

    def whole(self, data: bytes) -> None:
        """Count an answer that came in one piece; its end is its end mark. Other JSON counts for nothing."""
        tree = decode(data, _ANY)
        if tree is None or self._whole is None:
            self.fail_unreadable(data, whole=True)
            return
        self._read(self._whole, tree)
        self.close_whole()

    def end(self, data: bytes) -> int:
        """An event that is no JSON object: the protocol's end mark, or what any stream may hold."""
        return 0 if self._ends(data) else super().end(data)

    def _ends(self, data: bytes) -> bool:
        """Whether this event is the end mark; it may look like JSON."""
        if self._mark is not None and data == self._mark:
            self.done = True
            return True
        return False

    def _read(self, places: Places, tree: Any) -> int:
        for error in found(tree, places.error):
            if error:
                self.fail("stream_error", words_of(error))
        matter = self._say(ANSWER, tree, places.text) | self._say(REASONING, tree, places.reasoning)
        reasons = [reason for reason in found(tree, places.finish) if reason]
        if matter or reasons or any(True for _ in found(tree, places.text)):
            self.mark(0, reasons[-1] if reasons else None)
        for model in found(tree, places.model):
            self.name(None, model)
        counts = {name.removesuffix("_tokens"): _count(tree, getattr(places, name)) for name in COUNTS}
        if any(count is not None for count in counts.values()):
            self.counts.state(**counts)
        return matter

    def _say(self, channel: int, tree: Any, place: str | None) -> int:
        text = "".join(piece for piece in found(tree, place) if isinstance(piece, str))
        if self._stream is not None and self._stream.cumulative:
            before = self._so_far[channel]
            self._so_far[channel] = text or before
            text = text.removeprefix(before)
        return self.say(0, channel, text) if text else 0


def found(tree: Any, place: str | None) -> Iterator[Any]:
    """All that stands at a dotted path; nothing where there is no path, or nothing at it."""
    if place is None:
        return
    below = [tree]
    for step in place.split("."):
        below = [inner for outer in below for inner in _below(outer, step)]
    yield from below


def _below(outer: Any, step: str) -> list[Any]:
    if step == "*":
        return list(outer.values()) if isinstance(outer, dict) else outer if isinstance(outer, list) else []
    if isinstance(outer, dict):
        return [outer[step]] if step in outer else []
    at = int(step) if re.fullmatch(r"-?\d+", step) else None
    if isinstance(outer, list) and at is not None and -len(outer) <= at < len(outer):
        return [outer[at]]
    return []


def _count(tree: Any, place: str | None) -> int | None:
    counts = [count for count in found(tree, place) if isinstance(count, int) and not isinstance(count, bool)]
    return counts[-1] if counts else None
