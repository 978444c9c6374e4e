"""Columns to bytes and back; what is cut, swollen or made up is refused before memory is asked for it."""

from __future__ import annotations

import zipfile
from io import BytesIO

import numpy as np
import pytest

from nilometer.archive import columns
from nilometer.archive.columns import DamagedError, fold, ints, pack, squeeze, texts, unfold, unpack, untexts

LEAST, MOST = -(2**63), 2**63 - 1


def npz(name: str, data: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", compression) as members:
        members.writestr(name, data)
    return squeeze(file.getvalue())


def npy_bytes(header: str, body: bytes) -> bytes:
    """A hand-made npy file of version 1.0."""
    padded = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + body


@pytest.mark.parametrize("values", [[], [0], [0, 0, 0], [-1], [1, -1, 300, -70_000], [LEAST, MOST, 0]])
def test_whole_numbers_come_back(values: list[int]) -> None:
    assert unfold(fold(ints(values))).tolist() == values


def test_planes_are_the_bytes_of_the_zigzag_form_lowest_first() -> None:
    # zigzag: 0 -> 0, -1 -> 1, 1 -> 2, 300 -> 600 = 0x0258
    assert fold(ints([0, -1, 1, 300])).tolist() == [[0, 1, 2, 0x58], [0, 0, 0, 0x02]]


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        ints([2**63])


def test_a_fraction_is_refused_not_cut() -> None:
    with pytest.raises(TypeError):
        ints([1.5])  # type: ignore[list-item]


def test_texts_come_back_none_apart_from_empty() -> None:
    values = ["stop", None, "", "首个\u0000 token 🛰", "\ud800"]
    assert untexts("t", unpack(pack(texts("t", values)))) == values


def test_text_sizes_that_do_not_fit_the_text_are_refused() -> None:
    packed = texts("t", ["ab", "c"]) | {"t.utf8": np.frombuffer(b"ab", dtype=np.uint8)}
    with pytest.raises(DamagedError, match="sizes of t"):
        untexts("t", packed)


def test_packed_columns_come_back_with_their_types() -> None:
    held = {"a": np.arange(3, dtype=np.uint8), "b.c": np.array([0.5]), "d": np.zeros((0, 4), dtype=np.uint8)}
    found = unpack(pack(held))
    assert {name: (column.dtype, column.shape) for name, column in found.items()} == {
        name: (column.dtype, column.shape) for name, column in held.items()
    }
    assert found["a"].tolist() == [0, 1, 2]


def test_packing_twice_gives_the_same_bytes() -> None:
    held = {"a": np.arange(100, dtype=np.uint8)}
    assert pack(held) == pack(held)


@pytest.mark.parametrize("keep", [0, 1, 10, -1])
def test_cut_bytes_are_refused(keep: int) -> None:
    with pytest.raises(DamagedError):
        unpack(pack({"a": np.arange(100, dtype=np.uint8)})[:keep])


def test_a_tail_is_refused() -> None:
    with pytest.raises(DamagedError, match="tail"):
        unpack(pack({"a": np.arange(100, dtype=np.uint8)}) + b"more")


def test_a_frame_larger_than_allowed_is_refused_by_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = squeeze(bytes(2_000))
    monkeypatch.setattr(columns, "RAW_LIMIT_BYTES", 1_999)
    with pytest.raises(DamagedError, match="2000 bytes"):
        columns.unsqueeze(blob)


def test_more_than_one_blob_may_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "RAW_LIMIT_BYTES", 1_999)
    with pytest.raises(columns.TooLargeError):
        squeeze(bytes(2_000))


def test_nothing_is_unpickled() -> None:
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    with pytest.raises(DamagedError):
        unpack(npz("a.npy", npy_bytes(header, b"\x80\x04N.")))


def test_a_shape_that_claims_more_than_its_bytes_is_refused() -> None:
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }"
    with pytest.raises(DamagedError, match="claims"):
        unpack(npz("a.npy", npy_bytes(header, bytes(8))))


def test_empty_planes_of_a_giant_width_are_refused() -> None:
    with pytest.raises(DamagedError, match="odd shape"):
        unfold(np.zeros((0, 10**12), dtype=np.uint8))


def test_a_member_that_swells_is_refused() -> None:
    with pytest.raises(DamagedError, match="compressed"):
        unpack(npz("a.npy", bytes(10_000), zipfile.ZIP_DEFLATED))


def test_what_is_no_npz_is_refused() -> None:
    with pytest.raises(DamagedError, match="npz"):
        unpack(squeeze(b"no zip at all"))
