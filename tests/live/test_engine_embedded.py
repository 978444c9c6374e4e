"""The embedded real engine: prepared, started, answering, read, measured for what later stages lean on, and gone."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from nilometer.engines import embedded, prepare
from nilometer.engines.process import LaunchedEngine
from nilometer.metrics.server_figures import Slots, figures
from nilometer.net.fetch import fetch
from nilometer.sources.metrics_page import read_url

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]

NILO = [sys.executable, "-m", "nilometer"]
WAIT_S = 30.0


@pytest.fixture(scope="module")
def engine() -> Iterator[LaunchedEngine]:
    with embedded.start(slots=4, context_tokens_per_slot=1024) as started:
        yield started


def ask(engine: LaunchedEngine, path: str, **body: object) -> dict[str, object]:
    answer = fetch(
        engine.url + path,
        method="POST",
        headers={"Content-Type": "application/json", **engine.headers},
        body=msgspec.json.encode(body),
        timeout_s=120,
    )
    assert answer.status == 200, answer.body
    told: dict[str, object] = msgspec.json.decode(answer.body)
    return told


def usage(told: dict[str, object]) -> dict[str, object]:
    counts = told["usage"]
    assert isinstance(counts, dict)
    return counts


def chat(engine: LaunchedEngine, text: str, **more: object) -> dict[str, object]:
    return ask(engine, "/v1/chat/completions", messages=[{"role": "user", "content": text}], temperature=0, **more)


def events(engine: LaunchedEngine, path: str, **body: object) -> list[dict[str, object]]:
    """The decoded events of a stream, [DONE] left out."""
    sent = msgspec.json.encode({**body, "stream": True, "stream_options": {"include_usage": True}})
    headers = {"Content-Type": "application/json", **engine.headers}
    answer = fetch(engine.url + path, method="POST", headers=headers, body=sent, timeout_s=120)
    lines = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    return [msgspec.json.decode(line) for line in lines]


def gone(pid: int) -> bool:
    """Whether no process of this id runs; one that has ended but was not yet collected counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_record_says_what_ran(engine: LaunchedEngine) -> None:
    facts, model = engine.facts, engine.model
    assert facts.name in ("llama-server", "skulk-llama-server", "xllamacpp")
    assert facts.version
    assert facts.launched_by_us
    assert (facts.slots, facts.context_tokens) == (4, 1024)
    assert facts.flags is not None
    assert "-np" in facts.flags
    assert facts.load_time_s is not None
    assert 0 < facts.load_time_s < 120
    assert (model.precision, model.requantised_from) == ("Q4_0", "Q4_1")
    assert model.parameters == 134_515_008
    assert model.file_sha256 == prepare.prepare("Q4_0").sha256
    assert Path(engine.log_path).stat().st_size > 0
    assert engine.died() is None


def test_the_client_is_left_a_core(engine: LaunchedEngine) -> None:
    assert engine.facts.flags is not None
    threads = engine.facts.flags[engine.facts.flags.index("-t") + 1]
    assert int(threads) == embedded.threads() <= max(1, embedded.usable_processors() - 1)


def test_ignore_eos_gives_the_asked_length(engine: LaunchedEngine) -> None:
    free = usage(chat(engine, "Reply with one word: yes", max_tokens=120))
    full = usage(chat(engine, "Reply with one word: yes", max_tokens=120, ignore_eos=True))
    assert free["completion_tokens"] in range(1, 120)
    assert full["completion_tokens"] == 120


def test_a_prompt_that_was_seen_before_is_not_cheaper(engine: LaunchedEngine) -> None:
    prompt = "The river rises every summer and the people measure it. " * 8
    for _ in range(3):
        told = ask(engine, "/v1/completions", prompt=prompt, max_tokens=2)
        assert usage(told)["prompt_tokens_details"] == {"cached_tokens": 0}
        timings = told["timings"]
        assert isinstance(timings, dict)
        assert (timings["cache_n"], timings["prompt_n"]) == (0, usage(told)["prompt_tokens"])


def test_the_tokenizer_counts_what_the_usage_says(engine: LaunchedEngine) -> None:
    text = "Hello world, this is a river gauge."
    counted = ask(engine, "/tokenize", content=text)["tokens"]
    assert isinstance(counted, list)
    assert usage(ask(engine, "/v1/completions", prompt=text, max_tokens=1))["prompt_tokens"] == len(counted)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_english_text_comes_one_token_an_event(engine: LaunchedEngine, path: str) -> None:
    text = "Count from one to one hundred in English words."
    asked = {"prompt": text} if path == "/v1/completions" else {"messages": [{"role": "user", "content": text}]}
    told = events(engine, path, max_tokens=100, temperature=0, ignore_eos=True, **asked)
    matter = 0
    for event in told:
        choices = event["choices"]
        assert isinstance(choices, list)
        for choice in choices:
            matter += bool(choice.get("text") or choice.get("delta", {}).get("content"))
    assert usage(told[-1])["completion_tokens"] == 100
    assert matter == 100


def test_the_metrics_page_is_open(engine: LaunchedEngine) -> None:
    answer = fetch(engine.url + "/metrics")
    assert answer.status == 200
    assert b"llamacpp:tokens_predicted_total" in answer.body


