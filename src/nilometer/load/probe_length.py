"""Measures a ruler on a target: who counts, what is added around a prompt, and whether finished prompts come out right.

A tokenize endpoint counts where there is one (llama.cpp's form, then those of vLLM, SGLang and TGI), else the usage of
one-token requests. The requests of the load are never counted beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from typing import NamedTuple

import msgspec

from nilometer.core.clock import NS_PER_S
from nilometer.core.errors import TargetError
from nilometer.core.finding import Finding
from nilometer.workload import corpus, ruler
from nilometer.workload.corpus import Corpus
from nilometer.workload.lengths import Distribution
from nilometer.workload.ruler import Effort, Ruler, Uncountable
from nilometer.workload.scenarios import Kind, inputs_of, makers

from .probe_courier import Courier
from .probe_talk import Reply, Talk
from .probe_terms import Terms

SAMPLE = "The river rises and falls."
_ROUNDS = 2
_FAR = 4
"""A prompt longer than so many mean ones is not tried: it would cost more than it tells."""


class _Tokens(msgspec.Struct, frozen=True):
    """Answer of a tokenize endpoint: llama.cpp lists the tokens, vLLM and SGLang give their count too."""

    tokens: list[msgspec.Raw] | None = None
    count: int | None = None


class Counter(NamedTuple):
    """Who counts a prompt, everything the server adds included. `template_tokens` is that addition, where known."""

    count: Callable[[str], int]
    source: ruler.Source
    effort: Effort
    template_tokens: int | None = None


class Trial(NamedTuple):
    """What came of finished prompts. `mean_prompt_s`: a prompt of mean length with one token of answer, alone."""

    ruler: Ruler
    findings: list[Finding]
    mean_prompt_s: float | None


def read_corpus(name: str) -> Corpus:
    """A text that is shipped with the package."""
    file = resources.files("nilometer.workload").joinpath("corpus", f"{name}.txt")
    return corpus.read(name, file.read_text("utf-8"))


def counter(talk: Talk, terms: Terms, sample: Reply) -> Counter | None:
    """The cheapest way to count; None where neither a tokenize endpoint nor usage does.

    `sample` is the answer to SAMPLE: its usage tells what the server adds to what its tokenize endpoint counts.
    """
    total = sample.answer.prompt_tokens if sample.answer else None
    count = None if terms.protocol else tokenizer(talk.courier, terms.model)
    if count is not None:
        added = None if total is None else total - count(SAMPLE)
        return Counter(lambda text: count(text) + (added or 0), "server_tokenizer", ruler.CHEAP, added)
    if total is None:
        return None
    return Counter(lambda text: _stated(talk, terms, ask(talk, terms, text)), "usage", ruler.DEAR)


def tokenizer(courier: Courier, model: str | None) -> Callable[[str], int] | None:
    """The server's own tokenize endpoint; None where none counts a text. Raises TargetError `count_failed` later on."""
    path = courier.endpoint.root("/tokenize")
    named = {} if model is None else {"model": model}
    for key in ("content", "prompt", "inputs"):
        response = courier.try_(path, msgspec.json.encode({**named, key: SAMPLE}))
        if response is not None and _number(response.body):
            return lambda text, key=key: _tokenized(courier, path, {**named, key: text})  # type: ignore[misc]
    return None


def _tokenized(courier: Courier, path: str, asked: dict[str, str]) -> int:
    response = courier.send(path, msgspec.json.encode(asked))
    number = _number(response.body)
    if number is None:
        raise TargetError("count_failed", url=courier.shown(path), status=response.status)
    return number


