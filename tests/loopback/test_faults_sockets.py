"""What the bench of faults puts on the way does what it says, on real sockets; and its kinds are what they claim."""

from __future__ import annotations

import subprocess
import time
from itertools import pairwise

import psutil
import pytest
from benchmarks.faults.on_the_way import BUFFERS, BURN, Relay, burning, duty, has_nginx, nginx, pool, relayed, tenants
from benchmarks.faults.sockets import KINDS, Said
from tests.loopback.playing import asked, got, playing, sent, truth

from nilometer.engines.mock import Mock


def test_there_is_a_kind_for_each_fault_of_client_proxy_and_limits() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    assert len(kinds) == len(KINDS) >= 24
    right = {slug for kind in KINDS for slug in kind.right}
    assert right >= {"generator_limited", "client_pool", "buffered_stream", "rate_limit", "failures", "too_short"}
    assert right >= {"prefix_flattered", "unreal_lengths"}
    for kind in KINDS:
        assert kind.played().plan().replicas >= 1


def test_what_was_said_is_judged() -> None:
    def verdict(right: tuple[str, ...], state: str, *slugs: str) -> str:
        return Said("x", right, state, [(slug, "likely") for slug in slugs], {}, 1.0, {}).verdict

    assert verdict(("queue",), "found", "queue", "prefill") == "right"
    assert verdict(("queue",), "found", "prefill", "queue") == "among"
    assert verdict(("queue",), "healthy") == "wrong"
    assert verdict((), "healthy") == "right"
    assert verdict((), "found", "queue") == "wrong"
    assert verdict(("queue",), "undecided", "prefill") == "abstained"
    assert verdict(("too_short",), "vetoed", "too_short") == "right"


def test_a_pool_admits_so_many_and_one_answer_each() -> None:
    with playing() as mock, pool(2)(mock.url, mock.pid) as url:
        clients = [sent(mock, asked(200), url) for _ in range(3)]
        assert [got(client).status for client in clients] == [200] * 3
        lines = truth(mock, 3)
    for at_ns in [line.read_ns for line in lines]:
        assert sum(line.read_ns <= at_ns < (line.end_ns or 0) for line in lines) <= 2
    assert len({line.connection for line in lines}) == 3


@pytest.mark.skipif(not has_nginx(), reason="nginx is not installed")
def test_nginx_as_it_comes_holds_a_stream_back() -> None:
    with playing({"fixed_ms": 10}) as mock, nginx(BUFFERS)(mock.url, mock.pid) as url:
        began = time.monotonic()
        client = sent(mock, asked(20), url)
        with client.getresponse() as answer:
            first_s = time.monotonic() - began
            body = answer.read()
        client.close()
        (line,) = truth(mock, 1)
    assert first_s > 0.19  # 20 steps
    assert body.count(b'"text":"') == 21  # and the last one is empty
    assert len(line.writes) == 20
    assert line.writes[-1][0] - line.writes[0][0] > 150_000_000


def test_tenants_ask_for_their_models_until_they_are_told_to_end() -> None:
    with playing(adapters=["blue", "white"]) as mock:
        with tenants(["blue", "white"])(mock.url, mock.pid) as url:
            assert url == mock.url
            truth(mock, 4)
        ended = _settled(mock)
        time.sleep(0.1)
        assert _settled(mock) == ended


def _settled(mock: Mock) -> int:
    return len(mock.truth())


def test_who_burns_is_no_child_of_ours_and_is_gone_afterwards() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with burning(2):
        spins = [one for one in psutil.process_iter(["cmdline"]) if BURN in (one.info["cmdline"] or ())]
        assert len(spins) == 2
        assert {child.pid for child in psutil.Process().children(recursive=True)} == before
    assert psutil.wait_procs(spins, timeout=5)[1] == []


def test_a_duty_cycle_stops_the_service_and_leaves_it_running() -> None:
    with subprocess.Popen(["sleep", "30"]) as service:
        seen = set()
        with duty(0.05, 0.5)("http://127.0.0.1:9", service.pid):
            for _ in range(40):
                seen.add(psutil.Process(service.pid).status())
                time.sleep(0.005)
        assert psutil.Process(service.pid).status() != psutil.STATUS_STOPPED
        service.kill()
    assert psutil.STATUS_STOPPED in seen
    assert len(seen) > 1


def test_a_serial_front_end_lets_one_question_after_the_other_pass() -> None:
    with playing({"fixed_ms": 1}) as mock:
        with relayed(Relay(each_s=0.1))(mock.url, mock.pid) as url:
            clients = [sent(mock, asked(2), url) for _ in range(4)]
            assert [got(client).status for client in clients] == [200] * 4
        read = sorted(line.read_ns for line in truth(mock, 4))
    assert all(later - one > 90_000_000 for one, later in pairwise(read))


def test_a_lost_attempt_is_made_anew_after_its_time() -> None:
    with playing({"fixed_ms": 1}) as mock, relayed(Relay(lost_share=1.0, again_s=0.3))(mock.url, mock.pid) as url:
        began = time.monotonic_ns()
        assert got(sent(mock, asked(2), url)).status == 200
        (line,) = truth(mock, 1)
    assert line.read_ns - began > 290_000_000


def test_an_answer_is_passed_on_by_so_many_bytes() -> None:
    with playing({"fixed_ms": 10}) as mock, relayed(Relay(held_bytes=1 << 20))(mock.url, mock.pid) as url:
        began = time.monotonic()
        client = sent(mock, asked(20), url)
        with client.getresponse() as answer:
            answer.read(1)
            first_s = time.monotonic() - began
        client.close()
    assert first_s > 0.19  # 20 steps
