"""One server process of ours under a keeper: started, logged, watched, ended on every path.

What ends it: `stop()`, which every context manager here calls, and the end of this process by any signal, SIGKILL
included, because the keeper holds a pipe from here. Only the process that was started here is ever signalled. It must
not know which engine it runs nor where the program came from.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import platformdirs

from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.errors import EngineError
from nilometer.core.mask import Mask
from nilometer.core.secrets import in_flags

from .last_words import last_words
from .ready import Answered, wait_until_ready

KEEPER = Path(__file__).with_name("keeper.py")
GRACE_S = 5.0
"""From SIGTERM to SIGKILL."""
READY_BUDGET_S = 120.0

_KEEPER_WAIT_S = 20.0
_LOGS_KEPT = 50
_TAIL_BYTES = 65_536
_HIDDEN_SETTINGS = ("LLAMA_ARG_", "LLAMA_API_KEY")
"""Environment variables that would change the server unseen: its flags are to tell all."""


class Launch(NamedTuple):
    """What to start, and what is known of it before it runs.

    `argv` is whole. `shown_flags` go into the record: no secrets, and no port, which is another one each time.
    """

    name: str
    argv: Sequence[str]
    port: int
    environment: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    version: str | None = None
    build: str | None = None
    shown_flags: Sequence[str] = ()
    model: ModelFacts = ModelFacts()
    log_folder: Path | None = None
    ready_budget_s: float = READY_BUDGET_S


class LaunchedEngine:
    """A server that answered. `headers` must go with every request to it."""

    def __init__(self, server: Server, wanted: Launch, answered: Answered) -> None:
        self._server = server
        self.url = answered.url
        self.pid = server.pid
        self.log_path = str(server.log_path)
        self.headers = dict(wanted.headers)
        self.facts = _engine_facts(wanted, answered, self.log_path)
        self.model = _model_facts(wanted.model, answered)

    def died(self) -> str | None:
        """How the server ended by itself, such as `exit 1` or `SIGKILL`; None while it runs."""
        return self._server.ended()

    def tail(self) -> str:
        """What its log says last, in one line."""
        return self._server.tail()

    def stop(self) -> None:
        """End the server and wait for it; a second call does nothing."""
        self._server.stop()


@contextmanager
def launch(wanted: Launch) -> Iterator[LaunchedEngine]:
    """Start a server, yield it when a real token came back, end it on leaving.

    Refuses: `engine_port`, `engine_unstartable`, `engine_died`, `engine_not_ready`.
    """
    engine = begin(wanted)
    try:
        yield engine
    finally:
        engine.stop()


def begin(wanted: Launch) -> LaunchedEngine:
    """The same without a context: the caller calls `stop()`. The end of this process ends the server all the same."""
    if not port_is_free(wanted.port):
        raise EngineError("engine_port", port=wanted.port)
    log_path = new_log(wanted.name, wanted.log_folder)
    server = Server(wanted.argv, log_path=log_path, name=wanted.name, environment=wanted.environment)
    try:
        url = f"http://127.0.0.1:{wanted.port}"
        return LaunchedEngine(server, wanted, wait_until_ready(server, url, wanted.headers, wanted.ready_budget_s))
    except BaseException:
        server.stop()
        raise


class Server:
    """A program under a keeper. `pid` is the program's own, `keeper_pid` its parent's.

    Refuses a program that cannot be executed: slug `engine_unstartable`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log_path: Path,
        name: str | None = None,
        environment: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        self.program = name or argv[0]
        self._argv = argv
        self.log_path = log_path
        self._grace_s = grace_s
        self._told = b""
        self._silent = False
        self._end: str | None = None
        with log_path.open("ab") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER), str(grace_s), *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=_environment(environment or {}),
                start_new_session=True,
            )
        self.keeper_pid = self._keeper.pid
        try:
            self.pid = self._started()
        except BaseException:
            self.stop()
            raise

    def ended(self) -> str | None:
        """How the program ended: `exit CODE`, a signal's name, `lost` when its keeper is gone; None while it runs."""
        if self._end is None:
            self._hear(0)
            self._end = self._worded_end()
        return self._end

    def stop(self) -> None:
        """Let go of the life line and wait until the keeper has ended the program. Idempotent."""
        life_line, words = self._keeper.stdin, self._keeper.stdout
        if life_line is None or words is None or words.closed:
            return
        life_line.close()
        try:
            self._keeper.wait(self._grace_s + _KEEPER_WAIT_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self.ended()
        words.close()

    def tail(self) -> str:
        """What the end of the log says of why it ended or does not begin, in one line; no secret of its flags."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            return last_words(Mask(in_flags(self._argv))(log.read().decode("utf-8", "replace")))

    def _started(self) -> int:
        while b"\n" not in self._told and not self._silent:
            if not self._hear(_KEEPER_WAIT_S * 1000):
                break
        word, _, rest = self._told.decode("utf-8", "replace").partition("\n")[0].partition(" ")
        if word == "started":
            return int(rest)
        raise EngineError("engine_unstartable", program=self.program, detail=rest or self.tail() or "no answer")

    def _hear(self, timeout_ms: float) -> bool:
        """Take what the keeper told; False when nothing came in time."""
        words = self._keeper.stdout
        if words is None or words.closed or self._silent:
            return False
        poll = select.poll()
        poll.register(words.fileno(), select.POLLIN)
        if not poll.poll(timeout_ms):
            return False
        piece = os.read(words.fileno(), 4096)
        self._silent = not piece
        self._told += piece
        return True

    def _worded_end(self) -> str | None:
        lines = self._told.decode("utf-8", "replace").splitlines()
        last = lines[-1] if lines else ""
        if last.startswith("ended signal "):
            with suppress(ValueError):
                return signal.Signals(int(last.split()[-1])).name
        if last.startswith("ended "):
            return last.removeprefix("ended ")
        return "lost" if self._silent else None


def port_is_free(port: int) -> bool:
    """Whether a server of ours could listen on the loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A loopback port that nobody holds at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def log_folder() -> Path:
    """Where the logs of launched servers are kept."""
    return platformdirs.user_log_path("nilometer") / "engines"


def new_log(name: str, folder: Path | None = None) -> Path:
    """A new empty log file; the oldest beyond fifty are removed. Refuses: slug `cache_unwritable`."""
    folder = folder or log_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=folder)
        os.close(descriptor)
        logs = sorted(folder.glob("*.log"), key=lambda log: log.stat().st_mtime_ns)
        for old in logs[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
    except OSError as fault:
        raise EngineError("cache_unwritable", folder=str(folder), detail=fault.strerror or str(fault)) from None
    return Path(path)


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN_SETTINGS)}
    return {**kept, **added}


def _engine_facts(wanted: Launch, answered: Answered, log_path: str) -> EngineFacts:
    return EngineFacts(
        name=wanted.name,
        version=wanted.version,
        build=wanted.build or answered.build,
        flags=list(wanted.shown_flags),
        slots=answered.slots,
        context_tokens=answered.context_tokens,
        load_time_s=answered.load_time_s,
        log_path=log_path,
        launched_by_us=True,
        server_header=answered.server_header,
    )


def _model_facts(known: ModelFacts, answered: Answered) -> ModelFacts:
    return ModelFacts(
        id=answered.model_id,
        file=known.file,
        file_sha256=known.file_sha256,
        file_bytes=known.file_bytes,
        precision=known.precision or answered.precision,
        requantised_from=known.requantised_from,
        parameters=answered.parameters,
    )
