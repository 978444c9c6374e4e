"""Plans against what engines said at their start: the rows of benchmarks/data, each within its tolerance."""

from __future__ import annotations

import pytest
from benchmarks.plan_memory import kv_error, plan_memory, token_errors
from benchmarks.plan_rows import NO_KV_GIB, NO_TOKENS, Logged, Made, logged, made, planned

ROWS = {row.id: row for row in logged()}
UNEXPLAINED = {"v063": 11.0}
"""Percent: a row of 0.11 that took what 0.17 would; shown in the table and kept in its mean."""


def judged_by(unjudged: set[str], *, pipeline: bool = False) -> list[str]:
    return [row.id for row in ROWS.values() if row.doubt not in unjudged and (row.pipeline > 1) == pipeline]


@pytest.mark.parametrize("name", [*judged_by(NO_KV_GIB), *judged_by(NO_KV_GIB, pipeline=True)])
def test_kv_bytes_of_a_logged_start(name: str) -> None:
    row = ROWS[name]
    error = kv_error(row)
    if error is None:
        assert planned(row) is None or row.kv_gib is None
        return
    assert abs(error) < (0.5 if row.recent else UNEXPLAINED.get(name, 2.5))


@pytest.mark.parametrize("name", judged_by(NO_TOKENS))
def test_tokens_and_concurrency_of_a_logged_pool(name: str) -> None:
    assert [error for error in token_errors(ROWS[name]) if abs(error) > 0.06] == []


@pytest.mark.parametrize("name", judged_by(NO_TOKENS, pipeline=True))
def test_tokens_with_stages_end_to_end(name: str) -> None:
    row = ROWS[name]
    assert max(abs(error) for error in token_errors(row)) < 2
    plan = planned(row)
    assert plan is not None
    assert plan.pool.tokens == pytest.approx(row.kv_tokens, rel=2e-3)


def test_every_row_has_its_source_and_every_goal_is_met() -> None:
    assert len(ROWS) == 43
    assert all(row.source for row in ROWS.values())
    verdicts = {row.what: row.met for row in plan_memory() if row.goal != "-"}
    assert len(verdicts) == 5
    assert all(verdicts.values())


def test_a_doubtful_row_is_shown_and_says_why() -> None:
    doubtful = [row for row in ROWS.values() if row.doubt]
    told = [row.note for row in plan_memory() if "not judged" in row.note]
    assert {row.doubt for row in doubtful} == {"flags_unknown", "remainder", "approximate", "other_rank"}
    assert len(told) == 4


def test_a_row_without_a_shape_has_no_plan() -> None:
    row: Logged = ROWS["v077"]
    assert planned(row) is None
    assert kv_error(row) is None


@pytest.mark.parametrize("row", made(), ids=lambda row: row.id)
def test_llama_cpp_s_cache_and_buffer_as_logged(row: Made) -> None:
    assert row.cells[0] == row.cells[1]
    assert row.slot_context[0] == row.slot_context[1]
    assert row.kv_mib[1] == pytest.approx(row.kv_mib[0], abs=0.006)
    assert row.compute_mib[1] == pytest.approx(row.compute_mib[0], rel=0.09)
