"""`nilo runs`: the performance archive from the command line - list, show, rm, check; `import` is in `importing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from nilometer.core.errors import SpecError
from nilometer.core.run import Origin
from nilometer.core.summary import Verdict

from .bundles import copy_command, export_command
from .checking import check_command
from .history import history_command
from .importing import import_command
from .pruning import prune_command, refuse_pruned
from .remarks import note_command, tag_command
from .session import Session, shared_options
from .values import END, MOMENT

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive, Remarks
    from nilometer.core.group import Group
    from nilometer.core.run import Run
    from nilometer.report.document import Document


@click.group()
def command() -> None:
    """The performance archive.

    RUN is `latest`, a tag, an id, the beginning of one id, or a file that `nilo runs export` has made. GROUP is the
    same for a group of runs; `latest` is then that of the newest run that has one.
    """


for other in (
    history_command,
    tag_command,
    note_command,
    prune_command,
    export_command,
    import_command,
    copy_command,
    check_command,
):
    command.add_command(other)


@command.command("list")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000_000), help="The newest N runs.")
@click.option("--service", metavar="NAME", help="Only runs of this service.")
@click.option("--model", metavar="NAME", help="Only runs of models with this in their name.")
@click.option("--since", type=MOMENT, help="Only runs from then on: 30d, 12h, 2026-11-30, 2026-11-30T08:00 (UTC).")
@click.option("--until", type=END, help="Only runs until then; a date alone is included.")
@click.option("--tag", metavar="NAME", help="Only the runs that this tag names.")
@click.option("--verdict", type=click.Choice(get_args(Verdict)), help="Only runs with this verdict.")
@click.option("--origin", type=click.Choice(get_args(Origin)), help="Only runs that came about so.")
@click.option("--group", metavar="GROUP", help="Only runs of this group.")
@shared_options
def list_command(session: Session, limit: int, since: int | None, until: int | None, **asked: Any) -> None:
    """The newest runs first, with their key figures; those for which all holds that is asked."""
    from nilometer.archive.protocol import ALL, Filter
    from nilometer.archive.store import open_archive
    from nilometer.experiment.places import journal_folder
    from nilometer.experiment.recover import waiting

    from .machine import head
    from .run_screens import list_document, row_object

    with open_archive(session.archive_url, must_exist=True) as archive:
        group = archive.resolve_group(asked["group"]) if asked["group"] else None
        only = Filter(**{**asked, "group": group}, since_ns=since, until_ns=until)
        rows = archive.list_runs(limit, only)
    unfiled = waiting(journal_folder())
    if unfiled:
        session.progress("runs.waiting", n=unfiled)
    machine = {**head("runs"), "runs": [row_object(row) for row in rows]}
    session.emit(
        machine,
        lambda: session.render(list_document(rows, limit, archive.place, session.words, some=only != ALL)),
    )


@command.command("show")
@click.argument("ref", metavar="RUN|GROUP")
@click.option("--errors", is_flag=True, help="The failed requests of a run instead, like ones together.")
@shared_options
def show_command(session: Session, ref: str, errors: bool) -> None:
    """The report of one run, or of a group of runs; --json gives its machine form.

    `latest` is the newest run, or its group where it has one; with --errors the run.
    """
    if errors:
        _show_errors(session, ref)
    else:
        _show(session, ref)


def _show(session: Session, ref: str) -> None:
    from nilometer.archive.store import open_archive

    with open_archive(session.archive_url, must_exist=True) as archive:
        found = archive.resolve_either(ref)
        remarks = archive.remarks(found)
        if found.kind == "run":
            _show_run(session, archive.get(found.id), remarks)
        else:
            _show_group(session, archive, archive.get_group(found.id), remarks)


def _show_run(session: Session, run: Run, remarks: Remarks) -> None:
    from nilometer.report.build import run_document

    from .machine import run_object

    _emit(session, run_object(run), [run_document(run, session.words, conditions=True)], remarks)


def _emit(session: Session, machine: dict[str, object], documents: Sequence[Document], remarks: Remarks) -> None:
    """What was measured, and behind it what people say of it."""
    from .run_screens import remarks_document, remarks_object

    shown = [*documents, remarks_document(remarks, session.words)] if any(remarks) else documents
    session.emit({**machine, **remarks_object(remarks)}, lambda: "\n\n".join(map(session.render, shown)))


def _show_group(session: Session, archive: Archive, group: Group, remarks: Remarks) -> None:
    from nilometer.experiment.sweep import one_a_level

    from .group_screens import group_documents, group_findings, require_readable, whole_group

    runs = archive.find(group.id)
    require_readable(group, runs)
    runs = one_a_level(runs) if group.type == "sweep" else runs
    findings = group_findings(group, runs, archive.records)
    _emit(session, whole_group(group, runs, findings), group_documents(group, runs, findings, session.words), remarks)


def _show_errors(session: Session, ref: str) -> None:
    from nilometer.archive.store import open_archive
    from nilometer.report.failures import gather

    from .machine import run_object
    from .run_screens import failure_document

    with open_archive(session.archive_url, must_exist=True) as archive:
        run = archive.get(archive.resolve(ref))
        refuse_pruned(archive, run)
        failures = gather(archive.records(run.id), run.phases.measured_ns)
    machine = {**run_object(run), "failed_requests": failures.kinds}
    session.emit(machine, lambda: session.render(failure_document(run, failures, session.words)))


@command.command("rm")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@shared_options
def rm_command(session: Session, runs: tuple[str, ...]) -> None:
    """Remove runs with their records. An unknown RUN refuses all of them."""
    from nilometer.archive.address import EXPORTED
    from nilometer.archive.store import open_archive

    from .machine import head
    from .run_screens import removed_document, row_object

    file = next((run for run in runs if run.endswith(EXPORTED)), None)
    if file is not None:
        raise SpecError("run_is_file", file=file)
    with open_archive(session.archive_url, must_exist=True) as archive:
        rows = [archive.row(run_id) for run_id in dict.fromkeys(archive.resolve(run) for run in runs)]
        for row in rows:
            archive.remove(row.id)
    machine = {**head("runs"), "removed": [row_object(row) for row in rows]}
    session.emit(machine, lambda: session.render(removed_document(rows, session.words)))
