"""The mock as an engine, on real sockets: what its truth says is what theory says of such a service."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import subprocess
import sys
import time
from random import Random
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.loopback.playing import FAST, asked, at_once, got, in_turn, playing, sent, truth

from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_machine import Played
from nilometer.engines.mock_script import Script
from nilometer.engines.mock_server import MockServer
from nilometer.engines.mock_service import from_tree
from nilometer.engines.mock_truth import TruthLine
from nilometer.net.fetch import fetch
from nilometer.sim.event import Event
from nilometer.sim.machine import Machine
from nilometer.sim.setting import Ask

MS = 1_000_000


def since_read_ms(line: TruthLine) -> float:
    return (line.due_ns[0] - line.read_ns) / MS


def test_tokens_are_due_a_step_apart_and_written_soon_after() -> None:
    with playing({"fixed_ms": 5, "prefill_ms_per_token": 2}) as mock:
        (answer,) = in_turn(mock, asked(6, "a b c"))
        (line,) = truth(mock, 1)
    assert answer.status == 200
    assert "x-replica" not in answer.headers
    assert line.start_ns == pytest.approx(line.read_ns, abs=1000)
    wanted_ms = [5 + 3 * 2 + 5 * i for i in range(6)]
    assert [(due - line.read_ns) / MS for due in line.due_ns] == pytest.approx(wanted_ms, abs=0.01)
    late_ms = sorted((ns - due) / MS for (ns, _), due in zip(line.writes, line.due_ns, strict=True))
    assert late_ms[0] >= 0
    assert late_ms[3] < 10  # loose: the machine may be busy
    assert (line.output_tokens, line.preemptions, line.replica) == (6, 0, 0)


def test_a_serial_front_end_lets_one_through_after_the_other() -> None:
    """Lindley: each leaves 15 ms after the later of its own arrival and the end of the one before."""
    with playing(faults={"front_s": 0.015}) as mock:
        at_once(mock, *[asked(1)] * 5)
        at_once(mock, *[asked(1)] * 2)
        lines = truth(mock, 7)
    left_ns = 0.0
    for line in lines:
        left_ns = max(line.read_ns, left_ns) + 15 * MS
        after_ms = (line.due_ns[0] - left_ns) / MS
        assert 2 - 0.05 <= after_ms <= 4 + 0.05  # its own step, and the rest of the one under way


def test_two_slots_mean_two_at_a_time() -> None:
    with playing(setting={"slots": 2}) as mock:
        at_once(mock, *[asked(8 + 2 * i) for i in range(6)])
        lines = truth(mock, 6)
    assert all(line.start_ns is not None for line in lines)
    begun = sorted(line.start_ns or 0 for line in lines)
    ended = sorted(line.due_ns[-1] for line in lines)
    for at_ns in begun:
        assert sum((line.start_ns or 0) <= at_ns < line.due_ns[-1] for line in lines) <= 2
    for i in range(4):
        assert begun[i + 2] == pytest.approx(ended[i], abs=1000)  # a slot that gets free is taken at once
    assert [line.n for line in sorted(lines, key=lambda line: line.start_ns or 0)] == [1, 2, 3, 4, 5, 6]


def test_with_static_batching_nobody_begins_while_others_decode() -> None:
    with playing(setting={"policy": "static", "slots": 3}) as mock:
        at_once(mock, *[asked(6 + i % 3) for i in range(7)])
        lines = truth(mock, 7)
    for one, other in itertools.permutations(lines, 2):
        assert not one.due_ns[0] < other.due_ns[0] <= one.due_ns[-1]


def test_a_full_cache_preempts_and_every_answer_still_comes_whole() -> None:
    """3 requests of 2 + 30 tokens are 6 blocks of 16 at the end; there are 4."""
    with playing(setting={"kv_blocks": 4}) as mock:
        answers = at_once(mock, *[asked(30)] * 3)
        lines = truth(mock, 3)
        counted = page_of(mock)
    assert [answer.status for answer in answers] == [200] * 3
    assert [line.output_tokens for line in lines] == [30] * 3
    preempted = sum(line.preemptions or 0 for line in lines)
    assert counted["vllm:num_preemptions_total{0}"] == preempted > 0
    assert counted["vllm:generation_tokens_total{0}"] == 90
    assert counted["vllm:e2e_request_latency_seconds_count{0}"] == 3
    assert counted["vllm:num_requests_running{0}"] == 0


def test_a_full_bucket_lets_its_burst_in_and_refuses_the_rest() -> None:
    with playing(faults={"rate_per_s": 0.4, "rate_burst": 3, "refuse_s": 0.01}) as mock:
        answers = at_once(mock, *[asked()] * 8)
        lines = truth(mock, 8)
    assert sorted(answer.status for answer in answers) == [200] * 3 + [429] * 5
    refusals = [answer for answer in answers if answer.status == 429]
    assert {answer.headers["retry-after"] for answer in refusals} == {"3"}  # a token of the bucket takes 2.5 s
    refused = [line for line in lines if line.meant == "rate_limit"]
    assert {(line.outcome, line.error, line.status) for line in refused} == {("error", "http_429", 429)}
    assert all(((line.end_ns or 0) - line.read_ns) / MS >= 10 for line in refused)


def test_what_never_fits_is_refused() -> None:
    with playing(setting={"kv_blocks": 4}) as mock:
        long, short = in_turn(mock, asked(70), asked(40))
        lines = truth(mock, 2)
    assert (long.status, short.status) == (400, 200)
    assert json.loads(long.body)["error"]["code"] == 400
    assert (lines[0].meant, lines[0].error) == ("too_long", "http_4xx")


def test_where_contexts_are_set_aside_the_longest_is_told_and_kept() -> None:
    with playing(setting={"reserve": "context", "context_tokens": 32, "kv_blocks": 4}) as mock:
        models = json.loads(fetch(f"{mock.url}/v1/models", timeout_s=5).body)
        long, *others = at_once(mock, asked(31), *[asked(10)] * 3)
        lines = truth(mock, 4)
    assert models["data"][0]["max_model_len"] == 32
    assert (long.status, [answer.status for answer in others]) == (400, [200] * 3)
    ends = sorted(line.due_ns[-1] for line in lines if line.due_ns)
    assert max(line.start_ns or 0 for line in lines) >= ends[0]  # two contexts fill the cache


def test_the_first_ones_meet_a_cold_service() -> None:
    with playing(faults={"cold_requests": 2, "cold_s": 0.08}) as mock:
        in_turn(mock, *[asked(1)] * 4)
        took_ms = [since_read_ms(line) for line in truth(mock, 4)]
    assert took_ms == pytest.approx([82, 82, 2, 2], abs=0.1)


def test_a_lost_request_is_never_answered_and_with_a_gateway_ends_in_504() -> None:
    with playing(faults={"drop_share": 1}) as mock:
        client = sent(mock, asked())
        time.sleep(0.1)
        assert mock.truth() == []
        client.close()
        (line,) = truth(mock, 1)
    assert (line.left_ns is not None, line.status, line.writes) == (True, None, [])
    with playing(faults={"drop_share": 1, "timeout_s": 0.03, "retries": 2}) as mock:
        (answer,) = in_turn(mock, asked())
        (line,) = truth(mock, 1)
    assert answer.status == 504
    assert (line.meant, line.error) == ("timeout", "http_5xx")
    assert ((line.end_ns or 0) - line.read_ns) / MS >= 90  # three tries


def test_who_leaves_frees_its_slot() -> None:
    with playing(setting={"slots": 1}) as mock:
        clients = []
        for tokens in (2000, 2000, 3):
            clients.append(sent(mock, asked(tokens)))
            time.sleep(0.02)
        leaving, waiting, next_one = clients
        waiting.close()
        leaving.close()
        assert got(next_one).status == 200
        lines = truth(mock, 3)
    assert [line.left_ns is not None for line in lines] == [True, True, False]
    assert 0 < lines[0].output_tokens < 500
    assert (lines[2].start_ns or 0) >= (lines[0].left_ns or 0) - 50 * MS, "it is written down a little later"


def test_replicas_take_turns_and_say_who_they_are() -> None:
    slow = {"replica_slowness": [1, 5]}
    with playing(replicas=2, router="turns", faults=slow) as mock:
        answers = in_turn(mock, asked(3), asked(3), asked(3), asked(3, stream=False, stream_options=None))
        lines = truth(mock, 4)
    assert [answer.headers["x-replica"] for answer in answers] == ["0", "1", "0", "1"]
    assert [line.replica for line in lines] == [0, 1, 0, 1]
    assert [since_read_ms(line) for line in lines] == pytest.approx([2, 10, 2, 30], abs=0.1)


def test_a_prompt_that_was_seen_is_read_from_the_cache() -> None:
    prompt = " ".join(f"w{i}" for i in range(40))
    with playing(FAST | {"prefill_ms_per_token": 1}, setting={"prefix_cache": True}) as mock:
        first, second = in_turn(mock, asked(1, prompt), asked(1, prompt, stream=False, stream_options=None))
        lines = truth(mock, 2)
    assert b'"cached_tokens":0' in first.body
    assert json.loads(second.body)["usage"]["prompt_tokens_details"] == {"cached_tokens": 32}
    assert [line.cached_tokens for line in lines] == [0, 32]  # whole blocks of 16
    assert [since_read_ms(line) for line in lines] == pytest.approx([42, 10], abs=0.1)


def test_adapters_are_models_of_their_own_and_take_their_time_to_load() -> None:
    with playing(setting={"adapter_slots": 1, "adapter_swap_s": 0.05}, adapters=["blue", "white"]) as mock:
        names = ("blue", "blue", "white", "mock", "blue")
        answers = in_turn(mock, *[asked(1, model=name) for name in names], asked(1, model="amazon"))
        took_ms = [since_read_ms(line) for line in truth(mock, 6)[:5]]
    assert [answer.status for answer in answers] == [200] * 5 + [404]
    assert took_ms == pytest.approx([52, 2, 52, 2, 52], abs=0.1)


def frames_of(body: bytes) -> list[int]:
    """Words in each frame that has any."""
    data = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    texts = [json.loads(item)["choices"][0]["text"] for item in data if json.loads(item)["choices"]]
    return [len(text.split()) for text in texts if text]


def test_frames_come_as_the_way_back_passes_them_on() -> None:
    with playing(faults={"frame_tokens": 4}) as mock:
        (grouped,) = in_turn(mock, asked(10))
    with playing(faults={"buffer_frames": 1 << 30}) as mock:
        (held,) = in_turn(mock, asked(10))
        (line,) = truth(mock, 1)
    assert frames_of(grouped.body) == [1, 4, 4, 1]
    assert frames_of(held.body) == [1] * 10
    assert len(set(line.due_ns)) == 1
    assert since_read_ms(line) == pytest.approx(20, abs=0.1)


def test_what_ends_early_ends_by_itself() -> None:
    with playing(faults={"early_eos_share": 1, "early_eos_at": 0.3}) as mock:
        (answer,) = in_turn(mock, asked(20))
    assert b'"finish_reason":"stop"' in answer.body
    assert b'"completion_tokens":6' in answer.body


def page_of(mock: Mock) -> dict[str, float]:
    """Series with the engine's label -> value, read by the library of Prometheus."""
    text = fetch(f"{mock.url}/metrics", timeout_s=5).body.decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {f"{one.name}{{{one.labels['engine']}}}": one.value for one in samples if "le" not in one.labels}


