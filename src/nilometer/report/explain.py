"""How a plan was reckoned: each formula with its numbers filled in, as one would do it on paper, and its sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from nilometer.plan.explain import Line
from nilometer.text.i18n import Catalogue

from .document import Block, Fact, Facts, Heading, Text


def blocks(lines: Sequence[Line], words: Catalogue) -> Iterator[Block]:
    """A heading for each part, a line for each formula; behind a part the sources of its constants, each once."""
    for section, part in groupby(lines, key=lambda line: line.section):
        told = list(part)
        yield Heading(text=words.say(f"step.heading.{section}"))
        yield Facts(rows=[Fact(_result(line, words), _formula(line, words)) for line in told])
        sources = dict.fromkeys(_source(line, words) for line in told if line.source)
        if sources:
            yield Text(text=words.say("step.line.sources", sources=words.say("screen.sentences_join").join(sources)))


def _formula(line: Line, words: Catalogue) -> str:
    values = {**line.values}
    if "name" in values:
        values["name"] = words.say(f"screen.plan.term.{values['name']}")
    return words.say("step.line.formula", formula=words.say(f"step.{line.section}.{line.slug}", **values))


def _result(line: Line, words: Catalogue) -> str:
    return words.say(f"step.result.{line.unit}", result=line.result)


def _source(line: Line, words: Catalogue) -> str:
    if not line.releases:
        return words.say("step.line.source", source=line.source)
    return words.say("step.line.releases", source=line.source, releases=line.releases)
