"""`nilo runs check`: files what was cut off, makes figures anew where their definitions rose, reads everything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from nilometer.core.errors import NiloError

from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.core.run import Run
    from nilometer.experiment.recover import Unfiled


class Filed(NamedTuple):
    """Runs that were cut off: those filed now, and those that could not be."""

    recovered: list[Run]
    unfiled: list[Unfiled]


@click.command("check")
@click.option(
    "--resummarise", is_flag=True, help="Make the figures of runs of older definitions anew, from their records."
)
@shared_options
def check_command(session: Session, resummarise: bool) -> None:
    """File runs whose measuring program died, then read everything and say what is damaged; exit 3 if anything is."""
    from nilometer.archive.store import open_archive
    from nilometer.core.run import DEFINITIONS

    from .run_screens import check_document, check_object

    with open_archive(session.archive_url) as archive:
        recovered, unfiled = _file(session, archive)
        anew = list(_resummarise(session, archive)) if resummarise else []
        outdated = archive.outdated(DEFINITIONS)
        checked = archive.check()
        rows = [archive.row(run.id) for run in recovered]
    if outdated and not resummarise:
        session.progress("runs.outdated", n=len(outdated))
    machine = {**check_object(checked, rows, unfiled), "resummarised": anew, "outdated": outdated}
    session.emit(machine, lambda: session.render(check_document(checked, archive.place, session.words)))
    if checked.problems or unfiled or any(run.health.damage for run in recovered):
        sys.exit(3)


def _file(session: Session, archive: Archive) -> Filed:
    from nilometer.experiment.places import journal_folder
    from nilometer.experiment.recover import Unfiled, recover

    from .run_screens import recovered_lines

    filed = Filed([], [])
    for found in recover(journal_folder(), archive):
        if isinstance(found, Unfiled):
            filed.unfiled.append(found)
            session.fail(found.fault)
        else:
            filed.recovered.append(found)
            for line in recovered_lines(found, session.words):
                session.tell(line)
    return filed


def _resummarise(session: Session, archive: Archive) -> Iterator[str]:
    """The runs whose figures were made anew. One that cannot be read is told, and found once more by the check."""
    from nilometer.core.run import DEFINITIONS
    from nilometer.experiment.resummarise import can_resummarise, resummarised

    kept = 0
    for run_id in archive.outdated(DEFINITIONS):
        try:
            run = archive.get(run_id)
            if not can_resummarise(run, archive.row(run_id).records):
                kept += 1
            elif archive.resummarise(resummarised(run, archive.records(run_id))):
                session.progress("runs.resummarised", run=run_id, before=run.definitions, now=DEFINITIONS)
                yield run_id
        except NiloError as fault:
            session.fail(fault)
    if kept:
        session.progress("runs.not_resummarised", n=kept)
