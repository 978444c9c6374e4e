"""What every store promises; the contract tests run on it. Nothing here knows SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from nilometer.core.errors import ArchiveError
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Origin, Run
from nilometer.core.summary import Verdict
from nilometer.core.telemetry import NOTHING, Telemetry


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a list shows it: what it was, and its key figures where they were measured."""

    id: str
    started_wall_ns: int
    target: str | None
    verdict: Verdict
    origin: Origin
    records: int
    service: str | None = None
    service_version: str | None = None
    model_version: str | None = None
    quantisation: str | None = None
    model: str | None = None
    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: str | None = None
    tool: str | None = None
    group: str | None = None
    level: str | None = None
    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    e2e_p95_ms: float | None = None
    output_tokens_per_s: float | None = None
    tags: list[str] = []
    notes: int = 0


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are meant: those for which all hold that is not None. Moments are ns since 1970 UTC."""

    service: str | None = None
    model: str | None = None
    """A part of its name, in letters of either case."""
    group: str | None = None
    tag: str | None = None
    """Of the run or of its group."""
    verdict: Verdict | None = None
    origin: Origin | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    """The first moment that is too late."""


ALL = Filter()

Place = tuple[str, str, str]
"""Where a figure stands in a Summary: scope, metric, stat."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A run as one point of a service's history: its moment, its condition, the figures asked for."""

    id: str
    started_wall_ns: int
    verdict: Verdict
    origin: Origin
    definitions: int
    condition_hash: str | None
    group: str | None
    level: str | None
    target: str | None
    model: str | None
    service: str | None
    service_version: str | None
    model_version: str | None
    quantisation: str | None
    concurrency: int | None
    rate_per_s: float | None
    arrivals: str | None
    figures: tuple[float | None, ...]
    """In the order in which they were asked for; None where not measured."""


class Ref(NamedTuple):
    """What a word of the command line means."""

    kind: Literal["run", "group"]
    id: str


class Note(NamedTuple):
    """What somebody wrote about a run or a group."""

    written_wall_ns: int
    text: str


class Remarks(NamedTuple):
    """The tags of a run or a group by their names, its notes by their times."""

    tags: list[str]
    notes: list[Note]


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that go together or not at all: those of a group, or one alone."""

    group: str | None
    runs: list[str]
    """The oldest first."""
    newest_wall_ns: int
    service: str | None
    """Of the newest of them."""
    records: int
    size_bytes: int = 0
    """What goes with them, as far as it is stored in segments and texts."""


class Checked(NamedTuple):
    """What a check has read, and each thing that was wrong with it."""

    runs: int
    records: int
    problems: list[ArchiveError]


class Archive(Protocol):
    """Finished runs, whole: `core.run.Runs` and what the commands on the archive need. Close it after use."""

    place: str
    """How errors and screens name it, without secrets."""

    def __enter__(self) -> Archive: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def put(self, run: Run, records: Iterable[Record], telemetry: Telemetry = NOTHING) -> None:
        """Store a run, its records and what was seen beside them, all or nothing; holds one segment of records at a
        time. Slug `run_exists`."""

    def put_group(self, group: Group) -> None:
        """Store a group; one of the same id is replaced."""

    def get(self, run_id: str) -> Run:
        """The run as it was put. Slugs `run_unknown`, `run_newer`, `run_damaged`."""
        ...

    def get_group(self, group_id: str) -> Group:
        """The group as it was put. Slug `group_unknown`."""
        ...

    def records(self, run_id: str) -> Iterator[Record]:
        """The records as they were put, a segment in memory at a time. Slugs as `get`; never ends short in silence."""
        ...

    def telemetry(self, run_id: str) -> Telemetry:
        """What was seen beside the records, as it was put; nothing of a run of which nothing was. Slugs as `get`."""
        ...

    def find(self, group: str, level: str | None = None) -> list[Run]:
        """The runs of a group by their order, of one level or all; none is no error."""
        ...

    def list_runs(self, limit: int = 50, only: Filter = ALL) -> list[RunRow]:
        """The newest runs first, only those meant."""
        ...

    def series(self, figures: Sequence[Place], only: Filter = ALL) -> list[Point]:
        """All runs meant, the oldest first, each with these figures: the history of a service in one query."""
        ...

    def row(self, run_id: str) -> RunRow:
        """One run as a list shows it. Slug `run_unknown`."""
        ...

    def resolve(self, ref: str) -> str:
        """The run id that `latest`, a tag, an id or the beginning of one means.

        Slugs `run_unknown`, `run_ambiguous` with the candidates, `run_is_group`.
        """
        ...

    def resolve_group(self, ref: str) -> str:
        """The group id that a tag, an id or the beginning of one means; `latest`: that of the newest run of any.

        A group without runs is none. Slugs `group_unknown`, `run_ambiguous`.
        """
        ...

    def resolve_either(self, ref: str) -> Ref:
        """The run or group that a tag, an id or the beginning of one means; `latest`: the newest run.

        Slugs `run_unknown`, `run_ambiguous` also where a run and a group begin so.
        """
        ...

    def tag(self, name: str, run_id: str) -> Ref | None:
        """Let `name` mean this run from now on; what it meant before. Slugs `run_unknown`, `tag_invalid`."""
        ...

    def tag_group(self, name: str, group_id: str) -> Ref | None:
        """The same for a group. Slugs `group_unknown`, `tag_invalid`."""
        ...

    def untag(self, name: str) -> Ref:
        """Let `name` mean nothing; what it meant. Slug `tag_unknown`."""
        ...

    def note(self, of: Ref, note: Note) -> None:
        """Keep a note about a run or a group. Slugs `run_unknown`, `group_unknown`."""

    def remarks(self, of: Ref) -> Remarks:
        """What people say of a run or a group."""
        ...

    def remove(self, run_id: str) -> None:
        """Remove a run with its records, tags and notes, and its group if that is empty then. Slug `run_unknown`."""

    def outdated(self, definitions: int) -> list[str]:
        """The runs whose figures are by older definitions than these, the oldest first."""
        ...

    def resummarise(self, run: Run) -> bool:
        """Keep the summary, findings and verdict of a run that is there, by newer definitions than those it has;
        whether that was so. Nothing else of it changes."""
        ...

    def lots(
        self,
        *,
        keep: int = 0,
        before_wall_ns: int | None = None,
        service: str | None = None,
        records_only: bool = False,
    ) -> list[Lot]:
        """What may go, the oldest first: lots older than a moment, of a service, beyond the newest `keep` of each
        service; none with a tag. With `records_only` those that have records."""
        ...

    def prune(self, lots: Iterable[Lot], *, records_only: bool = False) -> list[Lot]:
        """Let lots go, each whole, or their records alone; those that went: not one that has got a tag meanwhile."""
        ...

    def check(self) -> Checked:
        """Read everything there is: the file, every segment of every run, the counts and the index of figures."""
        ...
