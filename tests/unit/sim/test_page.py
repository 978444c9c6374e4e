"""The metrics page of a machine, read back by what reads a real one; values by hand."""

from __future__ import annotations

from array import array
from random import Random

import pytest
from tests.unit.sim.made import STEADY, asks, closed, machine, setting

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.metrics.server_figures import ServerFigures, figures
from nilometer.sim.event import Answer, Event, Gauges
from nilometer.sim.faults import Faults
from nilometer.sim.machine import Machine, Plan
from nilometer.sim.page import Ledger, Shown, kv_usage, shown
from nilometer.sim.setting import Speculation

GAUGES = Gauges(2, 3, 8, 0, 10, 1, 300, 50, 320, 20, 0.5, 100)


def answer(*stamps_s: float, entered_s: float = 1.0, admitted_s: float = 1.5, **changes: object) -> Answer:
    made = Answer(array("d", stamps_s), None, len(stamps_s), 0, entered_s, admitted_s, 0)
    return made._replace(**changes)


def told(ledger: Ledger, *engines: Gauges) -> ServerFigures:
    return figures(read(ledger.text([Shown(one) for one in engines]), FAMILIES))


def test_latencies_count_from_where_vllm_has_them() -> None:
    ledger = Ledger(Plan(setting=setting()))
    ledger.arrived(7, 0.25)
    ledger.take([Event(3.0, "finish", 7, 0, answer(2.0, 2.25, 2.5, 3.0))])
    seen = told(ledger, GAUGES).latencies
    means = {name: one.mean_s for name, one in seen.items()}
    assert means["ttft"] == pytest.approx(1.75)
    assert means["e2e"] == pytest.approx(2.75)
    assert means["queue"] == pytest.approx(0.5)
    assert means["prefill"] == pytest.approx(0.5)
    assert means["decode"] == pytest.approx(1.0)
    assert means["inter_token"] == means["request_tpot"] == pytest.approx(1 / 3)
    assert seen["inter_token"].count == 3
    assert seen["ttft"].count == 1


def test_gauges_and_counters_are_the_machines() -> None:
    of = setting(kv_blocks=32, block_tokens=16)
    seen = told(Ledger(Plan(setting=of)), GAUGES)
    assert (seen.dialect, seen.engines) == ("v1", 1)
    assert (seen.running, seen.waiting, seen.preemptions) == (2, 3, 1)
    assert seen.kv_usage is not None
    assert seen.kv_usage.max == 8 / 32
    assert seen.kv_capacity_tokens == 512
    assert (seen.prompt_tokens, seen.generation_tokens) == (320, 50)
    assert seen.prefix_hit_ratio == 20 / 320
    assert seen.step_tokens_mean == (300 + 50) / 10
    assert seen.requests == 0


def test_each_replica_has_an_engine_label_of_its_own() -> None:
    ledger = Ledger(Plan(setting=setting(kv_blocks=32), replicas=2))
    ledger.take([Event(3.0, "finish", 1, 0, answer(2.0, 3.0, replica=1, at_limit=False))])
    seen = told(ledger, GAUGES, GAUGES._replace(running=5, blocks_held=16))
    assert (seen.engines, seen.running) == (2, 7)
    assert seen.kv_usage is not None
    assert seen.kv_usage.per_engine == [8 / 32, 16 / 32]
    assert seen.finished == {"length": 0, "stop": 1}


def test_memory_that_is_set_aside_is_not_in_use() -> None:
    growing = setting(kv_blocks=10, block_tokens=16)
    held = GAUGES._replace(blocks_held=10, tokens_held=40)
    assert kv_usage(growing, held) == 1.0
    assert kv_usage(setting(kv_blocks=10, block_tokens=16, reserve="context"), held) == 40 / 160
    assert kv_usage(setting(), held) == 0.0


