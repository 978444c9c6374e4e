"""Starting the embedded engine: threads, flags, model, fallback. The program is a script, the model a tiny file."""

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from nilometer.core.errors import EngineError, NiloError, Param
from nilometer.engines import catalogue, embedded, flags, model_cache
from nilometer.engines.catalogue import Program
from nilometer.engines.flags import Flag
from nilometer.engines.prepare import Prepared
from nilometer.engines.process import LaunchedEngine, free_port

ENGINE = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
words = sys.argv[1:]
if words == ["--help"]:
    print("-np, --parallel N -c N -t N -m F -a S --host H --port P --metrics --no-cache-prompt -dev, --device D")
    sys.exit()
if words == ["--version"]:
    print("version: 77 (abc)")
    sys.exit()
print(json.dumps(words), flush=True)
class Handler(BaseHTTPRequestHandler):
    def respond(self):
        body = json.dumps({"data": [{"id": json.dumps(words[-2:])}], "usage": {"completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = respond
    def log_message(self, *words): pass
HTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Handler).serve_forever()
"""
DIES = "import os, signal, sys; len(sys.argv) > 3 and os.kill(os.getpid(), signal.{signal})"


def program(path: Path, script: str = ENGINE) -> str:
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def server(tmp_path: Path) -> str:
    return program(tmp_path / "llama-server")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `prepare` gives; the cache of hashes lies in the test's folder."""
    path = tmp_path / "Smol-Q4_0.gguf"
    path.write_bytes(b"GGUF")
    made = Prepared(path, "ab" * 32, 4, "Q4_0", "Q4_1", made_now=False)
    monkeypatch.setattr(embedded, "prepare", lambda *_, **__: made)
    monkeypatch.setattr(model_cache, "folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return path


def words_of(engine: LaunchedEngine) -> list[str]:
    """The command line the fake server got: it tells it in its log."""
    told: list[str] = json.loads(Path(engine.log_path).read_text().splitlines()[0])
    return told


def test_the_embedded_model_is_served_with_flags_that_leave_a_core(server: str, model: Path) -> None:
    with embedded.start(spec=server, slots=3, context_tokens_per_slot=100) as engine:
        words = words_of(engine)
        port = engine.url.rpartition(":")[2]
        assert words == [
            *("-m", str(model), "-a", "Smol-Q4_0", "--host", "127.0.0.1", "--port", port),
            *("-np", "3", "-c", "300", "-t", str(embedded.threads()), "--metrics", "--no-cache-prompt"),
        ]
        assert engine.facts.flags == flags.without(("--host", "--port"), words)
        assert (engine.facts.version, engine.facts.build, engine.facts.name) == (
            "77 (abc)",
            "77 (abc)",
            "llama-server",
        )
        assert (engine.model.file_sha256, engine.model.precision, engine.model.requantised_from) == (
            "ab" * 32,
            "Q4_0",
            "Q4_1",
        )


def test_flags_of_a_spec_replace_the_defaults_and_size_the_context(server: str, model: Path) -> None:
    assert model.exists()
    with embedded.launch_spec(f"{server}:-np 2 --api-key c4n4ry") as engine:
        words = words_of(engine)
        assert flags.value_of(flags.SLOTS, words) == "2"
        assert flags.value_of(flags.CONTEXT, words) == str(2 * embedded.CONTEXT_TOKENS_PER_SLOT)
        assert engine.headers == {"Authorization": "Bearer c4n4ry"}
        assert "c4n4ry" not in repr(engine.facts)
        assert engine.model.id == '["--api-key", "***"]'


def test_a_model_in_the_spec_is_served_and_hashed(server: str, model: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"GGUF!")
    with embedded.launch_spec(f"{server}:-m {mine}") as engine:
        words = words_of(engine)
        assert str(model) not in words
        assert words.count("-m") == 1
        assert flags.value_of(flags.ALIAS, words) == "mine"
        assert engine.model.file_sha256 == hashlib.sha256(b"GGUF!").hexdigest()
        assert engine.model.requantised_from is None


@pytest.mark.usefixtures("model")
def test_a_model_the_server_fetches_itself_gets_no_file(server: str) -> None:
    with embedded.launch_spec(f"{server}:-hf org/name") as engine:
        assert "-m" not in words_of(engine)
        assert engine.model.file is None


@pytest.mark.usefixtures("model")
def test_the_asked_port_is_used(server: str) -> None:
    port = free_port()
    with embedded.start(spec=server, port=port) as engine:
        assert engine.url == f"http://127.0.0.1:{port}"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("flags_of_spec", "slug"),
    [("-np x", "engine_flag_bad"), ("--host 0.0.0.0", "engine_host_bad"), ("'", "engine_spec_bad")],
)
def test_bad_specs_are_refused_before_anything_starts(server: str, flags_of_spec: str, slug: str) -> None:
    with pytest.raises(NiloError) as caught, embedded.launch_spec(f"{server}:{flags_of_spec}"):
        pass
    assert caught.value.slug == slug


@pytest.mark.usefixtures("model")
def test_a_program_the_processor_cannot_execute_gives_way_and_that_is_told(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    illegal = program(tmp_path / "illegal", DIES.format(signal="SIGILL"))
    found = [Program("first", (illegal,)), Program("second", (server,), flags=(Flag(("--device",), "none"),))]
    monkeypatch.setattr(catalogue, "named", lambda _name: found)
    heard: list[tuple[str, dict[str, Param]]] = []

    def tell(word: str, /, **params: Param) -> None:
        heard.append((word, params))

    with embedded.start(tell=tell) as engine:
        assert engine.facts.name == "second"
        assert flags.value_of(("--device",), words_of(engine)) == "none"
    assert heard == [("engine_gave_way", {"engine": "first", "next_engine": "second"})]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("signal", "names"), [("SIGILL", ["only"]), ("SIGSEGV", ["first", "second"])])
def test_other_deaths_and_the_last_program_are_errors(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal: str, names: list[str]
) -> None:
    dies = program(tmp_path / "dies", DIES.format(signal=signal))
    found = [Program(names[0], (dies,)), *(Program(name, (server,)) for name in names[1:])]
    monkeypatch.setattr(catalogue, "named", lambda _name: found)
    with pytest.raises(EngineError) as caught, embedded.start():
        pass
    assert caught.value.params["ended"] == signal


def test_what_counts_as_an_engine_spec(server: str) -> None:
    assert embedded.names_engine("embedded")
    assert embedded.names_engine("llama-server:-np 4")
    assert embedded.names_engine("xllamacpp")
    assert embedded.names_engine(f"{server}:-np 4")
    for target in ("http://localhost:8000", "localhost:8000", "load.toml", "/none:-np 4", "embedding"):
        assert not embedded.names_engine(target)


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (3, 2), (5, 4), (64, 4)])
def test_a_processor_is_left_to_the_client(monkeypatch: pytest.MonkeyPatch, processors: int, threads: int) -> None:
    monkeypatch.setattr(embedded, "usable_processors", lambda: processors)
    assert embedded.threads() == threads


@pytest.mark.parametrize(("quota", "expected"), [("200000 100000", 2), ("50000 100000", 1), ("max 100000", 6), ("", 6)])
def test_a_containers_quota_cuts_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(6)), raising=False)
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert embedded.usable_processors(str(file)) == expected
    assert embedded.usable_processors(str(tmp_path / "none")) == 6


def test_default_flags_are_shown_without_host_port_and_model(server: str) -> None:
    told = embedded.default_flags(Program("llama-server", (server,)))
    assert told[:4] == ["-np", "8", "-c", "16384"]
    assert not {"-m", "--host", "--port"} & set(told)
