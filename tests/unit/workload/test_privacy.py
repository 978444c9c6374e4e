"""Nothing of a text goes into a row unless it is asked for."""

from __future__ import annotations

import msgspec

from nilometer.workload.entry import Entry, Part, Row
from nilometer.workload.privacy import Text, rows

SECRET = "the launch code is 4711"
ENTRY = Entry(
    line=1,
    at_ns=3_500_000_000,
    input_tokens=9,
    output_tokens=2,
    turns=2,
    parts=(Part("system", "Short."), Part("user", SECRET)),
    hash_ids=(0, 1),
    session=SECRET,
    custom_id=SECRET,
)


def _row(text: Text) -> Row:
    return rows(text, 1_500_000_000)(ENTRY)


def test_only_kept_text_is_in_the_row() -> None:
    assert {text: SECRET in msgspec.json.encode(_row(text)).decode() for text in ("kept", "redacted", "lengths")} == {
        "kept": True,
        "redacted": False,
        "lengths": False,
    }


def test_kept() -> None:
    row = _row("kept")
    assert (row.offset_s, row.parts, row.session, row.custom_id, row.hash_ids) == (
        2.0,
        ENTRY.parts,
        SECRET,
        SECRET,
        None,
    )


def test_redacted_says_who_spoke_and_how_long() -> None:
    row = _row("redacted")
    assert row.parts == (Part("system", None, 1), Part("user", None, 5))
    assert (row.session, row.custom_id, row.hash_ids, row.turns) == ("s1", None, (0, 1), 2)


def test_lengths_only() -> None:
    assert _row("lengths") == Row(offset_s=2.0, input_tokens=9, output_tokens=2, turns=2, hash_ids=(0, 1))


def test_sessions_are_numbered_and_stay_apart() -> None:
    make = rows("redacted", None)
    sessions = [make(msgspec.structs.replace(ENTRY, session=name)).session for name in ("a", "b", "a", None)]
    assert sessions == ["s1", "s2", "s1", None]
    assert make(ENTRY).offset_s is None
