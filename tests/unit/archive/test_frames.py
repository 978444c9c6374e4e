"""Frame columns: exact for every shape of frame, and near the noise in size."""

from __future__ import annotations

import numpy as np
import pytest

from nilometer.archive import frames
from nilometer.archive.columns import Columns, DamagedError, fold, ints, pack, unpack
from nilometer.core.record import Frames

from .samples import int64


def back_and_forth(held: list[Frames], sent: list[int]) -> list[Frames]:
    columns = unpack(pack(frames.encode(held, ints(sent))))
    found = frames.decode(columns, ints(sent))
    assert columns == {}
    return found


CASES = {
    "none": [],
    "no frames": [Frames(), Frames()],
    "user stamps only": [Frames(user=int64(5, 9)), Frames(), Frames(user=int64(7))],
    "both stamps": [Frames(user=int64(12, 25), kernel=int64(10, 20))],
    "one read without a kernel stamp": [Frames(user=int64(12, 25, 33), kernel=int64(10, -1, 30))],
    "no read with a kernel stamp, column there": [Frames(user=int64(12), kernel=int64(-1))],
    "some with, some without": [
        Frames(user=int64(12, 25)),
        Frames(user=int64(40), kernel=int64(39)),
        Frames(),
        Frames(user=int64(50, 60)),
    ],
    "kernel after user": [Frames(user=int64(10), kernel=int64(11))],
    "tokens": [Frames(user=int64(1, 2), tokens=b"\x04\x00\x00\x00\xff\xff\xff\xff"), Frames(user=int64(3))],
    "flags": [Frames(user=int64(1, 2), flags=b"\x01\x02"), Frames(user=int64(3)), Frames(user=int64(4), flags=b"\x00")],
    "the whole range": [Frames(user=int64(2**63 - 1, -(2**63)), kernel=int64(-(2**63), 2**63 - 1))],
}


@pytest.mark.parametrize("held", CASES.values(), ids=CASES.keys())
def test_frames_come_back(held: list[Frames]) -> None:
    assert back_and_forth(held, [3] * len(held)) == held


def test_no_frames_at_all_take_no_column() -> None:
    assert frames.encode([Frames(), Frames()], ints([0, 0])) == {}


def test_a_first_frame_counts_from_its_request() -> None:
    columns = frames.encode([Frames(user=int64(1_007, 1_010)), Frames(user=int64(2_001))], ints([1_000, 2_000]))
    assert columns["frames.gap"].tolist() == fold(ints([7, 3, 1])).tolist()


@pytest.mark.parametrize(
    "odd",
    [Frames(user=b"123"), Frames(user=int64(1), kernel=int64(1, 2)), Frames(tokens=b"1234"), Frames(flags=b"\x01")],
)
def test_irregular_frames_are_told_apart(odd: Frames) -> None:
    assert not frames.regular(odd)
    assert frames.regular(Frames(user=int64(1), kernel=int64(1), tokens=b"1234", flags=b"\x00"))


def damaged(**changes: object) -> Columns:
    columns = frames.encode([Frames(user=int64(12, 25), kernel=int64(10, 20))], ints([0]))
    for name, values in changes.items():
        columns[f"frames.{name}"] = fold(ints(values))  # type: ignore[arg-type]
    return columns


@pytest.mark.parametrize("changes", [{"counts": [3]}, {"counts": [-2]}, {"counts": [2, 0]}, {"gap": [1]}])
def test_counts_that_do_not_fit_are_refused(changes: dict[str, list[int]]) -> None:
    with pytest.raises(DamagedError):
        frames.decode(damaged(**changes), ints([0]))


def test_jitter_is_stored_near_its_entropy() -> None:
    random = np.random.default_rng(7)
    held = []
    for _ in range(1_000):
        kernel = np.cumsum(20_000_000 + random.integers(-100_000, 100_001, size=200))
        user = kernel + random.integers(5_000, 300_001, size=200)
        held.append(Frames(user=user.tobytes(), kernel=kernel.tobytes()))
    size = len(pack(frames.encode(held, ints([0] * 1_000))))
    entropy_bits = np.log2(200_001) + np.log2(295_001)
    assert size * 8 / 200_000 < entropy_bits + 2
