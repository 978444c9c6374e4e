"""The probe: before a load is put on a target, a few small requests find out how to reach, ask and measure it.

Everything it sends is counted; nothing is retried but what a busy target put off. It puts no load on the target and
draws no conclusion about its speed beyond a first estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nilometer.core.clock import NS_PER_S
from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.finding import Finding
from nilometer.core.spec import Spec
from nilometer.net.endpoint import Endpoint
from nilometer.workload import ruler, scenarios
from nilometer.workload.lengths import Distribution
from nilometer.workload.plan import Body, check
from nilometer.workload.ruler import Ruler
from nilometer.workload.scenarios import Kind

from .probe_courier import Courier
from .probe_facts import choose, facts, served_by
from .probe_length import SAMPLE, Trial, ask, attempt, counter, measure, read_corpus, template_tokens
from .probe_talk import FEW_TOKENS, Settled, Talk, apis, open_talk, path_of, settle
from .probe_terms import Terms, bodies, unheld, wanted_length_fields

READY_S = 60.0
TIMEOUT_S = 120.0
Step = Callable[[str], None]
"""Told where the probe is: `reach`, `ask`, `lengths`."""


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a load needs to know of its target. None = not found out.

    `path` is the request path of the load. `mean_e2e_s` is the first estimate of a mean request alone on the target;
    `output_tokens_per_s` of one stream. `requests` were sent, `waited_s` spent on a busy target.
    """

    terms: Terms
    path: str
    ruler: Ruler
    models: tuple[str, ...] = ()
    template_tokens: int | None = None
    context_tokens: int | None = None
    mean_e2e_s: float | None = None
    output_tokens_per_s: float | None = None
    engine: EngineFacts = EngineFacts()
    model: ModelFacts = ModelFacts()
    findings: tuple[Finding, ...] = ()
    requests: int = 0
    waited_s: float = 0.0
    keeps_connections: bool | None = None

    @property
    def api(self) -> str:
        return self.terms.api

    def bodies(self, spec: Spec) -> Body:
        """What makes the request bodies, on the terms found."""
        return bodies(spec, self.terms)


def probe(
    endpoint: Endpoint,
    spec: Spec,
    headers: Mapping[str, str],
    *,
    mix: Sequence[Kind] | None = None,
    timeout_s: float = TIMEOUT_S,
    ready_s: float = READY_S,
    on_step: Step = lambda _: None,
    courier: Courier | None = None,
) -> ProbeResult:
    """Find out how to load `endpoint` as `spec` wants.

    `mix` is what the spec mixes, resolved where its lengths are empirical; `timeout_s` is for one request, `ready_s`
    for waiting on a busy target (429, 502, 503) in all.

    Raises SpecError: `api_unknown`, `model_unknown`, `model_needed`, `input_too_short`, `context_too_short` and those
    of `lengths.parse`. TargetError: those of `net.fetch`, `scheme_wrong`, `unauthorised`, `key_refused`, `redirected`,
    `target_busy`, `not_a_model_server`, `path_not_found`, `path_elsewhere`, `answer_unended`,
    `request_refused`, `request_failed`, `count_failed`.
    """
    mix = mix or scenarios.kinds(spec.prompts)
    apis(spec)
    courier = courier or Courier(endpoint, spec.http, headers, timeout_s=timeout_s, ready_s=ready_s)
    on_step("reach")
    there = served_by(courier, spec.api, bool(spec.protocol))
    name = choose(spec.model, there)
    on_step("ask")
    opened = open_talk(courier, spec, there, name)
    talk, there, name = opened.talk, opened.there, opened.terms.model
    settled = settle(talk, opened.terms)
    engine, model = facts(courier, there, name)
    keeps = talk.keeps(settled.terms)
    on_step("lengths")
    found = _lengths(talk, settled.terms, mix, engine.context_tokens)
    per_token_s = _per_token_s(settled, found.short_s)
    return ProbeResult(
        terms=settled.terms,
        path=talk.path(settled.terms),
        ruler=found.trial.ruler,
        models=tuple(row.id for row in there.models),
        template_tokens=found.template_tokens,
        context_tokens=engine.context_tokens,
        mean_e2e_s=_mean_e2e_s(found.trial.mean_prompt_s, per_token_s, scenarios.outputs_of(mix)),
        output_tokens_per_s=None if per_token_s is None else 1 / per_token_s,
        engine=engine,
        model=msgspec.structs.replace(model, id=name or found.answered_as),
        keeps_connections=keeps,
        findings=(
            *_waited(courier),
            *_not_kept(keeps),
            *opened.findings,
            *settled.findings,
            *found.findings,
            *found.trial.findings,
        ),
        requests=courier.requests,
        waited_s=courier.waited_s,
    )


