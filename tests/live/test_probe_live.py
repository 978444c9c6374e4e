"""Prompts and answers of an asked length on the embedded real engine, by its own usage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from nilometer.core.spec import Prompts, Spec
from nilometer.engines import embedded
from nilometer.load.probe import probe
from nilometer.net.endpoint import parse
from nilometer.net.fetch import fetch
from nilometer.workload.plan import calls

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("engine")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with embedded.start(slots=2) as engine:
        yield engine.url


@pytest.mark.parametrize(
    ("api", "tokens", "requests"), [("chat", 64, 5), ("completions", 64, 5), ("chat", 512, 2), ("chat", 1500, 1)]
)
def test_asked_and_got_agree(url: str, api: str, tokens: int, requests: int) -> None:
    spec = Spec(target=url, api=api, stream=False, prompts=Prompts(input_tokens=str(tokens), output_tokens="8"))
    endpoint = parse(url)
    found = probe(endpoint, spec, {})
    assert (found.ruler.source, found.ruler.verified, found.findings) == ("server_tokenizer", True, ())
    assert found.template_tokens is not None
    assert (found.template_tokens > 0) == (api == "chat")

    made = calls(spec, found.ruler, body=found.bodies(spec), host=endpoint.host_header, target=found.path, salt=api)
    for call in islice(made, requests):
        sent = call.request.partition(b"\r\n\r\n")[2]
        usage = msgspec.json.decode(fetch(endpoint.url(found.path), method="POST", body=sent, timeout_s=120).body)[
            "usage"
        ]
        assert usage["prompt_tokens"] == pytest.approx(tokens, rel=0.01)
        assert usage["completion_tokens"] == 8
        # the chat template's head is common to all requests; nothing else may come from the cache
        assert usage["prompt_tokens_details"]["cached_tokens"] <= found.template_tokens


def test_the_engine_says_what_it_is(url: str) -> None:
    found = probe(parse(url), Spec(target=url, prompts=Prompts(input_tokens="64", output_tokens="8")), {})
    assert (found.engine.name, found.engine.slots) == ("llama.cpp", 2)
    assert found.context_tokens is not None
    assert found.context_tokens >= 2048
    assert found.mean_e2e_s is not None
    assert found.output_tokens_per_s is not None
    assert found.requests < 150
