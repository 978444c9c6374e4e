"""llama.cpp's HTTP server out of the wheel `xllamacpp`, as a program of its own that takes llama-server's flags.

Run as a file in a child process; it imports nothing of nilometer. It takes the flags in its table and refuses others,
so that no setting is dropped in silence. It ends by SIGTERM like any program: there is nothing to save.
"""

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

Setter = Callable[[Any, str], None]


def main(words: Sequence[str]) -> int:
    """Serve until a signal. Returns 2 for flags it does not know; a server that cannot start raises."""
    if "--help" in words:
        sys.stdout.write("\n".join([*WITH_VALUE, *SWITCHES]) + "\n")
        return 0
    import xllamacpp  # noqa: PLC0415 - a hundred megabytes, needed only to serve

    if "--version" in words:
        sys.stdout.write(f"version: {_build(xllamacpp)}\n")
        return 0
    params = xllamacpp.CommonParams()
    fault = configure(params, words)
    if fault:
        sys.stderr.write(f"error: {fault}\n")
        return 2
    server = xllamacpp.Server(params)
    sys.stderr.write(f"serving on {server.listening_address}\n")
    while True:
        signal.pause()


def _build(xllamacpp: Any) -> str:
    told = dict(xllamacpp.BUILD_INFO)
    return f"{xllamacpp.__version__} (build {told.get('build_number')}, commit {told.get('commit')})"


def configure(params: Any, words: Sequence[str]) -> str | None:
    """Set `params` from llama-server's flags. Returns what is wrong with them, None when all were taken."""
    rest = list(words)
    while rest:
        name = rest.pop(0)
        try:
            if name in SWITCHES:
                SWITCHES[name](params, "")
            elif name in WITH_VALUE:
                WITH_VALUE[name](params, rest.pop(0))
            else:
                return f"unknown flag: {name}"
        except IndexError:
            return f"{name} needs a value"
        except (ValueError, KeyError, AttributeError):
            return f"bad value for {name}"
    return None


def _whole(attribute: str) -> Setter:
    return lambda params, word: setattr(params, attribute, int(word))


def _fraction(attribute: str) -> Setter:
    return lambda params, word: setattr(params, attribute, float(word))


def _fixed(attribute: str, value: object) -> Setter:
    return lambda params, _: setattr(params, attribute, value)


def _model(params: Any, word: str) -> None:
    params.model.path = word


def _threads(params: Any, word: str) -> None:
    params.cpuparams.n_threads = int(word)
    params.cpuparams_batch.n_threads = int(word)


def _threads_batch(params: Any, word: str) -> None:
    params.cpuparams_batch.n_threads = int(word)


def _flash_attention(params: Any, word: str) -> None:
    kinds = type(params.flash_attn_type)
    name = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[word]
    params.flash_attn_type = getattr(kinds, f"LLAMA_FLASH_ATTN_TYPE_{name}")


def _cache_type(attribute: str) -> Setter:
    def set_type(params: Any, word: str) -> None:
        kinds = type(getattr(params, attribute))
        setattr(params, attribute, getattr(kinds, f"GGML_TYPE_{word.upper()}"))

    return set_type


def _pooling(params: Any, word: str) -> None:
    kinds = type(params.pooling_type)
    params.pooling_type = getattr(kinds, f"LLAMA_POOLING_TYPE_{word.upper()}")


def _timeout(params: Any, word: str) -> None:
    params.timeout_read = params.timeout_write = int(word)


WITH_VALUE: dict[str, Setter] = {
    "-m": _model,
    "--model": _model,
    "-a": lambda params, word: setattr(params, "model_alias", set(word.split(","))),
    "--alias": lambda params, word: setattr(params, "model_alias", set(word.split(","))),
    "--host": lambda params, word: setattr(params, "hostnames", [word]),
    "--port": _whole("port"),
    "--api-key": lambda params, word: setattr(params, "api_keys", word.split(",")),
    "-np": _whole("n_parallel"),
    "--parallel": _whole("n_parallel"),
    "-c": _whole("n_ctx"),
    "--ctx-size": _whole("n_ctx"),
    "-t": _threads,
    "--threads": _threads,
    "-tb": _threads_batch,
    "--threads-batch": _threads_batch,
    "--threads-http": _whole("n_threads_http"),
    "-b": _whole("n_batch"),
    "--batch-size": _whole("n_batch"),
    "-ub": _whole("n_ubatch"),
    "--ubatch-size": _whole("n_ubatch"),
    "-n": _whole("n_predict"),
    "--predict": _whole("n_predict"),
    "-ngl": _whole("n_gpu_layers"),
    "--gpu-layers": _whole("n_gpu_layers"),
    "-fa": _flash_attention,
    "--flash-attn": _flash_attention,
    "-ctk": _cache_type("cache_type_k"),
    "--cache-type-k": _cache_type("cache_type_k"),
    "-ctv": _cache_type("cache_type_v"),
    "--cache-type-v": _cache_type("cache_type_v"),
    "-cram": _whole("cache_ram_mib"),
    "--cache-ram": _whole("cache_ram_mib"),
    "--cache-reuse": _whole("n_cache_reuse"),
    "-sps": _fraction("slot_prompt_similarity"),
    "--slot-prompt-similarity": _fraction("slot_prompt_similarity"),
    "-to": _timeout,
    "--timeout": _timeout,
    "--pooling": _pooling,
    "-lv": _whole("verbosity"),
    "--verbosity": _whole("verbosity"),
}

SWITCHES: dict[str, Setter] = {
    "-cb": _fixed("cont_batching", True),
    "--cont-batching": _fixed("cont_batching", True),
    "-nocb": _fixed("cont_batching", False),
    "--no-cont-batching": _fixed("cont_batching", False),
    "--cache-prompt": _fixed("cache_prompt", True),
    "--no-cache-prompt": _fixed("cache_prompt", False),
    "--kv-unified": _fixed("kv_unified", True),
    "--no-kv-unified": _fixed("kv_unified", False),
    "--embedding": _fixed("embedding", True),
    "--embeddings": _fixed("embedding", True),
    "--metrics": _fixed("endpoint_metrics", True),
    "--slots": _fixed("endpoint_slots", True),
    "--no-slots": _fixed("endpoint_slots", False),
    "--warmup": _fixed("warmup", True),
    "--no-warmup": _fixed("warmup", False),
    "--webui": _fixed("ui", True),
    "--no-webui": _fixed("ui", False),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
