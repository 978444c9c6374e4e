"""What a dialect is: one way to talk to a model server, as a value."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters, digits
from typing import Literal, NamedTuple

from .ask import Ask
from .reader import Reader

Method = Literal["POST", "PUT"]
_IN_PATH = frozenset(ascii_letters + digits + "-._~/:@")


class Key(NamedTuple):
    """The header that carries an API key, and what stands before the key."""

    header: str
    before: str = ""


BEARER = Key("Authorization", "Bearer ")


class Dialect(NamedTuple):
    """One way to talk to a model server.

    `path` may hold `{model}`; it lies below the `/v1` base, or below the root of the service. `stream_path` is where a
    stream is asked for, if elsewhere. `reader` takes (streamed, keep_text). `lines`: a stream is JSON lines, not an
    event stream. `streams`, `whole`: whether answers of the kind can be asked for. `headers` go with every request.
    `asks_usage`: a stream states usage only where it is asked to. `length_fields` make an answer as long as asked,
    where the server takes them: each is tried, and `known_fields` are sent also where nothing may be tried, since the
    servers that speak the API for themselves are known to take them. Below `least_tokens` of output a server may refuse
    to be asked. `generates`: an answer has output tokens at all.
    """

    name: str
    path: str
    body: Callable[[Ask], bytes]
    reader: Callable[[bool, bool], Reader]
    base: Literal["v1", "root"] = "v1"
    stream_path: str | None = None
    method: Method = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    key: Key = BEARER
    lines: bool = False
    streams: bool = True
    whole: bool = True
    asks_usage: bool = False
    length_fields: tuple[str, ...] = ()
    known_fields: tuple[str, ...] = ()
    least_tokens: int = 1
    generates: bool = True

    def route(self, model: str | None, *, stream: bool) -> str:
        """The path, and query, of a request below the dialect's base."""
        template = self.stream_path if self.asks_stream(stream) and self.stream_path is not None else self.path
        return template.replace("{model}", in_path(model or ""))

    def asks_stream(self, wanted: bool) -> bool:
        """Whether a request asks for a stream: as wanted, where the dialect has both."""
        return (wanted and self.streams) or not self.whole


def in_path(name: str) -> str:
    """A name as part of a path; what stands for itself there stays, a slash included."""
    return "".join(chr(byte) if chr(byte) in _IN_PATH else f"%{byte:02X}" for byte in name.encode())
