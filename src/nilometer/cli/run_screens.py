"""What `nilo runs` shows: rows of a list, failures, removals and checks, for the screen and as plain values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from nilometer.archive.protocol import Checked, Remarks, RunRow
from nilometer.core.errors import NiloError
from nilometer.core.run import Run
from nilometer.core.spec import RECORDED
from nilometer.experiment.recover import Unfiled
from nilometer.report import failed
from nilometer.report.document import Block, Cell, Column, Document, Fact, Facts, Foot, Lead, Table
from nilometer.report.failures import Failures
from nilometer.report.findings import cause, step
from nilometer.text import units
from nilometer.text.i18n import Catalogue
from nilometer.text.width import columns

from .machine import head, rfc3339
from .session import error_line

_FAILURE_ROWS = 20
_WIDTH = 80
_GAP = 2
_VERDICT_MARKS = {"admissible": "", "marked": "?", "inadmissible": "!"}


def row_object(row: RunRow) -> dict[str, object]:
    """A run as a list shows it: a part of its Summary object under the same names, and its tags."""
    return {
        "run": row.id,
        "group": row.group,
        "level": row.level,
        "origin": row.origin,
        "tool": row.tool,
        "started": rfc3339(row.started_wall_ns),
        "verdict": row.verdict,
        "spec": {
            "target": row.target,
            "model": row.model,
            "load": {"concurrency": row.concurrency, "rate_per_s": row.rate_per_s, "arrivals": row.arrivals},
            "labels": {
                "service": row.service,
                "service_version": row.service_version,
                "model_version": row.model_version,
                "quantisation": row.quantisation,
            },
        },
        "latency_ms": {
            "ttft": {"p95": row.ttft_p95_ms},
            "tpot": {"p95": row.tpot_p95_ms},
            "e2e": {"p95": row.e2e_p95_ms},
        },
        "throughput": {"output_tokens_per_s": row.output_tokens_per_s},
        "records": row.records,
        "tags": row.tags,
        "notes": row.notes,
    }


def remarks_object(remarks: Remarks) -> dict[str, object]:
    """The tags and notes of a run or a group, beside its machine form."""
    notes = [{"written": rfc3339(note.written_wall_ns), "text": note.text} for note in remarks.notes]
    return {"tags": remarks.tags, "notes": notes}


def remarks_document(remarks: Remarks, words: Catalogue) -> Document:
    """The same for the screen, each note on one line: who wrote it may have been somebody else."""
    tags = [Fact(words.say("screen.runs.tags"), ", ".join(remarks.tags))] if remarks.tags else []
    notes = [Fact(units.moment(note.written_wall_ns), _tame(note.text)) for note in remarks.notes]
    return Document(lang=words.lang, blocks=[Facts(rows=[*tags, *notes])])


def _tame(text: str) -> str:
    """A text without what a terminal would obey."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def check_object(checked: Checked, recovered: Sequence[RunRow], unfiled: Sequence[Unfiled]) -> dict[str, object]:
    """The machine form of a check: what was filed now, what could not be and why, and what is wrong in the archive."""
    return {
        **head("runs"),
        "recovered": [row_object(row) for row in recovered],
        "unfiled": [{"file": str(one.file), **_fault(one.fault)} for one in unfiled],
        "checked": {"runs": checked.runs, "records": checked.records},
        "problems": [_fault(problem) for problem in checked.problems],
    }


def _fault(error: NiloError) -> dict[str, object]:
    """An error with the one behind it, if that is one of ours."""
    told: dict[str, object] = {"slug": error.slug, "params": error.params}
    return told if not isinstance(error.__cause__, NiloError) else {**told, "cause": _fault(error.__cause__)}


def list_document(rows: list[RunRow], limit: int, archive: str, words: Catalogue, *, some: bool = False) -> Document:
    """One line a run, within 80 columns. Where the runs are not all of one year the date stands alone.

    `some`: only some of the runs were asked for.
    """
    if not rows:
        return _lines(words, [words.say("screen.runs.none_such" if some else "screen.runs.none", archive=archive)])
    same_year = len({_moment(row.started_wall_ns).year for row in rows}) == 1
    legend = [words.say("screen.runs.legend_load"), *_legend(rows, words)]
    if len(rows) == limit:
        legend.append(words.say("screen.runs.older", limit=limit))
    table = _fitted(_columns(words), [_row(row, same_year, words) for row in rows], legend)
    return Document(lang=words.lang, blocks=[table])


def _row(row: RunRow, same_year: bool, words: Catalogue) -> list[Cell]:
    return [
        Cell(row.id, _VERDICT_MARKS[row.verdict]),
        Cell(_moment(row.started_wall_ns).strftime("%m-%d %H:%M" if same_year else "%Y-%m-%d")),
        Cell(load_of(row)),
        Cell(units.rate(row.ttft_p95_ms)),
        Cell(units.rate(row.tpot_p95_ms)),
        Cell(units.rate(row.output_tokens_per_s)),
        Cell(_remarked(row, words) + subject_of(row)),
    ]


def _remarked(row: RunRow, words: Catalogue) -> str:
    """`[base, 2 notes] ` where somebody said something of the run."""
    said = [*row.tags, words.say("screen.runs.notes", n=row.notes)] if row.notes else row.tags
    return f"[{', '.join(said)}] " if said else ""


def _lines(words: Catalogue, lines: Iterable[str]) -> Document:
    blocks: list[Block] = [Foot(text=line) for line in lines]
    return Document(lang=words.lang, blocks=blocks)


