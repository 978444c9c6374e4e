"""Runs that nobody filed: their journals are there, whoever measured them is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nilometer.core.errors import DataError, NiloError, SpecError
from nilometer.core.run import Run, Runs
from nilometer.load import journal
from nilometer.load.journal import Header

from .conclude import conclude
from .filing import file_run, put_away


class Unfiled(NamedTuple):
    """A run that could not be filed: its first journal, and why."""

    file: Path
    fault: NiloError


def recover(folder: Path, runs: Runs) -> Iterator[Run | Unfiled]:
    """File every abandoned run of the folder, and yield it; or why it could not be, and go on with the next.

    Journals in which no request ended are removed without a word. Those of a run are put away only when the archive
    holds it. Runs that are still going on are left alone.
    """
    for paths in _by_run(folder):
        try:
            run = _recovered(paths, runs) if _abandoned(paths) else None
        except FileNotFoundError:
            continue  # whoever measured it, or another check, has just filed it
        except NiloError as fault:
            yield Unfiled(paths[0], fault)
        else:
            if run is not None:
                yield run


def waiting(folder: Path) -> int:
    """How many runs lie there that `recover` would file."""
    return sum(map(_waits, _by_run(folder)))


def _waits(paths: Sequence[Path]) -> bool:
    try:
        return _abandoned(paths) and next(journal.records(paths), None) is not None
    except (FileNotFoundError, DataError):
        return False


def _recovered(paths: Sequence[Path], runs: Runs) -> Run | None:
    """The run, filed; None where nothing was measured. What lost its head is set aside: slug `journal_headless`."""
    if next(journal.records(paths), None) is None and not any(journal.ending(path).gaps for path in paths):
        for path in paths:
            path.unlink(missing_ok=True)
        return None
    header = _header(paths)
    if header is None:
        for path in paths:
            path.replace(journal.aside(path))
        raise DataError("journal_headless", file=str(journal.aside(paths[0])))
    run = _concluded(header, paths)
    file_run(run, header.series, paths, runs)
    put_away(run, paths)
    return run


def _concluded(header: Header, paths: Sequence[Path]) -> Run:
    """The run; one that nothing can be made of is set aside, so that it is told once: slug `journal_unusable`.

    One with keys that are not known here was measured by a later nilometer, which may file it yet.
    """
    try:
        return conclude(header, paths)
    except SpecError as fault:
        if fault.slug == "toml_key":
            raise
        for path in paths:
            path.replace(journal.aside(path))
        raise DataError("journal_unusable", file=str(journal.aside(paths[0]))) from fault


def _header(paths: Sequence[Path]) -> Header | None:
    """What is known of the run; the heads of its journals say the same."""
    return next((entry for path in paths for entry in journal.read(path) if isinstance(entry, Header)), None)


def _by_run(folder: Path) -> list[list[Path]]:
    """The journals of the folder, those of one run together."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.journal")):
        found[path.name.rpartition("-")[0]].append(path)
    return list(found.values())


def _abandoned(paths: Sequence[Path]) -> bool:
    """Whether no live process holds any of them."""
    return all(journal.abandoned(path) for path in paths)
