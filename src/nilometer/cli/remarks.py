"""`nilo runs tag` and `nilo runs note`: names for runs and groups, and what is to be remembered of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from nilometer.core.errors import SpecError

from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive, Ref


@click.command("tag")
@click.argument("name")
@click.argument("ref", metavar="RUN|GROUP", required=False)
@click.option("--delete", is_flag=True, help="Let NAME mean nothing any more.")
@shared_options
def tag_command(session: Session, name: str, ref: str | None, delete: bool) -> None:
    """Let NAME mean a run or a group; a NAME that meant another moves. A baseline is a tag.

    What has a tag, or is in a group that has one, is never pruned.
    """
    from nilometer.archive.store import open_archive

    if delete == (ref is not None):
        raise SpecError("tag_or_delete", tag=name)
    with open_archive(session.archive_url, must_exist=True) as archive:
        now = archive.resolve_either(ref) if ref is not None else None
        before = archive.untag(name) if now is None else _tag(archive, name, now)
    _tell_tag(session, name, now, before)


def _tag(archive: Archive, name: str, of: Ref) -> Ref | None:
    return archive.tag(name, of.id) if of.kind == "run" else archive.tag_group(name, of.id)


def _tell_tag(session: Session, name: str, now: Ref | None, before: Ref | None) -> None:
    from .machine import head

    machine = {**head("tag"), "tag": name, "means": _object(now), "meant": _object(before)}

    def told() -> str:
        if now is None:
            return session.words.say("screen.runs.tag_gone", tag=name, was=before.id if before else None)
        if before is None or before == now:
            return session.words.say("screen.runs.tag_set", tag=name, id=now.id)
        return session.words.say("screen.runs.tag_moved", tag=name, id=now.id, was=before.id)

    session.emit(machine, told)


def _object(of: Ref | None) -> dict[str, object] | None:
    return None if of is None else {of.kind: of.id}


@click.command("note")
@click.argument("ref", metavar="RUN|GROUP")
@click.argument("text")
@shared_options
def note_command(session: Session, ref: str, text: str) -> None:
    """Keep TEXT beside a run or a group; `nilo runs show` shows it. Notes are added, none is replaced."""
    from nilometer.archive.protocol import Note
    from nilometer.archive.store import open_archive

    from .machine import head
    from .run_screens import remarks_object

    with open_archive(session.archive_url, must_exist=True) as archive:
        of = archive.resolve_either(ref)
        archive.note(of, Note(time.time_ns(), text))
        remarks = archive.remarks(of)
    machine = {**head("note"), of.kind: of.id, **remarks_object(remarks)}
    session.emit(machine, lambda: session.words.say("screen.runs.note_kept", id=of.id, n=len(remarks.notes)))
