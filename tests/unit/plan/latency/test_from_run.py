"""Runs by hand; what of them reaches the calibration, what is refused, and what is told beside it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.plan.shapes import SMOL

from nilometer.core.environment import EngineFacts, Environment, ModelFacts
from nilometer.core.errors import ConditionError, SpecError
from nilometer.core.finding import Finding
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Labels, Load, Prompts, Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    Generator,
    Length,
    Lengths,
    Second,
    Summary,
    Throughput,
    Window,
)
from nilometer.plan.devices import device_of
from nilometer.plan.latency.calibrate import calibrate
from nilometer.plan.latency.from_run import Asked, contradictions, evidence_of, seen_in
from nilometer.plan.latency.roofline import Lengths as Tokens
from nilometer.plan.latency.roofline import latency
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.precision import precision_of

DAY_NS = 86_400 * 10**9


def _summary(**fields: Any) -> Summary:
    whole: dict[str, Any] = {
        "window": Window(start_s=0.0, end_s=30.0, rule="auto"),
        "requests": Counts(started=40, ok=40),
        "run_requests": Counts(started=50, ok=50),
        "latency_from": "sent",
        "latency_ms": {
            "ttft": Distribution(n=40, mean=520.0, p50=548.0),
            "tpot": Distribution(n=40, mean=31.8, p50=32.2),
            "e2e": Distribution(n=40, mean=3544.0),
        },
        "throughput": Throughput(output_tokens_per_s=111.0, requests_per_s=1.2),
        "lengths": Lengths(
            input=Length(mean=256.0, p50=250.0), output=Length(mean=96.0, p50=96.0), token_source={"usage": 40}
        ),
        "generator": Generator(verdict="fit"),
    }
    return Summary(**(whole | fields))


def _run(made: Summary | None = None, *, load: Load | None = None, spec: Any = None, **fields: Any) -> Run:
    whole: dict[str, Any] = {
        "id": "abc",
        "spec": replace(Spec(target="embedded", load=load or Load(concurrency=4)), **(spec or {})),
        "environment": Environment(
            engine=EngineFacts(name="skulk-llama-server", slots=8),
            model=ModelFacts(id="SmolLM2-135M-Instruct-Q4_0", precision="Q4_0", parameters=134_515_008),
        ),
        # 2026-12-03 is 20,790 days after 1970-01-01: 56 years with 14 leap days, and 336 days of 2026.
        "phases": Phases(started_wall_ns=20_790 * DAY_NS, start_ns=0, measured_ns=8, stop_ns=38, end_ns=40),
        "health": Health(),
        "summary": made or _summary(),
        "findings": [],
        "verdict": "marked",
    }
    return Run(**(whole | fields))


def _told(*findings: Finding) -> list[str]:
    assert all((one.kind, one.severity) == ("note", "low") for one in findings)
    return [one.slug for one in findings]


def test_a_closed_loop_gives_its_means() -> None:
    seen = seen_in(_run())
    made = seen.measured
    assert (made.concurrency, made.input_tokens, made.output_tokens) == (4, 256, 96)
    assert (made.tpot_ms, made.ttft_ms, made.slots, made.when) == (31.8, 520.0, 8, "2026-12-03")
    assert (seen.run, seen.concurrency_from, seen.findings) == ("abc", "spec", ())


def test_what_it_gives_calibrates() -> None:
    setup = Setup(
        shape=SMOL,
        device=device_of(47e9, 235e9, kind="cpu"),
        precision=precision_of("q4_0"),
        engine="llama.cpp",
        slots=8,
    )
    tuning = calibrate(setup, evidence_of([_run()]).measured)
    assert latency(setup, Tokens(256, 96), 4, tuning).tpot_s.mid * 1e3 == pytest.approx(31.8)
    assert tuning.basis == "your run of 2026-12-03"


def _seconds(*in_flight: float) -> list[Second]:
    return [
        Second(at_s=at, in_flight=value, output_tokens=0.0, arrivals=0, errors=0)
        for at, value in enumerate(in_flight, -2)
    ]


OPEN = Load(rate_per_s=1.2)


def test_an_open_loop_by_what_was_in_flight_in_its_window() -> None:
    window = Window(start_s=0.0, end_s=3.0, rule="auto")
    seen = seen_in(_run(_summary(timeline=_seconds(1, 1, 4, 5, 6, 99), window=window), load=OPEN))
    assert (seen.measured.concurrency, seen.concurrency_from) == (5.0, "in_flight")


def test_an_open_loop_without_a_timeline_by_littles_law() -> None:
    seen = seen_in(_run(load=OPEN))
    assert seen.measured.concurrency == pytest.approx(1.2 * 3.544)
    assert seen.concurrency_from == "littles_law"


def test_latencies_from_due_give_way_to_those_from_sent() -> None:
    """What a request waited before it was sent is not the server's."""
    latencies = _summary().latency_ms | {
        "ttft_from_sent": Distribution(n=40, mean=400.0),
        "e2e_from_sent": Distribution(n=40, mean=3000.0),
    }
    measured = seen_in(_run(_summary(latency_ms=latencies), load=OPEN)).measured
    assert measured.ttft_ms == 400.0
    assert measured.concurrency == pytest.approx(1.2 * 3.0)


