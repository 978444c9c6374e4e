"""A Run: the spec, where it was made, what was computed and concluded. Its records lie beside it, in order of ending.

Format history
1  first format: Spec, Environment, Phases, Health, Summary, findings; records as in `record.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import Literal, Protocol

import msgspec

from .environment import Environment
from .finding import Finding
from .group import Group
from .record import Record
from .spec import Spec
from .summary import Summary, Verdict
from .telemetry import NOTHING, Telemetry

FORMAT = 1
DEFINITIONS = 1
"""Version of the definitions behind the figures; raised when one changes its meaning."""

Origin = Literal["measured", "simulated", "imported"]
START_UNKNOWN = "import_start_unknown"
"""The finding of an imported run whose file does not tell when it started; it is filed by the time of that file."""

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_ID = re.compile(r"(?!latest$)[a-z0-9]{1,40}")


def new_id(random: Random) -> str:
    """12 random base32 characters; time is a column of its own."""
    return "".join(random.choice(_BASE32) for _ in range(12))


def is_id(text: str) -> bool:
    """Whether it could be an id of ours: what a stranger's file calls so may be a path, an option, or `latest`."""
    return _ID.fullmatch(text) is not None


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """The borders of a run, ns on its monotonic clock. `started_wall_ns` names the moment of `start_ns`."""

    started_wall_ns: int
    start_ns: int
    measured_ns: int
    """End of the asked warm-up."""
    stop_ns: int
    """End of the asked measured stretch: from here on only the drain."""
    end_ns: int
    """The last request had ended or was cut."""
    interrupted: bool = False
    stopped_by: Literal["budget", "target_lost", "oversaturated"] | None = None
    """What ended the load before its time, where it was not the user."""
    cut_at_drain_limit: bool = False


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What of a worker's journal could not be read back, and where that journal is kept."""

    file: str
    lost_bytes: int
    gaps: int
    """Places where bytes were lost."""


class Health(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the load worker saw of itself: packed int64 columns, one row every 100 ms.

    `at` monotonic ns; `wall_offset` wall - monotonic ns; `lag_max` the loop's longest absence since the row before, ns;
    `in_flight` requests; `cpu` ns of processor time since the start.
    """

    at: bytes = b""
    wall_offset: bytes = b""
    lag_max: bytes = b""
    in_flight: bytes = b""
    cpu: bytes = b""
    asked_in_flight: int | None = None
    event_loop: str | None = None
    connections_opened: int = 0
    resent: int = 0
    """Requests that met a kept connection already closed by the server, and went out on a new one."""
    socketless: int = 0
    """Requests for which this machine had no socket left (open files, ports): they never left it."""
    wall_steps: int = 0
    death: str | None = None
    """Why the worker ended before its time; None when it did not."""
    damage: tuple[Damage, ...] = ()
    """The workers' journals that were damaged: what stood there is in no figure."""


class Draw(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a server on this machine drew while the run went on: packed int64 columns, a row each half second.

    `at` monotonic ns; `cpu` ns of processor time of its process tree so far; `power` mW of the devices that hold it,
    empty where that could not be seen throughout.
    """

    at: bytes = b""
    cpu: bytes = b""
    power: bytes = b""
    devices: int | None = None
    """How many devices hold it; None where none was seen to."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One load test, done."""

    id: str
    spec: Spec
    environment: Environment
    phases: Phases
    health: Health
    summary: Summary
    findings: list[Finding]
    verdict: Verdict
    group: str | None = None
    role: str | None = None
    level: str | None = None
    order: int | None = None
    parent: str | None = None
    origin: Origin = "measured"
    tool: str = "nilometer"
    tool_version: str = ""
    format: int = FORMAT
    definitions: int = DEFINITIONS
    condition_hash: str | None = None

    @property
    def start_known(self) -> bool:
        """Whether `started_wall_ns` is when it started."""
        return all(finding.slug != START_UNKNOWN for finding in self.findings)

    @property
    def load_known(self) -> bool:
        """Whether the spec says which load it was: an imported file may not."""
        load = self.spec.load
        return self.origin != "imported" or load.is_open or load.concurrency is not None


class Runs(Protocol):
    """Where finished runs go and come from: the archive, as `experiment` sees it."""

    def put(self, run: Run, records: Iterable[Record], telemetry: Telemetry = NOTHING) -> None: ...

    def put_group(self, group: Group) -> None: ...

    def get(self, run_id: str) -> Run: ...

    def records(self, run_id: str) -> Iterator[Record]: ...

    def find(self, group: str, level: str | None = None) -> list[Run]: ...
