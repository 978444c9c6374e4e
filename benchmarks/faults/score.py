"""What a diagnosis says of the cases, against their labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from nilometer.diagnose.group import GroupEvidence

from .store import Kept

View = Literal["client", "server", "mixed"]
Z = 1.959964


@dataclass(frozen=True)
class Answer:
    """Of one case. `ranked`: causes and faults of validity in order, `healthy` alone where there is none."""

    case: Kept
    ranked: tuple[str, ...]
    abstained: bool
    confirmed: bool
    said: Any

    @property
    def first(self) -> str:
        return self.ranked[0] if self.ranked else "undecided"


def diagnose_by() -> Callable[[GroupEvidence], Any]:
    """The diagnosis; until there is one, that all is well."""
    try:
        from nilometer.diagnose.diagnosis import diagnose
    except ImportError:
        return lambda evidence: None
    return diagnose


def answers(kept: Iterable[Kept], view: View) -> Iterator[Answer]:
    """Each case as this view has it; of `server` only those whose server shows a page."""
    diagnose = diagnose_by()
    for case in kept:
        if view == "server" and not case.has_server:
            continue
        evidence = case.server if view == "server" or (view == "mixed" and case.has_server) else case.client
        said = diagnose(evidence)
        state = getattr(said, "state", "healthy")
        findings = [one for one in getattr(said, "findings", []) if one.kind in ("validity", "cause")]
        ranked = ("healthy",) if state == "healthy" or not findings else tuple(one.slug for one in findings)
        sure = getattr(findings[0], "confidence", None) if findings else None
        yield Answer(case, ranked, state == "undecided", sure == "confirmed", said)


def truths(case: Kept, view: View) -> set[str]:
    """What is right to say first."""
    server = view == "server" or (view == "mixed" and case.has_server)
    return {*(case.kinds or ("healthy",)), *(case.also_server if server else case.also_client)}


def interval(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927)."""
    if not n:
        return 0.0, 1.0
    p, z2 = right / n, Z * Z
    middle, half = (p + z2 / (2 * n)) / (1 + z2 / n), Z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def report(found: list[Answer], view: View) -> Iterator[str]:
    """Shares with their intervals, by kind and in all, the confusions, and the severity from which a kind is found."""
    plain = [one for one in found if not one.case.sweep]
    single = [one for one in plain if len(one.case.kinds) == 1]
    well = [one for one in plain if not one.case.kinds]
    double = [one for one in plain if len(one.case.kinds) > 1]
    graded = single + well
    yield f"{len(found)} cases, view {view}"
    yield _share("top-1, one kind or none", graded, lambda one: one.first in truths(one.case, view))
    yield _share("top-1, one kind", single, lambda one: one.first in truths(one.case, view))
    yield _share("top-1, the label alone", single, lambda one: one.first == one.case.kinds[0])
    yield _share("top-2", single, lambda one: bool(truths(one.case, view) & set(one.ranked[:2])))
    yield _share("healthy: false alarm", well, lambda one: one.first not in truths(one.case, view))
    yield _share("wrong and confirmed", graded, lambda one: _wrong(one, view) and one.confirmed)
    yield _share("abstained", graded, lambda one: one.abstained)
    yield _share("two kinds: both in the first three", double, lambda one: set(one.case.kinds) <= set(one.ranked[:3]))
    yield _share("two kinds: one of them first", double, lambda one: one.first in one.case.kinds)
    yield ""
    yield from _confusions(graded, view)
    yield ""
    yield from _severities([one for one in found if one.case.sweep], view)


def _wrong(one: Answer, view: View) -> bool:
    return one.first not in truths(one.case, view)


def _share(name: str, of: list[Answer], true: Callable[[Answer], bool]) -> str:
    n = sum(map(true, of))
    low, high = interval(n, len(of))
    return f"{name:38}{n:5} of {len(of):4} {n / max(len(of), 1):7.1%}  [{low:.1%}, {high:.1%}]"


def _confusions(graded: list[Answer], view: View) -> Iterator[str]:
    """By label: how many, right by label, right by what is true of it, and what else was said."""
    rows: dict[str, list[Answer]] = defaultdict(list)
    for one in graded:
        rows[one.case.kinds[0] if one.case.kinds else "healthy"].append(one)
    yield f"{'label':20}{'n':>4}{'label':>7}{'true':>7}{'top-2':>7}  answers"
    for label, of in rows.items():
        said = Counter(one.first for one in of)
        alike = said.pop(label, 0)
        right = sum(not _wrong(one, view) for one in of)
        second = sum(bool(truths(one.case, view) & set(one.ranked[:2])) for one in of)
        others = ", ".join(f"{slug} {n}" for slug, n in said.most_common())
        yield f"{label:20}{len(of):4}{alike / len(of):7.0%}{right / len(of):7.0%}{second / len(of):7.0%}  {others}"


def _severities(sweep: list[Answer], view: View) -> Iterator[str]:
    """By kind and severity the share that is found first."""
    rows: dict[str, dict[float, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in sweep:
        rows[one.case.kinds[0]][one.case.severity].append(one.first == one.case.kinds[0])
    grades = sorted({severity for row in rows.values() for severity in row})
    yield f"{'found at severity':20}" + "".join(f"{severity:>7g}" for severity in grades)
    for kind, row in sorted(rows.items()):
        cells = (f"{sum(row[one])}/{len(row[one])}" if row[one] else "-" for one in grades)
        yield f"{kind:20}" + "".join(f"{cell:>7}" for cell in cells)


def wrong(found: list[Answer], view: View) -> Iterator[str]:
    """Every answer that is not right, with what was seen."""
    for one in found:
        if one.case.sweep or not _wrong(one, view):
            continue
        case = one.case
        evidence = case.server if view == "server" or (view == "mixed" and case.has_server) else case.client
        yield f"{case.name} ({case.severity:.2f}): said {', '.join(one.ranked[:3])}"
        for finding in list(getattr(one.said, "findings", []))[:2]:
            shown = ", ".join(f"{e.name}={e.value:.4g}" for e in finding.evidence if isinstance(e.value, int | float))
            yield f"    {finding.slug}: score {getattr(finding, 'score', None)}; {shown}"
        yield "    case: " + ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else v for k, v in case.facts.items())
        yield "    group: " + _figures(evidence.figures)
        for level in (evidence.lowest, evidence.highest):
            if level is not None:
                yield f"    level {level.level:g}: " + _figures(level.figures)


def _figures(figures: dict[str, Any]) -> str:
    return ", ".join(f"{n}={f.value:.4g}" for n, f in figures.items() if f is not None and isinstance(f.value, float))
