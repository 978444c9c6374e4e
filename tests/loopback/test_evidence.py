"""The evidence of a real load on the mock, over real sockets: the plateau is at the slots that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loopback.driving import drive_here, order
from tests.loopback.test_load_faults import asks

from nilometer.core.environment import Environment
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.core.spec import Load, Spec
from nilometer.diagnose.group import evidence_of_runs
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.metrics.summary import summarise

SLOTS = 2
TOKENS = 9


def loaded(url: str, folder: Path, level: int, requests: int) -> tuple[Run, list[Record]]:
    """So many requests at this concurrency, put on by the load loop itself."""
    folder.mkdir()
    outcome = drive_here(order(folder, url, lanes=level, requests=requests), asks(requests, TOKENS))
    spec = Spec(target=url, load=Load(concurrency=level, requests=requests))
    summary = summarise(outcome.records, spec, outcome.phases, outcome.health)
    run = Run(
        id=f"level{level}",
        spec=spec,
        environment=Environment(),
        phases=outcome.phases,
        health=outcome.health,
        summary=summary,
        findings=[],
        verdict="admissible",
        level=str(level),
    )
    return run, outcome.records


def test_slots_that_are_full(tmp_path: Path) -> None:
    """20 ms to the first token and 8 gaps of 5 ms: 60 ms in a slot, two thirds of it decoding; six want two slots."""
    with launched(Script(ttft_ms=20, gap_ms=5, slots=SLOTS)) as mock:
        found = evidence_of_runs([loaded(mock.url, tmp_path / str(n), n, 10 * n) for n in (6, 1)])
    low, high = found.levels
    assert high.value("decoding_most") == SLOTS
    assert high.value("full_decoding") == pytest.approx(SLOTS * 2 / 3, rel=0.2)
    assert high.value("in_flight") == pytest.approx(6, rel=0.15)
    assert low.value("token_gap") == pytest.approx(5, rel=0.1)
    assert found.value("gap_ratio") == pytest.approx(1, rel=0.15)
    assert found.value("wait_share") == pytest.approx(120 / 140, rel=0.15)
    assert high.value("refused_share") == high.value("long_gaps_per_request") == 0
    assert found.base is not None
    assert found.base.line is not None
    assert found.base.line.intercept_ms == pytest.approx(20, rel=0.3)
    assert high.e2e is not None
    base_gaps = high.e2e.part("base_gaps").ms
    assert base_gaps == pytest.approx(40, rel=0.15)
