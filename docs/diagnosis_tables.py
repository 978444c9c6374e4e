"""How right the diagnosis is: what it said of services whose fault is known, as it was scored and kept last."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.faults.kept import kept
from benchmarks.faults.score import Accuracy, Confusion, Share, interval

from nilometer.text.i18n import Catalogue

from .markdown import row_of

GOALS = {"first": 0.92, "second": 0.97, "false_alarm": 0.04, "wrong_confirmed": 0.01, "abstained": 0.10, "both": 0.75}
"""Of a share; of alarms, wrong ones and abstentions it is the most."""
AT_MOST = ("false_alarm", "wrong_confirmed", "abstained")
ENGINE_GOALS = {"server": 0.85, "client": 0.75}
VIEWS = ("mixed", "server", "client")
SEVERITIES_OF = "mixed"


def accuracy(words: Catalogue) -> Iterator[str]:
    """The goals; each label and what was said of it; from which size on it is found; the real engine, case by case."""
    scored = kept()
    yield from _shares(scored.views, words)
    yield from _engine(words)
    if SEVERITIES_OF in scored.views:
        yield from _matrix(scored.views[SEVERITIES_OF], words)
        yield from _sizes(scored.views[SEVERITIES_OF], words)


def _shares(views: dict[str, Accuracy], words: Catalogue) -> Iterator[str]:
    yield from _head(words, "figure", "goal", *VIEWS)
    for name in next(iter(views.values())).shares if views else ():
        goal = GOALS.get(name)
        bound = "" if goal is None else f"{'<=' if name in AT_MOST else '>='} {goal:.0%}"
        shares = (views[view].shares[name] for view in VIEWS if view in views)
        yield row_of(words.say(f"doc.diagnosis-accuracy.{name}"), bound, *map(_told, shares))


def _told(share: Share) -> str:
    low, high = interval(*share)
    return f"{share.right / max(share.n, 1):.1%} ({low:.1%} - {high:.1%}, n {share.n})"


def _engine(words: Catalogue) -> Iterator[str]:
    scored = kept()
    yield _title(words, "engine")
    yield from _head(words, "figure", "goal", "server", "client")
    goals = " / ".join(f">= {goal:.0%}" for goal in ENGINE_GOALS.values())
    yield row_of(words.say("doc.diagnosis-accuracy.first"), goals, *map(_told, scored.engine_shares.values()))
    yield ""
    yield from _head(words, "case", "server", "client")
    for one in scored.engine:
        said = ((one.said_server, one.right_server), (one.said_client, one.right_client))
        yield row_of(f"`{one.name}`", *(f"`{slug}`" if right else f"**`{slug}`**" for slug, right in said))


def _matrix(met: Accuracy, words: Catalogue) -> Iterator[str]:
    yield _title(words, "matrix")
    yield from _head(words, "label", "cases", "label_first", "true_first", "second", "others")
    for label, one in met.confusions.items():
        yield row_of(f"`{label}`", str(one.n), *_parts(label, one), _others(label, one))


def _parts(label: str, one: Confusion) -> Iterator[str]:
    return (f"{count / one.n:.0%}" for count in (one.first.get(label, 0), one.true, one.second))


def _others(label: str, one: Confusion) -> str:
    return ", ".join(f"`{slug}` {n}" for slug, n in one.first.items() if slug != label)


def _sizes(met: Accuracy, words: Catalogue) -> Iterator[str]:
    yield _title(words, "sizes")
    grades = list(next(iter(met.severities.values()), {}))
    yield row_of(words.say("doc.column.label"), *grades, words.say("doc.column.found_from"))
    yield row_of(*["---"] * (len(grades) + 2))
    for kind, row in met.severities.items():
        cells = (f"{row[at].right}/{row[at].n}" for at in grades)
        yield row_of(f"`{kind}`", *cells, _found_from(row, grades) or "-")


def _found_from(row: dict[str, Share], grades: list[str]) -> str | None:
    """The smallest size from which on every case is found; None where even the greatest is not."""
    found = None
    for at in reversed(grades):
        if row[at].right < row[at].n:
            break
        found = at
    return found


def _title(words: Catalogue, name: str) -> str:
    title, intro = (words.say(f"doc.diagnosis-accuracy.{name}{part}") for part in ("", "_intro"))
    return f"\n## {title}\n\n{intro}\n"


def _head(words: Catalogue, *columns: str) -> Iterator[str]:
    yield row_of(*(words.say(f"doc.column.{name}") for name in columns))
    yield row_of(*["---"] * len(columns))
