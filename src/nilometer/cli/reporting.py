"""What `nilo report` does between its options and the report: which runs, which file, which form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple

from nilometer import __version__
from nilometer.archive.protocol import Archive
from nilometer.compare.family import TABLE
from nilometer.core.errors import ConditionError, NiloError, SpecError
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.diagnose.diagnosis import Diagnosis, diagnose_runs, spoken
from nilometer.experiment.sweep import one_a_level
from nilometer.report import charts, csv_rows, parquet
from nilometer.report.document import Document
from nilometer.report.gather import SLOWEST, gather
from nilometer.report.html_page import page
from nilometer.report.markdown import render
from nilometer.report.whole import Shown, report_document
from nilometer.text.i18n import LANGUAGES, Catalogue

from .comparing import Compared, compared, side_of
from .group_screens import group_documents, require_readable, whole_group
from .machine import head, run_object
from .pruning import refuse_pruned
from .session import indented, writing

STDOUT = "-"
_DIAGNOSED = ("sweep", "quickstart", "repeat")
"""Groups whose runs are of one service under one or several loads."""
_ENDINGS = {"html": "html", "htm": "html", "md": "markdown", "csv": "csv", "json": "json", "parquet": "parquet"}
_ENDING_OF = {"html": "html", "markdown": "md", "csv": "csv", "json": "json", "parquet": "parquet"}


Parts = Callable[[IO[bytes]], int]
"""Writes the whole report to a sink and returns its size."""


class Asked(NamedTuple):
    """What was asked for. `output`: a path, `-`, or None where the name is ours to choose."""

    form: str
    output: str | None
    records: bool
    force: bool


class Chosen(NamedTuple):
    """The runs of a report; `group` where it is of one group and nothing else, `compared` where it is of two sides."""

    runs: list[Run]
    group: Group | None = None
    compared: Compared | None = None
    refused: NiloError | None = None
    """Why two sides were not compared."""
    of_first: frozenset[str] = frozenset()
    """Ids of the runs that the first word means."""

    diagnosis: Diagnosis | None = None
    """What limits the service, where the runs are of one service under one or several loads and have their records."""

    @property
    def findings(self) -> list[Finding]:
        """What the runs of a quickstart tell together."""
        told = self.group is not None and self.group.type == "quickstart" and self.diagnosis is not None
        return spoken(self.diagnosis) if told and self.diagnosis is not None else []


def asked(form: str | None, output: str | None, *, records: bool, force: bool, json: bool) -> Asked:
    """The options resolved. Slugs `report_records` (only csv has them apart), `report_streams` (one stdout for two),
    `parquet_missing`.
    """
    ending = (output or "").rpartition(".")[2].lower()
    chosen = form or _ENDINGS.get(ending, "html")
    if records and chosen != "csv":
        raise SpecError("report_records", form=chosen)
    if json and output == STDOUT:
        raise SpecError("report_streams")
    if chosen == "parquet":
        parquet.libraries()
    return Asked(chosen, output, records, force)


def choose(archive: Archive, refs: Sequence[str]) -> Chosen:
    """The runs that the words of the command line mean, each once, in their order; a group is its runs.

    Two words are two sides, held against each other where their runs and conditions allow it.
    """
    found = [archive.resolve_either(ref) for ref in refs]
    if len(found) == 1 and found[0].kind == "group":
        group = archive.get_group(found[0].id)
        of_group = _of_group(archive, group)
        told = _diagnosed(archive, of_group) if group.type in _DIAGNOSED else None
        return Chosen(of_group, group, diagnosis=told)
    several = [
        [archive.get(one.id)] if one.kind == "run" else _of_group(archive, archive.get_group(one.id)) for one in found
    ]
    runs = {run.id: run for some in several for run in some}
    if len(runs) == 1:
        return Chosen(list(runs.values()), diagnosis=_diagnosed(archive, list(runs.values())))
    of_first = frozenset(run.id for run in several[0])
    try:
        sides = _compared(archive, refs, runs) if len(refs) == 2 else None
    except (SpecError, ConditionError) as fault:
        return Chosen(list(runs.values()), refused=fault, of_first=of_first)
    return Chosen(list(runs.values()), compared=sides, of_first=of_first)


def _diagnosed(archive: Archive, runs: Sequence[Run]) -> Diagnosis | None:
    """None where a run's records are not there."""
    if not runs or any(not archive.row(run.id).records for run in runs):
        return None
    ordered = one_a_level(runs) if len({run.level for run in runs}) > 1 else runs
    return diagnose_runs(ordered, archive.records)


