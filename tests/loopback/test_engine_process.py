"""Servers under their keeper, with real processes and sockets: ready, dead, stuck, and ended on every path."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nilometer.core.environment import ModelFacts
from nilometer.core.errors import EngineError
from nilometer.engines.process import Launch, Server, begin, free_port, launch, new_log, port_is_free
from nilometer.net.fetch import fetch

WAIT_S = 20.0

ENGINE = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
PORT, LOADING_S, KEY = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
START = time.monotonic()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def version_string(self): return "fake"
    def answer(self, status, told):
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def respond(self):
        if KEY and self.headers.get("Authorization") != "Bearer " + KEY:
            self.answer(401, {"error": {"message": "Invalid API Key"}})
        elif time.monotonic() - START < LOADING_S:
            self.answer(503, {"error": {"message": "Loading model"}})
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": "m", "meta": {"n_params": 7, "ftype": "Q4_K - Medium"}}]})
        elif self.path == "/props":
            told = {"total_slots": 4, "build_info": "b1-abc", "default_generation_settings": {"n_ctx": 512}}
            self.answer(200, told)
        elif self.path == "/environment":
            self.answer(200, dict(os.environ))
        else:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(200, {"model": asked["model"], "usage": {"completion_tokens": asked["max_tokens"]}})
    do_GET = do_POST = respond
    def log_message(self, *words): pass
print("listening", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
PARENT = """
import sys, time
from pathlib import Path
from nilometer.engines.process import Server
server = Server([sys.executable, "-c", sys.argv[2]], log_path=Path(sys.argv[1]), grace_s=0.5)
print(server.keeper_pid, server.pid, flush=True)
time.sleep(600)
"""


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc or the parent-death signal")


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it becomes true within a generous time."""
    until_s = time.monotonic() + WAIT_S
    while not true() and time.monotonic() < until_s:
        time.sleep(0.01)
    return true()