def test_a_proxy_delays_the_client_and_not_the_page() -> None:
    buffered = Faults(buffer_frames=100)
    of = Machine(Plan(setting=setting(STEADY), faults=buffered), Random(1))
    ledger = Ledger(of.plan)
    of.submit(asks([10], [5])[0], 0.0)
    ledger.arrived(0, 0.0)
    events = of.step(1.0)
    ledger.take(events)
    assert events[0].answer is not None
    assert list(events[0].answer.stamps) == pytest.approx([0.05] * 5)
    seen = told(ledger, of.gauges[0]).latencies
    assert seen["ttft"].mean_s == pytest.approx(0.01)
    assert seen["inter_token"].mean_s == pytest.approx(0.01)


def test_a_front_end_is_in_the_first_token_and_not_in_the_queue() -> None:
    of = Machine(Plan(setting=setting(STEADY), faults=Faults(front_s=0.3)), Random(1))
    ledger = Ledger(of.plan)
    for ask in asks([10, 10], [2, 2]):
        of.submit(ask, 0.0)
        ledger.arrived(ask.key, 0.0)
    while of.next_s < 10:
        ledger.take(of.step(10))
    seen = told(ledger, of.gauges[0]).latencies
    assert seen["ttft"].mean_s == pytest.approx((0.31 + 0.61) / 2)
    assert seen["queue"].mean_s == pytest.approx(0.0)


def test_a_gateways_retry_arrives_anew() -> None:
    plan = Plan(setting=setting(), faults=Faults(timeout_s=2.0, retries=2))
    ledger = Ledger(plan)
    ledger.arrived(1, 10.0)
    ledger.take([Event(20.0, "finish", 1, 0, answer(15.0, 16.0, entered_s=14.5, admitted_s=14.5))])
    assert told(ledger, GAUGES).latencies["ttft"].mean_s == pytest.approx(1.0)


def test_drafts_are_counted_by_rounds() -> None:
    plan = Plan(setting=setting(speculation=Speculation(drafts=3, acceptance=0.5)))
    ledger = Ledger(plan)
    # The token of the prefill, then three rounds of 4, 1 and 2 tokens: 4 of 9 guesses were right.
    ledger.take([Event(4.0, "finish", 1, 0, answer(1.0, 2.0, 3.0, 4.0, counts=[1, 4, 1, 2], tokens=8))])
    spec = told(ledger, GAUGES).spec
    assert spec is not None
    assert (spec.drafts, spec.draft_tokens, spec.accepted) == (3, 9, 4)
    assert spec.acceptance_length == pytest.approx(1 + 4 / 3)


def test_adapters_that_run_and_wait_are_named() -> None:
    of = machine(setting(STEADY, slots=2, adapter_slots=1))
    for ask in asks([10] * 4, [5] * 4):
        of.submit(ask if ask.key else ask, 0.0)
    text = Ledger(of.plan).text([Shown(GAUGES, (0, 2), (5,))])
    assert 'running_lora_adapters="adapter-0,adapter-2",waiting_lora_adapters="adapter-5"' in text
    assert 'max_lora="1"' in text


def test_the_page_of_a_load_counts_what_the_records_do() -> None:
    of = machine(setting(STEADY, slots=2, kv_blocks=1000))
    ledger, arrived = Ledger(of.plan), of.submit

    def submit(ask: object, now_s: float) -> None:
        ledger.arrived(ask.key, now_s)  # type: ignore[attr-defined]
        arrived(ask, now_s)  # type: ignore[arg-type]

    step = of.step

    def stepped(now_s: float) -> list[Event]:
        events = step(now_s)
        ledger.take(events)
        return events

    of.submit, of.step = submit, stepped  # type: ignore[method-assign,assignment]
    played = closed(of, 3, asks([40] * 30, [10] * 30), requests=30)
    seen = figures(read(ledger.text(shown(of)), FAMILIES))
    ttft = [((one.first_token_ns or 0) - (one.sent_ns or 0)) / 1e9 for one in played.records]
    assert seen.requests == 30
    assert seen.generation_tokens == 300
    assert seen.prompt_tokens == 1200
    assert seen.latencies["ttft"].mean_s == pytest.approx(sum(ttft) / 30)
    assert seen.running == seen.waiting == 0
