"""What the commands that compare have in common: two sides out of the archive, the machine form, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from nilometer.compare.family import TABLE, Family, parse
from nilometer.compare.looks import Looks
from nilometer.compare.verdict import Comparison, Rule
from nilometer.core.errors import SpecError
from nilometer.core.group import Group, parted
from nilometer.core.run import Run

from .machine import head

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive

EXIT_CODES = {"REGRESSED": 1, "SAME": 0, "IMPROVED": 0, "UNDECIDED": 5}

METRICS = click.option(
    "--metrics",
    metavar="FIGURES",
    help="What is judged, each with its margin: tpot_p50=3%,output_tokens_per_s.  [default: "
    "ttft_p95=10%,tpot_p50=5%,output_tokens_per_s=5%]",
)
LEVEL = click.option("--level", metavar="LEVEL", help="The load level to take of a sweep.")


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


def rule_of_group(group: Group) -> Rule:
    """The rule that a verify was measured by."""
    _, plan = parted(group.spec or "", "verify")
    return rule_of(plan.get("metrics"), plan.get("pairs", 10))


def side_of(archive: Archive, ref: str, level: str | None = None) -> SideOfArchive:
    """The runs that RUN or GROUP means. A run stands for all of its group that were made as it was: repeats.

    Slugs `side_mixed` where a group holds runs of several loads or sides, `side_empty`.
    """
    found = archive.resolve_either(ref)
    if found.kind == "run":
        run = archive.get(found.id)
        alike = [] if run.group is None else [one for one in archive.find(run.group) if _part(one) == _part(run)]
        return SideOfArchive(ref, alike or [run])
    runs = [run for run in archive.find(found.id) if level is None or run.level == level]
    if not runs:
        raise SpecError("side_empty", group=ref, level=level)
    parts = list(dict.fromkeys(map(_part, runs)))
    if len(parts) > 1:
        names = ", ".join(":".join(part for part in parts_of if part) or run_id for parts_of, run_id in _named(runs))
        raise SpecError("side_mixed", group=ref, parts=names)
    return SideOfArchive(ref, runs)


def _part(run: Run) -> tuple[str | None, str | None]:
    """What a run was in its group: runs of one part are repeats of each other."""
    return run.role, run.level


def _named(runs: Sequence[Run]) -> list[tuple[tuple[str | None, str | None], str]]:
    """Each part with the first run of it."""
    first: dict[tuple[str | None, str | None], str] = {}
    for run in runs:
        first.setdefault(_part(run), run.id[:6])
    return list(first.items())


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
