"""Columns as compressed bytes: integers as byte planes, texts as sizes and UTF-8, an npz of them under zstd.

Knows nothing of a Record. Whatever is read was perhaps written by a broken disk or a stranger: nothing is unpickled, no
size is believed before it is checked, and what does not fit is refused with `DamagedError`.
"""

from __future__ import annotations

import math
import sys
import zipfile
from array import array
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

RAW_LIMIT_BYTES = 1 << 30
"""Most that one blob may hold once decompressed."""
LEVEL = 3
"""zstd level: the low byte planes are noise that no level makes smaller."""

_TYPES = (np.dtype(np.uint8), np.dtype(np.int64), np.dtype(np.float64))
"""What a column may be of."""


class DamagedError(Exception):
    """These bytes are not what this module wrote."""


class TooLargeError(Exception):
    """This is more than one blob may hold."""


def ints(values: Iterable[int]) -> Ints:
    """Whole numbers as one column; OverflowError beyond 64 bits, TypeError for anything that is not a whole number."""
    return np.frombuffer(array("q", values), dtype=np.int64)


def fold(values: Ints) -> Bytes:
    """Byte planes, lowest first, of the zigzag form; planes that are all zero at the top are left out. (k, n).

    Zigzag makes a small number of either sign small; planes put the bytes that hardly vary side by side.
    """
    zigzag = np.ascontiguousarray((values << 1) ^ (values >> 63))
    planes = zigzag.view(np.uint8).reshape(-1, 8).T
    used = 8
    while used and not planes[used - 1].any():
        used -= 1
    return np.ascontiguousarray(planes[:used])


def unfold(planes: Bytes) -> Ints:
    """The inverse of `fold`."""
    if planes.ndim != 2 or planes.shape[0] > 8 or planes.dtype != np.uint8 or planes.shape[1] * 8 > RAW_LIMIT_BYTES:
        raise DamagedError("byte planes of an odd shape")
    zigzag = np.zeros((planes.shape[1], 8), dtype=np.uint8)
    zigzag[:, : planes.shape[0]] = planes.T
    folded = zigzag.view(np.uint64).reshape(-1)
    unfolded: Ints = ((folded >> np.uint64(1)) ^ (np.uint64(0) - (folded & np.uint64(1)))).view(np.int64)
    return unfolded


def texts(name: str, values: Sequence[str | None]) -> Columns:
    """Two columns: the size of each text plus one, 0 for None; and all texts in one stretch of UTF-8."""
    encoded = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
    sizes = ints(0 if item is None else len(item) + 1 for item in encoded)
    joined = b"".join(item for item in encoded if item is not None)
    return {f"{name}.sizes": fold(sizes), f"{name}.utf8": np.frombuffer(joined, dtype=np.uint8)}


def untexts(name: str, columns: Mapping[str, npt.NDArray[Any]]) -> list[str | None]:
    """The inverse of `texts`."""
    sizes = unfold(columns[f"{name}.sizes"])
    joined = columns[f"{name}.utf8"].tobytes()
    ends = np.cumsum(np.maximum(sizes - 1, 0))
    if sizes.size and (sizes.min() < 0 or ends[-1] != len(joined)):
        raise DamagedError(f"sizes of {name} do not agree with its text")
    starts = (ends - np.maximum(sizes - 1, 0)).tolist()
    return [
        joined[start:end].decode("utf-8", "surrogatepass") if size else None
        for size, start, end in zip(sizes.tolist(), starts, ends.tolist(), strict=True)
    ]


def pack(columns: Columns) -> bytes:
    """The columns as an npz under zstd. Raises TooLargeError above RAW_LIMIT_BYTES."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name, column in columns.items():
            with members.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, column, version=(1, 0), allow_pickle=False)
    return squeeze(file.getvalue())


def unpack(blob: bytes) -> Columns:
    """The inverse of `pack`; raises DamagedError."""
    raw = unsqueeze(blob)
    try:
        with zipfile.ZipFile(BytesIO(raw)) as file:
            return {info.filename.removesuffix(".npy"): _member(file, info) for info in file.infolist()}
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, OverflowError) as fault:
        raise DamagedError(f"npz: {fault}") from None


def _member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """One array of the npz. Stored members cannot be larger than the file; a shape cannot claim more than its bytes."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise DamagedError(f"{info.filename} is compressed")
    data = file.read(info)
    head = BytesIO(data)
    if npy.read_magic(head) != (1, 0):
        raise DamagedError(f"{info.filename} has an unknown npy version")
    shape, fortran_order, dtype = npy.read_array_header_1_0(head)
    if dtype not in _TYPES or fortran_order or math.prod(shape) * dtype.itemsize != len(data) - head.tell():
        raise DamagedError(f"{info.filename} is not the array it claims to be")
    return np.frombuffer(data, dtype=dtype, offset=head.tell()).reshape(shape)


def squeeze(raw: bytes) -> bytes:
    """zstd with the size in its head. Raises TooLargeError above RAW_LIMIT_BYTES."""
    if len(raw) > RAW_LIMIT_BYTES:
        raise TooLargeError(f"{len(raw)} bytes in one segment, at most {RAW_LIMIT_BYTES}")
    return zstd.compress(raw, LEVEL)


def unsqueeze(blob: bytes) -> bytes:
    """The inverse of `squeeze`. Decompresses no more than the size in the head, and that only if it is allowed."""
    try:
        size = zstd.get_frame_info(blob).decompressed_size
        if size is None or size > RAW_LIMIT_BYTES:
            raise DamagedError(f"zstd frame of {size} bytes")
        decompressor = zstd.ZstdDecompressor()
        raw = decompressor.decompress(blob, max_length=size + 1)
    except zstd.ZstdError as fault:
        raise DamagedError(f"zstd: {fault}") from None
    if not decompressor.eof or decompressor.unused_data or len(raw) != size:
        raise DamagedError("zstd frame is cut or has a tail")
    return raw
