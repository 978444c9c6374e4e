"""What was seen beside the requests of a run: looks at the server's metrics page, and the machine it ran on.

Kept as it was seen, so that figures can be made of it anew. `host` are packed int64 columns; -1 = not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec


class Look(NamedTuple):
    """One look at a page: it says what was true between the two stamps (ns, monotonic).

    `text` are the lines worth keeping; None where there was no page, and `fault` says why, as a slug or a status.
    """

    asked_ns: int
    answered_ns: int
    text: str | None = None
    fault: str | None = None


class Telemetry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`looks` in the order of time, perhaps read as they are taken; `host` columns by name, a row each half second."""

    looks: Iterable[Look] = ()
    host: Mapping[str, bytes] = {}


NOTHING = Telemetry()
