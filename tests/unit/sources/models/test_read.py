"""The one way in: names, paths and running servers."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.scripted import Scripted, ok, take_request

from nilometer.core.errors import DataError, SpecError, TargetError
from nilometer.sources.models.read import read_model

from .configs import CONFIGS
from .ggufs import ATTENTION, DENSE, write


def answers(pages: dict[str, Any]) -> Callable[[socket.socket], None]:
    def handle(sock: socket.socket) -> None:
        path = take_request(sock).split(b" ")[1].decode()
        if path in pages:
            body = pages[path]
            sock.sendall(ok(body if isinstance(body, bytes) else json.dumps(body).encode()))
        else:
            sock.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    return handle


def test_a_name() -> None:
    found = read_model("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16")
    assert found.shape is not None
    assert (found.origin, found.shape.name) == ("known", "meta-llama/Llama-3.1-8B")
    assert (found.precision, found.precision_from, found.published) == ("w4a16", "name", 8_030_261_248)
    assert found.weight_bytes is None
    plain = read_model("deepseek-v3")
    assert (plain.precision, plain.shape and plain.shape.dtype) == (None, "fp8_block")


def test_a_config_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["deepseek v3"][1]))
    for way in (tmp_path, tmp_path / "config.json"):
        found = read_model(str(way))
        assert (found.origin, found.precision, found.precision_from) == ("config", "fp8_block", "config")
        assert found.weight_bytes is None


def test_a_gguf_by_its_name_or_its_first_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", [{**ATTENTION, **DENSE}])
    other = tmp_path / "blob"
    other.write_bytes(path.read_bytes())
    for way in (path, tmp_path, other):
        found = read_model(str(way))
        assert (found.origin, found.precision) == ("gguf", "fp32")
        assert found.weight_bytes == found.formats["F32"]


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("no-such.gguf", "file_unreadable"),
        ("./llama-3.1-8b", "file_unreadable"),
        ("/no/such/config.json", "file_unreadable"),
        ("never-heard-of", "plan_model_unknown"),
        ("x" * 5000, "plan_model_unknown"),
        ("a\0b", "plan_model_unknown"),
    ],
)
def test_what_is_not_there(text: str, slug: str) -> None:
    with pytest.raises(DataError, match=slug):
        read_model(text)


def test_files_and_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="model_folder_empty"):
        read_model(str(tmp_path))
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(DataError, match="model_file_not"):
        read_model(str(path))


def test_a_server_of_vllm() -> None:
    row = {"id": "mine", "root": "Qwen/Qwen2.5-7B-Instruct-AWQ", "max_model_len": 8192, "owned_by": "vllm"}
    with Scripted(answers({"/v1/models": {"object": "list", "data": [row, {"id": "lora"}]}})) as server:
        for url in (server.url, f"{server.url}/v1"):
            found = read_model(url)
    assert found.served is not None
    assert found.shape is not None
    assert (found.origin, found.shape.name, found.precision) == ("server", "Qwen/Qwen2.5-7B", "int4")
    assert (found.served.id, found.served.others, found.served.context) == ("mine", ("lora",), 8192)
    assert found.weight_bytes is None


def test_a_server_of_llama_cpp(tmp_path: Path) -> None:
    meta = {"n_params": 134515008, "size": 142884864, "n_ctx_train": 8192, "n_vocab": 49152, "n_embd": 576}
    pages = {
        "/v1/models": {"data": [{"id": "/models/SmolLM2-135M-Instruct-Q8_0.gguf", "meta": meta}]},
        "/props": {"total_slots": 4, "model_path": "/m", "default_generation_settings": {"n_ctx": 2048}},
    }
    with Scripted(answers(pages)) as server:
        found = read_model(server.url)
    assert found.served is not None
    assert found.shape is not None
    assert (found.shape.name, found.precision) == ("HuggingFaceTB/SmolLM2-135M", "q8_0")
    assert found.weight_bytes == 142_884_864
    served = found.served
    assert (served.slots, served.context, served.trained_context, served.parameters) == (4, 2048, 8192, 134_515_008)


def test_a_server_on_this_machine_says_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "own.gguf", [{**ATTENTION, **DENSE}])
    pages = {
        "/v1/models": {"data": [{"id": "own", "meta": {"n_params": 1}}]},
        "/props": {"model_path": str(path)},
    }
    with Scripted(answers(pages)) as server:
        found = read_model(server.url)
        path.write_bytes(b"GGUF")
        damaged = read_model(server.url)
    assert found.shape is not None
    assert (found.origin, found.shape.hidden) == ("server", 64)
    assert found.weight_bytes == found.formats["F32"]
    assert damaged.shape is None


def test_a_server_whose_model_is_not_known() -> None:
    with Scripted(answers({"/v1/models": {"data": [{"id": "house-model", "max_model_len": 4096}]}})) as server:
        found = read_model(server.url)
    assert found.shape is None
    assert found.served is not None
    assert (found.served.id, found.served.context) == ("house-model", 4096)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]", b'{"data": 7}', b'{"data": [{"id": 5}]}', b"[" * 9999])
def test_a_page_that_is_no_list_of_models(body: bytes) -> None:
    with Scripted(answers({"/v1/models": body})) as server, pytest.raises(TargetError, match="not_a_model_server"):
        read_model(server.url)


def test_a_server_that_lists_nothing_or_lets_nobody_in() -> None:
    with Scripted(answers({"/v1/models": {"data": []}})) as server:
        found = read_model(server.url)
    assert (found.shape, found.served and found.served.id) == (None, None)

    def closed(sock: socket.socket) -> None:
        take_request(sock)
        sock.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")

    with Scripted(closed) as server, pytest.raises(TargetError, match="unauthorised"):
        read_model(server.url)


def test_an_address_that_is_none() -> None:
    with pytest.raises(SpecError, match="target_url"):
        read_model("ftp://x/y")
    with pytest.raises(TargetError, match="connect_refused"):
        read_model("http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["pipe", "pipe.json", "pipe.gguf", "pipe.safetensors"])
def test_a_pipe_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="file_piped"):
        read_model(str(tmp_path / name))
