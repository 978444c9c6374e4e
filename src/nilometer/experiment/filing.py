"""A concluded run into the archive, and its journals out of the way. For a live run and for a lost one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nilometer.core.errors import ArchiveError
from nilometer.core.group import Group
from nilometer.core.run import Run, Runs
from nilometer.core.telemetry import NOTHING, Telemetry
from nilometer.load import journal


def file_run(
    run: Run, series: Group | None, journals: Sequence[Path], runs: Runs, telemetry: Telemetry = NOTHING
) -> None:
    """Put the run into the archive, and the group it belongs to. Until this has worked the journals stay.

    A run that the archive holds already is as good. Slug `run_not_archived`; the reason is its cause.
    """
    try:
        _put(run, journals, runs, telemetry)
        if series is not None:
            runs.put_group(series)
    except ArchiveError as fault:
        raise ArchiveError("run_not_archived", file=str(journals[0])) from fault


def _put(run: Run, journals: Sequence[Path], runs: Runs, telemetry: Telemetry) -> None:
    try:
        runs.put(run, journal.records(journals), telemetry)
    except ArchiveError as fault:
        if fault.slug != "run_exists":
            raise


def put_away(run: Run, journals: Sequence[Path]) -> None:
    """Remove the journals of a run that is kept elsewhere, but for the damaged ones: these are renamed."""
    damaged = {damage.file for damage in run.health.damage}
    for path in journals:
        kept = journal.aside(path)
        with suppress(FileNotFoundError):  # another check was quicker
            if str(kept) in damaged:
                path.rename(kept)
            else:
                path.unlink()
