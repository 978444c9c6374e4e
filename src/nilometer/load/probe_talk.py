"""The first words with a model server: which address and API answer, and on what terms it takes a request.

Every request here asks for a handful of tokens. What is refused is tried again without the refused part, one part at a
time, and told as a finding.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from nilometer.core.errors import NiloError, SpecError, TargetError
from nilometer.core.finding import Finding
from nilometer.core.spec import Spec
from nilometer.net.endpoint import Endpoint
from nilometer.net.fetch import Response
from nilometer.wire.answer import Answer
from nilometer.wire.dialects import DIALECTS, Dialect, spoken
from nilometer.wire.outcome import Verdict, is_stream, judge
from nilometer.wire.unfound import places_not_found, seen_in

from .probe_courier import Courier, told
from .probe_facts import Served, choose, served_natively
from .probe_terms import Terms, body, unheld, wanted_length_fields

FEW_TOKENS = 16
_HEAD_BYTES = 400
_GREETING = "Good morning."
_SHORT_ANSWER = "Answer with one word only: is water wet?"
"""A model left alone ends its answer to this long before FEW_TOKENS."""
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,200}?(not exist|not found|not served|not available|unknown)|(unknown|no such|invalid) model", re.I
)
_ABSENT = frozenset({404, 405, 501})
_INCLUDE_USAGE = "stream_options"


class Reply(NamedTuple):
    """One answer of the model, or what came in its place. `streamed` None: neither a stream nor JSON."""

    response: Response
    verdict: Verdict
    answer: Answer | None
    streamed: bool | None

    @property
    def ok(self) -> bool:
        return self.verdict.outcome == "ok"

    @property
    def refused(self) -> bool:
        """The server understood, but did not like, something in the request."""
        return self.response.status in (400, 422)


class Talk:
    """Requests to one API address of the target, as the spec would send them but short."""

    def __init__(self, courier: Courier, spec: Spec, *, below_v1: bool) -> None:
        self.courier = courier
        self.spec = spec
        self._below_v1 = below_v1

    def path(self, terms: Terms, *, stream: bool | None = None) -> str:
        """Request path of generation, streamed as the spec wants it unless said."""
        wanted = self.spec.stream if stream is None else stream
        return path_of(self.courier.endpoint, terms, stream=wanted, below_v1=self._below_v1)

    def say(self, terms: Terms, prompt: str, max_tokens: int = 1, *, stream: bool = False) -> Reply:
        """Ask once. Raises what `Courier.send` raises; every other failure is in the reply."""
        dialect = terms.dialect
        data = body(self.spec, terms, prompt, max(max_tokens, dialect.least_tokens), stream=stream)
        response = self.courier.send(self.path(terms, stream=stream), data, dialect.method)
        return _read(dialect, response)

    def keeps(self, terms: Terms) -> bool | None:
        """Whether the server keeps a connection after an answer such as the load's; None where it gave none."""
        dialect = terms.dialect
        data = body(self.spec, terms, _GREETING, dialect.least_tokens, stream=self.spec.stream)
        return self.courier.keeps(self.path(terms), data, dialect.method)

    def failure(self, terms: Terms, reply: Reply) -> TargetError:
        """The error that an unusable reply amounts to."""
        url = self.courier.shown(self.path(terms))
        if reply.response.status == 200 and reply.verdict.error == "not_a_model_answer":
            return TargetError("not_a_model_server", url=url, detail=reply.verdict.detail)
        if reply.response.status == 200 and reply.verdict.outcome == "incomplete":
            return TargetError("answer_unended", url=url)
        slug = "request_refused" if 400 <= reply.response.status < 500 else "request_failed"
        return TargetError(slug, url=url, status=reply.response.status, detail=reply.verdict.detail)


def path_of(endpoint: Endpoint, terms: Terms, *, stream: bool, below_v1: bool) -> str:
    """Request path of generation. SpecError `model_needed` where the model is part of it and none is named."""
    dialect = terms.dialect
    if terms.model is None and "{model}" in dialect.path:
        raise SpecError("model_needed", served=None)
    tail = dialect.route(terms.model, stream=stream)
    return endpoint.path(tail) if below_v1 and dialect.base == "v1" else endpoint.root(tail)


def _read(dialect: Dialect, response: Response) -> Reply:
    head = response.body[:_HEAD_BYTES]
    content_type = response.headers.get("content-type")
    streamed = is_stream(content_type, head, lines=dialect.lines)
    answer = None
    if response.status == 200 and streamed is not None:
        reader = dialect.reader(streamed, False)
        reader.feed(response.body)
        answer = reader.close()
    verdict = judge(
        status=response.status,
        content_type=content_type,
        head=head,
        answer=answer,
        whole=True,
        lines=dialect.lines,
        encoding=response.headers.get("content-encoding"),
    )
    return Reply(response, verdict, answer, streamed)


