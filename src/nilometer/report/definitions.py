"""What every figure of a report means, in the words of the catalogue, and how the figures come about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.core.run import Run
from nilometer.text.i18n import Catalogue

from .document import Fact, Facts
from .table import estimated, rows_of

_RATES = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s", "goodput_requests_per_s")
_METHOD = ("window", "percentile", "few", "verdict", "generator")
_FROM = ("sent", "due", "mixed")


def facts(runs: Sequence[Run], words: Catalogue) -> Facts:
    """The latencies and rates that the report shows, then the words of the method."""
    return Facts(rows=[*_metrics(runs, words), *_method(runs, words)])


def _metrics(runs: Sequence[Run], words: Catalogue) -> Iterator[Fact]:
    latencies = dict.fromkeys(name for run in runs for name in rows_of(run.summary))
    rates = [name for name in _RATES if any(getattr(run.summary.throughput, name) is not None for run in runs)]
    for name in (*latencies, *rates):
        yield Fact(words.say(f"metric.{name}"), _meaning(name, words))


def _meaning(name: str, words: Catalogue) -> str:
    """The definition; before it what that is to a user, where it is said."""
    plainly, meaning = f"screen.plainly.{name}", words.say(f"meaning.{name}")
    if plainly not in words:
        return meaning
    return words.say("screen.plainly.both", plainly=words.say(plainly), meaning=meaning)


def _method(runs: Sequence[Run], words: Catalogue) -> Iterator[Fact]:
    told = {run.summary.latency_from for run in runs}
    names = [f"start_{name}" for name in _FROM if name in told]
    names += [*_METHOD, *(["estimated"] if any(estimated(run.summary) for run in runs) else [])]
    for name in names:
        term = "start" if name.startswith("start_") else name
        yield Fact(words.say(f"screen.term.{term}"), words.say(f"screen.meant.{name}"))
