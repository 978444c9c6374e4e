"""The Run that the journals of a load test tell, whole or damaged."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.unit.experiment.made import RECORDS, damage, leave
from tests.unit.load.made import header

from nilometer.compare.condition import condition_hash
from nilometer.core.finding import Finding
from nilometer.core.run import Damage
from nilometer.experiment.conclude import conclude


def slugs(findings: list[Finding]) -> list[str]:
    return [finding.slug for finding in findings]


def test_what_the_probe_found_comes_from_the_journal(tmp_path: Path) -> None:
    found = Finding(slug="usage_missing", kind="note", severity="medium")
    head = msgspec.structs.replace(header(), findings=[found])
    leave(tmp_path, head=head)
    assert conclude(head, list(tmp_path.iterdir())).findings[-1] == found


def test_a_run_knows_its_condition(tmp_path: Path) -> None:
    run = conclude(header(), leave(tmp_path))
    assert run.condition_hash == condition_hash(run)


def test_a_whole_journal_is_no_finding(tmp_path: Path) -> None:
    run = conclude(header(), leave(tmp_path))
    assert "journal_damaged" not in slugs(run.findings)
    assert run.summary.run_requests.started == RECORDS


def test_a_journal_cut_off_is_no_damage(tmp_path: Path) -> None:
    (path,) = leave(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    run = conclude(header(), [path])
    assert run.health.damage == ()
    assert run.summary.run_requests.started == RECORDS


def test_damage_marks_the_run_and_leaves_the_rest_of_it(tmp_path: Path) -> None:
    first, second = leave(tmp_path, workers=2)
    lost = damage(first, [4, 5, 9])
    run = conclude(header(), [first, second])
    assert run.summary.run_requests.started == RECORDS - 3
    assert run.health.death is None
    assert run.health.damage == (Damage(file=f"{first}.damaged", lost_bytes=lost, gaps=2),)
    (finding,) = (finding for finding in run.findings if finding.slug == "journal_damaged")
    assert (finding.kind, finding.severity) == ("validity", "medium")
    assert finding.params == {"lost": lost, "places": 2, "file": f"{first}.damaged"}
    assert [(one.value, one.unit, one.source) for one in finding.evidence] == [(lost, "bytes", f"{first}.damaged")]
    assert run.verdict != "admissible"
