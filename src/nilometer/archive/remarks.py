"""What people say of runs and groups: tags, each a name for one of them, and notes."""

from __future__ import annotations

import re

from nilometer.core.errors import SpecError

from .address import EXPORTED
from .database import Database, insert
from .protocol import Note, Ref, Remarks
from .refs import LATEST

_TAG_NAME = re.compile(r"(?!-)\S{1,64}")
NOTE_CHARS = 4_000
_COLUMN = {"run": "run", "group": "run_group"}
"""Kind of what is named -> its column in `tag` and `note`, and its own table."""
_TAG = insert(
    "tag",
    ("name", *_COLUMN.values()),
    "ON CONFLICT (name) DO UPDATE SET run = excluded.run, run_group = excluded.run_group",
)
_NOTE = insert("note", (*_COLUMN.values(), "written_wall_ns", "text"))


def set_tag(db: Database, name: str, of: Ref) -> Ref | None:
    """Let the name mean this from now on; what it meant before. Slugs `tag_invalid`, `run_unknown`, `group_unknown`.

    It is seen as it is written, and no id of something else: who names that would get, or remove, another.
    """
    named = _TAG_NAME.fullmatch(name) and name.isprintable() and name != LATEST and not name.endswith(EXPORTED)
    if not named or is_other_id(db, name, of):
        raise SpecError("tag_invalid", tag=name[:80])
    _refuse_unknown(db, of)
    return keep_tag(db, name, of)


def is_other_id(db: Database, name: str, of: Ref) -> bool:
    """Whether a run or a group but this one has the name for its id."""
    return name != of.id and any(db.rows(f"SELECT 1 FROM {table} WHERE id = ?", (name,)) for table in _COLUMN.values())


def keep_tag(db: Database, name: str, of: Ref) -> Ref | None:
    """The same of a name that was good enough when it was given."""
    touch(db, of)
    before = tagged(db, name)
    db.execute(_TAG, (name, *_either(of)))
    return before


def touch(db: Database, of: Ref) -> None:
    """Write its row as it is: who tags it and who would remove it for want of a tag then wait for each other."""
    column, table = ("records", "run") if of.kind == "run" else ("parent", "run_group")
    db.execute(f"UPDATE {table} SET {column} = {column} WHERE id = ?", (of.id,))


def drop_tag(db: Database, name: str) -> Ref:
    """Let the name mean nothing; what it meant. Slug `tag_unknown`."""
    before = tagged(db, name)
    if before is None:
        raise SpecError("tag_unknown", tag=name[:80])
    db.execute("DELETE FROM tag WHERE name = ?", (name,))
    return before


def tagged(db: Database, name: str) -> Ref | None:
    """What the name means."""
    for run, group in db.rows("SELECT run, run_group FROM tag WHERE name = ?", (name,)):
        return Ref("group", group) if run is None else Ref("run", run)
    return None


def add_note(db: Database, of: Ref, note: Note) -> None:
    """Keep what somebody wrote. Slugs `run_unknown`, `group_unknown`, `note_invalid`."""
    if not is_note(*note):
        raise SpecError("note_invalid", most=NOTE_CHARS)
    _refuse_unknown(db, of)
    db.execute(_NOTE, (*_either(of), note.written_wall_ns, note.text))


def is_note(written_wall_ns: object, text: object) -> bool:
    """Whether this can be kept: a text, and a moment."""
    if not isinstance(written_wall_ns, int) or not isinstance(text, str):
        return False
    return bool(text.strip()) and len(text) <= NOTE_CHARS and is_unicode(text)


def is_unicode(text: str) -> bool:
    """Not so where the command line held bytes that are no UTF-8."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def remarks(db: Database, of: Ref) -> Remarks:
    """Its tags by their names, its notes by their times; what is neither is told by a check."""
    column = _COLUMN[of.kind]
    tags = db.rows(f"SELECT name FROM tag WHERE {column} = ?", (of.id,))
    notes = db.rows(f"SELECT written_wall_ns, text FROM note WHERE {column} = ? ORDER BY written_wall_ns, id", (of.id,))
    said = [Note(at, text) for at, text in notes if isinstance(at, int) and isinstance(text, str)]
    return Remarks(sorted(name for (name,) in tags if isinstance(name, str)), said)


def _either(of: Ref) -> tuple[str | None, str | None]:
    return (of.id, None) if of.kind == "run" else (None, of.id)


def _refuse_unknown(db: Database, of: Ref) -> None:
    if not db.rows(f"SELECT 1 FROM {_COLUMN[of.kind]} WHERE id = ?", (of.id,)):
        raise SpecError("run_unknown", run=of.id) if of.kind == "run" else SpecError("group_unknown", group=of.id)
