"""`nilo runs export`, `import` and `copy`: runs out of one archive into a file, or into another archive."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.archive.transfer import Moved

_TOLD_EVERY = 1_000


@click.command("export")
@click.argument("ref", metavar="RUN|GROUP")
@click.option("-o", "--output", metavar="FILE", help="The file to write.  [default: ID.nilo]")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@shared_options
def export_command(session: Session, ref: str, output: str | None, force: bool) -> None:
    """Write a run, or a group with its runs, to one file: records, figures, notes and all but its tags.

    The file can stand for RUN or GROUP in other commands, and `nilo runs import` takes it into another archive. Any
    later nilometer reads it.
    """
    from nilometer.archive.address import EXPORTED
    from nilometer.archive.bundle import export
    from nilometer.archive.store import open_archive

    from .machine import head

    with open_archive(session.archive_url, must_exist=True) as archive:
        found = archive.resolve_either(ref)
        path = Path(output).expanduser() if output else Path(f"{found.id}{EXPORTED}")
        runs = export(archive.holding(found.id), found, path, force=force)
    size = path.stat().st_size
    machine = {**head("export"), found.kind: found.id, "file": str(path), "runs": runs, "bytes": size}
    session.emit(
        machine, lambda: session.words.say("screen.runs.exported", id=found.id, file=str(path), runs=runs, size=size)
    )


def take(session: Session, files: Sequence[Path]) -> None:
    """Take the runs of files that `nilo runs export` has made into the archive. What is there already stays."""
    from nilometer.archive.bundle import import_into
    from nilometer.archive.store import open_archive

    from .machine import head
    from .run_screens import row_object

    with open_archive(session.archive_url) as archive:
        moved = import_into(archive.db, *files)
        rows = [archive.row(name) for name in dict.fromkeys(one.of.id for one in moved)]
    new = [one.of.id for one in moved if one.new]
    machine = {**head("runs"), "runs": [row_object(row) for row in rows], "new": new, "warnings": []}
    session.emit(
        machine,
        lambda: session.words.say(
            "screen.runs.taken", runs=len(new), there=len(rows) - len(new), ids=", ".join(row.id for row in rows)
        ),
    )


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@shared_options
def copy_command(session: Session, source: str, target: str) -> None:
    """Copy all runs, groups, tags and notes of one archive into another: sqlite:///path or postgresql://...

    What is in TO already stays as it is; so a copy that was cut off is gone on with by the same command.
    """
    from nilometer.archive.store import open_archive
    from nilometer.archive.transfer import everything

    moved: list[Moved] = []
    with open_archive(source, must_exist=True) as old, open_archive(target) as new:
        for one in everything(old.db, new.db):
            moved.append(one)
            if one.fault is not None:
                session.fail(one.fault)
            if len(moved) % _TOLD_EVERY == 0:
                session.progress("runs.copying", n=len(moved))
    _tell_copy(session, moved)
    if any(one.fault for one in moved):
        sys.exit(3)


def _tell_copy(session: Session, moved: Sequence[Moved]) -> None:
    from .machine import head

    runs = [one for one in moved if one.of.kind == "run"]
    told = {
        "copied": sum(one.new for one in runs),
        "there": sum(not one.new and one.fault is None for one in runs),
        "damaged": sum(one.fault is not None for one in runs),
    }
    taken = sorted(name for one in moved for name in one.taken)
    machine = {
        **head("copy"),
        **told,
        "problems": [{"slug": one.fault.slug, "params": one.fault.params} for one in moved if one.fault is not None],
        "tags_taken": taken,
    }

    def human() -> str:
        line = session.words.say("screen.runs.copied", **told)
        return f"{line} {session.words.say('screen.runs.tags_taken', tags=', '.join(taken))}" if taken else line

    session.emit(machine, human)
