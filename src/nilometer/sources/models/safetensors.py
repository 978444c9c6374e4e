"""The headers of safetensors files: the true bytes of every tensor, by format. No weight is read."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from nilometer.core.errors import DataError

from .opened import decode, open_file, read_fields

HEADER_MOST_BYTES = 100_000_000
"""The format's own limit."""
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
BITS: Mapping[str, int] = {
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
    "F32": 32,
    "I32": 32,
    "U32": 32,
    "F16": 16,
    "BF16": 16,
    "I16": 16,
    "U16": 16,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I8": 8,
    "U8": 8,
    "BOOL": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
}
"""Source: safetensors, `Dtype`."""
_DIMENSIONS_MOST = 32
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")
_PRECISIONS = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8", "F8_E5M2": "fp8"}


def read_header(path: Path) -> Mapping[str, int]:
    """Bytes of the tensors of one file by their format.

    DataError: `model_file_not` where it is no such file, `model_file_cut` where it ends early,
    `model_header_too_large`, `model_json_broken`, `model_field_bad`.
    """
    with open_file(path) as file:
        size = path.stat().st_size
        first = file.read(8)
        if len(first) < 8:
            raise DataError("model_file_cut", file=str(path), needs=8, has=len(first))
        (length,) = struct.unpack("<Q", first)
        if length > HEADER_MOST_BYTES:
            raise DataError(
                "model_header_too_large", file=str(path), field="header", value=length, most=HEADER_MOST_BYTES
            )
        if 8 + length > size:
            raise DataError("model_file_cut", file=str(path), needs=8 + length, has=size)
        data = file.read(length)
    if not data.lstrip().startswith(b"{"):
        raise DataError("model_file_not", file=str(path), kind="safetensors")
    return _bytes_of(decode(data, path), path, size - 8 - length)


def _bytes_of(header: dict[str, object], path: Path, size: int) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        form, begin, end = _tensor(name, tensor, path)
        if end > size:
            raise DataError("model_file_cut", file=str(path), needs=end, has=size)
        found[form] += end - begin
    return dict(found)


def _tensor(name: str, tensor: object, path: Path) -> tuple[str, int, int]:
    found = tensor if isinstance(tensor, dict) else {}
    form, shape, offsets = found.get("dtype"), _whole(found.get("shape")), _whole(found.get("data_offsets"))
    if isinstance(form, str) and form in BITS and shape is not None and offsets is not None and len(offsets) == 2:
        begin, end = offsets
        if begin <= end and end - begin == -(-math.prod(shape) * BITS[form] // 8):
            return form, begin, end
    wanted = "dtype, shape, data_offsets"
    raise DataError("model_field_bad", file=str(path), field=name[:80], value=str(tensor)[:80], wanted=wanted)


def _whole(values: object) -> list[int] | None:
    if not isinstance(values, list) or len(values) > _DIMENSIONS_MOST:
        return None
    fits = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 50 for one in values)
    return values if fits else None


def read_file(path: Path) -> Mapping[str, int]:
    """Of one file, with all its parts where its name says that there are some: one part is no model.

    DataError as `read_header`, `model_shard_missing`.
    """
    part = _PART.search(path.name)
    if part is None:
        return read_header(path)
    names = (f"{path.name[: part.start()]}-{i:05}-of-{part[2]}.safetensors" for i in range(1, int(part[2]) + 1))
    return _of_shards(path, [path.with_name(name) for name in names])


def _of_shards(path: Path, shards: Sequence[Path]) -> Mapping[str, int]:
    missing = [shard.name for shard in shards if not shard.exists()]
    if missing:
        raise DataError("model_shard_missing", file=str(path), shard=missing[0], n=len(missing))
    found: Counter[str] = Counter()
    for shard in shards:
        found.update(read_header(shard))
    return dict(found)


def read_index(path: Path) -> Mapping[str, int]:
    """Of all shards that an index names; where none of them is there, the total it states, under `?`.

    DataError as `read_header`, `model_shard_missing` where some are there and some are not.
    """
    fields = read_fields(path)
    placed = fields.inner("weight_map")
    if placed is None or not placed.values:
        raise DataError("model_field_missing", file=str(path), field="weight_map")
    names = sorted({str(name) for name in placed.values.values()})
    for name in names:
        if not name.endswith(".safetensors") or Path(name).name != name:
            raise fields.bad("weight_map", name, "*.safetensors")
    shards = [path.with_name(name) for name in names]
    metadata = fields.inner("metadata")
    if metadata is not None and not any(shard.exists() for shard in shards):
        return {"?": metadata.whole("total_size", most=1 << 50)}
    return _of_shards(path, shards)


def read_weights(folder: Path) -> Mapping[str, int] | None:
    """Of a folder as Hugging Face keeps it; None where it holds no safetensors."""
    index, single = folder / INDEX, folder / SINGLE
    if index.exists():
        return read_index(index)
    return read_header(single) if single.exists() else None


def plain_precision(found: Mapping[str, int]) -> str | None:
    """The precision of a checkpoint that holds nearly everything in one format; None of a packed one."""
    total = sum(found.values())
    form = max(found, key=lambda one: found[one], default="")
    return _PRECISIONS.get(form) if total and found[form] > total / 2 else None
