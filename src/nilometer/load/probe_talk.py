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
from nilometer.net.fetch import Response
from nilometer.wire.answer import Answer
from nilometer.wire.dialects import DIALECTS
from nilometer.wire.outcome import Verdict, is_stream, judge

from .probe_courier import Courier, told
from .probe_facts import Served
from .probe_terms import Terms, body, wanted_length_fields

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

    def path(self, terms: Terms) -> str:
        """Request path of generation."""
        endpoint = self.courier.endpoint
        return endpoint.path(terms.dialect.path) if self._below_v1 else endpoint.root(terms.dialect.path)

    def say(self, terms: Terms, prompt: str, max_tokens: int = 1, *, stream: bool = False) -> Reply:
        """Ask once. Raises what `Courier.send` raises; every other failure is in the reply."""
        data = body(self.spec, terms, prompt, max_tokens, stream=stream)
        response = self.courier.send(self.path(terms), data)
        head = response.body[:_HEAD_BYTES]
        content_type = response.headers.get("content-type")
        streamed = is_stream(content_type, head)
        answer = None
        if response.status == 200 and streamed is not None:
            reader = terms.dialect.reader(streamed, False)
            reader.feed(response.body)
            answer = reader.close()
        verdict = judge(status=response.status, content_type=content_type, head=head, answer=answer, whole=True)
        return Reply(response, verdict, answer, streamed)

    def failure(self, terms: Terms, reply: Reply) -> TargetError:
        """The error that an unusable reply amounts to."""
        url = self.courier.shown(self.path(terms))
        if reply.response.status == 200 and reply.verdict.error == "not_a_model_answer":
            return TargetError("not_a_model_server", url=url, detail=reply.verdict.detail)
        slug = "request_refused" if 400 <= reply.response.status < 500 else "request_failed"
        return TargetError(slug, url=url, status=reply.response.status, detail=reply.verdict.detail)


class Opened(NamedTuple):
    """An address and an API that answered, and the answer."""

    talk: Talk
    terms: Terms
    reply: Reply
    findings: list[Finding]


def open_talk(courier: Courier, spec: Spec, there: Served, model: str | None) -> Opened:
    """Find out which API answers at which address: chat before completions, below `/v1` before beside it.

    Raises SpecError `model_unknown`; TargetError `path_not_found`, `path_elsewhere`, `not_a_model_server`,
    `request_refused`, `request_failed`.
    """
    refusal: tuple[str, NiloError] | None = None
    for below_v1 in (True, False) if there.below_v1 is None else (there.below_v1,):
        talk = Talk(courier, spec, below_v1=below_v1)
        for api in apis(spec):
            terms, reply = _greet(talk, Terms(api=api, model=model, include_usage=False))
            if reply.ok:
                findings = [] if refusal is None else [_api_refused(refusal, api)]
                return Opened(talk, terms, reply, findings)
            _refuse_wrong_model(reply, model, there)
            if reply.response.status in _ABSENT:
                continue
            if not reply.refused or len(apis(spec)) == 1:
                raise talk.failure(terms, reply)
            refusal = refusal or (api, talk.failure(terms, reply))
    raise refusal[1] if refusal else _nowhere(courier, spec)


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
    if spec.api not in DIALECTS:
        raise SpecError("api_unknown", api=spec.api, known=", ".join(["auto", *DIALECTS]))
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
    url = courier.shown(endpoint.path(DIALECTS[apis(spec)[0]].path))
    if endpoint.base_path:
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
    wanted = ((_INCLUDE_USAGE,) if spec.stream else ()) + wanted_length_fields(spec)
    reply = _ask_with(talk, terms, wanted)
    taken = wanted
    if reply.refused and wanted:
        taken = tuple(field for field in wanted if _ask_with(talk, terms, (field,)).ok)
        reply = _ask_with(talk, terms, taken)
    settled = _with(terms, taken)
    if not reply.ok or reply.answer is None:
        raise talk.failure(settled, reply)
    findings = list(_field_findings(wanted, taken)) + _answer_findings(spec, reply, reply.answer, wanted)
    return Settled(settled, reply, findings)


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


def _answer_findings(spec: Spec, reply: Reply, answer: Answer, wanted: tuple[str, ...]) -> list[Finding]:
    findings = []
    if spec.stream and not reply.streamed:
        findings.append(Finding(slug="stream_ignored", kind="validity", severity="high"))
    if not answer.usage_seen:
        findings.append(Finding(slug="usage_missing", kind="validity", severity="medium"))
    got = answer.output_tokens if answer.usage_seen else None
    meant = any(field != _INCLUDE_USAGE for field in wanted)
    if meant and got is not None and got != FEW_TOKENS:
        params: dict[str, str | int | float | None] = {"asked": FEW_TOKENS, "got": got}
        findings.append(Finding(slug="output_length_not_enforced", kind="validity", severity="medium", params=params))
    return findings
