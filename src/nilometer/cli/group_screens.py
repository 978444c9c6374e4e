"""What `nilo runs show` shows of a group out of the archive. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from nilometer.core.errors import ArchiveError, ConditionError
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.experiment.quickstart import diagnosis
from nilometer.experiment.verify import pairs_of
from nilometer.report.build import group_document, run_document
from nilometer.report.document import Document, Lead
from nilometer.report.lab import is_known, lab_document
from nilometer.report.sweep import sweep_document
from nilometer.report.verify import sides_of, verify_document
from nilometer.text.i18n import Catalogue

from .comparing import comparison_object, terms_of
from .machine import group_object


def require_readable(group: Group, runs: Sequence[Run]) -> None:
    """Refuse a group whose runs are not what its type says, as in a file from elsewhere: slug `group_damaged`."""
    if group.type in ("sweep", "quickstart"):
        odd = next((run for run in runs if not _is_load(run.level)), None)
        if odd is not None:
            raise ArchiveError("group_damaged", group=group.id, detail=f"run {odd.id[:6]} is of level {odd.level}")


def _is_load(level: str | None) -> bool:
    try:
        return 0 < float(level or 0) < math.inf
    except ValueError:
        return False


def group_documents(group: Group, runs: Sequence[Run], findings: Sequence[Finding], words: Catalogue) -> list[Document]:
    """A group as it was shown when it was measured: one table of its loads, or the report of each run."""
    if group.type == "lab" and all(is_known(run) for run in runs):
        return [lab_document(runs, group.id, words)]
    if group.type == "sweep":
        return [sweep_document(runs, group.id, words)]
    if group.type == "verify":
        return _verify_documents(group, runs, words)
    if findings:
        return [group_document(runs, group.id, findings[0], words)]
    return [run_document(run, words, conditions=True) for run in runs]


def _verify_documents(group: Group, runs: Sequence[Run], words: Catalogue) -> list[Document]:
    """The verdict; of one that was refused the refusal, and the report of each run."""
    terms = terms_of(group)
    try:
        comparison, found = terms.judge(pairs_of(runs))
    except ConditionError as fault:
        refusal = Lead(text=words.say(f"error.{fault.slug}.what", **fault.params), tone="trouble")
        each = [run_document(run, words, conditions=True) for run in runs]
        return [Document(lang=words.lang, blocks=[refusal]), *each]
    return [verify_document(comparison, terms.rule, runs, group.id, words, differences=found)]


def whole_group(group: Group, runs: Sequence[Run], findings: Sequence[Finding]) -> dict[str, object]:
    """The machine form of a group out of the archive; a verify's has its verdict as `comparison`."""
    machine = group_object(group.id, group.type, runs, findings)
    return {**machine, "comparison": _comparison(group, runs)} if group.type == "verify" else machine


def _comparison(group: Group, runs: Sequence[Run]) -> dict[str, object] | None:
    """None where it was refused."""
    terms = terms_of(group)
    try:
        comparison, found = terms.judge(pairs_of(runs))
    except ConditionError:
        return None
    return comparison_object(comparison, terms.rule.family, sides_of(comparison, runs), found)


def group_findings(group: Group, runs: Sequence[Run], records: Callable[[str], Iterable[Record]]) -> list[Finding]:
    """What the runs of a group tell together, from their `records` by id; nothing where its kind has no diagnosis."""
    return diagnosis(runs, records) if group.type == "quickstart" else []
