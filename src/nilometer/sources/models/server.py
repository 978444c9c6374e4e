"""A running server asked what it serves: its model list, and llama.cpp's own page. Nothing is generated for it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nilometer.core.errors import TargetError
from nilometer.net.endpoint import Endpoint, parse
from nilometer.net.fetch import Response, fetch

from .served import Served

TIMEOUT_S = 10.0
_LOOPBACK = ("127.", "::1", "localhost")
_DETAIL_CHARS = 120


class _Meta(msgspec.Struct, frozen=True):
    n_params: int | None = None
    size: int | None = None
    n_ctx_train: int | None = None
    n_vocab: int | None = None
    n_embd: int | None = None
    ftype: str | None = None


class _Model(msgspec.Struct, frozen=True):
    id: str
    root: str | None = None
    max_model_len: int | None = None
    meta: _Meta = _Meta()


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model]


class _Settings(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Props(msgspec.Struct, frozen=True):
    total_slots: int | None = None
    model_path: str | None = None
    default_generation_settings: _Settings = _Settings()


def read_server(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    insecure: bool = False,
    proxy: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Served:
    """Ask a server for its models and, where it is llama.cpp's, for its settings.

    SpecError `target_url`. TargetError: those of `net.fetch`, `unauthorised`, `not_a_model_server`.
    """
    endpoint = parse(url)
    sent = {"accept": "application/json", **(headers or {})}

    def ask(path: str) -> Response:
        return fetch(
            endpoint.url(path), headers=sent, timeout_s=timeout_s, insecure=insecure, proxy=proxy, limit_bytes=4 << 20
        )

    listed = _listed(endpoint, ask(endpoint.path("/models")))
    props = _props(ask(endpoint.root("/props"))) if _is_llamacpp(listed) else _Props()
    return _served(endpoint, listed.data, props)


def _listed(endpoint: Endpoint, response: Response) -> _Models:
    if response.status in (401, 403):
        raise TargetError("unauthorised", url=endpoint.shown, status=response.status, detail=_told(response))
    try:
        return msgspec.json.decode(response.body, type=_Models)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TargetError("not_a_model_server", url=endpoint.shown, detail=_told(response)) from None


def _told(response: Response) -> str:
    return f"{response.status} {response.body[:_DETAIL_CHARS].decode('utf-8', 'replace')!r}"


def _is_llamacpp(listed: _Models) -> bool:
    return any(model.meta.n_params is not None for model in listed.data)


def _props(response: Response) -> _Props:
    try:
        return msgspec.json.decode(response.body, type=_Props) if response.status == 200 else _Props()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Props()


def _served(endpoint: Endpoint, models: list[_Model], props: _Props) -> Served:
    model = models[0] if models else _Model(id="")
    return Served(
        url=endpoint.shown,
        id=model.id or None,
        root=model.root,
        others=tuple(other.id for other in models[1:]),
        context=model.max_model_len or props.default_generation_settings.n_ctx,
        trained_context=model.meta.n_ctx_train,
        slots=props.total_slots,
        parameters=model.meta.n_params,
        weight_bytes=model.meta.size,
        precision=model.meta.ftype,
        path=props.model_path,
        local=endpoint.host.startswith(_LOOPBACK),
    )
