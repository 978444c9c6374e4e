"""Metrics pages of running servers and kept files: where they are looked for, and what is no page."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loopback.scripted import Scripted, take_request

from nilometer.core.errors import DataError, TargetError
from nilometer.metrics.server_figures import Loaded, ServerFigures, Slots
from nilometer.sources.metrics_page import MOST_BYTES, Found, read_file, read_url

VLLM = "vllm:num_requests_running 3\n"
LLAMACPP = "llamacpp:requests_processing 2\nllamacpp:tokens_predicted_total 9\n"
SLOTS = [
    {"id": 0, "n_ctx": 512, "is_processing": True, "id_task": 21},
    {"id": 1, "n_ctx": 512, "is_processing": False},
]
PROPS = {"total_slots": 4, "default_generation_settings": {"n_ctx": 1024, "params": {}}}
PS = {"models": [{"name": "qwen2.5:7b", "size": 5_137_025_024, "size_vram": 4_748_056_984, "context_length": 4096}]}
Answer = str | bytes | int | list[Any] | dict[str, Any]


def serving(pages: dict[str, Answer]) -> Callable[[socket.socket], None]:
    """Each path with its page; a number is a bare status."""

    def handle(sock: socket.socket) -> None:
        line = take_request(sock).split(b"\r\n", 1)[0].decode()
        answer = pages.get(line.split()[1], 404)
        status, body = (answer, b"no") if isinstance(answer, int) else (200, answer)
        if isinstance(body, list | dict):
            body = json.dumps(body)
        data = body if isinstance(body, bytes) else body.encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        sock.sendall(head.encode() + data)

    return handle


def found_at(pages: dict[str, Answer], tail: str = "", **options: Any) -> Found:
    with Scripted(serving(pages)) as server:
        return read_url(server.url + tail, **options)


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/metrics", "/metrics/"])
def test_an_address_with_and_without_its_path(tail: str) -> None:
    found = found_at({"/metrics": VLLM}, tail)
    assert found.page.names == ["vllm:num_requests_running"]
    assert found.place.endswith("/metrics")


def test_a_page_elsewhere_is_found_where_the_address_says() -> None:
    pages: dict[str, Answer] = {"/a/metrics": VLLM, "/b/prometheus/metrics": VLLM}
    for tail in ("/a", "/a/v1", "/a/metrics", "/b", "/b/prometheus/metrics"):
        assert found_at(pages, tail).page.names == ["vllm:num_requests_running"]


def test_tensorrt_llm_answers_json_at_metrics_and_has_its_page_below_prometheus() -> None:
    found = found_at({"/metrics": [], "/prometheus/metrics": "trtllm_num_requests_running 2\n"})
    assert found.page.names == ["trtllm_num_requests_running"]


def test_a_redirect_to_the_same_path_with_a_slash_is_followed() -> None:
    def handle(sock: socket.socket) -> None:
        path = take_request(sock).split()[1]
        if path == b"/metrics":
            sock.sendall(b"HTTP/1.1 307 X\r\nLocation: /metrics/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif path == b"/metrics/":
            sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + VLLM.encode())

    with Scripted(handle) as server:
        assert read_url(server.url).page.names == ["vllm:num_requests_running"]


def test_llama_cpp_tells_its_slots_beside_the_page() -> None:
    assert found_at({"/metrics": LLAMACPP, "/slots": SLOTS}).slots == Slots(total=2, busy=1, context_tokens=512)
    closed: dict[str, Answer] = {"/metrics": LLAMACPP, "/slots": 501, "/props": PROPS}
    assert found_at(closed).slots == Slots(total=4, context_tokens=1024)
    assert found_at({"/x/metrics": LLAMACPP, "/x/props": PROPS}, "/x/metrics").slots == Slots(
        total=4, context_tokens=1024
    )


@pytest.mark.parametrize("odd", ["", "[", "[]", "{}", [1], [{"n_ctx": "x"}], {"total_slots": None}, b"\xff", 500])
def test_the_page_stands_without_what_is_beside_it(odd: Answer) -> None:
    found = found_at({"/metrics": LLAMACPP, "/slots": odd, "/props": odd})
    assert (found.slots, len(found.page.names)) == (None, 2)


def test_ollama_has_no_page_and_tells_what_it_holds() -> None:
    found = found_at({"/api/ps": PS})
    figures = found.beside(ServerFigures())
    assert (figures.engine, figures.dialect, figures.running) == ("ollama", "api/ps", None)
    assert figures.loaded == [
        Loaded(model="qwen2.5:7b", bytes=5_137_025_024, device_bytes=4_748_056_984, context_tokens=4096)
    ]
    assert found_at({"/api/ps": {"models": []}}, "/api").loaded == []


@pytest.mark.parametrize(
    ("pages", "slug", "told"),
    [
        ({}, "metrics_page_missing", {"status": 404}),
        ({"/metrics": 501}, "metrics_page_missing", {"status": 501}),
        ({"/metrics": "<!doctype html>\n<p>hello"}, "metrics_page_not", {"detail": "'<!doctype html> <p>hello'"}),
        ({"/metrics": ""}, "metrics_page_not", {"detail": "''"}),
        ({"/metrics": {"error": "x"}}, "metrics_page_not", {}),
        ({"/metrics": 401}, "unauthorised", {"status": 401}),
    ],
)
def test_a_server_without_a_page(pages: dict[str, Answer], slug: str, told: dict[str, object]) -> None:
    with pytest.raises(TargetError) as refused:
        found_at(pages)
    assert refused.value.slug == slug
    assert refused.value.params.items() >= told.items()


def test_a_page_that_is_too_large_is_refused_and_never_held() -> None:
    with pytest.raises(TargetError, match="answer_too_large"):
        found_at({"/metrics": VLLM * 4_000}, most=50_000)


def test_a_page_may_be_packed() -> None:
    assert found_at({"/metrics": gzip.compress(VLLM.encode())}).page.names == ["vllm:num_requests_running"]


def test_a_kept_page(tmp_path: Path) -> None:
    file = tmp_path / "page.prom"
    for data in (VLLM.encode(), b"\xef\xbb\xbf" + VLLM.encode(), gzip.compress(VLLM.encode())):
        file.write_bytes(data)
        assert read_file(file).page.names == ["vllm:num_requests_running"]
    file.write_text(json.dumps(PS))
    assert read_file(file).loaded is not None


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "metrics_file_not"),
        (b"<html></html>", "metrics_file_not"),
        (b"{}", "metrics_file_not"),
        (b"[" * 100_000, "metrics_file_not"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "metrics_file_not"),
        (bytes(range(256)) * 40, "metrics_file_not"),
        (b"\x1f\x8bnot gzip at all", "packed_broken"),
        (gzip.compress(VLLM.encode() * 99)[:-9], "packed_broken"),
        (b"x 1\n" * (MOST_BYTES // 4 + 1), "metrics_file_large"),
        (gzip.compress(bytes(3 * MOST_BYTES)), "metrics_file_large"),
    ],
    ids=["empty", "html", "json", "deep", "elf", "binary", "no gzip", "cut gzip", "large", "bomb"],
)
def test_a_file_that_is_no_page(data: bytes, slug: str, tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_bytes(data)
    with pytest.raises(DataError) as refused:
        read_file(file)
    assert (refused.value.slug, refused.value.params["file"]) == (slug, str(file))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, Path("a\0b")):
        with pytest.raises(DataError, match="file_unreadable"):
            read_file(path)
