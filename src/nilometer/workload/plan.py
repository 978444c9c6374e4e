"""Spec and seed to the ordered Calls of a load: each a whole HTTP/1.1 request, made one at a time as it is taken.

Pure: it opens nothing and knows no dialect; the body's form, the ruler and the headers (secrets included) are handed
in. Whether the load goes on is the loop's business: the calls are endless unless a count is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice, repeat
from random import Random

from .. import __version__
from ..core.errors import SpecError
from ..core.header import header_line
from ..core.record import Call
from ..core.spec import RECORDED, Spec
from . import lengths, traffic
from .arrivals import pacer
from .entry import Workload
from .lengths import Distribution
from .prompts import Maker
from .ruler import Ruler
from .traffic import Asked, Otherwise, Turns

Body = Callable[[str, int, Turns], bytes]
"""The request body for (prompt, output tokens, what was said before)."""

Headers = Iterable[tuple[str, str]]

_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "expect", "upgrade"})
_TRIED = 400
_TOO_MANY = 0.01


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
    input_tokens: Distribution | None = None,
    output_tokens: Distribution | None = None,
    context_tokens: int | None = None,
    limit: int | None = None,
    workload: Workload | None = None,
) -> Iterator[Call]:
    """The calls of `spec` in order of their number, `due_ns` from the start of the load where a rate is asked.

    `target` is the request target (path and query; absolute behind a plain proxy), `salt` what sets this run's prompts
    apart from another run's (see Maker). `input_tokens` and `output_tokens` stand in for the spec's words, as they must
    for empirical lengths, and are those of the `workload` whose rows are asked in place of made-up prompts. Lengths and
    arrivals depend on the seed alone. Refuses at once, not at the first call: what
    `lengths.parse`, `pacer`, `head` and `check` refuse.
    """
    inputs = input_tokens or lengths.parse(spec.prompts.input_tokens)
    outputs = output_tokens or lengths.parse(spec.prompts.output_tokens)
    maker = maker_of(spec, ruler, salt)
    check(spec, inputs, outputs, least=maker.least, context_tokens=context_tokens)
    opening = head(host=host, target=target, method=method, headers=headers, stream=spec.stream)
    due = _due(spec, workload)
    drawn = Otherwise(inputs, outputs, _random(spec, "input"), _random(spec, "output"))
    asked = _made_up(maker, drawn) if workload is None else traffic.asked(workload, maker, drawn)

    def call(seq: int, due_ns: int | None, one: Asked) -> Call:
        payload = body(one.prompt, one.output_tokens, one.turns)
        request = opening + b"Content-Length: %d\r\n\r\n" % len(payload) + payload
        return Call(seq, request, due_ns, one.input_tokens, one.output_tokens)

    return islice(map(call, count(), due, asked), limit)


def _made_up(maker: Maker, drawn: Otherwise) -> Iterator[Asked]:
    for number in count():
        tokens, answered = drawn.inputs.sample(drawn.random_in), drawn.outputs.sample(drawn.random_out)
        yield Asked(maker.text(tokens, number), (), tokens, answered)


def maker_of(spec: Spec, ruler: Ruler, salt: str) -> Maker:
    """What makes the prompts that `spec` wants."""
    asked = spec.prompts
    return Maker(ruler, seed=asked.seed, salt=salt, unique=asked.unique, shared_tokens=asked.shared_prefix_tokens)


def check(spec: Spec, inputs: Distribution, outputs: Distribution, *, least: int, context_tokens: int | None) -> None:
    """Refuses what cannot be sent or must fail, where more than 1 % of the requests would be so.

    SpecError `input_too_short`: shorter than the shortest prompt that can be made, chat template and common prefix
    included (those of a workload are sent as short as they can be made); `context_too_short`: input and output do not
    fit the model's context.
    """
    random = Random(0)  # noqa: S311 - a sample, not a secret
    pairs = [(inputs.sample(random), outputs.sample(random)) for _ in range(_TRIED)]
    short = [asked for asked, _ in pairs if asked < least]
    if len(short) > _TOO_MANY * _TRIED and spec.prompts.workload is None:
        raise SpecError("input_too_short", asked=min(short), least=least)
    if context_tokens is not None:
        long = [asked + answered for asked, answered in pairs if asked + answered > context_tokens]
        if len(long) > _TOO_MANY * _TRIED:
            raise SpecError("context_too_short", asked=max(long), context=context_tokens)


def head(*, host: str, target: str, method: str = "POST", headers: Headers = (), stream: bool = True) -> bytes:
    """Request line and headers up to, not including, Content-Length. A header given replaces ours of the same name.

    Refuses with SpecError `header_invalid` a name or value that HTTP cannot carry, `header_reserved` one that says how
    the body is framed; the value is never told.
    """
    lines = {
        "host": f"Host: {host}",
        "user-agent": f"User-Agent: nilometer/{__version__}",
        "accept": f"Accept: {'text/event-stream' if stream else 'application/json'}",
        "content-type": "Content-Type: application/json",
    }
    for name, value in headers:
        line = header_line(name, value)
        if name.lower() in _FRAMING:
            raise SpecError("header_reserved", header=name)
        lines[name.lower()] = line
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines.values(), ""]).encode("latin-1")


def _due(spec: Spec, workload: Workload | None) -> Iterator[int | None]:
    load = spec.load
    if load.arrivals == RECORDED:
        if workload is None:
            raise SpecError("replay_without_workload")
        return traffic.recorded(workload, load.speed)
    if not load.is_open:
        return repeat(None)
    return pacer(load.arrivals, load.rate_per_s, _random(spec, "arrivals"), warmup_s=load.warmup_s)


def _random(spec: Spec, purpose: str) -> Random:
    return Random(f"{spec.prompts.seed}/{purpose}")  # noqa: S311 - a workload, not a secret
