"""Writes an archive of the present schema and what it holds beside it: `python -m tests.captures.archive.make`.

Run once for each released schema; the files of a release are kept for ever and never made anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace
from tests.unit.archive.samples import int64, make_record, make_records, make_run, make_summary

from nilometer.archive.migrate import migrations
from nilometer.archive.protocol import Note, Ref
from nilometer.archive.sqlite import SqliteArchive
from nilometer.core.group import Group
from nilometer.core.record import Frames, Record
from nilometer.core.run import Run

HERE = Path(__file__).parent
GROUP = Group(id="groupgroup22", type="sweep", started_wall_ns=7, spec='target = "embedded"\n', parent="parentgroup2")

NOTE = Note(1_786_000_100_000_000_000, "before the new driver: 首")


def contents() -> list[tuple[Run, list[Record]]]:
    """A run with every field of a record set somewhere, and one whose records need the JSON codec."""
    full = make_run(group=GROUP.id, role="a", level="16", order=0, parent="parentrun222", condition_hash="c0ffee")
    bare = make_run("m22222222222", group=GROUP.id, level="4", order=1, verdict="marked", origin="simulated")
    bare = replace(bare, summary=make_summary(None), findings=[])
    failed = Record(
        id="b", seq=42, phase="drain", outcome="error", error="http_5xx", status=503, error_detail="no slot"
    )
    user_stamps_only = make_record(43, frames=Frames(user=int64(5, 9)))
    return [
        (full, [*make_records(40), every_field(), failed, user_stamps_only]),
        (bare, [make_record(0, prompt_tokens=10**30), make_record(1)]),
    ]


def every_field() -> Record:
    """A record without a default."""
    record = make_record(
        41,
        4,
        due_ns=-5,
        connect_ns=0,
        tls_ns=12,
        first_answer_ns=77,
        error="stream_error",
        error_detail="",
        retry_after_s=0.1,
        native_finish_reason="MAX",
        cached_tokens=0,
        reasoning_tokens=2,
        choices=2,
        hidden_tokens=True,
        asked_input=512,
        asked_output=3,
        scenario="s",
        conversation="c",
        turn=0,
        target=1,
        worker=2,
        new_connection=True,
        refill_ns=400_000,
        server_request_id="chatcmpl-1",
        server={"predicted_ms": 12.0, "n": 3, "cache": None, "stopped": True, "text": "✓"},
        text="首",
        reasoning="",
        tool_arguments="{}",
    )
    tokens = b"\1\0\0\0\2\0\0\0\xff\xff\xff\xff\1\0\0\0"
    return replace(record, frames=replace(record.frames, tokens=tokens))


def main() -> None:
    """Refuses to write over what is kept."""
    version = f"v{len(migrations())}"
    database = HERE / f"{version}.sqlite"
    if database.exists():
        raise SystemExit(f"{database} is kept, not made anew")
    with SqliteArchive(database) as archive:
        archive.put_group(GROUP)
        for run, records in contents():
            archive.put(run, records)
            told = msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"
            (HERE / f"{version}.{run.id}.run.json").write_bytes(told)
            lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
            (HERE / f"{version}.{run.id}.records.jsonl").write_bytes(lines)
        archive.tag("base", contents()[0][0].id)
        archive.tag_group("whole", GROUP.id)
        archive.note(Ref("run", contents()[0][0].id), NOTE)


if __name__ == "__main__":
    main()
