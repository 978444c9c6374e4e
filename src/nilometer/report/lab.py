"""The screen of a lab: what the two sides of a lesson show, in one sentence and one table."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.core.run import Run
from nilometer.core.summary import Distribution
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from . import loads, notes
from .document import Document, Foot, Lead
from .notes import short

_SIDES = {"length-mix": ("short", "mix")}
"""Lesson -> its sides, as there are words for them."""


def lab_document(runs: Sequence[Run], group: str, words: Catalogue) -> Document:
    """One side a row, the naive one first."""
    return Document(
        lang=words.lang,
        blocks=[
            Lead(text=_lesson(runs, words)),
            loads.table(runs, words, first=(words.say("screen.lab.side"), [side_of(run, words) for run in runs])),
            *notes.blocks(runs, words, told=set(), archived=True),
            Foot(
                text=words.say("screen.foot.group", group=group, runs=", ".join(short(run) for run in runs)),
                lead=words.say("screen.foot.next"),
                commands=[f"nilo runs show {short(run)}" for run in runs],
            ),
        ],
    )


def is_known(run: Run) -> bool:
    """Whether its role is a side of a lesson that there are words for: a later version may have others."""
    lesson, _, side = (run.role or "").partition("/")
    return side in _SIDES.get(lesson, ())


def side_of(run: Run, words: Catalogue) -> str:
    """The name of a side; a run's role is LAB/SIDE."""
    return words.say(f"screen.lab.{(run.role or '').rpartition('/')[2]}")


def _lesson(runs: Sequence[Run], words: Catalogue) -> str:
    ttft = [run.summary.latency_ms.get("ttft", Distribution()).p95 for run in runs]
    if len(ttft) < 2 or ttft[0] is None or ttft[1] is None:
        return words.say("screen.lab.half")
    lab = (runs[0].role or "").partition("/")[0].replace("-", "_")
    shown = [units.latency(value) for value in ttft]
    return words.say(f"screen.lab.{lab}", naive=shown[0], real=shown[1], times=units.fixed(ttft[1] / ttft[0], 1))
