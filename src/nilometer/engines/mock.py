"""Runs a mock server: in this process until told to stop, or as a child of its own that ends with its parent."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from nilometer.core.errors import EngineError, NiloError, SpecError
from nilometer.net.fetch import fetch

from . import mock_tls
from .mock_machine import Played
from .mock_script import Script
from .mock_scripted import Scripted
from .mock_server import MockServer
from .mock_service import Service
from .mock_truth import TruthLine, TruthLog, read_truth

STOP_WAIT_S = 10.0
TRUTH_LIMIT_BYTES = 4 << 30
"""No limit in practice: the log is our own child's."""
IN_MEMORY = "-"
"""As a truth file: keep the log for GET /truth and write none."""


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how long a mock is served. `tls` without a certificate makes a throw-away one.

    With `watch_stdin` it ends when standard input does: the sign that its parent is gone.
    """

    port: int = 0
    truth: str | None = None
    tls: bool = False
    certificate: str | None = None
    key: str | None = None
    requests_limit: int | None = None
    for_s: float | None = None
    watch_stdin: bool = False


def serve(script: Script, hosting: Hosting, ready: Callable[[str], None], service: Service | None = None) -> int:
    """Serve until SIGTERM, SIGINT or a bound; calls `ready` with the base URL. Returns the number of requests answered.

    With a `service` the machine of its engine paces the answers, and the script says what is in them.

    Refuses a truth file that cannot be written before anything is served: slug `file_unwritable`.
    """
    log = None if hosting.truth is None else TruthLog()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_truth_file(hosting.truth)) if hosting.truth not in (None, IN_MEMORY) else None
        context = stack.enter_context(_tls(hosting))
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            answered = runner.run(_serve(script, hosting, log, context, ready, service))
        if log is not None and file is not None:
            file.writelines(log.lines(unfinished=True))
    return answered


def _truth_file(path: str | None) -> BinaryIO:
    try:
        return open(str(path), "wb")
    except OSError as fault:
        raise SpecError("file_unwritable", file=path, detail=fault.strerror or str(fault)) from None


@contextlib.contextmanager
def _tls(hosting: Hosting) -> Iterator[ssl.SSLContext | None]:
    if hosting.certificate is not None:
        yield mock_tls.context(Path(hosting.certificate), Path(hosting.key or hosting.certificate))
    elif hosting.tls:
        with tempfile.TemporaryDirectory(prefix="nilo-mock-") as folder:
            context = mock_tls.context(*mock_tls.self_signed(Path(folder)))
        yield context
    else:
        yield None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - absent on some platforms
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(
    script: Script,
    hosting: Hosting,
    log: TruthLog | None,
    context: ssl.SSLContext | None,
    ready: Callable[[str], None],
    service: Service | None,
) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    server = MockServer(
        served(script, service),
        loop,
        pacing=Scripted if service is None else partial(Played, service),
        truth=log,
        tls=context,
        requests_limit=hosting.requests_limit,
        on_limit=stopped.set,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if hosting.watch_stdin:
        loop.add_reader(sys.stdin.fileno(), stopped.set)
    gc.freeze()
    gc.disable()
    try:
        ready(server.listen(hosting.port))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), hosting.for_s)
    finally:
        gc.enable()
        server.close()
        if hosting.watch_stdin:
            loop.remove_reader(sys.stdin.fileno())
    return server.answered


def served(script: Script, service: Service | None) -> Script:
    """The script with all models that are served: adapters are models of their own."""
    if service is None or not service.adapters:
        return script
    return msgspec.structs.replace(script, models=(*script.models, *service.adapters))


class Mock:
    """A mock server in a process of its own."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid

    def truth(self) -> list[TruthLine]:
        """The truth of every request that has ended so far, in the order they were read."""
        return read_truth(self._ask("GET"))

    def clear_truth(self) -> None:
        """Forget the ended ones."""
        self._ask("DELETE")

    def _ask(self, method: str) -> bytes:
        answer = fetch(f"{self.url}/truth", method=method, timeout_s=30, insecure=True, limit_bytes=TRUTH_LIMIT_BYTES)
        if answer.status != 200:
            raise EngineError("mock_no_truth", url=self.url, status=answer.status)
        return answer.body


@contextlib.contextmanager
def launched(script: Script, hosting: Hosting | None = None, service: Service | None = None) -> Iterator[Mock]:
    """A mock server as a child process, its truth kept in memory unless `hosting` says otherwise; ended on leaving.

    It also ends when this process dies: it watches its standard input. When it does not start: the slug it gave, or
    `mock_failed`.
    """
    placed = msgspec.structs.replace(hosting or Hosting(truth=IN_MEMORY), watch_stdin=True)
    orders = msgspec.msgpack.encode([script, placed, service]).hex()  # JSON has no infinite times
    command = [sys.executable, "-m", "nilometer.engines.mock", orders]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            url = child.stdout.readline().decode().strip() if child.stdout else ""
            if url.startswith("["):
                slug, params = msgspec.json.decode(url)
                raise EngineError(slug, **params)
            if not url:
                raise EngineError("mock_failed", code=child.wait(STOP_WAIT_S))
            yield Mock(url, child.pid)
        finally:
            _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        child.kill()


def _child(orders: str) -> None:
    script, hosting, service = msgspec.msgpack.decode(
        bytes.fromhex(orders), type=tuple[Script, Hosting, Service | None]
    )
    try:
        serve(script, hosting, lambda url: print(url, flush=True), service)  # noqa: T201 - the parent waits for it
    except NiloError as fault:
        print(msgspec.json.encode([fault.slug, fault.params]).decode(), flush=True)  # noqa: T201 - as above
        sys.exit(1)


if __name__ == "__main__":
    _child(sys.argv[1])
