"""A walk through a target, check by check: what the probe finds out, told step by step, and what only a doctor asks.

What one check finds out the next takes up, so nothing is asked twice. An error ends the walk: it stands at the check
it belongs to, and those that depend on it are skipped.
"""

from __future__ import annotations

import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import msgspec

from nilometer.core.clock import NS_PER_MS, NS_PER_S
from nilometer.core.errors import NiloError, Param, TargetError
from nilometer.core.finding import Finding
from nilometer.core.mask import Mask
from nilometer.core.secrets import is_secret_name, mask_url
from nilometer.core.spec import Spec, secrets_of
from nilometer.load.probe_courier import Courier
from nilometer.load.probe_facts import Served, choose, listed, served_by
from nilometer.load.probe_length import SAMPLE, ask, counter, template_alone
from nilometer.load.probe_talk import FEW_TOKENS, Opened, Reply, Settled, apis, lengths_apart, open_talk, settle
from nilometer.load.probe_terms import Terms, wanted_length_fields
from nilometer.net.endpoint import Endpoint, parse
from nilometer.net.fetch import Handshake, look
from nilometer.net.route import Address, resolve

from .approach import Headers, asked_mix, headers_to, refuse_headers
from .check import Check, failed

T = TypeVar("T")
WALK = (
    "proxy_variables",
    "address",
    "tls",
    "model_list",
    "auth",
    "base_url",
    "request",
    "stream",
    "usage",
    "length_fields",
    "template",
    "replicas",
)
"""The checks in their order; findings of the probe that belong to none stand before the last."""
BLAMED = {
    **dict.fromkeys(
        ("connect_refused", "name_unknown", "proxy_unreachable", "proxy_refused", "scheme_wrong"), "address"
    ),
    **dict.fromkeys(("timeout", "connection_cut", "not_http", "redirected", "target_url", "proxy_url"), "address"),
    **dict.fromkeys(("tls_failed", "certificate_refused"), "tls"),
    **dict.fromkeys(("model_unknown", "model_needed"), "model_list"),
    **dict.fromkeys(("unauthorised", "key_refused"), "auth"),
    **dict.fromkeys(("path_not_found", "path_elsewhere", "not_a_model_server"), "base_url"),
    **dict.fromkeys(("input_too_short", "context_too_short", "count_failed"), "template"),
}
"""Error -> the check it stands at, unless that one went well before: then at the next."""
PATIENCE_S = 5.0
"""For one answer, or for a busy target: with this machine's checks the walk through one that hangs takes under 10 s."""
CONNECT_S = 5.0
ASKED_TIMES = 8
MOST_ADDRESSES = 8
QUICK_NS = NS_PER_S
"""Where a short answer takes longer, the fields of its length are not tried apart."""
GLANCE_S = 3.0
"""For all that is asked of replicas after the first answer."""
SOON_DAYS = 14
BUFFERED_SHARE = 0.1
"""All frames within this share of the time they took to make: something held them back."""
TELLING_NS = 50 * NS_PER_MS
"""Frames made in less may well come in one read."""
_BARE_PROMPTS = frozenset({"completions", "tgi", "llamacpp", "embeddings", "rerank"})
_PROXIES = {"http": ("HTTP_PROXY", "ALL_PROXY"), "https": ("HTTPS_PROXY", "ALL_PROXY")}


def refuse_nonsense(spec: Spec, headers: Headers) -> None:
    """Refuse before anything is looked at what is wrong with what was given: API, headers, lengths, files."""
    apis(spec)
    refuse_headers(headers)
    asked_mix(spec)


def walk(
    spec: Spec, headers: Headers, address: str, environ: Mapping[str, str], patience_s: float = PATIENCE_S
) -> Iterator[Check]:
    """The checks of `address` as they are made, in the order of WALK. It never raises NiloError."""
    mask = Mask(secrets_of(spec, headers))
    told: set[str] = set()
    try:
        for check in _steps(spec, headers, address, environ, patience_s):
            told.add(check.slug)
            yield _masked(check, mask)
    except NiloError as fault:
        for check in _after(fault, told):
            yield _masked(check, mask)


