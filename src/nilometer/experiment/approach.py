"""Before the load: the probe's answers, or without it what can be said unasked, made into calls and a resolved Spec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.errors import DataError, NiloError, SpecError
from nilometer.core.finding import Finding
from nilometer.core.header import users_line
from nilometer.core.mask import NO_SECRETS, Mask
from nilometer.core.record import Call
from nilometer.core.spec import RECORDED, Load, Spec, secrets_of, without_secrets
from nilometer.load.probe import ProbeResult, Step, probe, unprobed
from nilometer.load.probe_talk import apis
from nilometer.net.endpoint import Endpoint, parse
from nilometer.net.route import resolve
from nilometer.sources.lines import Stream
from nilometer.sources.texts import read_asked
from nilometer.wire.dialects import generates, spoken
from nilometer.workload import lengths
from nilometer.workload.entry import Workload
from nilometer.workload.lengths import Distribution
from nilometer.workload.plan import calls
from nilometer.workload.scenarios import (
    Kind,
    encoded,
    kinds,
    mean_prompt_tokens,
    mean_think_s,
    of_rows,
    outputs_of,
    requests_per_arrival,
)
from nilometer.workload.traffic import lengths_of, recorded_s, refuse_unheeded, totals_of

from .staff import trace_end_s

Facts = TypeVar("Facts", EngineFacts, ModelFacts)
Headers = tuple[tuple[str, str], ...]


class Approach(NamedTuple):
    """All that a load test needs to know of its target.

    `spec` has the model and the API filled in and no secret in it; `address` is where the workers send, through
    `proxy`.
    """

    spec: Spec
    endpoint: Endpoint
    address: str
    proxy: str | None
    api: str
    calls: Iterator[Call]
    mean_e2e_s: float | None
    keeps_connections: bool | None
    mean_input_tokens: float
    mean_output_tokens: float
    mean_think_s: float
    """Think time per request; 0 where each stands alone."""
    requests_per_arrival: float
    """More than 1 where conversations arrive."""
    recorded_s: tuple[float, ...] | None
    """When the requests of a replay are due, from the start of the load."""
    engine: EngineFacts
    model: ModelFacts
    findings: list[Finding]
    secrets: tuple[str, ...]
    """What the target was sent and may send back; told to the workers, who take it out of what they keep."""


def approach(spec: Spec, headers: Headers, *, address: str, salt: str, on_step: Step = lambda _: None) -> Approach:
    """Probe `address` (unless the spec forbids it) and make ready. `salt` sets this run's prompts apart from others'.

    Raises what `load.probe`, `workload.plan.calls` and `workload.lengths.parse` raise.
    """
    secrets = secrets_of(spec, headers)
    refuse_headers(headers)
    endpoint = parse(address)
    mix, workload, due_s = asked_mix(spec)
    headers = headers_to(endpoint, spec, headers)
    route = resolve(endpoint, insecure=spec.http.insecure, proxy=spec.http.proxy)
    with _masked(Mask(secrets)) as mask:
        if spec.probe:
            found = probe(endpoint, spec, dict(headers), mix=mix, on_step=on_step)
        else:
            found = unprobed(endpoint, spec)
    if route.proxy_authorization:  # the probe's own connections say it themselves
        headers = (*headers, ("Proxy-Authorization", route.proxy_authorization))
    made = calls(
        spec,
        found.ruler,
        body=found.bodies(spec),
        host=endpoint.host_header,
        target=route.target(found.path),
        method=found.terms.dialect.method,
        headers=headers,
        salt=salt,
        mix=mix,
        context_tokens=found.context_tokens,
        workload=workload,
        recorded_s=due_s,
    )
    return Approach(
        spec=_resolved(spec, found, workload, due_s),
        endpoint=endpoint,
        address=address,
        proxy=spec.http.proxy,
        api=found.api,
        calls=made,
        mean_e2e_s=found.mean_e2e_s,
        keeps_connections=found.keeps_connections,
        mean_input_tokens=mean_prompt_tokens(mix),
        mean_output_tokens=outputs_of(mix).mean(),
        mean_think_s=mean_think_s(mix),
        requests_per_arrival=requests_per_arrival(mix),
        recorded_s=due_s,
        engine=_told(found.engine, mask),
        model=msgspec.structs.replace(
            _told(found.model, NO_SECRETS if found.terms.model else mask), template_tokens=found.template_tokens
        ),
        findings=[msgspec.structs.replace(each, params=mask.params(each.params)) for each in found.findings],
        secrets=secrets,
    )


class Asked(NamedTuple):
    """What is asked, the workload that says so where there is one, and when its rows are due where that is a replay."""

    mix: tuple[Kind, ...]
    workload: Workload | None
    recorded_s: tuple[float, ...] | None


def asked_mix(spec: Spec) -> Asked:
    """Refuses what cannot be read, what no row heeds, and a replay that has ended when the measured stretch begins."""
    due_s = None
    mix = kinds(spec.prompts, length_mix)
    workload = _workload(spec)
    if workload is not None:
        refuse_unheeded(spec, workload, mix[0].outputs)
        if spec.load.arrivals == RECORDED:
            due_s = recorded_s(workload, spec.load.speed)
            _refuse_too_short(spec.load, due_s[-1])
        inputs, outputs = lengths_of(workload, (mix[0].inputs, mix[0].outputs))
        totals = totals_of(workload, inputs, outputs if generates(spec.api) else None)
        mix = of_rows(mix, inputs, outputs, totals)
    if not generates(spec.api):
        mix = encoded(mix)
    return Asked(mix, workload, due_s)


def _refuse_too_short(load: Load, last_s: float) -> None:
    if last_s <= load.warmup_s and load.warmup_s > 0:
        raise SpecError("replay_within_warmup", trace_s=last_s, warmup_s=load.warmup_s)


def refuse_headers(headers: Headers) -> None:
    """Refuse, before anything is sent, a header that no request may have: `header_invalid`, `header_reserved`."""
    for name, value in headers:
        users_line(name, value)


def headers_to(endpoint: Endpoint, spec: Spec, headers: Headers) -> Headers:
    """All that go with a request: those given, the address's own credentials, what the dialect asks for."""
    if endpoint.authorization and "authorization" not in {name.lower() for name, _ in headers}:
        headers = (*headers, ("Authorization", endpoint.authorization))
    return _with_dialects(spec, headers)