def test_the_page_tells_of_each_replica_what_is_there_now() -> None:
    with playing(replicas=2, router="turns", setting={"slots": 1}) as mock:
        clients = [sent(mock, asked(200)) for _ in range(4)]
        time.sleep(0.05)
        now = page_of(mock)
        for client in clients:
            client.close()
        truth(mock, 4)
        later = page_of(mock)
    for name, wanted in (("vllm:num_requests_running", 1), ("vllm:num_requests_waiting", 1)):
        assert [now[f"{name}{{{i}}}"] for i in range(2)] == [wanted, wanted]
        assert [later[f"{name}{{{i}}}"] for i in range(2)] == [0, 0]
    with launched(Script()) as scripted:
        assert fetch(f"{scripted.url}/metrics", timeout_s=5).status == 404


def test_nilo_scrape_reads_the_page() -> None:
    with playing() as mock:
        in_turn(mock, asked(5), asked(7))
        command = [sys.executable, "-m", "nilometer", "scrape", mock.url, "--json"]
        told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=20).stdout)
    assert (told["engine"], told["generation_tokens"], told["ttft"]["count"]) == ("vllm", 12, 2)


class Recorded(Machine):
    """Keeps what it was handed and what it told."""

    def __init__(self, *handed: Any, **more: Any) -> None:
        super().__init__(*handed, **more)
        self.asks: list[tuple[Ask, float]] = []
        self.events: list[Event] = []

    def submit(self, ask: Ask, now_s: float) -> None:
        self.asks.append((ask, now_s))
        super().submit(ask, now_s)

    def step(self, now_s: float) -> list[Event]:
        events = super().step(now_s)
        self.events += events
        return events