class Opened(NamedTuple):
    """An address and an API that answered, and the answer; `there` is what is served, as far as it is told."""

    there: Served
    talk: Talk
    terms: Terms
    reply: Reply
    findings: list[Finding]


def open_talk(courier: Courier, spec: Spec, there: Served, model: str | None) -> Opened:
    """Find out which API answers at which address: chat before completions, below `/v1` before beside it.

    Where no OpenAI-like API answers and none was named, the server's own is taken if it is told by a page of its own.

    Raises SpecError `model_unknown`; TargetError `path_not_found`, `path_elsewhere`, `not_a_model_server`,
    `request_refused`, `request_failed`.
    """
    opened = _open(courier, spec, apis(spec), there, model)
    if opened is None and spec.api == "auto" and (native := served_natively(courier)):
        opened = _open(courier, spec, (native.api or "",), native, choose(spec.model, native))
    if opened is None:
        raise _nowhere(courier, spec)
    return opened


def _open(courier: Courier, spec: Spec, names: tuple[str, ...], there: Served, model: str | None) -> Opened | None:
    """The first of these APIs that answers; None where none is there at all."""
    refusal: tuple[str, NiloError] | None = None
    for below_v1 in _sides(courier.endpoint, there, spoken(names[0], spec.protocol)):
        talk = Talk(courier, spec, below_v1=below_v1)
        for api in names:
            asked = Terms(api=api, model=model, protocol=spec.protocol, include_usage=False)
            terms, reply = _greet(talk, asked)
            if reply.ok:
                findings = [] if refusal is None else [_api_refused(refusal, api)]
                return Opened(there, talk, terms, reply, findings)
            _refuse_wrong_model(reply, model, there)
            if reply.response.status in _ABSENT:
                continue
            if not reply.refused or len(names) == 1:
                raise talk.failure(terms, reply)
            refusal = refusal or (api, talk.failure(terms, reply))
    if refusal:
        raise refusal[1]
    return None


def _sides(endpoint: Endpoint, there: Served, dialect: Dialect) -> tuple[bool, ...]:
    """Below `/v1` or beside it, in the order to be tried; of no matter for what lies at the root."""
    if dialect.base == "root":
        return (False,)
    if there.below_v1 is not None:
        return (there.below_v1,)
    return (endpoint.below_v1, not endpoint.below_v1)


def _refuse_wrong_model(reply: Reply, model: str | None, there: Served) -> None:
    """The server may know better than its list which models it serves, or want a name where it has no list."""
    if not 400 <= reply.response.status < 500:
        return
    words = told(reply.response) or ""
    if model is not None and _NO_MODEL.search(words):
        raise SpecError("model_unknown", model=model, served=there.names or None)
    if model is None and reply.refused and "model" in words:
        raise SpecError("model_needed", served=None)


def apis(spec: Spec) -> tuple[str, ...]:
    """The APIs to try, in order. Refuses an unknown name: SpecError `api_unknown`."""
    if spec.api == "auto":
        return ("chat", "completions")
    if spec.protocol:
        spoken(spec.api, spec.protocol)
    elif spec.api not in DIALECTS:
        raise SpecError("api_unknown", api=spec.api, known=", ".join(["auto", *DIALECTS, "FILE.toml"]))
    return (spec.api,)


def _greet(talk: Talk, terms: Terms) -> tuple[Terms, Reply]:
    """One token asked; once more under the other name of the limit where the server says that it wants that."""
    reply = talk.say(terms, _GREETING)
    if reply.refused and b"max_completion_tokens" in reply.response.body:
        terms = msgspec.structs.replace(terms, limit_field="max_completion_tokens")
        reply = talk.say(terms, _GREETING)
    return terms, reply


def _api_refused(refusal: tuple[str, NiloError], used: str) -> Finding:
    api, fault = refusal
    params = {"api": api, "used": used, "detail": fault.params.get("detail")}
    return Finding(slug="api_refused", kind="note", severity="low", params=params)