def _with_dialects(spec: Spec, headers: Headers) -> Headers:
    """The headers given, before them those that the dialect asks for and that were not given."""
    if spec.api == "auto":
        return headers
    given = {name.lower() for name, _ in headers}
    (api,) = apis(spec)
    own = spoken(api, spec.protocol).headers
    return (*((name, value) for name, value in own if name.lower() not in given), *headers)


@contextmanager
def _masked(mask: Mask) -> Iterator[Mask]:
    """Takes secrets out of the errors that come through: they hold the server's words."""
    try:
        yield mask
    except NiloError as fault:
        mask.error(fault)
        raise


def _workload(spec: Spec) -> Workload | None:
    """What the workload file of the spec asks, or its file of prompts. Refuses `workload_other` where it is not the one
    that was measured before, and `workload_empty`."""
    if spec.prompts.workload is None:
        return None
    workload = read_asked(Path(spec.prompts.workload))
    if spec.prompts.workload_sha256 not in (None, workload.hash):
        raise DataError("workload_other", file=spec.prompts.workload)
    if not workload.rows:
        raise DataError("workload_empty", file=spec.prompts.workload)
    return workload


def _resolved(spec: Spec, found: ProbeResult, workload: Workload | None, recorded_s: tuple[float, ...] | None) -> Spec:
    """The spec with what the probe chose, as it is stored: --like then asks for the same. A replay ends with its
    trace."""
    load = spec.load
    if recorded_s is not None:
        left_s = trace_end_s(recorded_s) - load.warmup_s
        load = msgspec.structs.replace(load, duration_s=min(load.duration_s, round(left_s, 2)))
    stream = found.terms.dialect.asks_stream(spec.stream)
    prompts = msgspec.structs.replace(spec.prompts, workload_sha256=None if workload is None else workload.hash)
    return msgspec.structs.replace(
        without_secrets(spec), api=found.api, model=found.terms.model, stream=stream, load=load, prompts=prompts
    )


def _told(facts: Facts, mask: Mask) -> Facts:
    """What the target said of itself, as it may be kept. A model's name that goes with each request is no secret."""
    words = {name: value for name, value in msgspec.structs.asdict(facts).items() if isinstance(value, str)}
    return msgspec.structs.replace(facts, **{name: mask.word(value) for name, value in words.items()})


def length_mix(text: str) -> Distribution:
    """The lengths that these words name; the file of `empirical:FILE` is read here, one count a line.

    Refuses as `lengths.parse` does, and `lengths_file` with the line that is no count.
    """
    file = lengths.empirical_file(text)
    return lengths.parse(text, values=None if file is None else _counts(file))


def _counts(file: str) -> list[int]:
    counts = []
    for number, line in Stream(Path(file)).lines():
        text = (line or b"").strip()
        if not text.isdigit() or len(text) > _COUNT_DIGITS:
            told = text[:40].decode("utf-8", "replace")
            raise SpecError("lengths_file", file=file, line=number, text=told)
        counts.append(int(text))
    return counts


_COUNT_DIGITS = 9
"""A length that is too long for any context is refused by what draws from it; more digits are no count of tokens."""