TROUBLED = {
    "cost": {"fixed_ms": 2, "prefill_ms_per_token": 0.05},
    "setting": {"slots": 3, "kv_blocks": 12, "prefix_cache": True},
    "speculation": {"drafts": 2, "acceptance": 0.5},
    "faults": {"jitter": 0.3, "drop_share": 0.2, "timeout_s": 0.05, "retries": 3, "front_s": 0.001, "frame_tokens": 2},
    "replicas": 2,
    "router": "random",
}


async def _played(seed: int) -> Recorded:
    service = from_tree(TROUBLED, "test")
    made: list[Recorded] = []

    def pacing(*handed: Any) -> Played:
        played = Played(service, *handed)
        made.append(Recorded(service.plan(), Random(seed), tokens=True))
        played.machine = made[0]
        return played

    server = MockServer(Script(seed=seed), asyncio.get_running_loop(), pacing=pacing)
    port = int(server.listen().rpartition(":")[2])

    async def one(i: int) -> None:
        await asyncio.sleep(0.004 * i)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps(asked(3 + 7 * i % 40, "so high " * (i % 5 + 1))).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await reader.read()
        writer.close()

    await asyncio.gather(*map(one, range(24)))
    server.close()
    return made[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_machine_tells_the_same_in_virtual_time(seed: int) -> None:
    """However late it was called: to the last bit of every stamp."""
    real = asyncio.run(_played(seed))
    fresh = Machine(from_tree(TROUBLED, "test").plan(), Random(seed), tokens=True)
    told: list[Event] = []
    for ask, at_s in [*real.asks, (None, math.inf)]:
        while events := fresh.step(min(at_s, 1e6)):
            told += events
        if ask is not None:
            fresh.submit(ask, at_s)
    assert {event.kind for event in told} >= {"first", "token", "finish"}
    assert told == real.events
    assert len({event.key for event in told if event.kind in ("finish", "rejected")}) == 24
