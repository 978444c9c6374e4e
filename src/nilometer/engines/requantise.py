"""Writes a GGUF model anew at another precision, with the reader, quantiser and writer of the package `gguf`.

Vectors (norms, biases) stay F32. At Q4_0 the token embedding and the output matrix are Q8_0, as llama.cpp itself
does where a row is no multiple of 256. A matrix whose rows are no multiple of 32 becomes F16. Everything else in the
file is copied; what the weights were before is written into it. It must not fetch, cache or lock anything, and is
imported only when it is needed: `gguf` is an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf import (
    GGML_QUANT_SIZES,
    GGMLQuantizationType,
    GGUFReader,
    GGUFValueType,
    GGUFWriter,
    LlamaFileType,
    dequantize,
    quantize,
)
from gguf.gguf_reader import ReaderField, ReaderTensor
from gguf.quants import quant_shape_to_byte_shape

from nilometer.core.errors import DataError

REQUANTISED_FROM = "nilometer.requantised_from"
"""Key of the written file that names the former precision."""

_FILE_TYPE = "general.file_type"
_NOT_COPIED = ("general.architecture", _FILE_TYPE, REQUANTISED_FROM)
_KEPT_FINER_AT_Q4_0 = ("token_embd.weight", "output.weight")
_QUANTISED_ROW = 32

_F32, _F16 = GGMLQuantizationType.F32, GGMLQuantizationType.F16
_Q8_0, _Q4_0 = GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_0


class Weights(NamedTuple):
    """What a GGUF file holds, as its own metadata says. `precision` None where it does not say."""

    precision: str | None
    requantised_from: str | None


def read_weights(path: Path) -> Weights:
    """Precision of a GGUF file. Refuses what is not one: slug `model_file_bad`."""
    reader = _open(path)
    return Weights(_precision(reader), _text(reader.fields.get(REQUANTISED_FROM)))


def requantise(source: Path, target: Path, precision: str, done: Callable[[int, int], None]) -> Weights:
    """Write `source` to `target` at `precision`; `done` hears (tensors written, all). Returns what `target` holds.

    Refuses a source that is no GGUF file or whose weights the package cannot read: slug `model_file_bad`.
    """
    reader = _open(source)
    former = _precision(reader) or "?"
    architecture = _text(reader.fields.get("general.architecture"))
    if architecture is None:
        raise DataError("model_file_bad", file=str(source), detail="general.architecture is missing")
    writer = GGUFWriter(target, arch=architecture)
    try:
        _copy_facts(reader, writer, precision, former)
        _write_tensors(reader, writer, precision, done)
    except NotImplementedError as fault:
        raise DataError("model_file_bad", file=str(source), detail=str(fault)) from None
    finally:
        writer.close()
    return Weights(precision, former)


def _open(path: Path) -> GGUFReader:
    try:
        return GGUFReader(path)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as fault:
        raise DataError("model_file_bad", file=str(path), detail=str(fault)[:200]) from None
    except OSError as fault:
        raise DataError("file_unreadable", file=str(path), detail=fault.strerror or str(fault)) from None


def _precision(reader: GGUFReader) -> str | None:
    field = reader.fields.get(_FILE_TYPE)
    try:
        return None if field is None else LlamaFileType(field.contents()).name.removeprefix("MOSTLY_")
    except ValueError:
        return None


def _text(field: ReaderField | None) -> str | None:
    return None if field is None else str(field.contents())


def _copy_facts(reader: GGUFReader, writer: GGUFWriter, precision: str, former: str) -> None:
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in _NOT_COPIED:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind is GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, inner)
    writer.data_alignment = int(reader.alignment)
    writer.add_file_type(LlamaFileType[f"MOSTLY_{precision}"])
    writer.add_string(REQUANTISED_FROM, former)


def _write_tensors(reader: GGUFReader, writer: GGUFWriter, precision: str, done: Callable[[int, int], None]) -> None:
    planned = list(_plan(reader, precision))
    for tensor, kind in planned:
        shape, dtype, size_bytes = _layout(_rows(tensor), kind)
        writer.add_tensor_info(tensor.name, shape, dtype, size_bytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for index, (tensor, kind) in enumerate(planned):
        writer.write_tensor_data(_converted(tensor, kind))
        done(index + 1, len(planned))


def _plan(reader: GGUFReader, precision: str) -> Iterator[tuple[ReaderTensor, GGMLQuantizationType]]:
    asked = GGMLQuantizationType[precision]
    for tensor in reader.tensors:
        kind = _F32 if len(tensor.shape) == 1 else asked
        if kind is _Q4_0 and tensor.name in _KEPT_FINER_AT_Q4_0:
            kind = _Q8_0
        if kind in (_Q4_0, _Q8_0) and _rows(tensor)[-1] % _QUANTISED_ROW:
            kind = _F16
        yield tensor, kind


def _rows(tensor: ReaderTensor) -> list[int]:
    return [int(size) for size in reversed(tensor.shape)]


def _layout(rows: list[int], kind: GGMLQuantizationType) -> tuple[list[int], np.dtype[Any], int]:
    block, block_bytes = GGML_QUANT_SIZES[kind]
    size_bytes = int(np.prod(rows)) // block * block_bytes
    if kind is _F32 or kind is _F16:
        return rows, np.dtype(np.float32 if kind is _F32 else np.float16), size_bytes
    return list(quant_shape_to_byte_shape(rows, kind)), np.dtype(np.uint8), size_bytes


def _converted(tensor: ReaderTensor, kind: GGMLQuantizationType) -> np.ndarray[Any, Any]:
    if tensor.tensor_type is kind:
        return tensor.data
    return quantize(dequantize(tensor.data, tensor.tensor_type).reshape(_rows(tensor)), kind)
