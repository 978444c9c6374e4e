"""`nilo runs history SERVICE`: the performance file of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from nilometer.core.errors import SpecError

from .session import Session, shared_options
from .values import END, MOMENT

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive, Point
    from nilometer.compare.entries import Entry, Taken
    from nilometer.compare.family import Judged
    from nilometer.core.summary import Summary
    from nilometer.report.history import Chapter

_FIGURES = ("ttft_p95", "tpot_p50", "tpot_p95", "output_tokens_per_s")
_MEMORY = ("memory", "server_rss_peak_bytes", "value"), ("memory", "device_used_peak_bytes", "value")
_SEED = 0


@click.command("history")
@click.argument("service", metavar="SERVICE")
@click.option("--since", type=MOMENT, help="Only runs from then on: 30d, 12h, 2026-11-30 (UTC).")
@click.option("--until", type=END, help="Only runs until then; a date alone is included.")
@click.option("--model", metavar="NAME", help="Only runs of models with this in their name.")
@shared_options
def history_command(session: Session, service: str, **asked: Any) -> None:
    """The performance file of SERVICE (the name given with --service): its tests under each condition over time.

    A group of repeats is one test. Versions, figures and memory are shown, and where the level of a figure changed: by
    change points from twelve tests on, else by whether the newest lies where the former let it be expected.
    """
    from nilometer.archive.protocol import Filter
    from nilometer.archive.store import open_archive
    from nilometer.compare.entries import place_of
    from nilometer.report.history import history_document

    from .machine import head

    rows = _rows()
    only = Filter(service=service, model=asked["model"], since_ns=asked["since"], until_ns=asked["until"])
    with open_archive(session.archive_url, must_exist=True) as archive:
        points = archive.series([*map(place_of, rows), *_MEMORY], only)
        chapters = _chapters(archive, [point for point in points if point.verdict != "inadmissible"], rows)
    if not chapters:
        raise SpecError("service_unknown", service=service)
    machine = {**head("history"), "service": service, "conditions": [_object(one, rows) for one in chapters.items()]}
    document = history_document(service, rows, list(chapters.values()), session.words)
    session.emit(machine, lambda: session.render(document))


def _rows() -> list[Judged]:
    from nilometer.compare.family import TABLE

    by_name = {row.name: row for row in TABLE}
    return [by_name[name] for name in _FIGURES]


def _chapters(archive: Archive, points: list[Point], rows: list[Judged]) -> dict[str | None, Chapter]:
    from nilometer.compare.entries import entries
    from nilometer.metrics.short_test import short_test
    from nilometer.report.history import Chapter

    chapters = {}
    for condition, found in entries(map(_taken, points)).items():
        newest = archive.get(found[-1].runs[0])
        held = newest.origin == "measured" and archive.row(newest.id).records  # pruned records tell nothing
        short = short_test(newest, archive.records(newest.id)) if held else None
        chapters[condition] = Chapter(found, _histories(found, rows), newest, short)
    return chapters


def _histories(found: list[Entry], rows: list[Judged]) -> dict[str, Any]:
    import numpy as np

    from nilometer.compare.change_points import history

    return {
        row.name: history([entry.figures[i] for entry in found], np.random.default_rng(_SEED))
        for i, row in enumerate(rows)
    }


def _taken(point: Point) -> Taken:
    from nilometer.compare.entries import Taken

    *figures, of_server, of_device = point.figures
    return Taken(
        point.id,
        point.group,
        point.level,
        point.started_wall_ns,
        point.condition_hash,
        point.service_version,
        point.model_version,
        point.quantisation,
        (*figures, of_device if of_device is not None else of_server),
    )


def _object(chapter: tuple[str | None, Chapter], rows: list[Judged]) -> dict[str, object]:
    from .machine import rfc3339

    condition, (found, histories, newest, short) = chapter
    names = [*(row.name for row in rows), "memory_peak_bytes"]
    return {
        "condition": condition,
        "newest": newest.id,
        "tests": [
            {
                "started": rfc3339(entry.started_wall_ns),
                "runs": entry.runs,
                "service_version": entry.service_version,
                "model_version": entry.model_version,
                "quantisation": entry.quantisation,
                **dict(zip(names, entry.figures, strict=True)),
            }
            for entry in found
        ],
        "history": {
            name: one._asdict() | {"steps": [s._asdict() for s in one.steps]} for name, one in histories.items()
        },
        "short_test": None if short is None else msgspec.to_builtins(short.latency_ms | {}),
    }


def _short(summary: Summary) -> dict[str, object]:
    return {
        "latency_ms": msgspec.to_builtins(summary.latency_ms),
        "throughput": msgspec.to_builtins(summary.throughput),
    }
