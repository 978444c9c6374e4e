"""The three standard streams as this program holds them: what their faults mean, and that their numbers stay theirs.

Results go to stdout: one that cannot be written is an error, a reader that has left is the end. Talk goes to stderr:
what nobody can read is dropped, and the work goes on.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from nilometer.core.errors import NiloError

READER_LEFT = 141
"""What a shell sees of a program that SIGPIPE ended: 128 + 13."""


class Results(io.FileIO):
    """The file beneath stdout."""

    def write(self, data: object, /) -> int | None:  # type: ignore[override]
        """As `FileIO.write`. Ends the program where the reader has left; NiloError `output_failed` for other faults."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            _let_go(self.fileno())
            raise SystemExit(READER_LEFT) from None
        except OSError as fault:
            _let_go(self.fileno())
            raise NiloError("output_failed", detail=fault.strerror or str(fault)) from None


class Talk(io.FileIO):
    """The file beneath stderr."""

    def write(self, data: object, /) -> int | None:  # type: ignore[override]
        """As `FileIO.write`, but what cannot be written counts as written."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def take_streams() -> None:
    """Put these in the places of sys.stdout and sys.stderr; call it once, before anything is opened or said."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        _hold(number, mode)
    sys.stdout = _text(Results(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(Talk(2, "w", closefd=False), sys.stderr)


def _hold(number: int, mode: int) -> None:
    """See that a closed stream's number goes to no file opened later; a stdout held so refuses to be written."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, mode)  # takes the lowest free number: this one


def _text(file: io.FileIO, former: TextIO | None) -> TextIO:
    """A text stream on `file` like the one before it; what its encoding lacks is replaced, not refused."""
    encoding, errors = (former.encoding, former.errors) if former is not None else ("utf-8", "strict")
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=encoding,
        errors="replace" if errors in (None, "strict") else errors,
        line_buffering=file.isatty() or file.fileno() == 2,
    )


def _let_go(number: int) -> None:
    """What is still in the buffers goes nowhere, so that leaving meets the fault no second time."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
