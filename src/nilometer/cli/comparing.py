"""What the commands that compare have in common: two sides out of the archive, the machine form, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from nilometer.compare.condition import CHANGES as CHANGE_WORDS
from nilometer.compare.condition import Difference, differences, parse_changes, require_alike
from nilometer.compare.family import TABLE, Family, parse
from nilometer.compare.looks import Looks
from nilometer.compare.verdict import Comparison, Rule, judge
from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.group import Group, parted
from nilometer.core.run import Run
from nilometer.experiment.verify import Pair

from .machine import head

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.report.document import Document
    from nilometer.text.i18n import Catalogue

    from .session import Session

_LENGTHS_OF_A_SIDE = 20_000
"""Requests whose lengths are held against the other side's: enough to tell mixes apart, read in a second."""
EXIT_CODES = {"REGRESSED": 1, "SAME": 0, "IMPROVED": 0, "UNDECIDED": 5}

METRICS = click.option(
    "--metrics",
    metavar="FIGURES",
    help="What is judged, each with its margin: tpot_p50=3%,output_tokens_per_s.  [default: "
    "ttft_p95=10%,tpot_p50=5%,output_tokens_per_s=5%]",
)
CHANGES = click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="WORD,...",
    help=f"What is to differ, the change under test: {', '.join(CHANGE_WORDS)}.",
)
LEVEL = click.option("--level", metavar="LEVEL", help="The load level to take of a sweep.")


def exit_code(comparison: Comparison) -> int:
    """4 where no run of a side is admissible, else by the verdict."""
    return EXIT_CODES[comparison.verdict] if comparison.runs_a and comparison.runs_b else 4


class SideOfArchive(NamedTuple):
    """One side: what it was called, and its runs in the order of measuring."""

    ref: str
    runs: list[Run]


def family_of(metrics: str | None) -> Family:
    """The figures to be judged; slug `family_invalid`."""
    return TABLE if metrics is None else parse(metrics)


def rule_of(metrics: str | None, most: int) -> Rule:
    """How the pairs are judged, looked at after each: fixed before the first."""
    return Rule(family=family_of(metrics), interleaved=True, looks=Looks(most=most))


class Terms(NamedTuple):
    """By what a verify was measured: fixed before its first run, and kept with its group."""

    rule: Rule
    declared: frozenset[str]
    """What its sides may differ in."""

    def judge(self, pairs: Sequence[Pair]) -> tuple[Comparison, list[Difference]]:
        """The verdict over these pairs. Slugs `conditions_differ`, `definitions_differ`."""
        a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
        found = differences(a, b)
        require_alike(found, self.declared)
        return judge(a, b, self.rule), found


def terms_of(group: Group) -> Terms:
    """Those of a verify out of the archive. Slug `group_damaged`."""
    try:
        plan = msgspec.convert(parted(group.spec or "", "verify")[1], _Plan)
        return Terms(rule_of(plan.metrics, plan.pairs), frozenset(plan.changes))
    except ValueError as fault:  # no TOML, or no plan
        raise ArchiveError("group_damaged", group=group.id, detail=str(fault)) from None
    except SpecError as fault:  # it judges what we do not know
        raise ArchiveError("group_damaged", group=group.id, detail=fault.params.get("piece")) from None


class _Plan(msgspec.Struct, frozen=True):
    """What `nilo verify` keeps with its group."""

    metrics: str | None = None
    pairs: int = 10
    changes: tuple[str, ...] = ()


def side_of(archive: Archive, ref: str, level: str | None = None) -> SideOfArchive:
    """The runs that RUN or GROUP means. A run stands for all of its group that were made as it was: repeats.

    Slugs `side_mixed` where a group holds runs of several loads or sides, `side_empty`.
    """
    found = archive.resolve_either(ref)
    if found.kind == "run":
        run = archive.get(found.id)
        alike = [] if run.group is None else [one for one in archive.find(run.group) if _part(one) == _part(run)]
        runs = alike if any(one.id == run.id for one in alike) else [run]
    else:
        runs = archive.find(found.id)
    runs = [run for run in runs if level is None or run.level == level]
    if not runs:
        raise SpecError("side_empty", group=ref, level=level)
    parts = _named(runs)
    if len(parts) > 1:
        raise SpecError("side_mixed", group=ref, parts=", ".join(parts))
    return SideOfArchive(ref, runs)


