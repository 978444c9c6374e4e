"""What must be known to read the figures: each hint where it holds, and not where it does not."""

from __future__ import annotations

import pytest

from nilometer.metrics.buckets import Bound
from nilometer.metrics.page_hints import hints
from nilometer.metrics.server_figures import KvUsage, Loaded, ServerFigures, Slots, Spread

KV = KvUsage(max=0.95, per_engine=[0.95])
QUIET = ServerFigures(engine="vllm", compared=True, elapsed_s=10.0, kv_usage=KvUsage(max=0.2, per_engine=[0.2]))


def spread(p50: float | Bound, p95: float | Bound) -> dict[str, Spread]:
    return {"ttft": Spread(source="s", count=3, mean_s=0.1, p50_s=p50, p95_s=p95)}


def slugs(**changes: object) -> list[str]:
    told = {name: getattr(QUIET, name) for name in QUIET.__struct_fields__} | changes
    return [hint.slug for hint in hints(ServerFigures(**told))]


def test_two_pages_of_a_quiet_server_need_no_word() -> None:
    assert slugs() == []


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({"reset": True}, "counters_reset"),
        ({"appeared": 1}, "engine_appeared"),
        ({"vanished": 2}, "engine_vanished"),
        ({"elapsed_s": None}, "elapsed_unknown"),
        ({"compared": False}, "since_start"),
        ({"engine": "llama.cpp", "waiting": 6, "busy_slots_mean": 1.9}, "slots_limit"),
        ({"waiting": 3, "kv_usage": KV}, "kv_full"),
        ({"preemptions": 4}, "preempted"),
        ({"kv_usage": None}, "kv_unknown"),
        ({"loaded": [Loaded(model="m")], "kv_usage": None, "compared": False}, "no_metrics_page"),
        ({"latencies": spread(0.1, Bound(at_least=1.0, why="inf_bucket"))}, "beyond_buckets"),
        ({"latencies": spread(Bound(at_least=0, at_most=1, why="first_bucket"), 2.0)}, "first_bucket"),
        ({"broken_lines": 2}, "lines_broken"),
    ],
)
def test_a_hint(changes: dict[str, object], slug: str) -> None:
    assert slugs(**changes) == [slug]


def test_a_full_cache_that_nobody_waits_for_is_well_used() -> None:
    assert slugs(kv_usage=KV, waiting=0) == []
    assert slugs(waiting=5) == []


def test_slots_are_told_by_the_best_source() -> None:
    figures = ServerFigures(engine="llama.cpp", waiting=6, running=2, busy_slots_mean=1.9, slots=Slots(total=4, busy=4))
    assert next(hint for hint in hints(figures) if hint.slug == "slots_limit").params == {"waiting": 6, "busy": 4}


def test_an_unknown_page_tells_its_names_and_no_figure_of_an_engine() -> None:
    found = hints(ServerFigures(names=[f"n{i}" for i in range(20)]))
    assert [hint.slug for hint in found] == ["names_unknown"]
    assert found[0].params == {"n": 20, "names": "n0, n1, n2, n3, n4, n5, n6, n7"}
