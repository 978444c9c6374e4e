"""What a diagnosis says of the cases, against their labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, NamedTuple

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
        return lambda _: None
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


class Share(NamedTuple):
    """So many of so many."""

    right: int
    n: int


class Confusion(NamedTuple):
    """Of one label: how often each answer came first, how often one that is true of it, how often among two."""

    first: dict[str, int]
    true: int
    second: int

    @property
    def n(self) -> int:
        return sum(self.first.values())


class Accuracy(NamedTuple):
    """All that is said of a split in one view. `severities`: by kind and severity those found first."""

    shares: dict[str, Share]
    confusions: dict[str, Confusion]
    severities: dict[str, dict[str, Share]]


SHARES: dict[str, str] = {
    "first": "top-1, one kind or none",
    "first_one_kind": "top-1, one kind",
    "first_label": "top-1, the label alone",
    "second": "top-2",
    "false_alarm": "healthy: false alarm",
    "wrong_confirmed": "wrong and confirmed",
    "abstained": "abstained",
    "both": "two kinds: both in the first three",
    "one_of_both": "two kinds: one of them first",
}


def accuracy_of(found: list[Answer], view: View) -> Accuracy:
    """Shares, the confusions by label, and the severity from which a kind is found."""
    plain = [one for one in found if not one.case.sweep]
    single = [one for one in plain if len(one.case.kinds) == 1]
    well = [one for one in plain if not one.case.kinds]
    double = [one for one in plain if len(one.case.kinds) > 1]
    graded = single + well

    def wrong(one: Answer) -> bool:
        return _wrong(one, view)

    shares = {
        "first": _share(graded, lambda one: not wrong(one)),
        "first_one_kind": _share(single, lambda one: not wrong(one)),
        "first_label": _share(single, lambda one: one.first == one.case.kinds[0]),
        "second": _share(single, lambda one: bool(truths(one.case, view) & set(one.ranked[:2]))),
        "false_alarm": _share(well, wrong),
        "wrong_confirmed": _share(graded, lambda one: wrong(one) and one.confirmed),
        "abstained": _share(graded, lambda one: one.abstained),
        "both": _share(double, lambda one: set(one.case.kinds) <= set(one.ranked[:3])),
        "one_of_both": _share(double, lambda one: one.first in one.case.kinds),
    }
    return Accuracy(shares, _confusions(graded, view), _severities([one for one in found if one.case.sweep]))


def _wrong(one: Answer, view: View) -> bool:
    return one.first not in truths(one.case, view)


def _share(of: list[Answer], true: Callable[[Answer], bool]) -> Share:
    return Share(sum(map(true, of)), len(of))


def _confusions(graded: list[Answer], view: View) -> dict[str, Confusion]:
    rows: dict[str, list[Answer]] = defaultdict(list)
    for one in graded:
        rows[one.case.kinds[0] if one.case.kinds else "healthy"].append(one)
    return {
        label: Confusion(
            dict(Counter(one.first for one in of).most_common()),
            sum(not _wrong(one, view) for one in of),
            sum(bool(truths(one.case, view) & set(one.ranked[:2])) for one in of),
        )
        for label, of in rows.items()
    }


def _severities(sweep: list[Answer]) -> dict[str, dict[str, Share]]:
    rows: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(sweep, key=lambda one: (one.case.kinds[0], one.case.severity)):
        rows[one.case.kinds[0]][f"{one.case.severity:g}"].append(one.first == one.case.kinds[0])
    return {kind: {at: Share(sum(of), len(of)) for at, of in row.items()} for kind, row in rows.items()}


def report(met: Accuracy, view: View) -> Iterator[str]:
    """The same as lines of text, shares with their intervals."""
    yield f"view {view}"
    for name, share in met.shares.items():
        low, high = interval(*share)
        part = f"{share.right / max(share.n, 1):7.1%}  [{low:.1%}, {high:.1%}]"
        yield f"{SHARES[name]:38}{share.right:5} of {share.n:4} {part}"
    yield f"\n{'label':20}{'n':>4}{'label':>7}{'true':>7}{'top-2':>7}  other answers"
    for label, one in met.confusions.items():
        others = ", ".join(f"{slug} {n}" for slug, n in one.first.items() if slug != label)
        alike = one.first.get(label, 0)
        yield f"{label:20}{one.n:4}{alike / one.n:7.0%}{one.true / one.n:7.0%}{one.second / one.n:7.0%}  {others}"
    grades = sorted({at for row in met.severities.values() for at in row}, key=float)
    if grades:
        yield f"\n{'found at severity':20}" + "".join(f"{at:>7}" for at in grades)
    for kind, row in met.severities.items():
        cells = (f"{row[at].right}/{row[at].n}" if at in row else "-" for at in grades)
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
