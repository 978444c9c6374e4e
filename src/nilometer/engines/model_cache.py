"""Files in the user's cache that are whole or not there: cards with their hash, atomic writing, one preparer at a time.

Beside each file lies a card (`NAME.json`) with its size, time stamp and SHA-256, so that a big file is hashed once.
It knows neither where a model comes from nor what is in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import platformdirs

from nilometer.core.errors import DataError, EngineError

from .tell import Tell

PART_SUFFIX = ".part"
FETCH_PREFIX = "fetch-"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file: `mtime_ns` and `size_bytes` tell whether it is still the one that was hashed."""

    sha256: str
    size_bytes: int
    mtime_ns: int
    precision: str | None = None
    requantised_from: str | None = None
    source_sha256: str | None = None
    recipe: int = 0
    """Version of the rules it was made by."""


def folder() -> Path:
    """Where prepared models lie: `models` below the user's cache folder."""
    return platformdirs.user_cache_path("nilometer") / "models"


def read_card(path: Path) -> Card | None:
    """The card of `path`; None where there is none or the file is no longer the one it describes."""
    try:
        card = msgspec.json.decode(_card_path(path).read_bytes(), type=Card)
        now = path.stat()
    except (OSError, msgspec.DecodeError):
        return None
    return card if (now.st_size, now.st_mtime_ns) == (card.size_bytes, card.mtime_ns) else None


def write_card(path: Path, card: Card) -> None:
    """Put the card beside its file, whole or not at all."""
    part = _part(_card_path(path))
    part.write_bytes(msgspec.json.encode(card))
    os.replace(part, _card_path(path))


def is_whole(path: Path, *, hashed: bool) -> bool:
    """Whether `path` is the file its card describes; with `hashed` its bytes are read and compared too."""
    card = read_card(path)
    return card is not None and (not hashed or sha256_of(path) == card.sha256)


def place(path: Path, write: Callable[[Path], None]) -> None:
    """Make `path` by writing a file beside it and renaming: readers see the former file or the whole new one."""
    part = _part(path)
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal. Refuses what cannot be read: slug `file_unreadable`."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None


def hash_of_users_file(path: Path, cache: Path) -> str:
    """SHA-256 of a file of the user's, computed once: its card lies in our cache, not beside the file."""
    try:
        now = path.stat()
    except OSError as fault:
        raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:24]
    card_path = cache / "hashes" / f"{name}.json"
    with suppress(OSError, msgspec.DecodeError):
        card = msgspec.json.decode(card_path.read_bytes(), type=Card)
        if (now.st_size, now.st_mtime_ns) == (card.size_bytes, card.mtime_ns):
            return card.sha256
    digest = sha256_of(path)
    with suppress(OSError):
        card_path.parent.mkdir(parents=True, exist_ok=True)
        card = Card(sha256=digest, size_bytes=now.st_size, mtime_ns=now.st_mtime_ns)
        place(card_path, lambda part: _write(part, msgspec.json.encode(card)))
    return digest


@contextmanager
def alone(cache: Path, tell: Tell) -> Iterator[None]:
    """Hold the cache's lock, waiting for another process that prepares; what one that was killed left is removed.

    Maps what the file system refuses to EngineError `cache_unwritable`.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            _lock(lock.fileno(), tell)
            _sweep(cache)
            yield
    except OSError as fault:
        raise EngineError("cache_unwritable", folder=str(cache), detail=fault.strerror or str(fault)) from None


def _lock(descriptor: int, tell: Tell) -> None:
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415 - not everywhere

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("engine_prepared_elsewhere")
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _sweep(cache: Path) -> None:
    for path in cache.glob(f"*{PART_SUFFIX}"):
        path.unlink(missing_ok=True)
    for path in cache.glob(f"{FETCH_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}{PART_SUFFIX}")


def _card_path(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
