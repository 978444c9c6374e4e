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
from ..core.spec import Spec
from . import lengths
from .arrivals import pacer
from .lengths import Distribution
from .prompts import Maker
from .ruler import Ruler

Body = Callable[[str, int], bytes]
"""The request body for (prompt, output tokens)."""

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
) -> Iterator[Call]:
    """The calls of `spec` in order of their number, `due_ns` from the start of the load where a rate is asked.

    `target` is the request target (path and query; absolute behind a plain proxy), `salt` what sets this run's prompts
    apart from another run's (see Maker). `input_tokens` and `output_tokens` stand in for the spec's words, as they must
    for empirical lengths. Lengths and arrivals depend on the seed alone. Refuses at once, not at the first call: what
    `lengths.parse`, `pacer`, `head` and `check` refuse.
    """
    inputs = input_tokens or lengths.parse(spec.prompts.input_tokens)
    outputs = output_tokens or lengths.parse(spec.prompts.output_tokens)
    maker = maker_of(spec, ruler, salt)
    check(inputs, outputs, least=maker.least, context_tokens=context_tokens)
    opening = head(host=host, target=target, method=method, headers=headers, stream=spec.stream)
    due = _due(spec)
    random_in, random_out = _random(spec, "input"), _random(spec, "output")

    def call(seq: int) -> Call:
        asked_input, asked_output = inputs.sample(random_in), outputs.sample(random_out)
        payload = body(maker.text(asked_input, seq), asked_output)
        request = opening + b"Content-Length: %d\r\n\r\n" % len(payload) + payload
        return Call(seq, request, next(due), asked_input, asked_output)

    return islice(map(call, count()), limit)


def maker_of(spec: Spec, ruler: Ruler, salt: str) -> Maker:
    """What makes the prompts that `spec` wants."""
    asked = spec.prompts
    return Maker(ruler, seed=asked.seed, salt=salt, unique=asked.unique, shared_tokens=asked.shared_prefix_tokens)


def check(inputs: Distribution, outputs: Distribution, *, least: int, context_tokens: int | None) -> None:
    """Refuses what cannot be sent or must fail, where more than 1 % of the requests would be so.

    SpecError `input_too_short`: shorter than the shortest prompt that can be made, chat template and common prefix
    included; `context_too_short`: input and output do not fit the model's context.
    """
    random = Random(0)  # noqa: S311 - a sample, not a secret
    pairs = [(inputs.sample(random), outputs.sample(random)) for _ in range(_TRIED)]
    short = [asked for asked, _ in pairs if asked < least]
    if len(short) > _TOO_MANY * _TRIED:
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


def _due(spec: Spec) -> Iterator[int | None]:
    load = spec.load
    if not load.is_open:
        return repeat(None)
    return pacer(load.arrivals, load.rate_per_s, _random(spec, "arrivals"), warmup_s=load.warmup_s)


def _random(spec: Spec, purpose: str) -> Random:
    return Random(f"{spec.prompts.seed}/{purpose}")  # noqa: S311 - a workload, not a secret
