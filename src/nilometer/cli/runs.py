"""`nilo runs`: the performance archive from the command line - list, show, rm, check; `import` is in `importing`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .importing import import_command
from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.core.group import Group
    from nilometer.core.run import Run


@click.group()
def command() -> None:
    """The performance archive.

    RUN is `latest`, an id, or the beginning of one id. GROUP is the same for a group of runs; `latest` is then
    that of the newest run that has one.
    """


@command.command("list")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="The newest N runs.")
@click.option("--service", metavar="NAME", help="Only runs of this service.")
@click.option("--group", metavar="GROUP", help="Only runs of this group.")
@shared_options
def list_command(session: Session, limit: int, service: str | None, group: str | None) -> None:
    """The newest runs first, with their key figures."""
    from nilometer.archive.store import location, open_archive
    from nilometer.experiment.places import journal_folder
    from nilometer.experiment.recover import waiting

    from .machine import head
    from .run_screens import list_document, row_object

    with open_archive(session.archive_url, must_exist=True) as archive:
        only = archive.resolve_group(group) if group else None
        rows = archive.list_runs(limit, service=service, group=only)
    unfiled = waiting(journal_folder())
    if unfiled:
        session.progress("runs.waiting", n=unfiled)
    path = str(location(session.archive_url))
    machine = {**head("runs"), "runs": [row_object(row) for row in rows]}
    session.emit(
        machine, lambda: session.render(list_document(rows, limit, path, session.words, some=bool(service or group)))
    )


@command.command("show")
@click.argument("ref", metavar="RUN|GROUP")
@click.option("--errors", is_flag=True, help="The failed requests of a run instead, like ones together.")
@shared_options
def show_command(session: Session, ref: str, errors: bool) -> None:
    """The report of one run, or of a group of runs; --json gives its machine form. `latest` is the newest run."""
    if errors:
        _show_errors(session, ref)
    else:
        _show(session, ref)


def _show(session: Session, ref: str) -> None:
    from nilometer.archive.store import open_archive

    with open_archive(session.archive_url, must_exist=True) as archive:
        found = archive.resolve_either(ref)
        if found.kind == "run":
            _show_run(session, archive.get(found.id))
        else:
            _show_group(session, archive.get_group(found.id), archive.find(found.id))


def _show_run(session: Session, run: Run) -> None:
    from nilometer.report.build import run_document

    from .machine import run_object

    session.emit(run_object(run), lambda: session.render(run_document(run, session.words, conditions=True)))


def _show_group(session: Session, group: Group, runs: list[Run]) -> None:
    from nilometer.experiment.sweep import one_a_level

    from .group_screens import group_documents, group_findings
    from .machine import group_object

    runs = one_a_level(runs) if group.type == "sweep" else runs
    findings = group_findings(group, runs)
    machine = group_object(group.id, group.type, runs, findings)
    session.emit(
        machine, lambda: "\n\n".join(map(session.render, group_documents(group, runs, findings, session.words)))
    )


def _show_errors(session: Session, ref: str) -> None:
    from nilometer.archive.store import open_archive

    from .failures import gather
    from .machine import run_object
    from .run_screens import failure_document

    with open_archive(session.archive_url, must_exist=True) as archive:
        run = archive.get(archive.resolve(ref))
        failures = gather(archive.records(run.id), run.phases.measured_ns)
    machine = {**run_object(run), "failed_requests": failures.kinds}
    session.emit(machine, lambda: session.render(failure_document(run, failures, session.words)))


@command.command("rm")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@shared_options
def rm_command(session: Session, runs: tuple[str, ...]) -> None:
    """Remove runs with their records. An unknown RUN refuses all of them."""
    from nilometer.archive.store import open_archive

    from .machine import head
    from .run_screens import removed_document, row_object

    with open_archive(session.archive_url, must_exist=True) as archive:
        rows = [archive.row(run_id) for run_id in dict.fromkeys(archive.resolve(run) for run in runs)]
        for row in rows:
            archive.remove(row.id)
    machine = {**head("runs"), "removed": [row_object(row) for row in rows]}
    session.emit(machine, lambda: session.render(removed_document(rows, session.words)))


@command.command("check")
@shared_options
def check_command(session: Session) -> None:
    """File runs whose measuring program died, then read everything and say what is damaged; exit 3 if anything is."""
    from nilometer.archive.store import location, open_archive
    from nilometer.experiment.places import journal_folder
    from nilometer.experiment.recover import Unfiled, recover

    from .run_screens import check_document, check_object, recovered_lines

    recovered: list[Run] = []
    unfiled: list[Unfiled] = []
    with open_archive(session.archive_url) as archive:
        for found in recover(journal_folder(), archive):
            if isinstance(found, Unfiled):
                unfiled.append(found)
                session.fail(found.fault)
            else:
                recovered.append(found)
                for line in recovered_lines(found, session.words):
                    session.tell(line)
        checked = archive.check()
        machine = check_object(checked, [archive.row(run.id) for run in recovered], unfiled)
    path = str(location(session.archive_url))
    session.emit(machine, lambda: session.render(check_document(checked, path, session.words)))
    if checked.problems or unfiled or any(run.health.damage for run in recovered):
        sys.exit(3)


command.add_command(import_command)
