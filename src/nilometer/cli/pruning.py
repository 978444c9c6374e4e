"""`nilo runs prune`: what is old and in excess goes; what has a tag stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nilometer.core.errors import SpecError

from .session import Session, shared_options
from .values import PAST

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive, Lot
    from nilometer.core.run import Run
    from nilometer.report.document import Document
    from nilometer.text.i18n import Catalogue

_ROWS = 20


def refuse_pruned(archive: Archive, run: Run) -> None:
    """Requests that were measured and are no longer kept are not none: slug `records_gone`."""
    if run.origin != "imported" and run.summary.run_requests.started and not archive.row(run.id).records:
        raise SpecError("records_gone", run=run.id)


@click.command("prune")
@click.option("--keep", type=click.IntRange(0, 10_000_000), help="Never the newest N of each service.")
@click.option("--older-than", type=PAST, help="Only what is older: 90d, 12w, 2026-11-30.")
@click.option("--service", metavar="NAME", help="Only runs of this service.")
@click.option("--records-only", is_flag=True, help="Remove the raw records and keep the runs with their figures.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@shared_options
def prune_command(
    session: Session, keep: int | None, older_than: int | None, service: str | None, records_only: bool, dry_run: bool
) -> None:
    """Remove runs that are old, or more than are wanted; both where both are given.

    A group counts as one and goes whole, when its newest run is old enough. What has a tag stays, as does a group of
    which anything has one.
    """
    from nilometer.archive.store import open_archive

    from .machine import head

    if keep is None and older_than is None:
        raise SpecError("prune_unbounded")
    with open_archive(session.archive_url, must_exist=True) as archive:
        lots = archive.lots(keep=keep or 0, before_wall_ns=older_than, service=service, records_only=records_only)
        if not dry_run:
            lots = archive.prune(lots, records_only=records_only)
    machine = {
        **head("prune"),
        "dry_run": dry_run,
        "records_only": records_only,
        "lots": [_object(lot) for lot in lots],
        "runs": sum(len(lot.runs) for lot in lots),
        "records": sum(lot.records for lot in lots),
        "bytes": sum(lot.size_bytes for lot in lots),
    }
    way = ("would" if dry_run else "did") + ("_records" if records_only else "")
    session.emit(machine, lambda: session.render(_document(lots, way, session.words)))


def _object(lot: Lot) -> dict[str, object]:
    from .machine import rfc3339

    return {
        "group": lot.group,
        "service": lot.service,
        "newest": rfc3339(lot.newest_wall_ns),
        "runs": lot.runs,
        "records": lot.records,
        "bytes": lot.size_bytes,
    }


def _document(lots: Sequence[Lot], way: str, words: Catalogue) -> Document:
    """How much in one sentence, then the lots, the oldest first."""
    from nilometer.report.document import Block, Cell, Column, Document, Foot, Lead, Table
    from nilometer.text import units

    if not lots:
        blocks: list[Block] = [Foot(text=words.say("screen.prune.nothing"))]
        return Document(lang=words.lang, blocks=blocks)
    lead = words.say(
        f"screen.prune.{way}",
        runs=sum(len(lot.runs) for lot in lots),
        records=sum(lot.records for lot in lots),
        size=sum(lot.size_bytes for lot in lots),
    )
    columns = [
        Column(words.say("screen.prune.what"), "left"),
        Column(words.say("screen.runs.started"), "left"),
        Column(words.say("screen.prune.runs"), "right"),
        Column(words.say("screen.prune.records"), "right"),
        Column(words.say("screen.prune.size"), "right"),
        Column(words.say("screen.prune.service"), "left"),
    ]
    rows = [
        [
            Cell(lot.group or lot.runs[0]),
            Cell(units.moment(lot.newest_wall_ns)[:10]),
            Cell(units.count(len(lot.runs))),
            Cell(units.count(lot.records)),
            Cell(units.size(lot.size_bytes)),
            Cell(lot.service or "-"),
        ]
        for lot in lots[:_ROWS]
    ]
    rest = len(lots) - _ROWS
    legend = [words.say("screen.prune.more", n=rest)] if rest > 0 else []
    return Document(lang=words.lang, blocks=[Lead(text=lead), Table(columns=columns, rows=rows, legend=legend)])