def _columns(words: Catalogue) -> list[Column]:

    return [
        Column(words.say("screen.runs.run"), "left"),
        Column(words.say("screen.runs.started"), "left", "UTC"),
        Column(words.say("screen.runs.load"), "left"),
        Column("TTFT", "decimal", "p95 ms"),
        Column("TPOT", "decimal", "p95 ms"),
        Column("token/s", "decimal"),
        Column(words.say("screen.runs.service"), "left"),
    ]


def _legend(rows: Iterable[RunRow], words: Catalogue) -> list[str]:
    verdicts = {row.verdict for row in rows}
    return [
        f"{mark} {words.say(f'screen.runs.legend_{verdict}')}"
        for verdict, mark in _VERDICT_MARKS.items()
        if mark and verdict in verdicts
    ]


def _moment(wall_ns: int) -> datetime:
    return datetime.fromtimestamp(wall_ns // 1_000_000_000, tz=UTC)


def load_of(row: RunRow) -> str:
    """`c 16` in flight, `4.5/s`, or the plan of a rate that changes."""
    if row.rate_per_s is not None:
        return f"{row.rate_per_s:g}/s"
    if row.concurrency is not None:
        return f"c {row.concurrency}"
    return row.arrivals or "?" if row.origin != "imported" or row.arrivals in (RECORDED, None) else "?"


def subject_of(row: RunRow) -> str:
    """What was measured: the service by its name, else the target without its scheme; then the model. A run of another
    tool that names neither has that tool's name."""
    target = (
        (row.target or (row.tool if row.origin == "imported" else None) or "?")
        .removeprefix("http://")
        .removeprefix("https://")
        .removesuffix("/")
        .removesuffix("/v1")
    )
    return " · ".join(part for part in (row.service or target, row.model) if part)


def _fitted(heads: list[Column], rows: list[list[Cell]], legend: list[str]) -> Table:
    """A table whose last column is cut to what 80 columns leave."""
    taken = sum(_columns_of(head, [row[i] for row in rows]) + _GAP for i, head in enumerate(heads[:-1]))
    room = max(_WIDTH - taken, columns(heads[-1].title))
    return Table(columns=heads, rows=[[*row[:-1], Cell(_cut(row[-1].text, room))] for row in rows], legend=legend)


def _columns_of(head: Column, cells: list[Cell]) -> int:
    """How wide a column stands, its figures aligned on the point and its marks behind them."""
    parts = [cell.text.partition(".") if head.align == "decimal" else (cell.text, "", "") for cell in cells]
    body = max(columns(whole) for whole, _, _ in parts) + max(columns(mark + rest) for _, mark, rest in parts)
    return max(body, columns(head.title), columns(head.unit)) + max(columns(cell.mark) for cell in cells)


def _cut(text: str, width: int) -> str:
    """At most `width` columns, `…` where something was cut off."""
    if columns(text) <= width:
        return text
    while columns(text) >= width:
        text = text[:-1]
    return text + "…"


def failure_document(run: Run, failures: Failures, words: Catalogue) -> Document:
    """How many failed, then like ones together: how often, when, what."""
    if run.origin == "imported" and not failures.records:
        return _lines(words, [words.say("screen.runs.requests_not_held", run=run.id)])
    if not failures.kinds:
        return _lines(words, [words.say("screen.runs.no_failures", run=run.id)])
    told = words.say("screen.runs.failures", run=run.id, failed=failures.failed, records=failures.records)
    whole = failed.table(failures, words, _FAILURE_ROWS)
    table = _fitted(whole.columns, whole.rows, whole.legend)
    return Document(lang=words.lang, blocks=[Lead(text=told, tone="trouble"), table])


def removed_document(rows: Iterable[RunRow], words: Catalogue) -> Document:
    """What is gone, one line a run, so that a slip can at least be named."""
    return _lines(words, [_removed(row, words) for row in rows])


def _removed(row: RunRow, words: Catalogue) -> str:
    line = words.say(
        "screen.runs.removed",
        run=row.id,
        started=units.moment(row.started_wall_ns),
        what=f"{subject_of(row)}, {load_of(row)}",
        records=row.records,
    )
    gone = words.say("screen.runs.removed_tags", tags=", ".join(row.tags)) if row.tags else ""
    return f"{line} {gone}".rstrip()


def recovered_lines(run: Run, words: Catalogue) -> Iterator[str]:
    """What a check tells of a run that it has filed: its size, and what of its journal was lost."""
    yield words.say("screen.runs.recovered", run=run.id, n=run.summary.run_requests.started)
    for finding in run.findings:
        if finding.slug == "journal_damaged":
            yield words.say("screen.runs.damaged", what=cause(finding, words), step=step(finding, words))


def check_document(checked: Checked, archive: str, words: Catalogue) -> Document:
    """One line where all is whole, else their number and one line for each fault."""
    if not checked.problems:
        whole = words.say("screen.runs.whole", archive=archive, runs=checked.runs, records=checked.records)
        return _lines(words, [whole])
    faults = [error_line(words, problem) for problem in checked.problems]
    total = words.say("screen.runs.broken", archive=archive, problems=len(faults), runs=checked.runs)
    blocks: list[Block] = [Lead(text=total, tone="trouble"), *(Foot(text=fault) for fault in faults)]
    return Document(lang=words.lang, blocks=blocks)
