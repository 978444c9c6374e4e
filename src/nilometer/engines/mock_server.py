"""The mock server: a real HTTP/1.1 server on 127.0.0.1 that logs what it did. When an answer leaves is its pacing's:
by a Script (`mock_scripted`) or by the machine of an engine (`mock_machine`).

One loop, one alarm. Must not measure anything: it is what others are measured against.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from nilometer.core.errors import EngineError

from . import mock_answer
from .mock_ask import Ask, Refusal, decode, tokenize
from .mock_connection import Connection, Request, Tls
from .mock_script import Script
from .mock_scripted import Scripted
from .mock_truth import Entry, TruthLog

BACKLOG = 4096
Handler = Callable[[Connection, Request], None]


class Pacing(Protocol):
    """When the pieces of an answer leave. Each request that it was given comes to an end or its client goes."""

    def begin(self, connection: Connection, entry: Entry, ask: Ask) -> None: ...

    def left(self, connection: Connection) -> None: ...

    def page(self) -> bytes | None: ...

    @property
    def context_tokens(self) -> int | None: ...

    def close(self) -> None: ...


Pacer = Callable[[Script, asyncio.AbstractEventLoop, Callable[[], None]], Pacing]
"""Makes one; what it is handed last is called at every end."""


class MockServer:
    """Serves one Script until told to stop. `truth` collects the log where one is wanted."""

    def __init__(
        self,
        script: Script,
        loop: asyncio.AbstractEventLoop,
        *,
        pacing: Pacer = Scripted,
        truth: TruthLog | None = None,
        tls: ssl.SSLContext | None = None,
        requests_limit: int | None = None,
        on_limit: Callable[[], None] | None = None,
    ) -> None:
        self.script = script
        self.answered = 0
        self._loop = loop
        self._truth = truth
        self._tls = tls
        self._limit = requests_limit
        self._on_limit = on_limit
        self._listener: socket.socket | None = None
        self._connections: set[Connection] = set()
        self._accepted = 0
        self._number = 0
        self._pacing = pacing(script, loop, self._count)
        self._routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/chat/completions"): lambda c, r: self._generate(c, r, chat=True),
            ("POST", "/v1/completions"): lambda c, r: self._generate(c, r, chat=False),
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): self._health,
            ("GET", "/metrics"): self._page,
            ("POST", "/tokenize"): self._tokenize,
            ("GET", "/truth"): self._hand_truth,
            ("DELETE", "/truth"): self._clear_truth,
        }

    # -- coming and going

    def listen(self, port: int = 0, host: str = "127.0.0.1") -> str:
        """Start to listen; the base URL. Refuses a port in use: slug `mock_port`."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as fault:
            listener.close()
            raise EngineError("mock_port", port=port, detail=fault.strerror or str(fault)) from None
        listener.setblocking(False)
        self._listener = listener
        self._loop.add_reader(listener.fileno(), self._accept)
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{host}:{listener.getsockname()[1]}"

    def _accept(self) -> None:
        while self._listener is not None:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = None if self._tls is None else Tls(self._tls)
            self._accepted += 1
            made = Connection(self._accepted, sock, self._loop, tls=tls, on_request=self._handle, on_closed=self._left)
            self._connections.add(made)

    def close(self) -> None:
        """Stop listening and close every connection."""
        if self._listener is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.close()
        self._pacing.close()

    def _left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._pacing.left(connection)

    # -- routes

    def _handle(self, connection: Connection, request: Request) -> None:
        path = request.path.partition("?")[0]
        handler = self._routes.get((request.method, path))
        if handler is None:
            known = any(path == route for _, route in self._routes)
            refused = Refusal(405 if known else 404, f"no {request.method} {path} here", "not_found_error")
            self._reply(connection, mock_answer.refusal(refused))
            return
        try:
            self._check_key(request)
            handler(connection, request)
        except Refusal as refused:
            self._reply(connection, mock_answer.refusal(refused))

    def _check_key(self, request: Request) -> None:
        key = self.script.api_key
        if key is not None and request.headers.get(b"authorization") != f"Bearer {key}".encode():
            raise Refusal(401, "invalid API key", "authentication_error")

    def _reply(self, connection: Connection, data: bytes) -> None:
        connection.send(data)
        connection.finish()

    def _reply_json(self, connection: Connection, value: object) -> None:
        self._reply(connection, mock_answer.whole(200, "application/json", msgspec.json.encode(value)))

    def _models(self, connection: Connection, _: Request) -> None:
        context = self._pacing.context_tokens
        more = {} if context is None else {"max_model_len": context}
        rows = [{"id": name, "object": "model", "owned_by": "nilo-mock", **more} for name in self.script.models]
        self._reply_json(connection, {"object": "list", "data": rows})

    def _health(self, connection: Connection, _: Request) -> None:
        self._reply_json(connection, {"status": "ok"})

    def _page(self, connection: Connection, _: Request) -> None:
        page = self._pacing.page()
        if page is None:
            raise Refusal(404, "no GET /metrics here", "not_found_error")
        self._reply(connection, mock_answer.whole(200, "text/plain; version=0.0.4; charset=utf-8", page))

    def _tokenize(self, connection: Connection, request: Request) -> None:
        if not self.script.tokenize:
            raise Refusal(404, "no POST /tokenize here", "not_found_error")
        self._reply(connection, mock_answer.whole(200, "application/json", tokenize(request.body)))

    def _hand_truth(self, connection: Connection, _: Request) -> None:
        lines = b"".join(self._kept_truth().lines(unfinished=False))
        self._reply(connection, mock_answer.whole(200, "application/x-ndjson", lines))

    def _clear_truth(self, connection: Connection, _: Request) -> None:
        self._kept_truth().clear()
        self._reply_json(connection, {"cleared": True})

    def _kept_truth(self) -> TruthLog:
        if self._truth is None:
            raise Refusal(404, "no truth is kept; start with --truth FILE", "not_found_error")
        return self._truth

    # -- generation

    def _generate(self, connection: Connection, request: Request, chat: bool) -> None:
        self._number += 1
        client_id = request.headers.get(b"x-request-id")
        told = None if client_id is None else client_id.decode("latin-1")
        entry = Entry(self._number, connection.number, request.path, request.read_ns, told)
        if self._truth is not None:
            self._truth.add(entry)
        try:
            ask = self._accepted_ask(request, chat)
        except Refusal as refused:
            self._refuse(connection, entry, refused)
            return
        self._pacing.begin(connection, entry, ask)

    def _accepted_ask(self, request: Request, chat: bool) -> Ask:
        ask = decode(request.body, chat)
        if ask.model is not None and ask.model not in self.script.models and not self.script.any_model:
            served = ", ".join(self.script.models)
            raise Refusal(404, f"The model `{ask.model}` does not exist. Models served: {served}", "NotFoundError")
        if ask.has_stream_options and self.script.refuse_stream_options:
            raise Refusal(400, "Unrecognized request argument supplied: stream_options")
        return ask if request.chunked else msgspec.structs.replace(ask, chunked=False)

    def _refuse(self, connection: Connection, entry: Entry, refused: Refusal) -> None:
        entry.meant, entry.status = "refused", refused.status
        entry.outcome, entry.error = "error", "http_4xx"
        connection.send(mock_answer.refusal(refused, entry.id))
        entry.end_ns = time.monotonic_ns()
        self._count()
        connection.finish()

    def _count(self) -> None:
        self.answered += 1
        if self._limit is not None and self.answered >= self._limit and self._on_limit is not None:
            self._on_limit()