def test_pauses_between_turns_leave_slots_empty() -> None:
    talk = {"prompts": Prompts(turns="3", think_s="5")}
    seen = seen_in(_run(_summary(timeline=_seconds(4, 4, 2, 2)), spec=talk))
    assert (seen.measured.concurrency, seen.concurrency_from) == (2.0, "in_flight")
    assert _told(*seen.findings) == ["calibration_prefix_shared"]
    assert seen_in(_run(spec={"prompts": Prompts(turns="3")})).concurrency_from == "spec"


def test_a_load_that_varies_is_told() -> None:
    seen = seen_in(_run(load=Load(arrivals="ramp:1,4,30")))
    assert _told(*seen.findings) == ["calibration_load_varied"]


WITHOUT_TPOT = {name: one for name, one in _summary().latency_ms.items() if name != "tpot"}
ESTIMATED = Lengths(input=Length(mean=256.0), output=Length(mean=96.0), token_source={"estimated": 30, "usage": 10})


def test_estimated_tokens_are_taken_and_told() -> None:
    seen = seen_in(_run(_summary(latency_ms=WITHOUT_TPOT, lengths=ESTIMATED)))
    assert seen.measured.tpot_ms == pytest.approx((3544 - 520) / 95)
    assert _told(*seen.findings) == ["calibration_tokens_estimated"]
    assert seen.findings[0].params["share"] == 0.75


@pytest.mark.parametrize(
    ("slug", "run"),
    [
        ("calibration_simulated", _run(origin="simulated")),
        ("calibration_inadmissible", _run(verdict="inadmissible")),
        ("calibration_nothing_ok", _run(_summary(requests=Counts(started=9, ok=0, error=9)), verdict="inadmissible")),
        ("calibration_no_tpot", _run(_summary(latency_ms=WITHOUT_TPOT), spec={"stream": False})),
        ("calibration_no_tpot", _run(_summary(latency_ms=WITHOUT_TPOT, lengths=ESTIMATED), spec={"stream": False})),
        ("calibration_no_tpot", _run(_summary(latency_ms=WITHOUT_TPOT))),
        ("calibration_no_tpot", _run(_summary(latency_ms={"tpot": Distribution(n=3, mean=0.0)}))),
        ("calibration_lengths_unknown", _run(_summary(lengths=Lengths(output=Length(mean=96.0))))),
        ("calibration_lengths_unknown", _run(_summary(lengths=Lengths(input=Length(mean=256.0))))),
        ("calibration_load_unknown", _run(_summary(throughput=Throughput()), load=Load(), origin="imported")),
    ],
)
def test_what_is_no_evidence_is_refused(slug: str, run: Run) -> None:
    with pytest.raises(ConditionError, match=slug) as refused:
        seen_in(run)
    assert refused.value.params["run"] == "abc"
    assert refused.value.exit_code == 4


