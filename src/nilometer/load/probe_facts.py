"""What a target says of itself: the models it serves, the engine behind it, the model's context.

Read as far as it is there; what is not said is None, never guessed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from nilometer.core.environment import EngineFacts, ModelFacts
from nilometer.core.errors import SpecError, TargetError
from nilometer.net.fetch import Response
from nilometer.wire.dialects import DIALECTS

from .probe_courier import Courier, told

Shape = TypeVar("Shape")
_SHOWN = 20
_NAMES_CHARS = 2_000
_LONGEST_ID_CHARS = 1_000
"""A model whose name is longer is not offered: the name would go with every request."""
_ENGINES = {"llamacpp": "llama.cpp", "llama.cpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}


class Meta(msgspec.Struct, frozen=True):
    """llama.cpp's own facts of a model."""

    n_ctx: int | None = None
    n_params: int | None = None
    ftype: str | None = None


class Model(msgspec.Struct, frozen=True):
    """One row of a model list."""

    id: str
    aliases: list[str] = []
    owned_by: str | None = None
    max_model_len: int | None = None
    meta: Meta | None = None


class _Models(msgspec.Struct, frozen=True):
    data: list[Model]


class _Generation(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Props(msgspec.Struct, frozen=True):
    build_info: str | None = None
    total_slots: int | None = None
    model_path: str | None = None
    default_generation_settings: _Generation = _Generation()


class _Version(msgspec.Struct, frozen=True):
    version: str | None = None


class _Tag(msgspec.Struct, frozen=True):
    name: str


class _Tags(msgspec.Struct, frozen=True):
    """Ollama's list."""

    models: list[_Tag]

    @property
    def rows(self) -> tuple[Model, ...]:
        return tuple(Model(tag.name, [tag.name.removesuffix(":latest")]) for tag in self.models)


class _Info(msgspec.Struct, frozen=True):
    """What text-generation-inference says of itself."""

    model_id: str
    max_total_tokens: int | None = None

    @property
    def rows(self) -> tuple[Model, ...]:
        return (Model(self.model_id, max_model_len=self.max_total_tokens),)


class _Settings(msgspec.Struct, frozen=True):
    """What llama.cpp says of itself."""

    default_generation_settings: dict[str, object]

    @property
    def rows(self) -> tuple[Model, ...]:
        return ()


class Page(NamedTuple):
    """By what page a server with an API of its own is known, and what stands on it."""

    path: str
    shape: type[_Tags | _Info | _Settings]
    engine: str


PAGES = {
    "ollama": Page("/api/tags", _Tags, "ollama"),
    "tgi": Page("/info", _Info, "tgi"),
    "llamacpp": Page("/props", _Settings, "llama.cpp"),
}
"""API -> its page."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The model list, where one was found, and on which side of `/v1` it was: None = nowhere.

    `api` and `engine` are known where the server has an API of its own and told so.
    """

    models: tuple[Model, ...] = ()
    below_v1: bool | None = None
    api: str | None = None
    engine: str | None = None
    server_header: str | None = None

    @property
    def names(self) -> str:
        """The ids, at most 20 of them and 2000 characters, as one text."""
        more = [] if len(self.models) <= _SHOWN else ["..."]
        return ", ".join([model.id for model in self.models[:_SHOWN]] + more)[:_NAMES_CHARS]

    def row(self, name: str | None) -> Model | None:
        """The model of that id or alias, a pattern such as `*` included."""
        for model in self.models:
            known = [model.id, *model.aliases]
            if name is not None and (name in known or any("*" in k and fnmatch.fnmatchcase(name, k) for k in known)):
                return model
        return None


def served(courier: Courier) -> Served:
    """Ask for the model list, below `/v1` and beside it. Raises TargetError `not_a_model_server` on a web page."""
    endpoint = courier.endpoint
    response = courier.send(endpoint.path("/models"))
    header = response.headers.get("server")
    if response.status == 200 and response.body.lstrip().startswith(b"<"):
        raise TargetError("not_a_model_server", url=courier.shown(endpoint.path("/models")), detail=told(response))
    models = _models(response)
    if models is not None:
        return Served(models=models, below_v1=True, server_header=header)
    if response.status in (404, 405):
        beside = courier.try_(endpoint.root("/models"))
        models = _models(beside) if beside else None
        if models is not None:
            return Served(models=models, below_v1=False, server_header=header)
    return Served(server_header=header)


def served_by(courier: Courier, api: str, protocol: bool) -> Served:
    """What is served, asked where the API keeps it; nothing is asked of an API that keeps no list."""
    if api in PAGES:
        return served_natively(courier, (api,)) or Served()
    if protocol or (api in DIALECTS and DIALECTS[api].base == "root"):
        return Served()
    return served(courier)


def served_natively(courier: Courier, names: Iterable[str] = tuple(PAGES)) -> Served | None:
    """What a server tells on a page of its own, the first of these APIs' that is there; nothing is generated for it."""
    for api in names:
        page = PAGES[api]
        response = courier.try_(courier.endpoint.root(page.path))
        told = _decoded(response, page.shape) if response else None
        if told is not None:
            return Served(models=told.rows, api=api, engine=page.engine)
    return None


def _models(response: Response) -> tuple[Model, ...] | None:
    if response.status != 200:
        return None
    listed = _decoded(response, _Models)
    return tuple(row for row in listed.data if len(row.id) <= _LONGEST_ID_CHARS) if listed else None


def listed(response: Response) -> tuple[str, ...]:
    """The ids of an answer that is a model list, sorted; none of any other."""
    return tuple(sorted(model.id for model in _models(response) or ()))


def choose(asked: str | None, there: Served) -> str | None:
    """The model to ask for; None where nobody names one. SpecError `model_unknown`, `model_needed`: list what is."""
    if not there.models:
        return asked
    if asked is not None:
        if there.row(asked) is None:
            raise SpecError("model_unknown", model=asked, served=there.names)
        return asked
    if len(there.models) > 1:
        raise SpecError("model_needed", served=there.names)
    return there.models[0].id


def facts(courier: Courier, there: Served, model: str | None) -> tuple[EngineFacts, ModelFacts]:
    """Engine and model, from the list, the Server header, llama.cpp's /props and vLLM's /version."""
    row = there.row(model)
    name = there.engine or _engine_name(row, there.server_header)
    meta = (row.meta if row else None) or Meta()
    context = (row.max_model_len if row else None) or meta.n_ctx
    engine = EngineFacts(name=name, context_tokens=context, server_header=there.server_header)
    found = ModelFacts(id=model, precision=meta.ftype, parameters=meta.n_params)
    if name == "llama.cpp":
        return _with_props(courier, engine, found)
    if name in ("vllm", "sglang"):
        response = courier.try_(courier.endpoint.root("/version"))
        version = _decoded(response, _Version) if response else None
        engine = msgspec.structs.replace(engine, version=version.version if version else None)
    return engine, found


def _engine_name(row: Model | None, server_header: str | None) -> str | None:
    owner = (row.owned_by if row else None) or ""
    return _ENGINES.get(owner.lower()) or _ENGINES.get((server_header or "").lower())


def _with_props(courier: Courier, engine: EngineFacts, model: ModelFacts) -> tuple[EngineFacts, ModelFacts]:
    response = courier.try_(courier.endpoint.root("/props"))
    props = _decoded(response, _Props) if response else None
    if props is None:
        return engine, model
    file = props.model_path.replace("\\", "/").rpartition("/")[2] if props.model_path else None
    context = props.default_generation_settings.n_ctx or engine.context_tokens
    engine = msgspec.structs.replace(engine, build=props.build_info, slots=props.total_slots, context_tokens=context)
    return engine, msgspec.structs.replace(model, file=file)


def _decoded(response: Response, shape: type[Shape]) -> Shape | None:
    try:
        return msgspec.json.decode(response.body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
