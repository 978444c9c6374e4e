"""The receiving half of HTTP/1.1 on one connection: httptools' callbacks, and what they leave of one response.

Bodies are kept as the pieces they came in; nothing is decoded here.
"""

from __future__ import annotations

from collections.abc import Callable

import httptools


class Inbox:
    """Feed it bytes; when `done`, the response is whole: `status`, `headers`, and the body in `pieces`.

    `feed` raises httptools.HttpParserError on what is not HTTP, and on bytes after the end of a response: then `done`
    is true, the response stands, and the connection can serve no other.
    """

    __slots__ = ("_parser", "done", "feed", "headers", "headers_done", "keep_alive", "pieces", "status")

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.feed: Callable[[bytes], None] = self._parser.feed_data
        self.keep_alive = True
        self.expect()

    def expect(self) -> list[bytes]:
        """Make ready for the next response; returns the list that will hold the pieces of its body."""
        self.pieces: list[bytes] = []
        self.headers: dict[str, str] = {}
        self.status: int | None = None
        self.headers_done = False
        self.done = False
        return self.pieces

    def on_message_begin(self) -> None:
        if self.done:
            raise ValueError("an answer that nobody asked for")
        self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:  # an interim answer (100, 103) is not the answer
            self.status = status
            self.headers_done = True

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        if self.headers_done:
            self.keep_alive = self._parser.should_keep_alive()
            self.done = True

    @property
    def ends_by_close(self) -> bool:
        """Whether the response states no length, so that the end of the connection is its end."""
        return self.headers_done and "content-length" not in self.headers and "transfer-encoding" not in self.headers