def test_why_a_run_is_inadmissible_is_told() -> None:
    why = [Finding(slug="errors_over_limit", kind="validity", severity="high")]
    with pytest.raises(ConditionError) as refused:
        seen_in(_run(verdict="inadmissible", findings=why))
    assert refused.value.params["reasons"] == "errors_over_limit"


def test_a_day_that_is_not_known_is_not_told() -> None:
    imported = [Finding(slug="import_start_unknown", kind="note", severity="low")]
    assert seen_in(_run(findings=imported)).measured.when == ""


def test_a_group_leaves_out_what_is_no_evidence() -> None:
    bad = _run(id="bad", verdict="inadmissible", load=Load(concurrency=16))
    found = evidence_of([_run(id="four"), bad, _run(id="one", load=Load(concurrency=1))])
    assert [one.run for one in found.seen] == ["one", "four"]
    assert [one.concurrency for one in found.measured] == [1, 4]
    assert _told(*found.findings) == ["calibration_run_left_out"]
    assert found.findings[0].params == {"run": "bad", "reason": "calibration_inadmissible"}


def test_a_group_of_nothing_usable_is_refused_as_its_first() -> None:
    with pytest.raises(ConditionError, match="calibration_simulated"):
        evidence_of([_run(origin="simulated"), _run(verdict="inadmissible")])
    with pytest.raises(SpecError, match="calibration_empty"):
        evidence_of([])


PLANNED = Asked(model="HuggingFaceTB/SmolLM2-135M", parameters=134_515_008, precision="q4_0", engine="llama.cpp")


def test_what_agrees_is_not_told() -> None:
    assert list(contradictions(_run(), PLANNED)) == []
    assert list(contradictions(_run(), Asked())) == []
    assert list(contradictions(_run(environment=Environment()), PLANNED)) == []


@pytest.mark.parametrize(
    ("asked", "slug", "seen"),
    [
        (
            Asked(model="SmolLM2-360M", parameters=361_821_120),
            "calibration_model_differs",
            "SmolLM2-135M-Instruct-Q4_0",
        ),
        (Asked(precision="q8_0"), "calibration_precision_differs", "Q4_0"),
        (Asked(precision="bf16"), "calibration_precision_differs", "Q4_0"),
        (Asked(engine="vllm"), "calibration_engine_differs", "skulk-llama-server"),
    ],
)
def test_what_contradicts_the_plan_is_told(asked: Asked, slug: str, seen: str) -> None:
    found = seen_in(_run(), asked).findings
    assert _told(*found) == [slug]
    assert found[0].params["seen"] == seen


@pytest.mark.parametrize(
    ("planned", "served", "same"),
    [
        ("meta-llama/Llama-3.1-8B", "llama3.1:8b", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", True),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3-8B", False),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-4B", False),
        ("openai/gpt-oss-20b", "openai/gpt-oss-120b", False),
        ("Qwen/Qwen2.5-7B", "/models/qwen2.5-7b-instruct-q4_k_m.gguf", True),
    ],
)
def test_names_of_one_model(planned: str, served: str, same: bool) -> None:
    run = _run(environment=Environment(model=ModelFacts(id=served)))
    assert (list(contradictions(run, Asked(model=planned))) == []) is same


def test_a_name_of_the_users_own_is_held_by_its_parameters() -> None:
    run = _run(environment=Environment(model=ModelFacts(id="prod", parameters=8_030_261_248)))
    assert list(contradictions(run, Asked(model="llama-3.1-8b", parameters=8_030_261_248))) == []
    assert _told(*contradictions(run, Asked(model="qwen3-8b", parameters=8_190_735_360))) == [
        "calibration_model_differs"
    ]


def test_sixteen_bits_are_sixteen_bits() -> None:
    run = _run(environment=Environment(model=ModelFacts()), spec={"labels": Labels(quantisation="float16")})
    assert list(contradictions(run, Asked(precision="bf16"))) == []
    assert _told(*contradictions(run, Asked(precision="mxfp4_experts"))) == ["calibration_precision_differs"]
