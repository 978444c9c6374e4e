"""Pages of running engines, as they were seen, over a real socket: what each says of how it was started."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.loopback.scripted import Scripted, ok, take_request

from nilometer.core.errors import NiloError, TargetError
from nilometer.plan.launch.command import Launch
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.sources.engine_servers import PAGES, read_engine_server
from nilometer.sources.launches import read_launch

VLLM_METRICS = b"""# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",calculate_kv_scales="False",cpu_offload_gb="0",\
enable_prefix_caching="False",gpu_memory_utilization="0.82",is_attention_free="False",num_cpu_blocks="1024",\
num_gpu_blocks="573",num_gpu_blocks_override="None",sliding_window="None",swap_space_bytes="4294967296"} 1.0
"""
"""As a vLLM showed it."""
PAGES_OF: dict[str, dict[str, Any]] = {
    "llama.cpp": {
        "/props": {
            "total_slots": 4,
            "model_path": "/models/m-Q4_K_M.gguf",
            "build_info": "b7079-1a2b3c4",
            "default_generation_settings": {"n_ctx": 2048},
        }
    },
    "sglang": {
        "/get_server_info": {
            "model_path": "qwen/qwen2.5-0.5b-instruct",
            "context_length": None,
            "mem_fraction_static": 0.853,
            "max_running_requests": 128,
            "chunked_prefill_size": -1,
            "page_size": 1,
            "disable_radix_cache": True,
            "disable_cuda_graph": False,
            "tp_size": 2,
            "max_total_num_tokens": 20_480,
            "kv_cache_dtype": "auto",
            "version": "0.5.9",
        }
    },
    "tgi": {
        "/info": {
            "model_id": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
            "max_concurrent_requests": 128,
            "max_input_tokens": 1024,
            "max_total_tokens": 2048,
            "max_batch_total_tokens": 32_000,
            "max_batch_size": None,
            "version": "2.4.1",
        }
    },
    "ollama": {
        "/api/version": {"version": "0.12.3"},
        "/api/ps": {
            "models": [
                {
                    "name": "qwen2.5:7b",
                    "context_length": 4096,
                    "size_vram": 4_748_056_984,
                    "details": {"quantization_level": "Q4_K_M"},
                }
            ]
        },
    },
    "vllm": {
        "/metrics": VLLM_METRICS,
        "/v1/models": {"data": [{"id": "mine", "root": "Qwen/Qwen3-32B", "owned_by": "vllm", "max_model_len": 8192}]},
        "/version": {"version": "0.11.0"},
    },
}


def answers(pages: dict[str, Any], status: int = 404) -> Callable[[socket.socket], None]:
    def handle(sock: socket.socket) -> None:
        path = take_request(sock).split(b" ")[1].decode()
        if path in pages:
            body = pages[path]
            sock.sendall(ok(body if isinstance(body, bytes) else json.dumps(body).encode()))
        else:
            sock.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\nno".encode())

    return handle


def asked(pages: dict[str, Any]) -> Launch:
    with Scripted(answers(pages)) as server:
        return read_engine_server(server.url)


def test_llama_cpp() -> None:
    found = asked(PAGES_OF["llama.cpp"])
    assert (found.engine, found.version, found.model) == ("llama.cpp", "b7079-1a2b3c4", "/models/m-Q4_K_M.gguf")
    assert (found.settings, found.weights) == (Settings(context=8_192, slots=4), "q4_k_m")


def test_sglang_on_its_old_page_and_its_new() -> None:
    page = PAGES_OF["sglang"]["/get_server_info"]
    for path in ("/get_server_info", "/server_info"):
        found = asked({path: page})
        assert (found.engine, found.version, found.model) == ("sglang", "0.5.9", "qwen/qwen2.5-0.5b-instruct")
        assert (found.parallel, found.kv_tokens) == (Parallel(tensor=2), 20_480)
        wanted = Settings(utilisation=0.853, max_seqs=128, chunked=False, block=1, prefix_caching=False)
        assert found.settings == wanted


def test_tgi() -> None:
    found = asked(PAGES_OF["tgi"])
    assert (found.engine, found.version, found.kv_tokens) == ("tgi", "2.4.1", 32_000)
    assert found.settings == Settings(context=2_048, prefix_caching=False)
    assert found.admitted == 128


def test_ollama_with_a_model_loaded_and_without() -> None:
    found = asked(PAGES_OF["ollama"])
    assert (found.engine, found.version, found.model, found.weights) == ("ollama", "0.12.3", "qwen2.5:7b", "q4_k_m")
    assert found.settings.context == 4_096
    empty = asked({"/api/version": {"version": "0.12.3"}, "/api/ps": {"models": []}})
    assert (empty.engine, empty.model, empty.settings.context) == ("ollama", None, None)


def test_vllm() -> None:
    found = asked(PAGES_OF["vllm"])
    assert (found.engine, found.version, found.model) == ("vllm", "0.11.0", "Qwen/Qwen3-32B")
    assert found.settings == Settings(utilisation=0.82, block=16, context=8_192, prefix_caching=False)
    assert (found.kv_tokens, found.key_precision) == (573 * 16, "auto")
    assert {one.place for one in found.given} == {"GET /metrics", "GET /v1/models"}
    bare = asked({"/v1/models": PAGES_OF["vllm"]["/v1/models"]})
    assert (bare.settings, bare.version) == (Settings(context=8_192), None)


def test_an_address_is_one_way_in_with_or_without_its_path() -> None:
    with Scripted(answers(PAGES_OF["llama.cpp"])) as server:
        assert read_launch(server.url) == read_launch(f" {server.url}/v1 ") == read_engine_server(server.url)


@pytest.mark.parametrize("pages", [{}, {"/v1/models": {"data": [{"id": "m", "owned_by": "someone"}]}}, {"/props": []}])
def test_a_server_that_says_nothing(pages: dict[str, Any]) -> None:
    with pytest.raises(TargetError, match="engine_untold"):
        asked(pages)


def test_a_server_that_lets_nobody_in() -> None:
    with Scripted(answers({}, 401)) as server, pytest.raises(TargetError, match="unauthorised"):
        read_engine_server(server.url, headers={"authorization": "Bearer canary"})


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TargetError, match="connect_refused"):
        read_engine_server(f"http://127.0.0.1:{port}")


ODD: list[Any] = [
    b"[" * 9_999,
    b"\xff",
    [],
    {},
    None,
    -5,
    1 << 80,
    1e308,
    "x" * 10_000,
    True,
    [{}],
    {"a": [1]},
    "\x00$(",
]


@pytest.mark.parametrize("engine", PAGES_OF)
def test_odd_pages_are_read_or_refused(engine: str) -> None:
    """Each page replaced, and each of its fields."""
    pages: dict[str, Any] = {}
    with Scripted(answers(pages)) as server:
        for path, page in PAGES_OF[engine].items():
            variants = list(ODD)
            if isinstance(page, dict):
                variants += [{**page, key: odd} for key in page for odd in ODD if not isinstance(odd, bytes)]
            for variant in variants:
                pages.clear()
                pages.update({**PAGES_OF[engine], path: variant})
                try:
                    found = read_engine_server(server.url)
                except NiloError:
                    continue
                assert found.parallel.devices >= 1


def test_the_pages_that_are_asked_for_are_those_that_the_refusal_names() -> None:
    seen: list[str] = []

    def handle(sock: socket.socket) -> None:
        seen.append(take_request(sock).split(b" ")[1].decode())
        sock.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")

    with Scripted(handle) as server, pytest.raises(TargetError) as caught:
        read_engine_server(server.url)
    assert tuple(seen) == PAGES
    assert caught.value.params["detail"] == ", ".join(PAGES)