class _Lengths(NamedTuple):
    trial: Trial
    findings: list[Finding]
    template_tokens: int | None
    short_s: float
    answered_as: str | None


def _lengths(talk: Talk, terms: Terms, mix: Sequence[Kind], context_tokens: int | None) -> _Lengths:
    """Measure the ruler, refuse lengths that cannot be, try finished prompts."""
    sample = ask(talk, terms, SAMPLE)
    inputs = scenarios.inputs_of(mix)
    found = counter(talk, terms, sample)
    made, findings = measure(found, inputs, read_corpus(talk.spec.prompts.text))
    template = template_tokens(found, made)
    if template is None and terms.api == "chat" and found is not None:
        findings = [*findings, Finding(slug="template_tokens_unknown", kind="validity", severity="low")]
    check(talk.spec, mix, scenarios.makers(mix, talk.spec.prompts, made, ""), context_tokens)
    return _Lengths(
        trial=attempt(talk, terms, made, mix, context_tokens),
        findings=findings,
        template_tokens=template,
        short_s=sample.response.elapsed_ns / NS_PER_S,
        answered_as=sample.answer.model if sample.answer else None,
    )


def unprobed(endpoint: Endpoint, spec: Spec) -> ProbeResult:
    """What is assumed where nothing may be sent but the load: the spec's words as they are, lengths from characters."""
    terms = Terms(api=apis(spec)[0], model=spec.model, protocol=spec.protocol)
    dialect = terms.dialect
    known = () if endpoint.is_strict else dialect.known_fields
    terms = msgspec.structs.replace(
        terms,
        include_usage=spec.stream and dialect.asks_usage,
        length_fields=tuple(field for field in wanted_length_fields(spec, dialect) if field in known),
    )
    estimated = Finding(slug="input_length_estimated", kind="validity", severity="medium")
    return ProbeResult(
        terms=terms,
        path=path_of(endpoint, terms, stream=spec.stream, below_v1=endpoint.below_v1),
        ruler=ruler.estimated(read_corpus(spec.prompts.text)),
        model=ModelFacts(id=spec.model),
        findings=(estimated, *unheld(spec, dialect, terms.length_fields)),
    )


def _per_token_s(settled: Settled, short_s: float) -> float | None:
    """Time of one more output token, from an answer of some tokens and one of a single token; None if not apart."""
    if settled.reply.answer is not None and settled.reply.answer.token_source == "none":
        return None  # nothing is generated
    answer, took_s = settled.reply.answer, settled.reply.response.elapsed_ns / NS_PER_S
    tokens = FEW_TOKENS if answer is None or answer.output_tokens is None else answer.output_tokens
    return (took_s - short_s) / (tokens - 1) if tokens > 1 and took_s > short_s else None


def _mean_e2e_s(prompt_s: float | None, per_token_s: float | None, outputs: Distribution) -> float | None:
    """A prompt of mean length to its first token, and a mean answer's other tokens after it."""
    if prompt_s is None:
        return None
    return prompt_s + (per_token_s or 0.0) * max(0.0, outputs.mean() - 1)


def _not_kept(keeps: bool | None) -> list[Finding]:
    return [Finding(slug="connection_not_kept", kind="note", severity="low")] if keeps is False else []


def _waited(courier: Courier) -> list[Finding]:
    if not courier.waited_s:
        return []
    params: dict[str, str | int | float | None] = {"seconds": round(courier.waited_s, 1)}
    return [Finding(slug="target_was_busy", kind="note", severity="low", params=params)]
