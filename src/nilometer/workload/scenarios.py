"""The kinds of requests that a made-up load mixes, and the conversations drawn from them. Pure.

Without a mix there is one kind, nameless, as the prompts of the spec say. What is drawn depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from ..core.errors import SpecError
from ..core.spec import Prompts
from . import lengths, think
from .lengths import NOTHING, Distribution, Fixed, Mixture
from .prompts import Maker
from .ruler import Ruler
from .think import Think

Read = Callable[[str], Distribution]
"""The lengths that words name."""


class Kind(NamedTuple):
    """One scenario, resolved. `name` is None for the load without a mix."""

    name: str | None
    weight: float
    inputs: Distribution
    outputs: Distribution
    turns: Distribution
    think: Think
    think_mean_s: float
    shared_tokens: int
    shared_share: float
    totals: Sequence[int] = ()
    """Tokens of each request, in and out, where they are given together and not drawn apart."""

    @property
    def requests(self) -> float:
        """Requests that it brings for one conversation of the whole mix, up to the sum of weights."""
        return self.weight * self.turns.mean()


class Said(NamedTuple):
    """One turn of a conversation: the user's words; `think_s` before it, 0 before the first."""

    prompt: str
    input_tokens: int
    output_tokens: int
    think_s: float


class Conversation(NamedTuple):
    """The turns of one user, in order; most often one."""

    scenario: str | None
    turns: list[Said]


def kinds(prompts: Prompts, read: Read = lengths.parse) -> tuple[Kind, ...]:
    """What the spec mixes. `read` must know the files of empirical lengths, where there are any.

    Refuses what `read` and `think.parse` refuse; `scenario_twice` two of one name; `key_without_effect` what would
    change nothing.
    """
    mix = _kinds(prompts, read)
    _refuse_idle(prompts, mix)
    return mix


def _kinds(prompts: Prompts, read: Read) -> tuple[Kind, ...]:
    if not prompts.scenarios:
        return (_kind(prompts, None, read),)
    names = [scenario.name for scenario in prompts.scenarios]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpecError("scenario_twice", name=twice)
    return tuple(_kind(prompts, place, read) for place in range(len(names)))


def _kind(prompts: Prompts, place: int | None, read: Read) -> Kind:
    own = None if place is None else prompts.scenarios[place]

    def of(name: str) -> object:
        value = None if own is None else getattr(own, name)
        return getattr(prompts, name) if value is None else value

    thinking = str(of("think_s"))
    return Kind(
        name=None if own is None else own.name,
        weight=1.0 if own is None else own.weight,
        inputs=read(str(of("input_tokens"))),
        outputs=read(str(of("output_tokens"))),
        turns=read(str(of("turns"))),
        think=think.parse(thinking),
        think_mean_s=think.mean_s(thinking),
        shared_tokens=int(of("shared_prefix_tokens")),  # type: ignore[call-overload]
        shared_share=float(of("shared_prefix_share")),  # type: ignore[arg-type]
    )


_NEEDS: dict[str, tuple[str, Callable[[Kind], bool]]] = {
    "think_s": ("turns", lambda kind: kind.turns.bounds()[1] > 1),
    "shared_prefix_share": ("shared_prefix_tokens", lambda kind: kind.shared_tokens > 0),
}
"""What a key is nothing without, and whether a kind has that."""
_UNSAID = Prompts()


def _refuse_idle(prompts: Prompts, mix: Sequence[Kind]) -> None:
    """Refuse a key that no kind takes: somebody means to measure it."""
    for key, (needs, has) in _NEEDS.items():
        own = [getattr(scenario, key) for scenario in prompts.scenarios] or [None]
        said = [(f"prompts.scenarios[{place}]", value, [mix[place]]) for place, value in enumerate(own)]
        rest = [kind for kind, value in zip(mix, own, strict=True) if value is None]
        for path, value, takers in (("prompts", getattr(prompts, key), rest), *said):
            if value not in (None, getattr(_UNSAID, key)) and not any(map(has, takers)):
                raise SpecError("key_without_effect", key=f"{path}.{key}", needs=needs)


