"""Opening what describes a model: only whole files, of bounded size; what cannot be read is one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from nilometer.core.errors import DataError

from .fields import Fields

JSON_MOST_BYTES = 16 << 20
"""A config takes a few kB, an index of shards of the largest models some MB."""


def open_file(path: Path) -> BinaryIO:
    """A plain file, to be read. DataError `file_unreadable`, `file_piped`."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DataError("file_piped" if not path.is_dir() else "model_folder_empty", file=str(path))
        return path.open("rb")
    except (OSError, ValueError) as fault:
        detail = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise DataError("file_unreadable", file=str(path), detail=detail) from None


def read_bytes(path: Path, most: int) -> bytes:
    """All of a file. DataError `model_header_too_large` where it is longer than `most`."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DataError("model_header_too_large", file=str(path), field="size", value=path.stat().st_size, most=most)
    return data


def decode(data: bytes, path: Path) -> dict[str, object]:
    """A JSON object. DataError `model_json_broken`."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise DataError("model_json_broken", file=str(path), detail=str(fault)) from None
    if not isinstance(found, dict):
        raise DataError("model_json_broken", file=str(path), detail=f"{type(found).__name__} != object")
    return found


def read_fields(path: Path) -> Fields:
    """The fields of a JSON file that holds one object."""
    return Fields(decode(read_bytes(path, JSON_MOST_BYTES), path), str(path))
