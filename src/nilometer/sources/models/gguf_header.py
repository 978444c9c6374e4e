"""The header of a GGUF file, read with bounds: metadata, and name, size and format of every tensor. No weight is read.

The package gguf reads such files too, but follows a hostile count or length for minutes and holds every word of the
vocabulary as an array of its own; this one refuses what cannot be, and needs no package. Its answers are held to that
package's by test. Source: ggml, docs/gguf.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from nilometer.core.errors import DataError
from nilometer.plan.model.blocks import BLOCKS

from .opened import open_file

MAGIC = b"GGUF"
VERSIONS = (2, 3)
KEYS_MOST, TENSORS_MOST, ITEMS_MOST = 65_536, 1 << 20, 1 << 22
"""Counts that no real file comes near; a vocabulary has some 250,000 words."""
TEXT_MOST_BYTES, NAMES_MOST_BYTES = 64 << 20, 4096
KEPT_BYTES, KEPT_ITEMS = 4096, 10_000
"""Longer texts (chat templates) and lists (vocabularies) are passed over."""
HEADER_MOST_BYTES = 1 << 30
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}  # fmt: skip
"""Source: ggml.h, `enum ggml_type`."""


class Tensor(msgspec.Struct, frozen=True):
    """One tensor: `dims` fastest first, as the format has them."""

    dims: tuple[int, ...]
    form: str
    elements: int
    bytes: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What stands before the weights. `values` lacks long texts and lists; `lengths` has how long lists are."""

    file: str
    values: Mapping[str, object]
    lengths: Mapping[str, int]
    tensors: Mapping[str, Tensor]


class _Reader:
    def __init__(self, file: BinaryIO, path: str, size: int) -> None:
        self.file, self.path, self.size, self.at, self.order = file, path, size, 0, "<"

    def take(self, count: int) -> bytes:
        """The next bytes, none of which is behind the end of the file."""
        if count > self.size - self.at or self.at > HEADER_MOST_BYTES:
            raise DataError("model_file_cut", file=self.path, needs=self.at + count, has=self.size)
        data = self.file.read(count)
        if len(data) < count:
            raise DataError("model_file_cut", file=self.path, needs=self.at + count, has=self.at + len(data))
        self.at += count
        return data

    def skip(self, count: int) -> None:
        if count > self.size - self.at:
            raise DataError("model_file_cut", file=self.path, needs=self.at + count, has=self.size)
        self.file.seek(count, 1)
        self.at += count

    def skip_texts(self, count: int) -> None:
        """So many texts, each behind its length: a vocabulary, so nothing is done for one that need not be."""
        read, length = self.file.read, struct.Struct(f"{self.order}Q")
        for _ in range(count):
            raw = read(8)
            size = length.unpack(raw)[0] if len(raw) == 8 else TEXT_MOST_BYTES + 1
            if size > TEXT_MOST_BYTES or len(read(size)) < size:
                raise DataError("model_file_cut", file=self.path, needs=self.at + 8 + size, has=self.size)
            self.at += 8 + size

    def one(self, form: str) -> int:
        (found,) = struct.unpack(self.order + form, self.take(struct.calcsize("=" + form)))
        return int(found)

    def count(self, field: str, most: int) -> int:
        found = self.one("Q")
        if found > most:
            raise DataError("model_header_too_large", file=self.path, field=field, value=found, most=most)
        return found

    def text(self, field: str, most: int) -> str:
        return self.take(self.count(field, most)).decode("utf-8", "replace")


def read_header(path: Path) -> Header:
    """The header of one file. DataError: `file_unreadable`, `model_file_not`, `model_file_cut`,
    `model_header_too_large`, `model_field_bad`.
    """
    with open_file(path) as file:
        reader = _Reader(file, str(path), path.stat().st_size)
        if reader.take(4) != MAGIC:
            raise DataError("model_file_not", file=str(path), kind="GGUF")
        version = reader.one("I")
        if not version & 0xFFFF:
            reader.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in VERSIONS:
            raise DataError("model_field_bad", file=str(path), field="version", value=version, wanted="2, 3")
        tensors, keys = reader.count("tensor_count", TENSORS_MOST), reader.count("kv_count", KEYS_MOST)
        values, lengths = _metadata(reader, keys)
        found = _tensors(reader, tensors, values)
    return Header(file=str(path), values=values, lengths=lengths, tensors=found)


