"""Spec and seed to the ordered Calls of a load: each a whole HTTP/1.1 request, made one at a time as it is taken.

Pure: it opens nothing and knows no dialect; the body's form, the ruler and the headers (secrets included) are handed
in. Whether the load goes on is the loop's business: the calls are endless unless a count is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice, pairwise, repeat
from random import Random

from .. import __version__
from ..core.clock import NS_PER_S
from ..core.errors import SpecError
from ..core.header import users_line
from ..core.record import Call, FollowUp
from ..core.spec import RECORDED, Spec
from . import scenarios, traffic
from .arrivals import pacer
from .entry import Workload
from .lengths import NOTHING
from .prompts import Maker
from .ruler import Ruler
from .scenarios import Conversation, Kind
from .traffic import Asked, Otherwise, Turns

Body = Callable[[str, int, Turns], bytes]
"""The request body for (prompt, output tokens, what was said before)."""

Headers = Iterable[tuple[str, str]]

_TRIED = 400
_TOO_MANY = 0.01
_HOLE = "nilometer-answer-{}-goes-here"
"""Stands in a body for an answer that is not known yet; letters that no encoding of a body changes."""


def calls(
    spec: Spec,
    ruler: Ruler,
    *,
    body: Body,
    host: str,
    target: str,
    method: str = "POST",
    headers: Headers = (),
    salt: str = "",
    mix: Sequence[Kind] | None = None,
    context_tokens: int | None = None,
    limit: int | None = None,
    workload: Workload | None = None,
    recorded_s: Iterable[float] | None = None,
) -> Iterator[Call]:
    """The calls of `spec` in order of their number, `due_ns` from the start of the load where a rate is asked.

    `target` is the request target (path and query; absolute behind a plain proxy), `salt` what sets this run's prompts
    apart from another run's (see Maker). `mix` is what the spec mixes, resolved where its lengths are empirical or
    those of the `workload`, whose rows are then asked in place of made-up prompts, `recorded_s` when they are due where
    the load is a replay. A conversation is one call, its later turns with it, and takes as many numbers as it has
    turns. Lengths and arrivals depend on the seed alone.
    Refuses at once, not at the first call: what `scenarios.kinds`, `pacer`, `head` and `check` refuse,
    `turns_not_asked` a dialect whose body holds no answers.
    """
    opening = head(host=host, target=target, method=method, headers=headers, stream=spec.stream)
    due = _due(spec, recorded_s)
    mix = mix or scenarios.kinds(spec.prompts)
    made_by = scenarios.makers(mix, spec.prompts, ruler, salt)
    check(spec, mix, made_by, context_tokens)
    answered = scenarios.outputs_of(mix) != NOTHING
    if workload is not None:
        drawn = Otherwise(mix[0].inputs, mix[0].outputs, _random(spec, "input"), _random(spec, "output"))
        share, hit = mix[0].shared_share, _random(spec, "prefix")
        asked = traffic.asked(workload, made_by[0], drawn, lambda: share >= 1 or hit.random() < share)
        return islice(map(_single(body, opening, answered), count(), due, asked), limit)
    talked = scenarios.conversations(mix, made_by, lambda purpose: _random(spec, purpose))
    if any(kind.turns.bounds()[1] > 1 for kind in mix):
        _refuse_without_holes(body)
    return islice(_conversing(body, opening, due, talked, answered), limit)


def _single(body: Body, opening: bytes, answered: bool) -> Callable[[int, int | None, Asked], Call]:
    def call(seq: int, due_ns: int | None, one: Asked) -> Call:
        request = _request(opening, body(one.prompt, one.output_tokens, one.turns))
        wanted = one.output_tokens if answered else None
        return Call(seq, request, due_ns, one.input_tokens, wanted, scenario=one.scenario)

    return call


def _request(opening: bytes, payload: bytes) -> bytes:
    return opening + b"Content-Length: %d\r\n\r\n" % len(payload) + payload


def _conversing(
    body: Body, opening: bytes, due: Iterator[int | None], talked: Iterator[Conversation], answered: bool
) -> Iterator[Call]:
    seq = 0
    for number, (due_ns, talk) in enumerate(zip(due, talked, strict=False)):
        first, *later = talk.turns
        payload = body(first.prompt, first.output_tokens, ())
        yield Call(
            seq,
            _request(opening, payload),
            due_ns,
            first.input_tokens,
            first.output_tokens if answered else None,
            scenario=talk.scenario,
            conversation=str(number) if later else None,
            turn=0 if later else None,
            later=_later(body, opening, talk, seq) if later else (),
        )
        seq += len(talk.turns)


def _later(body: Body, opening: bytes, talk: Conversation, seq: int) -> tuple[FollowUp, ...]:
    """The turns after the first, each body cut at the answers that are not known yet."""
    said: list[tuple[str, str]] = []
    following = []
    for turn, (before, one) in enumerate(pairwise(talk.turns), 1):
        said += [("user", before.prompt), ("assistant", _HOLE.format(turn))]
        following.append(
            FollowUp(
                seq + turn,
                opening,
                _cut(body(one.prompt, one.output_tokens, tuple(said)), turn),
                round(one.think_s * NS_PER_S),
                one.output_tokens,
            )
        )
    return tuple(following)


def _cut(payload: bytes, holes: int) -> tuple[bytes, ...]:
    """The pieces of a body between its holes. A dialect may tell of the turns in any form, but in their order."""
    parts = []
    for hole in range(1, holes + 1):
        part, found, payload = payload.partition(_HOLE.format(hole).encode())
        if not found:
            raise SpecError("turns_not_asked")
        parts.append(part)
    return (*parts, payload)


def _refuse_without_holes(body: Body) -> None:
    _cut(body("?", 1, (("user", "?"), ("assistant", _HOLE.format(1)))), 1)


def check(spec: Spec, mix: Sequence[Kind], made_by: Sequence[Maker], context_tokens: int | None) -> None:
    """Refuses what cannot be sent or must fail, where more than 1 % of the conversations of a kind would be so.

    SpecError `input_too_short`: shorter than the shortest prompt that can be made, chat template and common prefix
    included (those of a workload are sent as short as they can be made); `context_too_short`: what a conversation has
    come to at its end, or a single input and output, does not fit the model's context; of a workload, each row's own.
    """
    for kind, maker in zip(mix, made_by, strict=True):
        random = Random(0)  # noqa: S311 - a sample, not a secret
        talks = [_lengths(kind, random) for _ in range(_TRIED)]
        short = [talk[0][0] for talk in talks if talk[0][0] < maker.least]
        if len(short) > _TOO_MANY * _TRIED and spec.prompts.workload is None:
            raise SpecError("input_too_short", asked=min(short), least=maker.least)
        _refuse_too_long(kind.totals or [sum(map(sum, talk)) for talk in talks], context_tokens)


def _refuse_too_long(totals: Sequence[int], context_tokens: int | None) -> None:
    long = [] if context_tokens is None else [total for total in totals if total > context_tokens]
    if len(long) > _TOO_MANY * len(totals):
        raise SpecError("context_too_short", asked=max(long), context=context_tokens)


def _lengths(kind: Kind, random: Random) -> list[tuple[int, int]]:
    """(said, answered) of each turn of a conversation."""
    turns = kind.turns.sample(random)
    return [(kind.inputs.sample(random), kind.outputs.sample(random)) for _ in range(turns)]


def head(*, host: str, target: str, method: str = "POST", headers: Headers = (), stream: bool = True) -> bytes:
    """Request line and headers up to, not including, Content-Length. A header given replaces ours of the same name.

    Refuses with SpecError `header_invalid` a name or value that HTTP cannot carry, `header_reserved` one that says how
    the body is framed; the value is never told.
    """
    lines = {
        "host": f"Host: {host}",
        "user-agent": f"User-Agent: nilometer/{__version__}",
        "accept": f"Accept: {'text/event-stream' if stream else 'application/json'}",
        "accept-encoding": "Accept-Encoding: identity",  # what is packed cannot be stamped by its tokens
        "content-type": "Content-Type: application/json",
    }
    for name, value in headers:
        lines[name.lower()] = users_line(name, value)
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines.values(), ""]).encode("latin-1")


def _due(spec: Spec, recorded_s: Iterable[float] | None) -> Iterator[int | None]:
    load = spec.load
    if load.arrivals == RECORDED:
        if recorded_s is None:
            raise SpecError("replay_without_workload")
        return (round(at_s * NS_PER_S) for at_s in recorded_s)
    if not load.is_open:
        return repeat(None)
    return pacer(load.arrivals, load.rate_per_s, _random(spec, "arrivals"), warmup_s=load.warmup_s)


def _random(spec: Spec, purpose: str) -> Random:
    return Random(f"{spec.prompts.seed}/{purpose}")  # noqa: S311 - a workload, not a secret
