"""What the rows of a workload ask, one after the other and from the start again, and when they were sent.

A row is one request: its parts in their order, the last of them as the user's prompt. Where it has lengths alone, or a
text that cannot be asked as it stands (it ends with the beginning of an answer), a new text of its length is made. That
begins with the same blocks as the rows that shared a prefix with it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from ..core.errors import SpecError
from ..core.spec import RECORDED, Prompts, Spec
from .entry import Part, Row, Workload, is_prompt
from .lengths import Distribution, Empirical
from .prompts import Maker

_UNSAID = Prompts()
_DECIDED = {
    "input_tokens": "--input-tokens",
    "output_tokens": "--output-tokens",
    "shared_prefix_tokens": "--shared-prefix",
    "text": "--prompt-text",
    "seed": "--prompt-seed",
}
"""What a workload may say itself: the key of the prompts and its option."""

Turns = tuple[tuple[str, str], ...]
"""(role, text) of what was said before the prompt."""


class Asked(NamedTuple):
    """One request. `input_tokens` is None where the text decides how long it is."""

    prompt: str
    turns: Turns
    input_tokens: int | None
    output_tokens: int
    scenario: str | None = None


class Otherwise(NamedTuple):
    """Lengths for rows that state none, and what draws them."""

    inputs: Distribution
    outputs: Distribution
    random_in: Random
    random_out: Random


def asked(
    workload: Workload, maker: Maker, otherwise: Otherwise, shared: Callable[[], bool] = lambda: True
) -> Iterator[Asked]:
    """The requests, endless: number n is row n modulo the number of rows.

    `shared` says of each text that is made anew whether it begins with the common prefix.
    """
    rows = workload.rows
    number = 0
    while True:
        yield _asked(rows[number % len(rows)], number, workload.head.block_tokens, maker, otherwise, shared)
        number += 1


def _asked(
    row: Row, number: int, block_tokens: int | None, maker: Maker, otherwise: Otherwise, shared: Callable[[], bool]
) -> Asked:
    known = row.output_tokens
    output = otherwise.outputs.sample(otherwise.random_out) if known is None else max(known, 1)
    if is_prompt(row.parts):
        *before, last = row.parts
        return Asked(last.text or "", tuple(map(_turn, before)), None, output, row.scenario)
    length = otherwise.inputs.sample(otherwise.random_in) if row.input_tokens is None else row.input_tokens
    if row.hash_ids and block_tokens:
        return Asked(maker.chained(length, number, row.hash_ids, block_tokens), (), length, output, row.scenario)
    return Asked(maker.text(length, number, shared=shared()), (), length, output, row.scenario)


def refuse_unheeded(spec: Spec, workload: Workload, outputs: Distribution) -> None:
    """Refuses with SpecError `workload_decides` what the spec asks of prompts and no row heeds.

    `outputs` are the lengths of answers where a row states none.
    """
    prompts, load = spec.prompts, spec.load
    said = [name for name in _DECIDED if getattr(prompts, name) != getattr(_UNSAID, name)]
    if not said:
        return  # the rows are many: they are looked through only for what is asked
    made_up = [row for row in workload.rows if not is_prompt(row.parts)]
    answers = any(row.output_tokens is None for row in workload.rows)
    has_blocks = workload.head.block_tokens is not None and any(row.hash_ids for row in workload.rows)
    least, most = outputs.bounds()
    drawn = (load.is_open and load.arrivals != RECORDED) or (least < most and answers)
    heeded = {
        "input_tokens": any(row.input_tokens is None for row in made_up),
        "output_tokens": answers,
        "shared_prefix_tokens": len(made_up) == len(workload.rows) and not has_blocks,
        "text": bool(made_up),
        "seed": drawn or bool(made_up),
    }
    for name in said:
        if not heeded[name]:
            raise SpecError("workload_decides", option=_DECIDED[name], file=prompts.workload or workload.head.name)


def _turn(part: Part) -> tuple[str, str]:
    return part.role, part.text or ""


def recorded_s(workload: Workload, speed: float) -> tuple[float, ...]:
    """When each row was sent, s from the first, `speed` times as fast.

    Refuses with SpecError `replay_without_stamps` rows that do not say.
    """
    known = [row.offset_s for row in workload.rows if row.offset_s is not None]
    if len(known) < len(workload.rows):
        raise SpecError("replay_without_stamps", file=workload.head.name)
    return tuple((offset - known[0]) / speed for offset in known)


def lengths_of(workload: Workload, otherwise: tuple[Distribution, Distribution]) -> tuple[Distribution, Distribution]:
    """The lengths of its rows, in and out; where none is stated, the others."""
    found = (
        [row.input_tokens for row in workload.rows if row.input_tokens],
        [row.output_tokens for row in workload.rows if row.output_tokens],
    )
    inputs, outputs = (
        Empirical(tuple(values)) if values else other for values, other in zip(found, otherwise, strict=True)
    )
    return inputs, outputs


def totals_of(workload: Workload, inputs: Distribution, outputs: Distribution | None) -> list[int]:
    """Tokens of each row, in and out together; lengths that it does not state are drawn.

    Without `outputs`: in alone.
    """
    random = Random(0)  # noqa: S311 - a sample, not a secret
    into = [inputs.sample(random) if row.input_tokens is None else row.input_tokens for row in workload.rows]
    if outputs is None:
        return into
    out = [outputs.sample(random) if row.output_tokens is None else row.output_tokens for row in workload.rows]
    return [asked + answered for asked, answered in zip(into, out, strict=True)]
