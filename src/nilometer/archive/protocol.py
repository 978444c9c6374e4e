"""What every store promises; the contract tests run on it. Nothing here knows SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol

import msgspec

from nilometer.core.errors import ArchiveError
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Origin, Run
from nilometer.core.summary import Verdict


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a list shows it: what it was, and its key figures where they were measured."""

    id: str
    started_wall_ns: int
    target: str | None
    verdict: Verdict
    origin: Origin
    records: int
    service: str | None = None
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


class Ref(NamedTuple):
    """What a word of the command line means."""

    kind: Literal["run", "group"]
    id: str


class Checked(NamedTuple):
    """What a check has read, and each thing that was wrong with it."""

    runs: int
    records: int
    problems: list[ArchiveError]


class Archive(Protocol):
    """Finished runs, whole: `core.run.Runs` and what the commands on the archive need. Close it after use."""

    def __enter__(self) -> Archive: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def put(self, run: Run, records: Iterable[Record]) -> None:
        """Store a run and its records, all or nothing; holds one segment of them at a time. Slug `run_exists`."""

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

    def find(self, group: str, level: str | None = None) -> list[Run]:
        """The runs of a group by their order, of one level or all; none is no error."""
        ...

    def list_runs(self, limit: int = 50, *, service: str | None = None, group: str | None = None) -> list[RunRow]:
        """The newest runs first; only of one service, only of one group."""
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

    def tag(self, name: str, run_id: str) -> None:
        """Let `name` mean this run from now on. Slug `run_unknown`."""

    def remove(self, run_id: str) -> None:
        """Remove a run with its records, tags and notes, and its group if that is empty then. Slug `run_unknown`."""

    def check(self) -> Checked:
        """Read everything there is: the file, every segment of every run, the counts and the index of figures."""
        ...
