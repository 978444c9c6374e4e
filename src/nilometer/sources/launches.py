"""One way in: what a person wrote - a command, a file, an address - to the launch it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from nilometer.core.errors import DataError
from nilometer.plan.launch.command import Launch

from .engine_configs import of_command, read_config

_ADDRESS = re.compile(r"https?://\S+")


def read_launch(
    text: str, *, headers: Mapping[str, str] | None = None, insecure: bool = False, proxy: str | None = None
) -> Launch:
    """The launch that a command (`vllm serve ...`), a path, or the address of a running server means.

    A file that is there goes before a command. DataErrors of `engine_configs.read_config`, SpecErrors of
    `plan.launch.read_command`, TargetErrors of `engine_servers.read_engine_server`.
    """
    bare = text.strip()
    if _ADDRESS.fullmatch(bare):
        from .engine_servers import read_engine_server  # noqa: PLC0415 - a command or a file needs no connection

        return read_engine_server(bare, headers=headers, insecure=insecure, proxy=proxy)
    path = Path(bare)
    if bare and "\n" not in bare and _exists(path):
        return read_config(path)
    if not re.search(r"\s", bare) and re.search(r"[\\/]|\.(ya?ml|env|sh|service)$", bare):
        raise DataError("file_unreadable", file=bare[:400], detail="ENOENT")
    return of_command(bare)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