def _compared(archive: Archive, refs: Sequence[str], runs: Collection[str]) -> Compared | None:
    """The comparison of two sides; None where one has nothing admissible, or more runs than are shown.

    Slugs `conditions_differ`, `definitions_differ`, `same_runs`, `side_mixed`.
    """
    found = compared((side_of(archive, refs[0]), side_of(archive, refs[1])), TABLE, (), archive)
    told = found.comparison
    if not (told.runs_a and told.runs_b):
        return None  # one that is not admissible has no figures to be compared
    return found if {*found.comparison.runs_a, *found.comparison.runs_b} <= set(runs) else None


def _of_group(archive: Archive, group: Group) -> list[Run]:
    """Its runs in the order a reader wants: a sweep from the lowest load to the highest."""
    runs = archive.find(group.id)
    require_readable(group, runs)
    if group.type != "sweep":
        return runs
    return sorted(one_a_level(runs), key=lambda run: float(run.level or 0))


def target(asked: Asked, chosen: Chosen) -> str | None:
    """The file to write, None for stdout. Slugs `file_exists`, `file_unwritable` by its folder."""
    if asked.output == STDOUT:
        return None
    file = asked.output if asked.output is not None else f"nilo-{_name(chosen)}.{_ENDING_OF[asked.form]}"
    if os.path.lexists(file) and not asked.force and not _is_stream(file):
        raise SpecError("file_exists", file=file)
    return file


def _is_stream(file: str) -> bool:
    """Whether it is a device or a pipe: it takes what is written and is not replaced."""
    return os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file)


def _name(chosen: Chosen) -> str:
    """`k3vac2`, `k3vac2-w3ye7u`, `k3vac2-and-4`; a group by its id."""
    if chosen.group is not None:
        return chosen.group.id[:6]
    ids = [run.id[:6] for run in chosen.runs]
    return "-".join(ids) if len(ids) <= 2 else f"{ids[0]}-and-{len(ids) - 1}"


def write(archive: Archive, chosen: Chosen, asked: Asked, file: str | None, lang: str) -> int:
    """Write the report to `file`, None for stdout; how many bytes that were. Nothing half-written stays behind."""
    if asked.records or asked.form == "parquet":
        for run in chosen.runs:
            refuse_pruned(archive, run)
    parts = _parts(archive, chosen, asked, lang)
    if file is None:
        return _to_stdout(parts)
    if _is_stream(file):
        with writing(file), open(file, "wb") as sink:
            return parts(sink)
    file = os.path.realpath(file)
    beside = f"{file}.{os.getpid()}.part"
    try:
        with writing(file), open(beside, "xb") as sink:
            size = parts(sink)
        with writing(file):
            os.replace(beside, file)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    return size


def _to_stdout(parts: Parts) -> int:
    stream = sys.stdout.buffer
    size = parts(stream)
    stream.flush()
    return size


def _parts(archive: Archive, chosen: Chosen, asked: Asked, lang: str) -> Parts:
    match asked.form:
        case "html":
            return partial(_texts, lambda: [_html(archive, chosen, lang)])
        case "markdown":
            return partial(_texts, lambda: [_markdown(archive, chosen, lang)])
        case "json":
            return partial(_texts, lambda: [indented(_machine(chosen)) + "\n"])
        case "csv" if asked.records:
            return partial(_texts, lambda: csv_rows.record_lines(_with_records(archive, chosen)))
        case "csv":
            return partial(_texts, lambda: csv_rows.figure_lines(chosen.runs))
        case _:
            return partial(_parquet, archive, chosen)


