from __future__ import annotations

from nilometer.core.summary import Cost, Efficiency, Generator, Lengths, Memory, Quota, Throughput
from nilometer.metrics.catalogue import BY_NAME, METRICS, PER_REQUEST

from .made import answered, phases, summary


def named(scope: str) -> set[str]:
    return {metric.name for metric in METRICS if metric.scope == scope}


def test_every_figure_of_a_summary_has_its_row_and_every_row_its_figure() -> None:
    made = summary([answered(1.0, [1.5, 1.6])], phases(0, 10))
    assert named("latency_ms") == set(made.latency_ms)
    assert named("throughput") == set(Throughput.__struct_fields__)
    assert named("lengths") == set(Lengths.__struct_fields__) - {"token_source"}
    assert named("generator") == set(Generator.__struct_fields__) - {"verdict", "stamp_source"}
    assert named("memory") == set(Memory.__struct_fields__) - {"source"}
    assert named("efficiency") == set(Efficiency.__struct_fields__)
    assert named("quota") == set(Quota.__struct_fields__)
    assert named("cost") == set(Cost.__struct_fields__)


def test_names_are_unique_and_say_where_they_are() -> None:
    assert len(BY_NAME) == len(METRICS)
    assert BY_NAME["ttft"].path == "latency_ms.ttft"


def test_latencies_made_from_one_request_have_their_function() -> None:
    assert {name for name, _ in PER_REQUEST} == named("latency_ms") - {"itl", "frame_gap"}
    record = answered(1.0, [1.5, 1.6], 2.0)
    assert {name: of(record) for name, of in PER_REQUEST if of(record) is not None} == {
        "ttft": 500_000_000,
        "ttfa": 500_000_000,
        "tpot": 100_000_000.0,
        "e2e": 1_000_000_000,
        "ttft_from_sent": 500_000_000,
        "e2e_from_sent": 1_000_000_000,
    }
