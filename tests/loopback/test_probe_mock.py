"""The probe against the mock server on a real socket, and against servers that are none."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest

from nilometer.core.errors import SpecError, TargetError
from nilometer.core.spec import Prompts, Spec
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.load.probe import ProbeResult, probe
from nilometer.net.endpoint import parse
from nilometer.net.fetch import fetch
from nilometer.workload.plan import calls

PROMPTS = Prompts(input_tokens="uniform:20,600", output_tokens="uniform:3,9")


@contextlib.contextmanager
def mock(**script: Any) -> Iterator[str]:
    with launched(Script(ttft_ms=0, gap_ms=0, **script)) as server:
        yield server.url


def probed(url: str, headers: dict[str, str] | None = None, **spec: Any) -> ProbeResult:
    return probe(parse(url), Spec(target=url, prompts=PROMPTS, **spec), headers or {}, timeout_s=20)


@pytest.mark.parametrize("tokenize", [True, False])
def test_requests_made_after_a_probe_have_the_asked_tokens_in_and_out(tokenize: bool) -> None:
    with mock(tokenize=tokenize, template_tokens=7, stop_after=(1, 2)) as url:
        found = probed(url)
        assert (found.ruler.source, found.ruler.verified) == ("server_tokenizer" if tokenize else "usage", True)
        assert (found.template_tokens, found.findings) == (7, ())
        spec = Spec(target=url, prompts=PROMPTS, stream=False)
        endpoint = parse(url)
        made = calls(spec, found.ruler, body=found.bodies(spec), host=endpoint.host_header, target=found.path)
        for call in islice(made, 20):
            sent = call.request.partition(b"\r\n\r\n")[2]
            answer = fetch(endpoint.url(found.path), method="POST", body=sent)
            usage = msgspec.json.decode(answer.body)["usage"]
            assert (usage["prompt_tokens"], usage["completion_tokens"]) == (call.asked_input, call.asked_output)


def test_the_address_may_end_in_v1_or_not() -> None:
    with mock() as url:
        assert probed(f"{url}/v1").path == probed(url).path == "/v1/chat/completions"


def test_a_server_that_refuses_stream_options_is_asked_without() -> None:
    with mock(refuse_stream_options=True) as url:
        found = probed(url)
    assert not found.terms.include_usage
    assert [finding.slug for finding in found.findings] == ["stream_options_refused", "usage_missing"]


def test_a_key_is_needed_and_taken() -> None:
    with mock(api_key="secret") as url:
        with pytest.raises(TargetError) as refused:
            probed(url)
        found = probed(url, {"Authorization": "Bearer secret"})
    assert (refused.value.slug, refused.value.params["status"]) == ("unauthorised", 401)
    assert found.model.id == "mock"
    assert b"secret" not in msgspec.json.encode(found)


def test_of_several_models_the_named_one_is_asked() -> None:
    with mock(models=("a", "b")) as url:
        with pytest.raises(SpecError) as refused:
            probed(url)
        found = probed(url, model="b")
    assert (refused.value.slug, refused.value.params) == ("model_needed", {"served": "a, b"})
    assert (found.terms.model, found.models) == ("b", ("a", "b"))


def test_an_unknown_model_is_refused_with_those_served() -> None:
    with mock() as url, pytest.raises(SpecError) as refused:
        probed(url, model="llama3")
    assert (refused.value.slug, refused.value.params) == ("model_unknown", {"model": "llama3", "served": "mock"})


def test_a_path_that_is_not_there_is_told_with_the_one_that_is() -> None:
    with mock() as url, pytest.raises(TargetError) as refused:
        probed(f"{url}/api/v1")
    assert (refused.value.slug, refused.value.params["answers"]) == ("path_elsewhere", f"{url}/v1")


# --- what is no model server


@contextlib.contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A socket that takes connections in and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def fault(url: str, timeout_s: float = 20.0) -> TargetError:
    with pytest.raises(TargetError) as refused:
        probe(parse(url), Spec(target=url), {}, timeout_s=timeout_s)
    return refused.value


def test_nothing_listens() -> None:
    with listening() as (_, url):
        pass
    assert fault(url).slug == "connect_refused"


def test_no_such_host() -> None:
    assert fault("http://no-such-host.invalid").slug == "name_unknown"


def test_a_server_that_never_answers_is_not_waited_for_for_ever() -> None:
    with listening() as (_, url):
        assert fault(url, timeout_s=0.2).slug == "timeout"


@pytest.mark.parametrize(
    ("answer", "slug"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not_http"),
        (b"", "connection_cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "connection_cut"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>",
            "not_a_model_server",
        ),
        (b"HTTP/1.1 301 Moved\r\nLocation: https://t/\r\nContent-Length: 0\r\n\r\n", "redirected"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "unauthorised"),
    ],
)
def test_what_answers_is_no_model_server(answer: bytes, slug: str) -> None:
    with listening() as (server, url):

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        found = fault(url)
        thread.join()
    assert found.slug == slug