def _after(fault: NiloError, told: set[str]) -> Iterator[Check]:
    """What is left when this error ends the walk: the check it stands at, and the others skipped."""
    left = [slug for slug in WALK if slug not in told]
    at = BLAMED.get(fault.slug, "request")
    at = at if at in left else "request" if "request" in left else left[0]
    for slug in left:
        yield failed(slug, fault) if slug == at else Check(slug=slug, state="skipped", said="unasked")


def _masked(check: Check, mask: Mask) -> Check:
    value = mask.cut(check.value) if isinstance(check.value, str) else check.value
    return msgspec.structs.replace(check, value=value, params=mask.params(check.params))


def _steps(
    spec: Spec, headers: Headers, address: str, environ: Mapping[str, str], patience_s: float
) -> Iterator[Check]:
    endpoint = parse(address)
    yield proxy_variables(endpoint, spec.http.proxy, environ)
    sent = dict(headers_to(endpoint, spec, headers))
    courier = Courier(endpoint, spec.http, sent, timeout_s=patience_s, ready_s=patience_s)
    there, fault = _tried(lambda: served_by(courier, spec.api, bool(spec.protocol)))
    if fault is not None and BLAMED.get(fault.slug) == "address":
        raise fault
    addresses = () if spec.http.proxy else _distinct(resolve(endpoint, insecure=True).addresses)
    if fault is None or BLAMED.get(fault.slug) != "tls":
        shaken, fault_of_tls = _tried(
            lambda: look(endpoint.origin, timeout_s=CONNECT_S, insecure=spec.http.insecure, proxy=spec.http.proxy)
        )
        fault = fault or fault_of_tls
    yield Check(
        slug="address", state="ok", value=endpoint.shown, params={"url": endpoint.shown, "n": len(addresses) or 1}
    )
    if fault is not None and BLAMED.get(fault.slug) == "tls":
        raise fault
    yield tls(endpoint.tls, shaken or Handshake(), time.time())
    if fault is not None or there is None:
        raise fault or AssertionError
    name = choose(spec.model, there)
    if name is not None:
        yield model_list(there, name)
    opened = open_talk(courier, spec, there, name)
    if name is None:
        yield model_list(opened.there, opened.terms.model)
    yield auth(sent)
    yield from _asked(courier, spec, opened)
    settled = settle(opened.talk, opened.terms)
    streams = opened.terms.dialect.asks_stream(spec.stream)
    pending = [*opened.findings, *settled.findings]
    yield _of("stream", pending) or stream(opened.reply, settled, asked=streams)
    yield _of("usage", pending) or Check(slug="usage", state="ok", value="usage")
    yield _of("length_fields", pending) or length_fields(*_lengths_asked(spec, opened, settled))
    if opened.talk.keeps(settled.terms) is False:
        pending.append(Finding(slug="connection_not_kept", kind="note", severity="low"))
    found = counter(opened.talk, settled.terms, ask(opened.talk, settled.terms, SAMPLE))
    if found is None:
        pending.append(Finding(slug="input_length_estimated", kind="validity", severity="medium"))
    yield template(template_alone(found), opened.terms.api)
    for finding in pending:
        yield Check(slug=finding.slug, state="warn", params=finding.params, finding=finding.slug)
    yield replicas(_answers(courier, opened.there, addresses), len(addresses) or 1)


def _tried(ask: Callable[[], T]) -> tuple[T | None, NiloError | None]:
    try:
        return ask(), None
    except NiloError as fault:
        return None, fault


_BELONGS = {
    "stream": ("stream_ignored", "places_not_found"),
    "usage": ("usage_missing", "stream_options_refused"),
    "length_fields": ("output_length_not_enforced", "length_fields_refused", "output_length_unheld"),
}
"""Check -> the findings that are its answer, the gravest first."""


def _of(slug: str, pending: list[Finding]) -> Check | None:
    """The finding that answers this check, taken from those that are still to be told; None where none does."""
    for name in _BELONGS[slug]:
        for finding in pending:
            if finding.slug == name:
                pending.remove(finding)
                return Check(slug=slug, state="warn", value=name, params=finding.params, finding=name)
    return None


