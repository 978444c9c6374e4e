"""A whole load test through each API, by the command line, on a real server: what is asked where, and what is found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest
from tests.loopback import speaking
from tests.loopback.replay import Exchange, Replay
from tests.loopback.speaking import FIRST_MS, GAP_MS, Speak, speaker
from tests.loopback.test_measure import Env, env, nilo

__all__ = ["env"]
LOOKED_FOR = {"/metrics", "/prometheus/metrics"}
"""Pages of metrics, which any server may have."""
QUICK = ("--warmup", "0s", "--requests", "6", "--input-tokens", "40", "--output-tokens", "20", "--no-archive")


class Way(NamedTuple):
    """How one API is measured, and where its requests must go: streamed, and whole."""

    speak: Speak
    words: tuple[str, ...]
    streamed: str | None
    whole: str
    api: str
    address: str = ""


WAYS = {
    "ollama": Way(speaking.ollama, (), "/api/chat", "/api/chat", "ollama"),
    "ollama_below_api": Way(speaking.ollama, ("--api", "ollama"), "/api/chat", "/api/chat", "ollama", "/api"),
    "tgi": Way(speaking.tgi, (), "/generate_stream", "/generate", "tgi"),
    "gemini": Way(
        speaking.gemini,
        ("--api", "gemini", "--model", "reed"),
        "/v1beta/models/reed:streamGenerateContent?alt=sse",
        "/v1beta/models/reed:generateContent",
        "gemini",
        "/v1beta",
    ),
    "anthropic": Way(speaking.anthropic, ("--api", "anthropic"), "/v1/messages", "/v1/messages", "anthropic"),
    "responses": Way(
        speaking.responses, ("--api", "responses", "--model", "reed"), "/v1/responses", "/v1/responses", "responses"
    ),
    "llamacpp": Way(speaking.llamacpp, ("--api", "llamacpp"), "/completion", "/completion", "llamacpp"),
    "azure": Way(
        speaking.azure,
        (),
        "/openai/deployments/reed/chat/completions?api-version=2024-10-21",
        "/openai/deployments/reed/chat/completions?api-version=2024-10-21",
        "chat",
        "/openai/deployments/reed?api-version=2024-10-21",
    ),
    "embeddings": Way(speaking.encoder, ("--api", "embeddings"), None, "/v1/embeddings", "embeddings"),
    "rerank": Way(speaking.encoder, ("--api", "rerank"), None, "/v1/rerank", "rerank"),
}


def measured(env: Env, way: Way, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[Exchange]]:
    """(summary, raw records, what the server was asked) of one load test."""
    records = Path(env["XDG_DATA_HOME"]).parent / "records.jsonl"
    with Replay(speaker(way.speak)) as server:
        done = nilo(
            env,
            *("measure", server.url + way.address, "-c", "2", *QUICK, "--records", str(records), "--json"),
            *way.words,
            *words,
        )
    assert done.returncode in (0, 4), done.stderr
    return json.loads(done.stdout), [json.loads(line) for line in records.read_text().splitlines()], server.exchanges


def on_schedule(records: list[dict[str, Any]]) -> None:
    """No first token before its time, and half of the answers as the server means them: it may be late itself."""
    assert min(record["ttft_ms"] for record in records) >= FIRST_MS - 0.2
    assert median(record["ttft_ms"] for record in records) < FIRST_MS + GAP_MS + 10
    assert median(record["tpot_ms"] for record in records) == pytest.approx(GAP_MS, abs=1)


@pytest.mark.parametrize("name", WAYS)
def test_a_streamed_load_test(env: Env, name: str) -> None:
    way = WAYS[name]
    run, records, exchanges = measured(env, way)
    assert (run["requests"]["ok"], run["requests"]["error"], run["spec"]["api"]) == (6, 0, way.api)
    assert {record["prompt_tokens"] for record in records} == {40}
    assert [e.path for e in exchanges[-len(records) :]] == [way.streamed or way.whole] * len(records)
    if way.streamed is None:
        assert (run["latency_ms"]["ttft"], run["latency_ms"]["tpot"]) == (None, None)
        assert run["throughput"]["output_tokens_per_s"] is None
        assert run["throughput"]["input_tokens_per_s"] > 0
        assert run["latency_ms"]["e2e"]["n"] == 6
        assert run["spec"]["stream"] is False
        assert (run["lengths"]["asked_output"]["mean"], run["lengths"]["output"]["mean"]) == (None, None)
        assert {(record["asked_output"], record["output_tokens"]) for record in records} == {(None, None)}
        return
    assert {record["output_tokens"] for record in records} == {20}
    on_schedule(records)


@pytest.mark.parametrize("name", ["embeddings", "rerank"])
def test_of_what_generates_nothing_no_output_is_foretold_or_told(env: Env, name: str) -> None:
    """Six requests of 40 tokens."""
    way = WAYS[name]
    with Replay(speaker(way.speak)) as server:
        done = nilo(env, "measure", server.url, *QUICK, "--price", "in=1,out=1000", *way.words)
    assert "about 240 tokens, about 0.00024 USD" in done.stderr
    assert "output" not in done.stdout


@pytest.mark.parametrize("name", ["embeddings", "rerank"])
def test_what_generates_nothing_holds_no_conversation(env: Env, name: str) -> None:
    way = WAYS[name]
    with Replay(speaker(way.speak)) as server:
        done = nilo(env, "measure", server.url, *QUICK, *way.words, "--turns", "uniform:1,3")
        assert not server.exchanges, "refused before anything is sent"
    assert done.returncode == 2
    assert "takes no conversation" in done.stderr


@pytest.mark.parametrize("name", [name for name in WAYS if name not in ("embeddings", "rerank", "ollama_below_api")])
def test_a_load_test_of_whole_answers(env: Env, name: str) -> None:
    way = WAYS[name]
    run, records, exchanges = measured(env, way, "--no-stream")
    assert (run["requests"]["ok"], run["latency_ms"]["ttft"]) == (6, None)
    assert {record["output_tokens"] for record in records} == {20}
    assert [e.path for e in exchanges[-len(records) :]] == [way.whole] * len(records)


@pytest.mark.parametrize("name", ["ollama_below_api", "gemini", "anthropic", "responses", "azure", "embeddings"])
def test_without_a_probe_the_same_address_is_asked(env: Env, name: str) -> None:
    way = WAYS[name]
    words = ("--no-probe",) if "--model" in way.words else ("--no-probe", "--model", "reed:latest")
    run, records, exchanges = measured(env, way, *words)
    assert run["requests"]["ok"] == 6
    unheld = [finding for finding in run["findings"] if finding["slug"] == "output_length_unheld"]
    assert len(unheld) == (name != "embeddings")
    assert {e.path for e in exchanges} == {way.streamed or way.whole}
    assert len(exchanges) == len(records)


@pytest.mark.parametrize("slo", ["chat", "e2e_p95<=1s,output_tokens_per_s>=5"])
def test_a_bound_on_tokens_that_are_not_generated_is_refused_and_nothing_is_sent(env: Env, slo: str) -> None:
    with Replay(speaker(speaking.encoder)) as server:
        done = nilo(env, "measure", server.url, "--api", "embeddings", "--slo", slo, *QUICK)
    assert (done.returncode, server.exchanges) == (2, []), done.stderr
    assert "slo_without_tokens" in done.stderr


def test_an_openai_server_is_asked_nothing_of_another_api(env: Env) -> None:
    way = Way(speaking.chat, (), "/v1/chat/completions", "/v1/chat/completions", "chat")
    _, _, exchanges = measured(env, way)
    asked = {e.path for e in exchanges}
    assert asked - LOOKED_FOR <= {"/v1/models", "/v1/chat/completions", "/tokenize"}, asked


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("anthropic", "x-api-key", "s3cret"),
        ("gemini", "x-goog-api-key", "s3cret"),
        ("azure", "api-key", "s3cret"),
        ("ollama", "authorization", "Bearer s3cret"),
    ],
)
def test_a_key_goes_in_the_header_of_the_api(env: Env, name: str, header: str, value: str) -> None:
    run, _, exchanges = measured({**env, "REED_KEY": "s3cret"}, WAYS[name], "--api-key-env", "REED_KEY")
    assert {e.headers.get(header) for e in exchanges} == {value}
    others = {"x-api-key", "x-goog-api-key", "api-key", "authorization"} - {header}
    assert not any(other in e.headers for e in exchanges for other in others)
    assert "s3cret" not in json.dumps(run)
    if name == "anthropic":
        assert {e.headers.get("anthropic-version") for e in exchanges} == {"2023-06-01"}


def test_a_header_given_stands_in_place_of_the_dialects(env: Env) -> None:
    _, _, exchanges = measured(env, WAYS["anthropic"], "--header", "Anthropic-Version: 2099-01-01")
    assert {e.headers.get("anthropic-version") for e in exchanges} == {"2099-01-01"}


def test_a_model_that_stands_in_the_path_must_be_named(env: Env) -> None:
    with Replay(speaker(speaking.gemini)) as server:
        for more in ((), ("--no-probe",)):
            done = nilo(env, "measure", server.url, "--api", "gemini", *QUICK, *more)
            assert (done.returncode, "Traceback" in done.stderr) == (2, False)
            assert "--model" in done.stderr
    assert server.exchanges == []


PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to").glob("other-protocols*.md"))


def said_in(page: Path) -> str:
    """The protocol file that a page shows."""
    (block,) = re.findall(r"^```toml\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_protocol_of_the_page_measures_its_service(env: Env, page: Path, tmp_path: Path) -> None:
    assert said_in(page) == said_in(PAGES[0])
    file = tmp_path / "reed.toml"
    file.write_text(said_in(page))
    way = Way(speaking.reed, ("--api", str(file), "--model", "reed"), "/v2/reed/say", "/v2/reed/say", str(file))
    run, records, exchanges = measured({**env, "REED_KEY": "s3cret"}, way, "--api-key-env", "REED_KEY")
    assert (run["requests"]["ok"], run["spec"]["api"]) == (6, str(file))
    assert {(record["prompt_tokens"], record["output_tokens"]) for record in records} == {(40, 20)}
    assert {record["finish_reason"] for record in records} == {"length"}
    on_schedule(records)
    assert {e.path for e in exchanges} - LOOKED_FOR == {"/v2/reed/say"}
    assert {(e.headers["x-reed-key"], e.headers["x-client"]) for e in exchanges} == {("s3cret", "nilometer")}
    assert "s3cret" not in json.dumps(run)
    run, records, _ = measured(env, way, "--no-stream")
    assert (run["requests"]["ok"], {record["output_tokens"] for record in records}) == (6, {20})


def test_a_protocol_file_with_a_mistake_is_refused_and_nothing_is_sent(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "reed.toml"
    with Replay(speaker(speaking.reed)) as server:
        for text, said in ((said_in(PAGES[0]).replace("finish", "finnish"), "line"), ("path = ", "line")):
            file.write_text(text)
            done = nilo(env, "measure", server.url, "--api", str(file), *QUICK)
            assert (done.returncode, "Traceback" in done.stderr) == (2, False)
            assert str(file) in done.stderr
            assert said in done.stderr
        done = nilo(env, "measure", server.url, "--api", str(tmp_path / "none.toml"), *QUICK)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert server.exchanges == []


def test_a_place_that_no_answer_has_is_told(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "reed.toml"
    file.write_text(said_in(PAGES[0]).replace("out.*.piece", "out.*.peace"))
    way = Way(speaking.reed, ("--api", str(file), "--model", "reed"), "/v2/reed/say", "/v2/reed/say", str(file))
    run, records, _ = measured(env, way, "--no-probe")
    (found,) = (finding for finding in run["findings"] if finding["slug"] == "places_not_found")
    assert found["params"]["places"] == "stream.text = out.*.peace"
    assert {record["ttft_ms"] for record in records} == {None}


@pytest.mark.parametrize("probe", ["--probe", "--no-probe"])
def test_a_header_that_no_request_may_have_is_refused_and_nothing_is_sent(env: Env, probe: str) -> None:
    with Replay(speaker(speaking.ollama)) as server:
        done = nilo(env, "measure", server.url, "--header", "Content-Length: 3", "--model", "m", probe, *QUICK)
    assert (done.returncode, server.exchanges) == (2, []), done.stderr
    assert "header_reserved" in done.stderr


def test_a_run_through_a_file_is_repeated_without_it(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "reed.toml"
    file.write_text(re.sub(r"\[headers\]\n.*\n", "", said_in(PAGES[0])))
    words = [word for word in QUICK if word != "--no-archive"]
    with Replay(speaker(speaking.reed)) as server:
        first = nilo(env, "measure", server.url, "--api", str(file), "--model", "reed", *words, "--json")
        assert first.returncode in (0, 4), first.stderr
        file.unlink()
        run = json.loads(first.stdout)["run"]
        second = nilo(env, "measure", "--like", run, *words, "--json")
    assert second.returncode in (0, 4), second.stderr
    assert json.loads(second.stdout)["requests"]["ok"] == 6
