"""The APIs of the embedded real engine: asked for lengths, streamed and whole, and read to its own counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from nilometer.core.spec import Prompts, Spec
from nilometer.engines import embedded
from nilometer.load.probe import ProbeResult, probe
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Response, fetch
from nilometer.wire.answer import Answer
from nilometer.wire.outcome import is_stream, judge
from nilometer.workload.plan import calls

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("engine")]
INPUT, OUTPUT = 64, 24


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with embedded.start(slots=2) as engine:
        yield engine.url


def asked(url: str, api: str, *, stream: bool) -> tuple[ProbeResult, Answer, int]:
    """What the probe found, and one load request sent and read: its answer, and how many frames with matter it had."""
    spec = Spec(target=url, api=api, stream=stream, prompts=Prompts(input_tokens=str(INPUT), output_tokens=str(OUTPUT)))
    endpoint = parse(url)
    found = probe(endpoint, spec, {})
    made = calls(spec, found.ruler, body=found.bodies(spec), host=endpoint.host_header, target=found.path, salt=api)
    (call,) = islice(made, 1)
    sent = call.request.partition(b"\r\n\r\n")[2]
    response = fetch(endpoint.url(found.path), method="POST", body=sent, timeout_s=120)
    answer, events = read(found, response)
    return found, answer, events


def read(found: ProbeResult, response: Response) -> tuple[Answer, int]:
    kind, head = response.headers.get("content-type"), response.body[:400]
    streamed = is_stream(kind, head)
    assert streamed is not None
    reader = found.terms.dialect.reader(streamed, True)
    events = reader.feed(response.body)
    answer = reader.close()
    verdict = judge(status=response.status, content_type=kind, head=head, answer=answer, whole=True)
    assert verdict.outcome == "ok", verdict
    return answer, events


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", ["chat", "completions", "responses", "anthropic", "llamacpp"])
def test_an_answer_has_the_asked_length_by_the_engines_own_count(url: str, api: str, stream: bool) -> None:
    found, answer, events = asked(url, api, stream=stream)
    assert (found.ruler.source, found.ruler.verified) == ("server_tokenizer", True)
    assert answer.prompt_tokens == pytest.approx(INPUT, rel=0.02)
    assert (answer.output_tokens, answer.token_source) == (OUTPUT, "usage")
    assert (answer.choices, answer.complete, answer.hidden_tokens) == (1, True, False)
    assert answer.text
    assert (events > 0) is stream
    assert events <= OUTPUT
    assert answer.model or api == "llamacpp"


def test_each_frame_of_the_native_api_states_its_tokens(url: str) -> None:
    spec = Spec(target=url, api="llamacpp", prompts=Prompts(input_tokens=str(INPUT), output_tokens=str(OUTPUT)))
    found = probe(parse(url), spec, {})
    body = found.bodies(spec)("The river rises", OUTPUT, ())
    response = fetch(url + "/completion", method="POST", body=body, timeout_s=120)
    reader = found.terms.dialect.reader(True, False)
    reader.feed(response.body)
    answer = reader.close()
    assert all(tokens >= 1 for tokens in reader.tokens)
    assert OUTPUT - 1 <= sum(reader.tokens) <= OUTPUT
    assert answer.server is not None
    assert answer.server["predicted_n"] == OUTPUT


@pytest.mark.parametrize(("api", "pooling"), [("embeddings", "mean"), ("rerank", "rank")])
def test_an_encoder_states_its_input_alone(api: str, pooling: str) -> None:
    with embedded.start(spec=f"embedded:--embeddings --pooling {pooling}", slots=1) as engine:
        found, answer, events = asked(engine.url, api, stream=True)
    assert found.terms.api == api
    assert answer.prompt_tokens == pytest.approx(INPUT, rel=0.02)
    assert (answer.output_tokens, answer.token_source, events) == (None, "none", 0)