def _part(run: Run) -> tuple[str | None, str | None]:
    """What a run was in its group: runs of one part are repeats of each other."""
    return run.role, run.level


def _named(runs: Sequence[Run]) -> list[str]:
    """Each part by its role and level, or where it has neither by its first run."""
    first: dict[tuple[str | None, str | None], str] = {}
    for run in runs:
        first.setdefault(_part(run), run.id[:6])
    return [":".join(filter(None, part)) or run for part, run in first.items()]


class Compared(NamedTuple):
    """Two sides held against each other: the verdict, the runs that count, and where their conditions part."""

    comparison: Comparison
    family: Family
    sides: tuple[list[Run], list[Run]]
    differences: list[Difference]

    def document(self, words: Catalogue) -> Document:
        from nilometer.report.comparison import comparison_document, condition_table

        more = [condition_table(self.differences, words)] if self.differences else []
        return comparison_document(self.comparison, self.family, self.sides, words, more=more)

    def show(self, session: Session) -> None:
        """The result on stdout."""
        session.emit(
            comparison_object(self.comparison, self.family, self.sides, self.differences),
            lambda: session.render(self.document(session.words)),
        )


def compared(
    sides: tuple[SideOfArchive, SideOfArchive], family: Family, changes: Sequence[str], archive: Archive
) -> Compared:
    """The verdict on B against A. Slugs `same_runs`, `conditions_differ`, `change_unknown`."""
    a, b = sides
    declared = {word for text in changes for word in parse_changes(text)}
    if shared := {run.id for run in a.runs} & {run.id for run in b.runs}:
        raise SpecError("same_runs", a=a.ref, b=b.ref, run=min(shared)[:6])
    comparison = judge(a.runs, b.runs, Rule(family=family))
    kept_a = [run for run in a.runs if run.id in comparison.runs_a]
    kept_b = [run for run in b.runs if run.id in comparison.runs_b]
    found = differences(kept_a, kept_b, _lengths(archive, kept_a, kept_b))
    require_alike(found, declared)
    return Compared(comparison, family, (kept_a, kept_b), found)


def _lengths(archive: Archive, a: Sequence[Run], b: Sequence[Run]) -> dict[str, tuple[list[int], list[int]]]:
    """The single lengths of both sides, of as many of their requests as tell a mix of lengths."""
    of_a, of_b = _of_requests(archive, a), _of_requests(archive, b)
    return {
        "input": ([one for one, _ in of_a if one is not None], [one for one, _ in of_b if one is not None]),
        "output": ([one for _, one in of_a if one is not None], [one for _, one in of_b if one is not None]),
    }


def _of_requests(archive: Archive, runs: Sequence[Run]) -> list[tuple[int | None, int | None]]:
    return [
        (record.prompt_tokens, record.output_tokens)
        for run in runs
        for record in islice(archive.records(run.id), _LENGTHS_OF_A_SIDE // len(runs))
        if record.phase == "measured" and record.outcome == "ok"
    ]


def comparison_object(
    comparison: Comparison,
    family: Family,
    sides: tuple[Sequence[Run], Sequence[Run]],
    differences: Sequence[object] = (),
    **more: object,
) -> dict[str, object]:
    """The machine form (kind `comparison`) in the contract's order; what is not judged has null for its verdict."""
    from nilometer.report.comparison import geometric_mean

    rows = {row.name: row for row in family}
    metrics = []
    for one in comparison.metrics:
        row = rows[one.metric]
        means = [geometric_mean([row.of(run.summary) for run in side]) for side in sides]
        metrics.append({**_metric(one), "a": means[0], "b": means[1]})
    return {
        **head("comparison"),
        "verdict": comparison.verdict,
        "metrics": metrics,
        "runs": {"a": comparison.runs_a, "b": comparison.runs_b},
        "condition_differences": [msgspec.to_builtins(one) for one in differences],
        "more_runs_needed": comparison.more_runs_needed,
        "left_out": comparison.left_out,
        **more,
    }


def _metric(one: object) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(one)
    first = ("metric", "ratio", "ci", "margin", "verdict", "p_adjusted")
    return {**{key: tree.pop(key) for key in first}, **tree}
