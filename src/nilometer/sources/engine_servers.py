"""A running engine asked how it was started: llama.cpp's, SGLang's, TGI's, Ollama's and vLLM's own pages.

What a page says are the settings in force, whether told or chosen. Nothing is generated for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from nilometer.core.errors import SpecError, TargetError
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Response, fetch
from nilometer.plan.launch.command import Launch, Written, gathered

from .models.server import TIMEOUT_S

_DETAIL_CHARS = 120
_CHARS = 200
Page = Mapping[str, Any]
Ask = Callable[[str], Response]


def read_engine_server(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    insecure: bool = False,
    proxy: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Launch:
    """What a server says of its settings.

    SpecError `target_url`. TargetError: those of `net.fetch`, `unauthorised`, `engine_untold` where no page tells.
    """
    endpoint = parse(url)
    sent = {"accept": "application/json, text/plain", **(headers or {})}

    def ask(path: str) -> Response:
        found = fetch(
            endpoint.url(endpoint.root(path)),
            headers=sent,
            timeout_s=timeout_s,
            insecure=insecure,
            proxy=proxy,
            limit_bytes=8 << 20,
        )
        if found.status in (401, 403):
            told = found.body[:_DETAIL_CHARS].decode("utf-8", "replace")
            raise TargetError(
                "unauthorised", url=endpoint.shown, status=found.status, detail=f"{found.status} {told!r}"
            )
        return found

    try:
        found = next((one for engine in ENGINES if (one := engine(ask)) is not None), None)
    except SpecError as fault:
        detail = " ".join(str(part) for part in fault.params.values())
        raise TargetError("engine_untold", url=endpoint.shown, detail=detail[:_DETAIL_CHARS]) from None
    if found is None:
        raise TargetError("engine_untold", url=endpoint.shown, detail=", ".join(PAGES))
    return found


def _page(response: Response) -> Page:
    """A JSON object, empty where there is none."""
    if response.status != 200:
        return {}
    try:
        found = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole(value: object) -> int | None:
    """A number that can be a setting."""
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1 << 50
    return value if usable and isinstance(value, int) else None


def _word(value: object) -> str | None:
    return value[:_CHARS] if isinstance(value, str) and value else None


def _told(page: Page, names: Mapping[str, str], place: str) -> list[Written]:
    """The keys of a page that are settings, as the flags that would set them."""
    pairs = []
    for key, flag in names.items():
        value = page.get(key)
        if isinstance(value, bool):
            pairs.append(Written(name=flag, value=str(value).lower(), place=place))
        elif isinstance(value, float) and 0 < value <= 1:
            pairs.append(Written(name=flag, value=f"{value:g}", place=place))
        elif value == -1 and key == "chunked_prefill_size":
            pairs.append(Written(name=flag, value="-1", place=place))
        elif _whole(value) is not None or _word(value) is not None:
            pairs.append(Written(name=flag, value=str(value)[:_CHARS], place=place))
    return pairs


def _llamacpp(ask: Ask) -> Launch | None:
    """`/props`: slots, and the context of each. Whether they share one cache is not said."""
    page = _page(ask("/props"))
    slots, default = _whole(page.get("total_slots")), page.get("default_generation_settings")
    if slots is None or not isinstance(default, dict):
        return None
    each = _whole(default.get("n_ctx"))
    pairs = [Written(name="-np", value=str(slots), place="GET /props")]
    if each is not None and each * slots <= 1 << 50:
        pairs.append(Written(name="-c", value=str(each * slots), place="GET /props"))
    if (model := _word(page.get("model_path"))) is not None:
        pairs.append(Written(name="-m", value=model, place="GET /props"))
    return gathered("llama.cpp", pairs, version=_word(page.get("build_info")))


_SGLANG = {
    "model_path": "--model-path",
    "context_length": "--context-length",
    "mem_fraction_static": "--mem-fraction-static",
    "max_running_requests": "--max-running-requests",
    "chunked_prefill_size": "--chunked-prefill-size",
    "page_size": "--page-size",
    "disable_radix_cache": "--disable-radix-cache",
    "disable_cuda_graph": "--disable-cuda-graph",
    "max_total_num_tokens": "--max-total-tokens",
    "tp_size": "--tp-size",
    "pp_size": "--pp-size",
    "dp_size": "--dp-size",
    "ep_size": "--ep-size",
    "quantization": "--quantization",
    "kv_cache_dtype": "--kv-cache-dtype",
}


def _sglang(ask: Ask) -> Launch | None:
    """`/get_server_info`, later `/server_info`: its arguments, the pool, the release."""
    for path in ("/get_server_info", "/server_info"):
        page = _page(ask(path))
        if "mem_fraction_static" in page or "tp_size" in page:
            return gathered("sglang", _told(page, _SGLANG, f"GET {path}"), version=_word(page.get("version")))
    return None


_TGI = {
    "model_id": "--model-id",
    "max_total_tokens": "--max-total-tokens",
    "max_batch_total_tokens": "--max-batch-total-tokens",
    "max_batch_prefill_tokens": "--max-batch-prefill-tokens",
    "max_concurrent_requests": "--max-concurrent-requests",
    "max_batch_size": "--max-batch-size",
}


def _tgi(ask: Ask) -> Launch | None:
    """`/info`."""
    page = _page(ask("/info"))
    if "model_id" not in page or not ({"max_total_tokens", "max_input_tokens", "max_input_length"} & page.keys()):
        return None
    return gathered("tgi", _told(page, _TGI, "GET /info"), version=_word(page.get("version")))


def _ollama(ask: Ask) -> Launch | None:
    """`/api/version`, and of the model that is loaded, if one is, `/api/ps`."""
    version = _word(_page(ask("/api/version")).get("version"))
    if version is None:
        return None
    loaded = _page(ask("/api/ps")).get("models")
    model = loaded[0] if isinstance(loaded, list) and loaded and isinstance(loaded[0], dict) else {}
    pairs = []
    details = model.get("details")
    level = _word(details.get("quantization_level")) if isinstance(details, dict) else None
    if (name := _word(model.get("name"))) is not None:
        pairs.append(Written(name="--model", value=name if level is None else f"{name}:{level}", place="GET /api/ps"))
    if (context := _whole(model.get("context_length"))) is not None:
        pairs.append(Written(name="OLLAMA_CONTEXT_LENGTH", value=str(context), place="GET /api/ps"))
    found = gathered("ollama", pairs, version=version)
    return msgspec.structs.replace(found, model=name)


_CACHE = {
    "block_size": "--block-size",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "enable_prefix_caching": "--enable-prefix-caching",
    "cache_dtype": "--kv-cache-dtype",
    "num_gpu_blocks": "--num-gpu-blocks-override",
}
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_INFO = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)


def _vllm(ask: Ask) -> Launch | None:
    """The labels of `vllm:cache_config_info`, the longest length of `/v1/models`, the release of `/version`."""
    metrics = ask("/metrics")
    found = _INFO.search(metrics.body.decode("utf-8", "replace")) if metrics.status == 200 else None
    model = _first(_page(ask("/v1/models")))
    if found is None and model.get("owned_by") != "vllm":
        return None
    labels = dict(_LABEL.findall(found[1])) if found else {}
    pairs = [
        Written(name=flag, value=labels[key][:_CHARS], place="GET /metrics")
        for key, flag in _CACHE.items()
        if labels.get(key, "None") not in {"None", "null", "", "0"}
    ]
    pairs += _told(model, {"max_model_len": "--max-model-len"}, "GET /v1/models")
    if (name := _word(model.get("root")) or _word(model.get("id"))) is not None:
        pairs.append(Written(name="--model", value=name, place="GET /v1/models"))
    return gathered("vllm", pairs, version=_word(_page(ask("/version")).get("version")))


def _first(page: Page) -> Page:
    data: object = page.get("data")
    rows: Sequence[object] = data if isinstance(data, list) else ()
    return next((row for row in rows if isinstance(row, dict)), {})


ENGINES: Sequence[Callable[[Ask], Launch | None]] = (_llamacpp, _sglang, _tgi, _ollama, _vllm)
"""Asked one after the other; the first whose page is there has answered."""
PAGES = ("/props", "/get_server_info", "/server_info", "/info", "/api/version", "/metrics", "/v1/models")
