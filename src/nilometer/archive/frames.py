"""The frames of all records of a segment as columns: this is where the bytes of an archive go.

A stamp is kept as its gap to the frame before it (the first: to the request's `sent_ns`), the loop's own stamp as its
lag behind the kernel's. With gaps that jitter by 0.1 ms and lags up to 0.3 ms both are 18 bits of noise, and what is
above them hardly varies: byte planes let zstd see that. All arithmetic wraps at 64 bits: every value comes back exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nilometer.core.record import Frames

from .columns import Bytes, Columns, DamagedError, Ints, fold, ints, unfold

NO_KERNEL = -1
"""Stands in `Frames.kernel` where a read had no kernel stamp."""


def weight(frames: Frames) -> int:
    """Bytes before compression."""
    return len(frames.user) + len(frames.kernel) + len(frames.tokens) + len(frames.flags)


def regular(frames: Frames) -> bool:
    """Whether every column is empty or as long as `user`; only such frames can be encoded."""
    n, rest = divmod(len(frames.user), 8)
    return (
        rest == 0
        and len(frames.kernel) in (0, 8 * n)
        and len(frames.tokens) in (0, 4 * n)
        and len(frames.flags) in (0, n)
    )


def encode(frames: Sequence[Frames], sent: Ints) -> Columns:
    """Columns `frames.*`; none at all where no record has a frame. `sent` holds each record's sent_ns, 0 for None."""
    counts = ints(len(item) for item in frames)
    if not counts.any():
        return {}
    user = _joined([item.user for item in frames])
    has_kernel = _has([item.kernel for item in frames])
    columns: Columns = {"frames.counts": fold(counts), "frames.has_kernel": np.packbits(has_kernel)}
    best = user.copy()
    covered = np.repeat(has_kernel, counts)
    if has_kernel.any():
        kernel = _joined([item.kernel for item in frames])
        missing = kernel == NO_KERNEL
        if missing.any():
            columns["frames.missing"] = np.packbits(missing)
        best[covered] = np.where(missing, user[covered], kernel)
        columns["frames.lag"] = fold(user[covered] - best[covered])
    columns["frames.gap"] = fold(_gaps(best, counts, sent))
    return columns | _sparse(frames)


def decode(columns: Columns, sent: Ints) -> list[Frames]:
    """The inverse of `encode`; takes its columns out of `columns`."""
    if "frames.counts" not in columns:
        return [Frames()] * len(sent)
    counts = unfold(columns.pop("frames.counts"))
    _check_counts(counts, sent)
    has_kernel = _bits(columns, "frames.has_kernel", len(counts))
    best = _stamps(unfold(columns.pop("frames.gap")), counts, sent)
    covered = np.repeat(has_kernel, counts)
    user, kernel = best.copy(), np.zeros(0, dtype=np.int64)
    if has_kernel.any():
        user[covered] += unfold(columns.pop("frames.lag"))
        kernel = best[covered]
        if "frames.missing" in columns:
            kernel[_bits(columns, "frames.missing", len(kernel))] = NO_KERNEL
    tokens, has_tokens = _dense(columns, "tokens", len(counts))
    flags, has_flags = _dense(columns, "flags", len(counts))
    parts = [
        _cut(user.tobytes(), counts, 8),
        _cut(kernel.tobytes(), counts * has_kernel, 8),
        _cut(tokens.astype(np.int32).tobytes(), counts * has_tokens, 4),
        _cut(flags.astype(np.uint8).tobytes(), counts * has_flags, 1),
    ]
    return [Frames(*cells) for cells in zip(*parts, strict=True)]


def _joined(parts: Sequence[bytes]) -> Ints:
    return np.frombuffer(b"".join(parts), dtype=np.int64)


def _has(parts: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    return np.fromiter((bool(part) for part in parts), dtype=np.bool_, count=len(parts))


def _starts(counts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Where each request's first frame stands, and which requests have one."""
    some = counts > 0
    return (np.cumsum(counts) - counts)[some], some


def _gaps(best: Ints, counts: Ints, sent: Ints) -> Ints:
    gaps = np.diff(best, prepend=0)
    starts, some = _starts(counts)
    gaps[starts] = best[starts] - sent[some]
    return gaps


def _stamps(gaps: Ints, counts: Ints, sent: Ints) -> Ints:
    """One running sum over all requests, less what had run up before each of them."""
    if len(gaps) != counts.sum() or counts.max(initial=0) > len(gaps):
        raise DamagedError("frames of another number than counted")
    total = np.cumsum(gaps)
    starts, some = _starts(counts)
    before = total[starts] - gaps[starts]
    stamps: Ints = total - np.repeat(before - sent[some], counts[some])
    return stamps


def _sparse(frames: Sequence[Frames]) -> Columns:
    """Tokens and flags of those records that have them."""
    columns: Columns = {}
    tokens = [item.tokens for item in frames]
    if any(tokens):
        columns["frames.has_tokens"] = np.packbits(_has(tokens))
        columns["frames.tokens"] = fold(np.frombuffer(b"".join(tokens), dtype=np.int32).astype(np.int64))
    flags = [item.flags for item in frames]
    if any(flags):
        columns["frames.has_flags"] = np.packbits(_has(flags))
        columns["frames.flags"] = fold(np.frombuffer(b"".join(flags), dtype=np.uint8).astype(np.int64))
    return columns


def _dense(columns: Columns, part: str, n: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    if f"frames.{part}" not in columns:
        return np.zeros(0, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    return unfold(columns.pop(f"frames.{part}")), _bits(columns, f"frames.has_{part}", n)


def _bits(columns: Columns, name: str, n: int) -> npt.NDArray[np.bool_]:
    bits: Bytes = np.unpackbits(columns.pop(name), count=n)
    return bits.astype(np.bool_)


def _check_counts(counts: Ints, sent: Ints) -> None:
    if len(counts) != len(sent) or counts.min(initial=0) < 0:
        raise DamagedError("frame counts of another length")


def _cut(joined: bytes, counts: Ints, width: int) -> list[bytes]:
    """One piece per record."""
    ends = (np.cumsum(counts) * width).tolist()
    if ends and ends[-1] != len(joined):
        raise DamagedError("a frame column of another length")
    return [joined[start:end] for start, end in zip([0, *ends], ends, strict=False)]
