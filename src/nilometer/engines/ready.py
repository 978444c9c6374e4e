"""When a server is ready and what it says of itself: ready = a real token came back from a tiny completion.

A listening port, a health page or a loaded model is not enough: the first token is what a user waits for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from nilometer.core.errors import EngineError, TargetError
from nilometer.core.mask import Mask
from nilometer.core.secrets import in_header
from nilometer.net.fetch import Response, fetch

POLL_S = 0.05
_FACTS_TIMEOUT_S = 10.0


class Process(Protocol):
    """What is asked of the server's process while it starts."""

    program: str
    log_path: Path

    def ended(self) -> str | None: ...

    def tail(self) -> str: ...


class Answered(NamedTuple):
    """A ready server and what it said of itself; None where it did not say. `load_time_s` is start to first token."""

    url: str
    load_time_s: float
    server_header: str | None = None
    model_id: str | None = None
    parameters: int | None = None
    precision: str | None = None
    build: str | None = None
    slots: int | None = None
    context_tokens: int | None = None
    """Of one slot: the longest prompt with its answer."""


class _Meta(msgspec.Struct, frozen=True):
    n_params: int | None = None
    ftype: str | None = None


class _Model(msgspec.Struct, frozen=True):
    id: str | None = None
    meta: _Meta | None = None


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model] = []


class _Usage(msgspec.Struct, frozen=True):
    completion_tokens: int = 0


class _Completion(msgspec.Struct, frozen=True):
    usage: _Usage = _Usage()


class _Generation(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Props(msgspec.Struct, frozen=True):
    total_slots: int | None = None
    build_info: str | None = None
    model_ftype: str | None = None
    default_generation_settings: _Generation = _Generation()


Shape = TypeVar("Shape", bound=msgspec.Struct)


def wait_until_ready(process: Process, url: str, headers: Mapping[str, str], budget_s: float) -> Answered:
    """Ask for one token until it comes; `load_time_s` runs from this call.

    Refuses: `engine_died` when the process ends, `engine_not_ready` when `budget_s` is over; both with the last lines
    of its log.
    """
    start_s = time.monotonic()
    models = _Models()
    while True:
        _refuse_the_dead(process)
        left_s = start_s + budget_s - time.monotonic()
        if left_s <= 0:
            raise EngineError("engine_not_ready", seconds=budget_s, log=str(process.log_path), detail=process.tail())
        models = models if models.data else _read(url + "/v1/models", headers, left_s, _Models())
        header = _first_token(url, headers, left_s, models) if models.data else None
        if header is not None:
            load_time_s = time.monotonic() - start_s
            _refuse_the_dead(process)
            return _describe(url, headers, load_time_s, header or None, models.data[0])
        time.sleep(min(POLL_S, left_s))


def _refuse_the_dead(process: Process) -> None:
    end = process.ended()
    if end is not None:
        raise EngineError(
            "engine_died", program=process.program, ended=end, log=str(process.log_path), detail=process.tail()
        )


def _first_token(url: str, headers: Mapping[str, str], timeout_s: float, models: _Models) -> str | None:
    """The Server header of the answer that held a token, "" without one; None when no token came."""
    ask = {"model": models.data[0].id, "prompt": "Hello", "max_tokens": 1, "temperature": 0, "stream": False}
    body = msgspec.json.encode(ask)
    with_type = {**headers, "Content-Type": "application/json"}
    answer = _ask(url + "/v1/completions", with_type, timeout_s, method="POST", body=body)
    if answer is None or _decoded(answer, _Completion()).usage.completion_tokens < 1:
        return None
    return answer.headers.get("server", "")


def _describe(
    url: str, headers: Mapping[str, str], load_time_s: float, server_header: str | None, model: _Model
) -> Answered:
    props = _read(url + "/props", headers, _FACTS_TIMEOUT_S, _Props())
    meta = model.meta or _Meta()
    mask = Mask(secret for name, value in headers.items() for secret in in_header(name, value))
    return Answered(
        url=url,
        load_time_s=load_time_s,
        server_header=mask.word(server_header) if server_header else None,
        model_id=mask.word(model.id) if model.id else None,
        parameters=meta.n_params,
        precision=mask.word(meta.ftype or props.model_ftype or "") or None,
        build=mask.word(props.build_info) if props.build_info else None,
        slots=props.total_slots,
        context_tokens=props.default_generation_settings.n_ctx,
    )


def _read(url: str, headers: Mapping[str, str], timeout_s: float, nothing: Shape) -> Shape:
    answer = _ask(url, headers, timeout_s)
    return nothing if answer is None else _decoded(answer, nothing)


def _ask(
    url: str, headers: Mapping[str, str], timeout_s: float, method: str = "GET", body: bytes | None = None
) -> Response | None:
    try:
        answer = fetch(url, method=method, headers=headers, body=body, timeout_s=timeout_s)
    except TargetError:
        return None
    return answer if answer.status == 200 else None


def _decoded(answer: Response, nothing: Shape) -> Shape:
    try:
        return msgspec.json.decode(answer.body, type=type(nothing))
    except (msgspec.DecodeError, msgspec.ValidationError):
        return nothing
