"""Runs that nobody filed: their journals are there, whoever measured them is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nilometer.core.errors import ArchiveError, DataError
from nilometer.core.run import Run, Runs
from nilometer.load import journal
from nilometer.load.journal import Header

from .conclude import conclude


def recover(folder: Path, runs: Runs) -> Iterator[Run | DataError]:
    """File every abandoned run of the folder, and yield it; or why its journals could not be read.

    Journals in which no request ended are removed without a word.
    A journal is removed only when the archive holds its run. Runs that are still going on are left alone.
    """
    for header, paths in _abandoned(folder):
        if header is None:
            yield DataError("not_a_journal", file=str(paths[0]))
            continue
        if next(journal.records(paths), None) is not None:
            yield _file(header, paths, runs)
        for path in paths:
            path.unlink(missing_ok=True)


def _file(header: Header, paths: list[Path], runs: Runs) -> Run:
    run = conclude(header, paths)
    try:
        runs.put(run, journal.records(paths))
    except ArchiveError as fault:
        if fault.slug != "run_exists":
            raise
    return run


def _abandoned(folder: Path) -> Iterator[tuple[Header | None, list[Path]]]:
    """Journals by run, those of one run together, where no live process holds any of them."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.journal")):
        found[path.name.rpartition("-")[0]].append(path)
    for paths in found.values():
        try:
            alone = all(journal.abandoned(path) for path in paths)
        except FileNotFoundError:
            continue  # whoever measured it has just filed it
        if alone:
            yield _header(paths[0]), paths


def _header(path: Path) -> Header | None:
    try:
        return next((entry for entry in journal.read(path) if isinstance(entry, Header)), None)
    except DataError:
        return None
