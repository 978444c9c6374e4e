"""On what terms a target takes requests, as the probe found them, and the bodies that keep to them.

The load and the probe build their bodies here, so that what was tried is what is sent. No I/O.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nilometer.core.finding import Finding
from nilometer.core.spec import Spec
from nilometer.wire.ask import Turn
from nilometer.wire.dialects import DIALECTS, Ask, Dialect, spoken
from nilometer.workload.plan import Body
from nilometer.workload.traffic import Turns

_CONSTRAINED = frozenset(
    {"grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "json_schema", "response_format"}
    | {"structured_outputs", "tool_choice", "tools"}
)

_HOLDING = frozenset(field for dialect in DIALECTS.values() for field in dialect.length_fields)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """`limit_field` is the server's key for the most output tokens; `length_fields` those that it takes."""

    api: str
    model: str | None
    protocol: dict[str, Any] = {}
    include_usage: bool = True
    limit_field: str = "max_tokens"
    length_fields: tuple[str, ...] = ()

    @property
    def dialect(self) -> Dialect:
        return spoken(self.api, self.protocol)


def body(spec: Spec, terms: Terms, prompt: str, max_tokens: int, *, stream: bool) -> bytes:
    """One request body. What the user gives as extra body wins over everything."""
    return _body(spec, terms, terms.dialect, prompt, max_tokens, stream)


def _body(
    spec: Spec, terms: Terms, dialect: Dialect, prompt: str, max_tokens: int, stream: bool, turns: Turns = ()
) -> bytes:
    sampling = spec.sampling
    plain = terms.limit_field == "max_tokens"
    extra: dict[str, Any] = {} if plain else {terms.limit_field: max_tokens}
    extra |= {name: True if name == "ignore_eos" else max_tokens for name in terms.length_fields}
    ask = Ask(
        model=terms.model,
        prompt=prompt,
        turns=tuple(Turn(*turn) for turn in turns),
        max_tokens=max_tokens if plain else None,
        stream=dialect.asks_stream(stream),
        include_usage=terms.include_usage,
        temperature=None if sampling.temperature == "none" else sampling.temperature,
        top_p=sampling.top_p,
        seed=sampling.seed,
        extra={**extra, **sampling.extra_body},
    )
    return dialect.body(ask)


def bodies(spec: Spec, terms: Terms) -> Body:
    """The body of a load request: what `workload.plan.calls` wants."""
    dialect = terms.dialect
    return lambda prompt, max_tokens, turns: _body(spec, terms, dialect, prompt, max_tokens, spec.stream, turns)


def unheld(spec: Spec, dialect: Dialect, fields: tuple[str, ...]) -> list[Finding]:
    """The finding that nothing holds answers to the asked length, where that is wanted and `fields` are none.

    Of a protocol of the user's own, and of an extra body with such a field, it is the user who knows.
    """
    sampling = spec.sampling.extra_body.keys()
    told = fields or spec.protocol or sampling & (_CONSTRAINED | _HOLDING)
    if told or not spec.prompts.ignore_eos or not dialect.generates:
        return []
    return [Finding(slug="output_length_unheld", kind="note", severity="low")]


def wanted_length_fields(spec: Spec, dialect: Dialect) -> tuple[str, ...]:
    """What to ask for so that answers have their length.

    Nothing where the spec leaves the end to the model, nor beside tools or a grammar: forcing an answer on against
    those has crashed engines.
    """
    constrained = _CONSTRAINED & spec.sampling.extra_body.keys()
    return dialect.length_fields if spec.prompts.ignore_eos and not constrained else ()