def gone(pid: int) -> bool:
    """Whether no process of this id runs; one that has ended but was not yet collected counts as gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return not Path("/proc/self").exists() or not Path(f"/proc/{pid}").exists()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return new_log("test", tmp_path / "logs")


@pytest.fixture
def engine(tmp_path: Path) -> Callable[..., Launch]:
    """A Launch of the fake engine that loads for `loading_s`."""
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)

    def made(loading_s: float = 0.0, budget_s: float = 60.0, key: str = "") -> Launch:
        port = free_port()
        return Launch(
            name="fake",
            argv=[sys.executable, str(script), str(port), str(loading_s), *([key] if key else [])],
            port=port,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            version="1",
            shown_flags=["-np", "4"],
            model=ModelFacts(file="m.gguf", file_sha256="ab"),
            log_folder=tmp_path / "logs",
            ready_budget_s=budget_s,
        )

    return made


@pytest.fixture
def parent(log: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int, int]]]:
    """Starts another nilo that holds a server: (its process, the keeper's id, the server's id)."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str) -> tuple[subprocess.Popen[str], int, int]:
        process = subprocess.Popen([sys.executable, "-c", PARENT, str(log), program], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        keeper, server = process.stdout.readline().split()
        assert eventually(lambda: "up" in log.read_text())
        return process, int(keeper), int(server)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_server_is_ready_when_a_token_came_and_gone_after(engine: Callable[..., Launch]) -> None:
    with launch(engine(loading_s=0.6)) as started:
        assert started.died() is None
        assert started.facts.load_time_s is not None
        assert started.facts.load_time_s >= 0.4
        assert (started.facts.slots, started.facts.context_tokens, started.facts.build) == (4, 512, "b1-abc")
        assert (started.facts.name, started.facts.version, started.facts.flags) == ("fake", "1", ["-np", "4"])
        assert started.facts.launched_by_us
        assert started.facts.server_header == "fake"
        assert started.model == ModelFacts(
            id="m", file="m.gguf", file_sha256="ab", precision="Q4_K - Medium", parameters=7
        )
        assert "listening" in Path(started.log_path).read_text()
        pid = started.pid
    assert gone(pid)
    assert Path(started.log_path).exists()


def test_an_exception_ends_the_server_too(engine: Callable[..., Launch]) -> None:
    pids: list[int] = []

    def fails() -> None:
        with launch(engine()) as started:
            pids.append(started.pid)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fails()
    assert gone(pids[0])


def test_the_key_of_a_server_is_sent_with_every_request(engine: Callable[..., Launch]) -> None:
    with launch(engine(key="c4n4ry")) as started:
        assert started.headers == {"Authorization": "Bearer c4n4ry"}
        assert fetch(started.url + "/props").status == 401
        assert fetch(started.url + "/props", headers=started.headers).status == 200


def test_settings_in_the_environment_do_not_reach_the_server(
    engine: Callable[..., Launch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_N_PARALLEL", "99")
    monkeypatch.setenv("LLAMA_API_KEY", "c4n4ry")
    wanted = engine()._replace(environment={"ADDED": "1"})
    with launch(wanted) as started:
        environment = json.loads(fetch(started.url + "/environment").body)
    assert environment["ADDED"] == "1"
    assert not [name for name in environment if name.startswith("LLAMA_")]


def test_a_server_that_dies_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    dies = [sys.executable, "-c", "import sys; print('loading'); sys.exit('cannot read the model')"]
    with pytest.raises(EngineError) as caught:
        begin(Launch(name="fake", argv=dies, port=free_port(), log_folder=tmp_path))
    assert caught.value.slug == "engine_died"
    assert (caught.value.params["program"], caught.value.params["ended"]) == ("fake", "exit 1")
    assert caught.value.params["detail"] == "cannot read the model"
    assert Path(str(caught.value.params["log"])).read_text() == "loading\ncannot read the model\n"


def test_the_last_words_of_a_server_are_told_without_the_secrets_of_its_flags(tmp_path: Path) -> None:
    dies = [sys.executable, "-c", "import sys; sys.exit('x' * 150 + sys.argv[2] + '|' + sys.argv[2])"]
    argv = [*dies, "--api-key", "canary-0123456789"]
    with pytest.raises(EngineError) as caught:
        begin(Launch(name="fake", argv=argv, port=free_port(), log_folder=tmp_path))
    assert caught.value.params["detail"] == "x" * 150 + "***|***"


def test_a_server_killed_by_a_signal_is_told_by_its_name(tmp_path: Path) -> None:
    dies = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"]
    with pytest.raises(EngineError) as caught:
        begin(Launch(name="fake", argv=dies, port=free_port(), log_folder=tmp_path))
    assert caught.value.params["ended"] == "SIGILL"


@linux
def test_a_server_that_never_gets_ready_is_ended(engine: Callable[..., Launch], tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        begin(engine(loading_s=600, budget_s=1.5))
    assert caught.value.slug == "engine_not_ready"
    assert caught.value.params["seconds"] == 1.5
    assert caught.value.params["detail"] == "listening"
    assert eventually(lambda: not [pid for pid in processes_of(str(tmp_path / "engine.py")) if not gone(pid)])


def processes_of(script: str) -> list[int]:
    """Processes with this file on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if script.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_taken_port_is_refused_before_anything_starts(engine: Callable[..., Launch], tmp_path: Path) -> None:
    with launch(engine()) as started:
        port = int(started.url.rpartition(":")[2])
        assert not port_is_free(port)
        logs = len(list((tmp_path / "logs").iterdir()))
        with pytest.raises(EngineError) as caught:
            begin(engine()._replace(port=port))
        assert caught.value.slug == "engine_port"
        assert caught.value.params == {"port": port}
        assert len(list((tmp_path / "logs").iterdir())) == logs
    assert port_is_free(port)


def test_a_program_that_is_not_there_cannot_be_started(log: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        Server([str(tmp_path / "none")], log_path=log)
    assert caught.value.slug == "engine_unstartable"
    assert caught.value.params == {"program": str(tmp_path / "none"), "detail": "No such file or directory"}


def test_stop_is_idempotent_and_tells_how_it_ended(log: Path) -> None:
    server = Server([sys.executable, "-c", SLEEPER], log_path=log)
    assert server.ended() is None
    server.stop()
    server.stop()
    assert server.ended() == "SIGTERM"
    assert gone(server.pid)
    assert gone(server.keeper_pid)


def test_a_server_that_ignores_sigterm_is_killed_after_the_grace(log: Path) -> None:
    server = Server([sys.executable, "-c", STUBBORN], log_path=log, grace_s=0.3)
    assert eventually(lambda: "up" in log.read_text())
    server.stop()
    assert server.ended() == "SIGKILL"
    assert gone(server.pid)


def test_children_of_the_server_end_with_it(log: Path) -> None:
    forks = "import os, time; os.fork(); os.write(1, f'{os.getpid()} up\\n'.encode()); time.sleep(600)"
    server = Server([sys.executable, "-c", forks], log_path=log)
    assert eventually(lambda: log.read_text().count("up\n") >= 2)
    pids = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert len(pids) == 2
    server.stop()
    assert eventually(lambda: all(gone(pid) for pid in pids))


def test_kill_9_of_nilo_ends_keeper_and_server(
    parent: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, keeper, server = parent(SLEEPER)
    assert not gone(server)
    os.kill(process.pid, signal.SIGKILL)
    assert eventually(lambda: gone(server) and gone(keeper))


def test_kill_9_of_nilo_ends_a_stubborn_server_after_the_grace(
    parent: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, keeper, server = parent(STUBBORN)
    os.kill(process.pid, signal.SIGKILL)
    assert eventually(lambda: gone(server) and gone(keeper))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_every_signal_that_ends_nilo_ends_the_server(
    parent: Callable[[str], tuple[subprocess.Popen[str], int, int]], number: signal.Signals
) -> None:
    process, keeper, server = parent(SLEEPER)
    process.send_signal(number)
    assert eventually(lambda: gone(server) and gone(keeper))


@linux
def test_kill_9_of_the_keeper_ends_the_server(
    parent: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    _, keeper, server = parent(STUBBORN)
    os.kill(keeper, signal.SIGKILL)
    assert eventually(lambda: gone(server))


@linux
def test_a_lost_keeper_is_told(log: Path) -> None:
    server = Server([sys.executable, "-c", SLEEPER], log_path=log)
    os.kill(server.keeper_pid, signal.SIGKILL)
    assert eventually(lambda: server.ended() == "lost")
    server.stop()
    assert eventually(lambda: gone(server.pid))


@linux
def test_nilo_gone_while_a_fork_holds_the_pipe_still_ends_the_server(log: Path) -> None:
    forks = PARENT.replace("print(", "import os\nchild = os.fork()\nif not child:\n    time.sleep(600)\nprint(child, ")
    process = subprocess.Popen([sys.executable, "-c", forks, str(log), SLEEPER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child, keeper, server = (int(word) for word in process.stdout.readline().split())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    try:
        assert eventually(lambda: gone(server) and gone(keeper))
        assert not gone(child)
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_logs_are_kept_but_not_for_ever(tmp_path: Path) -> None:
    logs = [new_log("old", tmp_path) for _ in range(53)]
    assert len(list(tmp_path.iterdir())) == 50
    assert logs[-1].exists()
    assert not logs[0].exists()


def test_a_log_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError) as caught:
        new_log("x", tmp_path / "file")
    assert caught.value.slug == "cache_unwritable"