def _number(data: bytes) -> int | None:
    try:
        told = msgspec.json.decode(data, type=_Tokens | list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if isinstance(told, list):
        return len(told)
    return told.count if told.tokens is None else len(told.tokens)


def ask(talk: Talk, terms: Terms, text: str) -> Reply:
    """One token of answer to `text`. Raises TargetError where none comes."""
    bare = msgspec.structs.replace(terms, length_fields=())
    reply = talk.say(bare, text)
    if not reply.ok:
        raise talk.failure(bare, reply)
    return reply


def _stated(talk: Talk, terms: Terms, reply: Reply) -> int:
    tokens = reply.answer.prompt_tokens if reply.answer else None
    if tokens is None:
        raise TargetError("count_failed", url=talk.courier.shown(talk.path(terms)), status=reply.response.status)
    return tokens


def measure(found: Counter | None, inputs: Distribution, text: Corpus) -> tuple[Ruler, list[Finding]]:
    """A ruler for prompts of `inputs`; estimated from characters, with a finding, where nothing counts."""
    if found is not None:
        try:
            return ruler.measure(found.count, text, inputs.bounds()[1], found.effort, found.source), []
        except Uncountable:
            pass
    estimated = Finding(slug="input_length_estimated", kind="validity", severity="medium")
    return ruler.estimated(text), [estimated]


def template_tokens(found: Counter | None, made: Ruler) -> int | None:
    """What the server adds around a prompt: from sample and tokenizer, else all that a one-token prompt costs more."""
    if found is None or found.source != "usage":
        return found.template_tokens if found else None
    return min(start.tokens for start in made.starts) - 1


def template_alone(found: Counter | None) -> int | None:
    """The same without a ruler, by a few counts."""
    if found is None or found.source != "usage":
        return found.template_tokens if found else None
    return min(found.count(start) for start in corpus.STARTS[: found.effort.starts]) - 1


def attempt(talk: Talk, terms: Terms, made: Ruler, mix: Sequence[Kind], context_tokens: int | None) -> Trial:
    """Send finished prompts of mean, short and long length; correct the ruler by their usage, and try once more.

    The ruler that did better is kept. Where it is still off by more than 1 % a finding says so: `input_length_inexact`.
    """
    mean_prompt_s = None
    tried: list[tuple[float, Ruler]] = []
    for turn in range(_ROUNDS):
        seen, mean_prompt_s = _trial(talk, terms, made, mix, context_tokens, f"probe/{turn}")
        if not seen or made.source == "estimated":
            return Trial(made, [], mean_prompt_s)
        corrected = ruler.corrected(made, seen)
        if corrected.verified:
            return Trial(corrected, [], mean_prompt_s)
        tried.append((max(abs(got - asked) / asked for asked, got in seen), made))
        made = corrected
    off, made = min(tried, key=lambda trial: trial[0])
    told: dict[str, str | int | float | None] = {"share": round(off, 4)}
    inexact = Finding(slug="input_length_inexact", kind="validity", severity="medium", params=told)
    return Trial(
        msgspec.structs.replace(made, verified=False), [inexact] if off > ruler.TOLERANCE else [], mean_prompt_s
    )


def _trial(
    talk: Talk, terms: Terms, made: Ruler, mix: Sequence[Kind], context_tokens: int | None, salt: str
) -> tuple[list[tuple[int, int]], float]:
    """(asked, got) tokens of each finished prompt whose usage came, and how long the mean one took, in seconds."""
    seen: list[tuple[int, int]] = []
    took_s: list[float] = []
    maker = makers(mix[:1], talk.spec.prompts, made, salt)[0]
    for index, tokens in enumerate(trial_lengths(inputs_of(mix), maker.least, context_tokens)):
        reply = ask(talk, terms, maker.text(tokens, index))
        took_s.append(reply.response.elapsed_ns / NS_PER_S)
        if reply.answer is not None and reply.answer.prompt_tokens is not None:
            seen.append((tokens, reply.answer.prompt_tokens))
    return seen, took_s[0]


def trial_lengths(inputs: Distribution, least: int, context_tokens: int | None) -> list[int]:
    """The mean length first, then the shortest and longest where they differ and can be had."""
    low, high = inputs.bounds()
    mean = round(inputs.mean())
    most = min(high, _FAR * mean, (context_tokens or high + 1) - 1)
    return list(dict.fromkeys(max(least, min(tokens, most)) for tokens in (mean, low, most)))