def test_the_metrics_page_counts_what_was_asked_between_two_looks(engine: LaunchedEngine) -> None:
    before = read_url(engine.url)
    asked = [usage(ask(engine, "/v1/completions", prompt="The river rises", max_tokens=12, ignore_eos=True))]
    asked.append(usage(ask(engine, "/v1/completions", prompt="The well is deep.", max_tokens=20, ignore_eos=True)))
    after = read_url(engine.url)
    found = after.beside(figures(after.page, before.page, 1.0))
    assert (found.engine, found.reset, found.broken_lines) == ("llama.cpp", False, 0)
    assert (found.running, found.waiting) == (0, 0)
    assert found.generation_tokens == sum(each["completion_tokens"] for each in asked)  # type: ignore[misc]
    assert found.prompt_tokens == sum(each["prompt_tokens"] for each in asked)  # type: ignore[misc]
    assert found.slots == Slots(total=4, busy=0, context_tokens=1024)
    assert found.decode_tps_per_slot is not None
    assert 1 < found.decode_tps_per_slot < 100_000


def test_a_load_and_the_server_tell_the_same_of_it(engine: LaunchedEngine, tmp_path: Path) -> None:
    """Its page over the window: slots at work, tokens a second; its machine: what it took, and no quota but ours."""
    words = ("-c", "2", "--input-tokens", "48", "--output-tokens", "12", "--warmup", "0.5s", "--duration", "5s")
    told = subprocess.run(
        [*NILO, "measure", engine.url, *words, "--archive", str(tmp_path / "archive.sqlite"), "--json"],
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
    )
    assert told.returncode in (0, 4), told.stderr
    run = json.loads(told.stdout)
    server, host, rates = run["server"], run["host"], run["throughput"]
    assert server["pages"] >= 4
    assert 0 < server["running_mean"] <= 2
    assert (server["slots"], server["context_tokens"]) == (4, 1024)
    assert 0 < server["busy_slots_mean"] <= 2
    assert server["prompt_tokens"] / server["covered_s"] == pytest.approx(rates["input_tokens_per_s"], rel=0.4)
    assert server["generation_tokens"] / server["covered_s"] == pytest.approx(rates["output_tokens_per_s"], rel=0.4)
    assert 0 < host["server_cpu_cores"] <= (os.cpu_count() or 1)
    assert 0 < host["busiest_thread_share"] < 1.1
    assert host["rss_end_bytes"] > 100 << 20
    assert host["stopped_share"] == 0


def test_many_connections_kept_alive_do_not_queue_for_a_thread(engine: LaunchedEngine) -> None:
    """64 idle connections beside 4 slots: a 65th is still answered at once by the health page."""
    import http.client

    idle = [http.client.HTTPConnection("127.0.0.1", int(engine.url.rpartition(":")[2])) for _ in range(64)]
    try:
        for connection in idle:
            connection.request("GET", "/health")
            assert connection.getresponse().read()
        assert fetch(engine.url + "/health", timeout_s=2).status == 200
    finally:
        for connection in idle:
            connection.close()


def test_the_engine_is_gone_after_its_context() -> None:
    with embedded.start(slots=1, context_tokens_per_slot=256) as started:
        pid = started.pid
        assert psutil.Process(pid).is_running()
    assert gone(pid)
    assert Path(started.log_path).exists()


def test_kill_9_of_nilo_leaves_no_engine() -> None:
    command = [*NILO, "engine", "start", "--slots", "1", "--context", "256", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as nilo:
        assert nilo.stdout is not None
        told = ""
        while not told.endswith("}\n") or told.count("{") != told.count("}"):
            line = nilo.stdout.readline()
            assert line, told
            told += line
        started = json.loads(told)
        assert not gone(started["pid"])
        assert fetch(started["url"] + "/health").status == 200
        os.kill(nilo.pid, signal.SIGKILL)
    until_s = time.monotonic() + WAIT_S
    while not gone(started["pid"]) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert gone(started["pid"])


def test_preparing_twice_costs_nothing() -> None:
    prepare.prepare("Q4_0")
    start_s = time.monotonic()
    assert not prepare.prepare("Q4_0").made_now
    assert time.monotonic() - start_s < 5


def test_two_preparing_at_once_from_nothing_fetch_and_make_one_model(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [*NILO, "engine", "prepare", "--precision", "Q8_0", "--json"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    told = []
    for process in both:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        told.append(json.loads(output))
    assert sorted(one["made_now"] for one in told) == [False, True]
    assert told[0]["sha256"] == told[1]["sha256"]
    assert (told[0]["precision"], told[0]["requantised_from"]) == ("Q8_0", "Q4_1")
    models = tmp_path / "nilometer" / "models"
    assert sorted(path.name for path in models.iterdir() if path.suffix == ".gguf") == [
        "SmolLM2-135M-Instruct-Q4_1.gguf",
        "SmolLM2-135M-Instruct-Q8_0.gguf",
    ]
    assert not list(models.glob("fetch-*")) + list(models.glob("*.part"))


def test_a_file_that_is_no_model_is_told_by_the_engines_own_words(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"no model" * 500)
    told = subprocess.run(
        [*NILO, "engine", "start", "--model", str(tmp_path / "bad.gguf"), "--lang", "en"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert told.returncode == 3
    assert "invalid magic" in told.stderr
    assert "(engine_died). Next: read its log: /" in told.stderr
    assert "Traceback" not in told.stderr
    assert "^^^" not in told.stderr
