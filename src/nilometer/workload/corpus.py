"""The running text that made-up prompts are cut from, as sentences; and the plain words that fill them up.

Pure: the text is handed in by an edge, from this package's folder `corpus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Corpus(NamedTuple):
    """Sentences of running text, and what every prompt made of them ends with."""

    lines: tuple[str, ...]
    closing: str


CLOSINGS = {"en": "Please go on.", "zh": "请继续。"}
"""By the name of the text. The same for all prompts, so that the end costs the same whatever stands before it."""

# fmt: off
STARTS = (
    "Time", "People", "World", "House", "Water", "Music", "Money", "Story", "Light", "Night", "Paper", "River",
    "Table", "Garden", "Number", "Window",
)
"""Each begins a prompt; two requests in a row begin differently."""
WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "world", "school", "state", "family",
    "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system", "program",
    "question", "work", "government", "number", "night", "point", "home", "water", "room", "mother", "area", "money",
    "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side",
    "kind", "head", "house", "service", "friend", "father", "power", "hour", "game", "line", "end", "member", "law",
    "car", "city", "community", "name", "president", "team", "minute", "idea", "body", "information", "back",
    "parent", "face", "level", "office", "door", "health", "person", "art", "history", "party", "result", "change",
    "morning", "reason", "research", "moment", "air", "teacher", "force", "education", "road", "tree", "bird",
    "stone", "rain", "summer", "winter", "window", "letter", "village", "bread", "market",
)
"""Frequent enough that nearly every vocabulary holds each, with its blank, as one token; which it holds is tested."""
# fmt: on


def read(name: str, text: str) -> Corpus:
    """The corpus `name` from the text of its file: one sentence a line, blank lines left out."""
    return Corpus(tuple(line for line in (line.strip() for line in text.splitlines()) if line), CLOSINGS[name])


def spread(lines: Sequence[str], count: int) -> list[str]:
    """`count` sentences from the shortest up to about 160 characters, evenly over that range; fewer if there are."""
    by_length = sorted((line for line in lines if len(line) <= 160), key=len)
    if len(by_length) <= count:
        return by_length
    return [by_length[i * len(by_length) // count] for i in range(count)]


def passages(lines: Sequence[str], count: int, characters: int) -> list[str]:
    """At most `count` stretches of neighbouring sentences, each of about `characters`; none shares a sentence."""
    found = []
    for number in range(count):
        start, stop = number * len(lines) // count, (number + 1) * len(lines) // count
        stretch = _stretch(lines[start:stop], characters)
        if stretch:
            found.append(stretch)
    return found


def _stretch(lines: Sequence[str], characters: int) -> str:
    taken: list[str] = []
    length = 0
    for line in lines:
        if length >= characters:
            break
        taken.append(line)
        length += len(line) + 1
    return " ".join(taken)
