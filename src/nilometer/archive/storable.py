"""What no archive can hold, told of the run that holds it, before a word of it stays written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from nilometer.core.errors import ArchiveError

from .columns import TooLargeError
from .database import UnstorableError


@contextmanager
def storable(run_id: str) -> Iterator[None]:
    """Text that is no Unicode, numbers beyond 64 bits, a required figure that is none: slug `run_unstorable`."""
    try:
        yield
    except (
        TypeError,
        OverflowError,
        UnicodeEncodeError,
        UnstorableError,
        TooLargeError,
        msgspec.MsgspecError,
    ) as fault:
        raise ArchiveError("run_unstorable", run=run_id, detail=str(fault)) from None