def _nowhere(courier: Courier, spec: Spec) -> TargetError:
    """Nothing at the address; says where something does answer when it is the same server's own `/v1`."""
    endpoint = courier.endpoint
    terms = Terms(api=apis(spec)[0], model=spec.model or "", protocol=spec.protocol)
    url = courier.shown(path_of(endpoint, terms, stream=spec.stream, below_v1=endpoint.below_v1))
    if endpoint.base_path and terms.dialect.base == "v1":
        bare = endpoint._replace(base_path="")
        listed = courier.try_(bare.path("/models"))
        if listed is not None and listed.body.lstrip().startswith(b"{"):
            return TargetError("path_elsewhere", url=url, answers=f"{bare.origin}/v1")
    return TargetError("path_not_found", url=url)


class Settled(NamedTuple):
    """The terms of the load, the last reply on them and what there is to tell of the way to them."""

    terms: Terms
    reply: Reply
    findings: list[Finding]


def settle(talk: Talk, terms: Terms) -> Settled:
    """Find out which of the wanted request fields the server takes, and whether they do what they say.

    Raises TargetError where the server takes none of the load's requests at all.
    """
    spec = talk.spec
    dialect = terms.dialect
    wanted = ((_INCLUDE_USAGE,) if spec.stream and dialect.asks_usage else ()) + wanted_length_fields(spec, dialect)
    reply = _ask_with(talk, terms, wanted)
    taken = wanted
    if reply.refused and wanted:
        taken = tuple(field for field in wanted if _ask_with(talk, terms, (field,)).ok)
        reply = _ask_with(talk, terms, taken)
    settled = _with(terms, taken)
    if not reply.ok or reply.answer is None:
        raise talk.failure(settled, reply)
    findings = [
        *_field_findings(wanted, taken),
        *unheld(spec, dialect, dialect.length_fields),
        *_unfound(spec, reply, reply.answer),
        *_answer_findings(dialect.asks_stream(spec.stream), reply, reply.answer, wanted),
    ]
    return Settled(settled, reply, findings)


def _unfound(spec: Spec, reply: Reply, answer: Answer) -> list[Finding]:
    if not spec.protocol:
        return []
    seen = seen_in(answer, text=not reply.streamed or answer.matter_events > 0, ended=answer.complete)
    return places_not_found(spec.protocol, seen, streamed=bool(reply.streamed))


def lengths_apart(talk: Talk, terms: Terms) -> dict[str | None, int | None]:
    """Output tokens of FEW_TOKENS asked, with none of the terms' length fields (None) and with each of them alone.

    The question is one that a model ends early by itself. None tokens: nobody counted them, or it was refused.
    """
    usage = (_INCLUDE_USAGE,) if terms.include_usage else ()
    tokens: dict[str | None, int | None] = {}
    for field in (None, *terms.length_fields):
        answer = _ask_with(talk, terms, usage if field is None else (*usage, field)).answer
        tokens[field] = answer.output_tokens if answer is not None and answer.usage_seen else None
    return tokens


def _with(terms: Terms, fields: tuple[str, ...]) -> Terms:
    lengths = tuple(field for field in fields if field != _INCLUDE_USAGE)
    return msgspec.structs.replace(terms, include_usage=_INCLUDE_USAGE in fields, length_fields=lengths)


def _ask_with(talk: Talk, terms: Terms, fields: tuple[str, ...]) -> Reply:
    return talk.say(_with(terms, fields), _SHORT_ANSWER, FEW_TOKENS, stream=talk.spec.stream)


def _field_findings(wanted: tuple[str, ...], taken: tuple[str, ...]) -> list[Finding]:
    refused = [field for field in wanted if field not in taken]
    findings = []
    if _INCLUDE_USAGE in refused:
        findings.append(Finding(slug="stream_options_refused", kind="note", severity="low"))
    if lengths := [field for field in refused if field != _INCLUDE_USAGE]:
        params: dict[str, str | int | float | None] = {"fields": ", ".join(lengths)}
        findings.append(Finding(slug="length_fields_refused", kind="note", severity="low", params=params))
    return findings


def _answer_findings(wants_stream: bool, reply: Reply, answer: Answer, wanted: tuple[str, ...]) -> list[Finding]:
    findings = []
    if wants_stream and not reply.streamed:
        findings.append(Finding(slug="stream_ignored", kind="validity", severity="high"))
    if not answer.usage_seen:
        findings.append(Finding(slug="usage_missing", kind="validity", severity="medium"))
    got = answer.output_tokens if answer.usage_seen else None
    meant = any(field != _INCLUDE_USAGE for field in wanted)
    if meant and got is not None and got != FEW_TOKENS:
        params: dict[str, str | int | float | None] = {"asked": FEW_TOKENS, "got": got}
        findings.append(Finding(slug="output_length_not_enforced", kind="validity", severity="medium", params=params))
    return findings