def _metadata(reader: _Reader, count: int) -> tuple[dict[str, object], dict[str, int]]:
    values: dict[str, object] = {}
    lengths: dict[str, int] = {}
    for _ in range(count):
        key = reader.text("key", NAMES_MOST_BYTES)
        kind = reader.one("I")
        if kind == _LIST:
            lengths[key], values[key] = _list(reader, key)
        elif kind == _TEXT:
            values[key] = _kept_text(reader, key)
        else:
            values[key] = _scalar(reader, key, kind)
    return {key: value for key, value in values.items() if value is not None}, lengths


def _scalar(reader: _Reader, key: str, kind: int) -> object:
    form = _SCALARS.get(kind)
    if form is None:
        raise DataError("model_field_bad", file=reader.path, field=key[:80], value=kind, wanted="type 0..12")
    if form == "?":
        return reader.take(1) != b"\0"
    (found,) = struct.unpack(reader.order + form, reader.take(struct.calcsize("=" + form)))
    return found if isinstance(found, int | float) else None


def _kept_text(reader: _Reader, key: str) -> str | None:
    length = reader.count(key[:80], TEXT_MOST_BYTES)
    if length > KEPT_BYTES:
        reader.skip(length)
        return None
    return reader.take(length).decode("utf-8", "replace")


def _list(reader: _Reader, key: str) -> tuple[int, object]:
    kind, length = reader.one("I"), reader.count(key[:80], ITEMS_MOST)
    if kind == _TEXT:
        reader.skip_texts(length)
        return length, None
    form = _SCALARS.get(kind)
    if form is None:
        raise DataError("model_field_bad", file=reader.path, field=key[:80], value=kind, wanted="type 0..12")
    size = struct.calcsize("=" + form) * length
    if length > KEPT_ITEMS:
        reader.skip(size)
        return length, None
    return length, list(struct.unpack(f"{reader.order}{length}{form}", reader.take(size)))


def _tensors(reader: _Reader, count: int, values: Mapping[str, object]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    end = 0
    for _ in range(count):
        name = reader.text("tensor name", NAMES_MOST_BYTES)
        dims = tuple(reader.count(name[:80], 1 << 50) for _ in range(_dimensions(reader, name)))
        tensor = _tensor(reader, name, dims)
        if name in found:
            raise DataError("model_field_bad", file=reader.path, field=name[:80], value=name[:80], wanted="one of each")
        end = max(end, reader.one("Q") + tensor.bytes)
        found[name] = tensor
    align = values.get("general.alignment", 32)
    if not isinstance(align, int) or align <= 0 or align & (align - 1) or align > 1 << 20:
        raise DataError(
            "model_field_bad", file=reader.path, field="general.alignment", value=str(align)[:80], wanted="2^n"
        )
    start = -(-reader.at // align) * align
    if start + end > reader.size and found:
        raise DataError("model_file_cut", file=reader.path, needs=start + end, has=reader.size)
    return found


def _dimensions(reader: _Reader, name: str) -> int:
    found = reader.one("I")
    if found > 4:
        raise DataError("model_field_bad", file=reader.path, field=name[:80], value=found, wanted="0..4")
    return found


def _tensor(reader: _Reader, name: str, dims: tuple[int, ...]) -> Tensor:
    kind = reader.one("I")
    form = TYPES.get(kind)
    if form is None:
        raise DataError("model_field_bad", file=reader.path, field=name[:80], value=kind, wanted="ggml_type")
    elements = 1
    for dim in dims:
        elements *= dim
    weights, size = BLOCKS[form]
    if elements >= 1 << 50 or (dims and dims[0] % weights):
        raise DataError(
            "model_field_bad", file=reader.path, field=name[:80], value=str(dims)[:80], wanted=f"{weights} x n"
        )
    return Tensor(dims, form, elements, elements // weights * size)
