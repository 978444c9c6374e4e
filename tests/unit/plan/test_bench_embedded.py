"""The bench of the embedded engine, on runs made by the model itself: a plan then has to be right."""

from __future__ import annotations

import pytest
from benchmarks import plan_embedded
from benchmarks.plan_embedded import ORDER, allowed_percent, noise_percent, rows_of
from benchmarks.result import Row
from tests.unit.plan.shapes import SMOL

from nilometer.core.environment import EngineFacts, Environment
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Load, Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    Generator,
    Length,
    Summary,
    Throughput,
    Window,
)
from nilometer.core.summary import Lengths as Seen
from nilometer.plan.devices import device_of
from nilometer.plan.latency.roofline import Lengths, Tuning, latency
from nilometer.plan.latency.work import Setup
from nilometer.plan.model.precision import precision_of

DEVICE = device_of(47e9, 235e9, kind="cpu")
SETUP = Setup(shape=SMOL, device=DEVICE, precision=precision_of("q4_0"), engine="llama.cpp", slots=8)
TRUE = Tuning(fixed=1.2, batched=1.2, growing=0.9, prefill=0.9)


def _run(requests: int, slower: float = 1.0) -> Run:
    made = latency(SETUP, Lengths(256, 96), requests, TRUE)
    return Run(
        id=f"r{requests}",
        spec=Spec(target="embedded", load=Load(concurrency=requests)),
        environment=Environment(engine=EngineFacts(slots=8)),
        phases=Phases(started_wall_ns=0, start_ns=0, measured_ns=0, stop_ns=0, end_ns=0),
        health=Health(),
        summary=Summary(
            window=Window(start_s=0.0, end_s=30.0, rule="auto"),
            requests=Counts(started=9, ok=9),
            run_requests=Counts(started=9, ok=9),
            latency_from="sent",
            latency_ms={
                "ttft": Distribution(n=9, mean=made.ttft_s.mid * 1e3 * slower),
                "tpot": Distribution(n=9, mean=made.tpot_s.mid * 1e3 * slower),
            },
            throughput=Throughput(output_tokens_per_s=made.output_tokens_per_s.mid / slower),
            lengths=Seen(input=Length(mean=256.0), output=Length(mean=96.0)),
            generator=Generator(),
        ),
        findings=[],
        verdict="admissible",
    )


@pytest.fixture(autouse=True)
def _known_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_embedded, "setup_of", lambda *_: SETUP)


def _judged(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.met is not None]


def test_a_machine_that_does_as_the_model_says_is_met() -> None:
    rows = _judged(rows_of([_run(requests) for requests in ORDER], DEVICE))
    assert [row.what for row in rows] == [f"{n} requests: {what}" for n in (2, 8, 16) for what in ("TPOT", "tokens/s")]
    assert all(row.met and isinstance(row.measured, float) and abs(row.measured) < 4 for row in rows)
    assert {row.goal for row in rows} == {"within 15"}


def test_noise_is_granted_twice() -> None:
    runs = [_run(4), _run(1), _run(2, 1.3), _run(4, 1.1), _run(8), _run(16), _run(4, 1.2)]
    rows = _judged(rows_of(runs, DEVICE))
    assert {row.goal for row in rows} == {"within 40"}
    assert all(row.met for row in rows)
    quiet = [_run(4), _run(1), _run(2, 1.3), _run(4), _run(8), _run(16), _run(4)]
    assert [row.what for row in _judged(rows_of(quiet, DEVICE)) if not row.met] == [
        "2 requests: TPOT",
        "2 requests: tokens/s",
    ]


def test_the_most_that_two_runs_differ() -> None:
    assert noise_percent([100.0, 110.0, 120.0]) == pytest.approx(20.0)
    assert noise_percent([5.0]) == 0.0
    assert (allowed_percent(0.0), allowed_percent(7.5), allowed_percent(20.0)) == (15.0, 15.0, 40.0)
