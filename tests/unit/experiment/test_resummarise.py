"""An archived run by the definitions of today."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run, make_summary
from tests.unit.experiment.made import leave, records
from tests.unit.load.made import header

from nilometer.core.finding import Finding
from nilometer.core.run import DEFINITIONS, Run
from nilometer.core.summary import Counts, Efficiency, Memory
from nilometer.experiment.conclude import conclude
from nilometer.experiment.resummarise import can_resummarise, resummarised

TOLD = Finding(slug="usage_missing", kind="note", severity="medium")
OLD = Finding(slug="errors_over_limit", kind="validity", severity="high", params={"share": 1.0, "limit": 0.0})


@pytest.fixture
def concluded(tmp_path: Path) -> Run:
    """A run as it was made today."""
    head = replace(header(), findings=[TOLD])
    return conclude(head, leave(tmp_path, head=head), memory=Memory(server_rss_peak_bytes=7, source="psutil"))


def test_it_is_what_it_would_be_if_it_were_made_today(concluded: Run) -> None:
    wrong = replace(concluded.summary, requests=Counts(started=1, ok=1), latency_ms={})
    old = replace(concluded, definitions=DEFINITIONS - 1, summary=wrong, findings=[OLD, TOLD], verdict="inadmissible")
    assert resummarised(old, records()) == concluded


def test_what_is_in_no_record_stays(concluded: Run) -> None:
    drawn = Efficiency(devices=None, tokens_per_core_s=11.0, energy_kwh=0.5)
    before = replace(concluded.summary, server={"kv_usage": 0.4}, efficiency=drawn)
    summary = resummarised(replace(concluded, summary=before), records()).summary
    assert summary.memory == Memory(server_rss_peak_bytes=7, source="psutil")
    assert summary.server == {**concluded.summary.server, "kv_usage": 0.4}
    assert summary.efficiency == drawn


def test_what_was_drawn_for_other_tokens_is_not_measured(concluded: Run) -> None:
    other = replace(concluded.summary.throughput, output_tokens_per_s=1e6)
    before = replace(concluded.summary, throughput=other, efficiency=Efficiency(devices=2, energy_kwh=0.5))
    efficiency = resummarised(replace(concluded, summary=before), records()).summary.efficiency
    assert efficiency == Efficiency(devices=2)


def test_what_another_tool_reckoned_and_what_has_no_records_is_left_alone() -> None:
    assert can_resummarise(make_run(), 3)
    assert can_resummarise(make_run(origin="simulated"), 3)
    assert not can_resummarise(make_run(origin="imported"), 3)
    assert not can_resummarise(make_run(), 0)
    assert can_resummarise(make_run(summary=replace(make_summary(), run_requests=Counts())), 0)