def _texts(texts: Callable[[], Iterable[str]], sink: IO[bytes]) -> int:
    """`texts` are made whole or line by line before anything is written of each."""
    return sum(sink.write(text.encode("utf-8", "replace")) for text in texts())


def _parquet(archive: Archive, chosen: Chosen, sink: IO[bytes]) -> int:
    counted = _Counted(sink)
    parquet.write(counted, _with_records(archive, chosen))  # type: ignore[arg-type]
    return counted.size


class _Counted:
    """What pyarrow wants of a file, and how much went through."""

    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self.size = 0

    def write(self, data: bytes) -> int:
        written = self._sink.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        """The file is closed by who opened it."""

    def writable(self) -> bool:
        return True


def _with_records(archive: Archive, chosen: Chosen) -> Iterator[tuple[Run, Iterable[Record]]]:
    yield from ((run, archive.records(run.id)) for run in chosen.runs)


def _shown(archive: Archive, chosen: Chosen) -> Shown:
    slowest = max(SLOWEST // len(chosen.runs), 10)
    seen = [gather(run, archive.records(run.id), slowest) for run in chosen.runs]
    told = None if chosen.compared is None else chosen.compared.comparison.metrics
    return Shown(chosen.runs, seen, charts.draw(chosen.runs, seen), told, _sides(chosen), chosen.refused)


def _sides(chosen: Chosen) -> dict[str, str]:
    """Which side each run was on, of a verify or of two sides with more runs than one."""
    if chosen.group is not None and chosen.group.type == "verify":
        return {run.id: (run.role or "").upper() for run in chosen.runs}
    if chosen.compared is None or len(chosen.runs) <= 2:
        return {}
    return {run.id: "A" if run.id in chosen.of_first else "B" for run in chosen.runs}


def _document(shown: Shown, chosen: Chosen, words: Catalogue) -> Document:
    """A group begins with its own screen, where that is one screen and not one for each run; two sides with theirs."""
    if chosen.compared is not None and len(chosen.runs) > 2:
        return report_document(shown, words, chosen.compared.document(words))
    screens = []
    if chosen.group is not None:
        screens = group_documents(chosen.group, chosen.runs, chosen.findings, words)
    is_one = len(screens) == 1 and chosen.group is not None and chosen.group.type != "repeat"
    return report_document(shown, words, screens[0] if is_one else None, chosen.diagnosis)


def _html(archive: Archive, chosen: Chosen, lang: str) -> str:
    """Both languages in one page, the session's first."""
    shown = _shown(archive, chosen)
    languages = sorted(LANGUAGES, key=lambda one: one != lang)
    return page([_document(shown, chosen, Catalogue(one)) for one in languages], shown.drawn.plots, __version__)


def _markdown(archive: Archive, chosen: Chosen, lang: str) -> str:
    return render(_document(_shown(archive, chosen), chosen, Catalogue(lang)))


def _machine(chosen: Chosen) -> dict[str, object]:
    """One run is its own object, a group is one, several runs are a list."""
    if chosen.group is not None:
        return whole_group(chosen.group, chosen.runs, chosen.findings)
    if len(chosen.runs) == 1:
        return run_object(chosen.runs[0])
    return {**head("runs"), "runs": [run_object(run) for run in chosen.runs]}


def report_object(asked: Asked, chosen: Chosen, file: str, size: int) -> dict[str, object]:
    """The machine form of what was done (kind `report`)."""
    group = None if chosen.group is None else chosen.group.id
    runs = [run.id for run in chosen.runs]
    return {**head("report"), "file": file, "bytes": size, "form": asked.form, "group": group, "runs": runs}
