"""`nilo workload`: what a data set, trace or log holds, and a workload of its proportions."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.sources.reading import Reading
    from nilometer.workload.entry import Batch, Entry, Head
    from nilometer.workload.privacy import Text
    from nilometer.workload.sample import Pool
    from nilometer.workload.shape import Measure

Command = TypeVar("Command", bound=Callable[..., Any])

TOLD_EVERY_S = 2.0
_PROBLEMS_TOLD = 5


def _source(command: Command) -> Command:
    """FILE and how it is read."""
    for add in (
        click.option("--skip-bad", is_flag=True, help="Go on without rows that cannot be read, and count them."),
        click.option(
            "--map",
            "map_text",
            metavar="MAP",
            help="Columns of a CSV, JSON lines or access log: at=COLUMN:UNIT,input_tokens=COLUMN,... or FILE.toml.",
        ),
        click.option("--format", "format_name", metavar="NAME", help="What FILE is; default: recognised."),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        command = add(command)
    return command


def _written(command: Command) -> Command:
    """Where a workload is written and what of the texts goes into it."""
    for add in (
        click.option(
            "--lengths-only", "text", flag_value="lengths", help="Keep lengths, gaps and shared prefixes, nothing else."
        ),
        click.option("--keep-text", "text", flag_value="kept", help="Keep the texts of the prompts."),
        click.option(
            "--redact",
            "text",
            flag_value="redacted",
            default="redacted",
            help="Keep who spoke and how long, not what was said (the default).",
        ),
        click.option(
            "-o",
            "--output",
            required=True,
            metavar="OUT.toml",
            type=click.Path(path_type=Path),
            help="The workload file; its rows lie beside it as OUT.jsonl.",
        ),
    ):
        command = add(command)
    return command


@click.group()
def command() -> None:
    """Data sets, traces and production logs: what they hold, and a workload of their proportions.

    FILE may be packed with gzip or zstd. Its format is recognised; where two claim it, --format must say which.
    """


@command.command("inspect")
@_source
@shared_options
def inspect_command(
    session: Session, file: Path, format_name: str | None, map_text: str | None, skip_bad: bool
) -> None:
    """What FILE is, how many requests, how long, how often, what they share. Exit 2 where rows cannot be read."""
    from .workload_screens import Opening, inspect_document, inspect_object

    reading, measure = _open(file, format_name, map_text), _measure()
    opening = Opening()
    for batch in _watched(reading, session):
        measure.add(batch)
        opening.add(batch)
    _check_rows(reading)
    shape = measure.shape()
    rows = opening.rows(measure.least_ns)
    session.emit(
        inspect_object(reading, shape, rows),
        lambda: session.render(inspect_document(reading, shape, session.words)),
    )
    if reading.problem_count and not skip_bad:
        sys.exit(2)


@command.command("sample")
@_source
@click.option("-n", "--requests", default=200, show_default=True, type=click.IntRange(min=1), help="Rows to take.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same sample.")
@_written
@shared_options
def sample_command(
    session: Session,
    file: Path,
    format_name: str | None,
    map_text: str | None,
    skip_bad: bool,
    requests: int,
    seed: int,
    output: Path,
    text: Text,
) -> None:
    """A small set of the requests of FILE with its proportions. Exit 4 where a margin is more than 0.05 (KS) off."""
    from msgspec.structs import replace

    from nilometer.sources.making import least_ns
    from nilometer.sources.sorting import in_time
    from nilometer.sources.workload_file import refuse_taken
    from nilometer.workload.sample import Gatherer, chains, choose, distances, representative

    reading, measure, gatherer = _open(file, format_name, map_text), _measure(), Gatherer()
    refuse_taken(output, (file, reading.path))
    for batch in _watched(reading, session):
        measure.add(batch)
        gatherer.add(batch)
    _check_rows(reading, session, skip_bad)
    pool, block_tokens = gatherer.pool(), reading.format.block_tokens
    chosen = choose(pool, requests, seed)
    entries = _entries(_open(file, format_name, map_text), chosen)
    ids = [entry.hash_ids for entry in entries] if text == "kept" and entries[0].parts else chains(chosen, block_tokens)
    ks = distances(pool, measure.margins(), chosen, ids, block_tokens)
    rows = [replace(entry, hash_ids=blocks) for entry, blocks in zip(entries, ids, strict=True)]
    facts = {"ks": ks, "representative": representative(ks), "seed": seed}
    head = _write(reading, output, text, in_time(rows), least_ns(rows), facts)
    _tell(session, reading, head, output)
    if not head.representative:
        sys.exit(4)


@command.command("make")
@_source
@_written
@shared_options
def make_command(
    session: Session,
    file: Path,
    format_name: str | None,
    map_text: str | None,
    skip_bad: bool,
    output: Path,
    text: Text,
) -> None:
    """All requests of FILE as a workload."""
    from nilometer.sources.sorting import by_time
    from nilometer.sources.workload_file import refuse_taken

    reading, measure = _open(file, format_name, map_text), _measure()
    refuse_taken(output, (file, reading.path))
    for batch in _watched(reading, session):
        measure.add(batch)
    _check_rows(reading, session, skip_bad)
    shape = measure.shape()
    batches = _watched(reading, session)
    rows: Iterator[Entry] = (entry for batch in batches for entry in batch.rows())
    if not shape.arrivals.sorted:
        rows = by_time(batches, output.parent)
    head = _write(reading, output, text, rows, measure.least_ns, {})
    _tell(session, reading, head, output)


def _open(file: Path, format_name: str | None, map_text: str | None) -> Reading:
    from nilometer.sources.mapped import read_map
    from nilometer.sources.reading import Reading

    return Reading(file, name=format_name, the_map=None if map_text is None else read_map(map_text))


def _measure() -> Measure:
    from nilometer.workload.shape import Measure

    return Measure()


def _watched(reading: Reading, session: Session) -> Iterator[Batch]:
    """The batches, with a word on stderr every 2 s of how far it is."""
    told_s = time.monotonic()
    collecting = gc.isenabled()
    gc.disable()  # millions of rows that no cycle holds: looking for one took a third of the time
    try:
        for batch in reading.batches():
            yield batch
            if time.monotonic() - told_s >= TOLD_EVERY_S:
                told_s = time.monotonic()
                session.progress("workload.reading", rows=reading.usable, share=reading.stream.share)
    finally:
        if collecting:
            gc.enable()


def _check_rows(reading: Reading, session: Session | None = None, skip_bad: bool = False) -> None:
    """Refuse a file without any row; with a session also one with broken rows or nothing to use."""
    from nilometer.core.errors import DataError

    if not reading.records and not reading.problem_count:
        raise DataError("file_empty", file=str(reading.path))
    if session is None:
        return
    if reading.problem_count and not skip_bad:
        for problem in reading.problems[:_PROBLEMS_TOLD]:
            session.fail(problem.error(reading.path))
        if reading.problem_count > _PROBLEMS_TOLD:
            session.progress("workload.more_problems", n=reading.problem_count - _PROBLEMS_TOLD)
        sys.exit(2)
    if not reading.usable:
        raise DataError("nothing_usable", file=str(reading.path), n=reading.records)


def _entries(reading: Reading, rows: Pool) -> list[Entry]:
    """The chosen rows whole. What their columns do not hold is read from the file again."""
    from nilometer.workload.entry import Batch

    if reading.format.columns is not None:
        return list(Batch(rows.line, *rows[2:]).rows())
    return _fetched(reading, set(zip(rows.line.tolist(), rows.nth.tolist(), strict=True)))


def _fetched(reading: Reading, wanted: set[tuple[int, int]]) -> list[Entry]:
    found: list[Entry] = []
    line, nth = -1, 0
    for batch in reading.batches(frozenset(line for line, _ in wanted)):
        for entry in batch.rows():
            nth = nth + 1 if entry.line == line else 0
            line = entry.line
            if (line, nth) in wanted:
                found.append(entry)
    return found


def _write(
    reading: Reading,
    output: Path,
    text: Text,
    entries: Iterable[Entry],
    first_ns: int | None,
    facts: Mapping[str, Any],
) -> Head:
    from nilometer.sources.making import made
    from nilometer.sources.workload_file import write_workload

    rows, told = made(reading, text, entries, first_ns)
    return write_workload(output, rows, **told, **facts)


def _tell(session: Session, reading: Reading, head: Head, output: Path) -> None:
    from .workload_screens import written_document, written_object

    session.emit(
        written_object(reading, head, output),
        lambda: session.render(written_document(reading, head, output, session.words)),
    )
