"""What `nilo runs show` shows of a group out of the archive. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.compare.verdict import judge
from nilometer.core.finding import Finding
from nilometer.core.group import Group
from nilometer.core.run import Run
from nilometer.experiment.quickstart import diagnosis
from nilometer.experiment.verify import pairs_of
from nilometer.report.build import group_document, run_document
from nilometer.report.document import Document
from nilometer.report.lab import lab_document
from nilometer.report.sweep import sweep_document
from nilometer.report.verify import verify_document
from nilometer.text.i18n import Catalogue

from .comparing import rule_of_group


def group_documents(group: Group, runs: Sequence[Run], findings: Sequence[Finding], words: Catalogue) -> list[Document]:
    """A group as it was shown when it was measured: one table of its loads, or the report of each run."""
    if group.type == "lab":
        return [lab_document(runs, group.id, words)]
    if group.type == "sweep":
        return [sweep_document(runs, group.id, words)]
    if group.type == "verify":
        rule = rule_of_group(group)
        pairs = pairs_of(runs)
        comparison = judge([pair.a for pair in pairs], [pair.b for pair in pairs], rule)
        return [verify_document(comparison, rule, runs, group.id, words)]
    if findings:
        return [group_document(runs, group.id, findings[0], words)]
    return [run_document(run, words, conditions=True) for run in runs]


def group_findings(group: Group, runs: Sequence[Run]) -> list[Finding]:
    """What the runs of a group tell together; nothing where its kind has no diagnosis."""
    return diagnosis(runs) if group.type == "quickstart" else []
