"""Toy tokenizers to measure rulers on: they count like real ones do, or fail to in the ways that servers do."""

from __future__ import annotations

import math
import re
from importlib import resources

from nilometer.workload.corpus import Corpus, read

_PIECES = re.compile(r" ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\s")


def text(name: str = "en") -> Corpus:
    """The shipped text."""
    file = resources.files("nilometer.workload").joinpath("corpus", f"{name}.txt")
    return read(name, file.read_text("utf-8"))


def pieces(prompt: str) -> int:
    """Word pieces: up to seven letters, a digit or a run of signs is a token with its blank; longer words cost more."""
    return sum(max(1, math.ceil((len(piece.strip()) - 3) / 4)) for piece in _PIECES.findall(prompt))


def words(prompt: str) -> int:
    """One token a word, marks included."""
    return len(prompt.split())


def characters(prompt: str) -> int:
    """One token a character: no word is a single token."""
    return len(prompt)


def quarters(prompt: str) -> int:
    """A quarter of the characters, rounded up: a gateway that guesses. Sums of parts are not the whole."""
    return math.ceil(len(prompt) / 4)


def constant(_: str) -> int:
    """A server whose usage is always the same."""
    return 7


class Counting:
    """A tokenizer behind a chat template of `template` tokens; `asked` is what it was asked so far."""

    def __init__(self, tokenizer: object, template: int = 0) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> int:
        self.asked.append(prompt)
        assert callable(self._tokenizer)
        return self._template + int(self._tokenizer(prompt))