def of_rows(
    mix: Sequence[Kind], inputs: Distribution, outputs: Distribution, totals: Sequence[int] = ()
) -> tuple[Kind, ...]:
    """The kind that the rows of a workload are, with their lengths; slug `scenarios_with_workload` beside a mix."""
    if len(mix) > 1 or mix[0].name is not None or mix[0].turns.bounds()[1] > 1:
        raise SpecError("scenarios_with_workload")
    return (mix[0]._replace(inputs=inputs, outputs=outputs, turns=Fixed(1), totals=totals),)


def encoded(mix: Sequence[Kind]) -> tuple[Kind, ...]:
    """The mix as an API that generates nothing is asked: no output. No answer, no turns: slug `turns_not_asked`."""
    if any(kind.turns.bounds()[1] > 1 for kind in mix):
        raise SpecError("turns_not_asked")
    return tuple(kind._replace(outputs=NOTHING) for kind in mix)


def inputs_of(mix: Sequence[Kind]) -> Distribution:
    """The lengths of what a user says in one turn, over all kinds."""
    return _mixed(mix, [kind.inputs for kind in mix])


def outputs_of(mix: Sequence[Kind]) -> Distribution:
    """The lengths of answers over all kinds."""
    return _mixed(mix, [kind.outputs for kind in mix])


def _mixed(mix: Sequence[Kind], parts: list[Distribution]) -> Distribution:
    alike = parts.count(parts[0]) == len(parts)
    return parts[0] if alike else Mixture(tuple(parts), tuple(kind.requests for kind in mix))


def requests_per_arrival(mix: Sequence[Kind]) -> float:
    """Expected requests of a conversation. The rate of an open loop is one of conversations."""
    return sum(kind.requests for kind in mix) / sum(kind.weight for kind in mix)


def mean_prompt_tokens(mix: Sequence[Kind]) -> float:
    """Expected tokens of a request's whole prompt, history included: turn k repeats k - 1 questions and answers."""
    total = sum(kind.requests for kind in mix)
    return sum(kind.requests * _prompt_tokens(kind) for kind in mix) / total


def _prompt_tokens(kind: Kind) -> float:
    """T turns repeat T (T - 1) / 2 pairs in T requests; long conversations have more of both, so E[] over E[]."""
    said, answered, turns = kind.inputs.mean(), kind.outputs.mean(), kind.turns
    repeated = (turns.mean_square() / turns.mean() - 1) / 2
    return said + repeated * (said + answered)


def mean_think_s(mix: Sequence[Kind]) -> float:
    """Expected think time per request: none before the first turn of a conversation."""
    total = sum(kind.requests for kind in mix)
    return sum(kind.weight * (kind.turns.mean() - 1) * kind.think_mean_s for kind in mix) / total


def makers(mix: Sequence[Kind], prompts: Prompts, ruler: Ruler, salt: str) -> list[Maker]:
    """What makes the prompts of each kind; the common prefix of each is its own."""
    return [
        Maker(
            ruler,
            seed=prompts.seed,
            salt=salt,
            unique=prompts.unique,
            shared_tokens=kind.shared_tokens,
            name=kind.name or "",
        )
        for kind in mix
    ]


def conversations(
    mix: Sequence[Kind], made_by: Sequence[Maker], drawn: Callable[[str], Random]
) -> Iterator[Conversation]:
    """Endless. `drawn` gives the generator of each purpose: one for what each draw decides, so none moves another."""
    pick, turns, thinking, hit = (drawn(purpose) for purpose in ("scenario", "turns", "think", "prefix"))
    inputs, outputs = drawn("input"), drawn("output")
    weights = [kind.weight for kind in mix]
    number = 0
    while True:
        place = pick.choices(range(len(mix)), weights)[0] if len(mix) > 1 else 0
        kind, maker = mix[place], made_by[place]
        shared = kind.shared_share >= 1 or hit.random() < kind.shared_share
        said = []
        for turn in range(kind.turns.sample(turns)):
            tokens, answered = kind.inputs.sample(inputs), kind.outputs.sample(outputs)
            prompt = maker.text(tokens, number, shared=shared and turn == 0)
            said.append(Said(prompt, tokens, answered, kind.think(thinking) if turn else 0.0))
            number += 1
        yield Conversation(kind.name, said)