def proxy_variables(endpoint: Endpoint, proxy: str | None, environ: Mapping[str, str]) -> Check:
    """Whether a proxy variable, which is not followed, would lead other programs another way to this target."""
    slug = "proxy_variables"
    if proxy:
        return Check(slug=slug, state="ok", value=mask_url(proxy), params={"proxy": mask_url(proxy)}, said="given")
    names = [name for upper in _PROXIES[endpoint.scheme] for name in (upper.lower(), upper) if environ.get(name)]
    if not names:
        return Check(slug=slug, state="skipped")
    params: dict[str, Param] = {"variable": names[0], "proxy": _as_url(environ[names[0]]), "host": endpoint.host}
    left_out = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    bypassed = bool(proxy_bypass_environment(endpoint.host_header, {"no": left_out}))
    return Check(slug=slug, state="ok" if bypassed else "warn", value=names[0], params=params)


def _as_url(proxy: str) -> str:
    """A proxy variable as it may be printed; other programs also take it without a scheme."""
    return mask_url(proxy if "//" in proxy else f"http://{proxy}")


def tls(used: bool, seen: Handshake, now_wall_s: float) -> Check:
    """Version, name and remaining days of the certificate. `now_wall_s`: seconds since the epoch."""
    if not used:
        return Check(slug="tls", state="skipped")
    if seen.expires is None:
        return Check(slug="tls", state="ok", value=seen.version, params={"version": seen.version}, said="unchecked")
    days = int((ssl.cert_time_to_seconds(seen.expires) - now_wall_s) // 86_400)
    params: dict[str, Param] = {"version": seen.version, "name": seen.name, "days": days}
    return Check(slug="tls", state="ok" if days >= SOON_DAYS else "warn", value=seen.version, params=params)


def model_list(there: Served, model: str | None) -> Check:
    """How many models are listed and which is taken; one that answers without a name for it needs none."""
    n = len(there.models)
    if n:
        return Check(slug="model_list", state="ok", value=n, params={"n": n, "model": model})
    if model is not None:
        return Check(slug="model_list", state="ok", value=0, params={"model": model}, said="named")
    return Check(slug="model_list", state="ok", value=0, said="unneeded")


def auth(sent: Iterable[str]) -> Check:
    """The target let us in: with a key among the headers of these names, or without."""
    key = any(map(is_secret_name, sent))
    return Check(slug="auth", state="ok", value="key" if key else "none", said="key" if key else None)


def _asked(courier: Courier, spec: Spec, opened: Opened) -> Iterator[Check]:
    """Where the API answered, and the request by which that was found."""
    url = courier.shown(opened.talk.path(opened.terms, stream=spec.stream))
    yield Check(slug="base_url", state="ok", value=url, params={"url": url, "api": opened.terms.api})
    yield request(opened)


def request(opened: Opened) -> Check:
    """How long the first answer took, and of which model, as far as anybody names it."""
    ms, answer = opened.reply.response.elapsed_ns / NS_PER_MS, opened.reply.answer
    model = opened.terms.model or (answer.model if answer is not None else None)
    said = "encoded" if not opened.terms.dialect.generates else None if model else "unnamed"
    return Check(slug="request", state="ok", value=round(ms, 3), params={"ms": ms, "model": model}, said=said)


def _lengths_asked(
    spec: Spec, opened: Opened, settled: Settled
) -> tuple[tuple[str, ...], Terms, dict[str | None, int | None]]:
    quick = bool(settled.terms.length_fields) and settled.reply.response.elapsed_ns < QUICK_NS
    apart = lengths_apart(opened.talk, settled.terms) if quick else {}
    return wanted_length_fields(spec, opened.terms.dialect), settled.terms, apart


def first_token_ns(reply: Reply, terms: Terms) -> int | None:
    """From the start of the request, its connection included, to the read that completed a first token."""
    reader = terms.dialect.reader(True, False)
    start = 0
    for at_ns, size in reply.response.reads:
        if reader.feed(reply.response.body[start:size]):
            return at_ns
        start = size
    return None


def stream(alone: Reply, settled: Settled, *, asked: bool) -> Check:
    """A streamed answer of some tokens beside one of a single token, `alone`: its TTFT, and if it was held back."""
    if not asked:
        return Check(slug="stream", state="skipped")
    response = settled.reply.response
    ttft_ns = first_token_ns(settled.reply, settled.terms)
    ms = None if ttft_ns is None else ttft_ns / NS_PER_MS
    held = buffered(response.reads, response.elapsed_ns - alone.response.elapsed_ns)
    return Check(
        slug="stream",
        state="warn" if held else "ok",
        value=None if ms is None else round(ms, 3),
        params={"ms": ms, "seconds": response.elapsed_ns / NS_PER_S},
    )


def buffered(reads: Sequence[tuple[int, int]], made_ns: int) -> bool:
    """Whether frames that took `made_ns` to make came all but at once."""
    if not reads or made_ns < TELLING_NS:
        return False
    return reads[-1][0] - reads[0][0] < BUFFERED_SHARE * made_ns


def length_fields(wanted: tuple[str, ...], terms: Terms, apart: Mapping[str | None, int | None]) -> Check:
    """Which of the fields that make answers as long as asked are honoured, where any was wanted.

    `apart` is what `lengths_apart` got, empty where it was not asked.
    """
    if not wanted:
        return Check(slug="length_fields", state="skipped", said=None if terms.dialect.generates else "none")
    if apart.get(None) == FEW_TOKENS:
        return _honoured(terms.length_fields, "unneeded")
    alone = tuple(field for field in terms.length_fields if apart.get(field) == FEW_TOKENS)
    return _honoured(alone) if alone else _honoured(terms.length_fields, "together")


def _honoured(fields: tuple[str, ...], said: str | None = None) -> Check:
    told = ", ".join(fields)
    return Check(slug="length_fields", state="ok", value=told, params={"fields": told}, said=said)


def template(tokens: int | None, api: str) -> Check:
    """What is added around every prompt: by a chat template where the API takes a conversation."""
    if tokens is None:
        return Check(slug="template", state="skipped")
    said = "bare" if api in _BARE_PROMPTS else None
    return Check(slug="template", state="ok", value=tokens, params={"tokens": tokens}, said=said)


def _distinct(addresses: Sequence[Address]) -> tuple[Address, ...]:
    return tuple(dict.fromkeys(addresses))[:MOST_ADDRESSES]


class Seen(NamedTuple):
    """One answer about the service: which address was asked, what came (a status, or an error), what it lists."""

    at: str | None
    came: str
    models: tuple[str, ...] = ()


def _answers(courier: Courier, there: Served, addresses: Sequence[Address]) -> list[Seen]:
    """The model list, or `/health` where there is none, from each address in turn, on new connections."""
    endpoint = courier.endpoint
    tail = "/health" if there.below_v1 is None else "/models"
    path = endpoint.path(tail) if there.below_v1 else endpoint.root(tail)
    end_ns = time.monotonic_ns() + round(GLANCE_S * NS_PER_S)
    seen: list[Seen] = []
    for i in range(max(ASKED_TIMES, len(addresses))):
        at = addresses[i % len(addresses)] if len(addresses) > 1 else None
        seen.append(_glance(courier, path, at))
        if time.monotonic_ns() > end_ns:
            break
    return seen


def _glance(courier: Courier, path: str, at: Address | None) -> Seen:
    where = None if at is None else at[1][0]
    try:
        response = courier.glance(path, at, timeout_s=GLANCE_S)
    except TargetError as fault:
        return Seen(where, fault.slug)
    return Seen(where, str(response.status), listed(response))


def replicas(seen: Sequence[Seen], addresses: int) -> Check:
    """Whether all answers are alike. A 429 tells of a limit, not of a replica; loopback that refuses is no replica."""
    told = [one for one in seen if one.came != "429" and not _own_other_family(one)]
    if not told:
        return Check(slug="replicas", state="skipped")
    kinds = Counter((one.came, one.models) for one in told)
    usual, n_usual = max(kinds.items(), key=lambda kind: (kind[0][0] == "200", kind[1]))
    other = next((one for one in told if (one.came, one.models) != usual), None)
    params: dict[str, Param] = {"n": len(told), "addresses": addresses, "differ": len(told) - n_usual}
    if other is None:
        return Check(slug="replicas", state="ok", value=len(told), params=params)
    where = other.at or "-"
    params |= {"came": other.came, "models": ", ".join(other.models) or "-", "where": where}
    return Check(slug="replicas", state="warn", value=len(told) - n_usual, params=params)


def _own_other_family(one: Seen) -> bool:
    """`localhost` has an address of each family, and a server listens on one."""
    return one.came == "connect_refused" and one.at in ("::1", "127.0.0.1")
