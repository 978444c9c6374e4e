"""The screen of a diagnosis: the finding in a sentence, where the time goes, what speaks for and against, what to do.

At most some forty lines: what does not fit stands in the machine form and in the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.finding import Evidence, Finding, Remedy
from nilometer.diagnose.budget import UNEXPLAINED, Budget
from nilometer.diagnose.diagnosis import Diagnosis, NotRun
from nilometer.diagnose.rules import missing_kind
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Bar, Bars, Block, Document, Fact, Facts, Foot, Lead, Note, Notes, Text
from .findings import cause, figure
from .lead import sentence as capital

MOST_FOR, MOST_AGAINST, MOST_REMEDIES, MOST_OTHERS = 4, 3, 3, 3


def diagnosis_document(found: Diagnosis, words: Catalogue, *, subject: str, ref: str | None = None) -> Document:
    """`subject` is what was diagnosed, in words; `ref` how a command may call it, None where it is in no archive."""
    return Document(lang=words.lang, blocks=list(_blocks(found, words, subject, ref)))


def diagnosis_blocks(found: Diagnosis, words: Catalogue) -> list[Block]:
    """The same as a section of a report: without where it lies and what to type next."""
    return [block for block in _blocks(found, words, "", None) if not isinstance(block, Foot)]


def sentence(found: Diagnosis, words: Catalogue) -> str:
    """The finding in one sentence, with the word of confidence behind it."""
    first = found.findings[0] if found.findings else None
    match found.state:
        case "healthy":
            return _healthy(found, words)
        case "undecided":
            names = [words.say(f"cause.{one.slug}.name") for one in found.findings[:2]]
            return words.say("screen.diagnosis.undecided", rivals=words.say("screen.diagnosis.or").join(names) or "-")
        case _ if first is not None:
            key = "vetoed" if found.state == "vetoed" else "found"
            return words.say(f"screen.diagnosis.{key}", what=cause(first, words), sure=_sure(first, words))
        case _:
            return words.say("screen.diagnosis.nothing")


def _healthy(found: Diagnosis, words: Catalogue) -> str:
    if found.knee is not None:
        return words.say("screen.diagnosis.healthy_to_knee", knee=round(found.knee), most=found.greatest)
    return words.say("screen.diagnosis.healthy", most=found.greatest)


def _sure(finding: Finding, words: Catalogue) -> str:
    return words.say("screen.diagnosis.sure", word=words.say(f"screen.diagnosis.confidence.{finding.confidence}"))


def _blocks(found: Diagnosis, words: Catalogue, subject: str, ref: str | None) -> Iterator[Block]:
    yield Lead(text=capital(sentence(found, words)), tone="plain" if found.state in ("healthy", "found") else "trouble")
    if found.ttft is not None and found.state != "vetoed":
        yield _bars(found.ttft, words)
    if found.e2e is not None and found.state != "vetoed":
        yield Text(text=_sum(found.e2e, words))
    first = found.findings[0] if found.findings else None
    rows = list(_rows(found, first, words))
    if rows:
        yield Facts(rows=rows)
    others = found.findings[1 : 1 + MOST_OTHERS]
    if others and found.state != "undecided":
        yield Notes(rows=[_other(one, words) for one in others])
    yield from _foot(found, words, subject, ref)


def _bars(budget: Budget, words: Catalogue) -> Bars:
    """A bar for each part that is known and not nothing."""
    parts = [part for part in budget.parts if part.ms is not None and abs(part.share or 0.0) >= 0.005]
    rows = [
        Bar(
            label=words.say(f"screen.diagnosis.part.{part.name}"),
            value=max(part.ms or 0.0, 0.0),
            text=words.say("screen.diagnosis.part_text", ms=part.ms, share=part.share),
            trouble=part.name == UNEXPLAINED and (part.share or 0.0) > 0.5,
        )
        for part in parts
    ]
    return Bars(title=words.say("screen.diagnosis.ttft", total=budget.total_ms, n=budget.n), rows=rows)


def _sum(budget: Budget, words: Catalogue) -> str:
    parts = [
        words.say("screen.diagnosis.summand", name=words.say(f"screen.diagnosis.part.{part.name}"), ms=part.ms)
        for part in budget.parts
        if part.ms is not None and (part.name == "ttft" or abs(part.share or 0.0) >= 0.005)
    ]
    return words.say("screen.diagnosis.e2e", total=budget.total_ms, parts=" + ".join(parts))


def _rows(found: Diagnosis, first: Finding | None, words: Catalogue) -> Iterator[Fact]:
    if first is not None:
        yield from _named("for", _figures(first.evidence[:MOST_FOR], words), words)
        yield from _named("against", _acquitted(first, words), words)
        yield from _named("rival", _rivals(first, words), words)
        yield from _named("decide", _experiment(first, words), words)
        yield from _named(
            "do", [_remedy(i, one, words) for i, one in enumerate(first.remedies, 1)][:MOST_REMEDIES], words
        )
    if found.left_out:
        loads = words.say("screen.list_join").join(f"{load:g}" for load in found.left_out)
        yield from _named("left_out", [words.say("screen.diagnosis.left_out", loads=loads)], words)
    yield from _named("not_run", _not_run(found.not_run, words), words)
    yield from _named("passed", [words.say("screen.diagnosis.passed", n=len(found.passed))], words)


def _named(name: str, lines: Sequence[str], words: Catalogue) -> Iterator[Fact]:
    for i, line in enumerate(lines):
        yield Fact(words.say(f"screen.diagnosis.row.{name}") if i == 0 else "", line)


def _figures(figures: Sequence[Evidence], words: Catalogue) -> list[str]:
    return [figure(one, words) for one in figures]


def _acquitted(finding: Finding, words: Catalogue) -> list[str]:
    told = _figures(finding.against[:MOST_AGAINST], words)
    return [words.say("screen.list_join").join(told)] if told else []


def _rivals(finding: Finding, words: Catalogue) -> list[str]:
    names = [words.say(f"cause.{slug}.name") for slug in finding.rivals]
    return [words.say("screen.list_join").join(names)] if names else []


def _experiment(finding: Finding, words: Catalogue) -> list[str]:
    if finding.experiment is None:
        return []
    return [f"`{finding.experiment.command}`", *(prediction(code, words) for code in finding.experiment.predictions)]


def prediction(code: str, words: Catalogue) -> str:
    """`TRIAL.OUTCOME:CAUSE` in words: what this cause foretells of that trial."""
    outcome, _, slug = code.partition(":")
    name, what = words.say(f"cause.{slug}.name"), words.say(f"outcome.{outcome}")
    return words.say("screen.diagnosis.foretold", cause=name, what=what)


def _remedy(i: int, remedy: Remedy, words: Catalogue) -> str:
    text = words.say(f"remedy.{remedy.slug}.what")
    if remedy.flags:
        text += f" ({' '.join(remedy.flags)})"
    return words.say("screen.diagnosis.remedy", i=i, what=text, gain=_gain(remedy, words))


def _gain(remedy: Remedy, words: Catalogue) -> str:
    gain = remedy.gain
    if gain is None:
        return ""
    metric = words.say(f"screen.diagnosis.gain_of.{gain['metric']}")
    before, low, mid, high = (units.measured(gain[name], _unit(gain)) for name in ("before", "low", "mid", "high"))
    return words.say("screen.diagnosis.gain", metric=metric, before=before, low=low, mid=mid, high=high)


def _unit(gain: dict[str, float | str | None]) -> str | None:
    unit = gain.get("unit")
    return unit if isinstance(unit, str) else None


def _not_run(not_run: Sequence[NotRun], words: Catalogue) -> list[str]:
    """What could not be looked at, by what it would take."""
    by_kind: dict[str, list[str]] = {}
    for one in not_run:
        by_kind.setdefault(missing_kind(one.missing), []).append(words.say(f"cause.{one.slug}.name"))
    join = words.say("screen.list_join")
    return [
        words.say("screen.diagnosis.not_run", names=join.join(names), why=words.say(f"screen.diagnosis.missing.{kind}"))
        for kind, names in by_kind.items()
    ]


def _other(finding: Finding, words: Catalogue) -> Note:
    told = words.say("screen.list_join").join(_figures(finding.evidence[:2], words))
    return Note(
        slug=finding.slug,
        severity=finding.severity,
        cause=words.say("screen.diagnosis.also", what=cause(finding, words)) + _sure(finding, words),
        evidence=told or None,
    )


def _foot(found: Diagnosis, words: Catalogue, subject: str, ref: str | None) -> Iterator[Foot]:
    if not subject:
        return
    commands = list(_next(found, ref))
    yield Foot(text=subject, lead=words.say("screen.foot.next") if commands else "", commands=commands)


def _next(found: Diagnosis, ref: str | None) -> Iterator[str]:
    if ref is None:
        return
    if found.state == "vetoed":
        yield "nilo doctor"
    elif found.findings and found.findings[0].confidence != "confirmed":
        yield f"nilo diagnose {ref} --experiment"
    yield f"nilo report {ref}"
