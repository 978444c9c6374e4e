"""Levels made after seeded faults with known ground truth: the right cause, and none where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from nilometer.core.finding import Finding
from nilometer.core.summary import Counts, Distribution, Generator, Lengths, Summary, Throughput, Window
from nilometer.diagnose.evidence import elasticity, gain_per_doubling, level_of
from nilometer.diagnose.old_rules import limits


def seen(ttft_ms: float, tpot_ms: float, level: int, *, output: int = 65, n: int = 60, **generator: Any) -> Summary:
    """A closed loop in steady state: requests/s by Little's law."""
    e2e_ms = ttft_ms + (output - 1) * tpot_ms
    rate = level / e2e_ms * 1000 if e2e_ms else 0.0
    counts = Counts(started=n, ok=n)
    return Summary(
        window=Window(start_s=0.0, end_s=30.0, rule="auto"),
        requests=counts,
        run_requests=counts,
        latency_from="sent",
        latency_ms={
            "ttft": Distribution(n=n, mean=ttft_ms),
            "tpot": Distribution(n=n, mean=tpot_ms),
            "e2e": Distribution(n=n, mean=e2e_ms),
        },
        throughput=Throughput(output_tokens_per_s=rate * output, requests_per_s=rate),
        lengths=Lengths(),
        generator=Generator(verdict="fit", achieved_over_asked=1.0, **generator),
    )


def queued(level: int, slots: int, *, ttft_ms: float = 50.0, tpot_ms: float = 20.0) -> Summary:
    """The waiting that makes `slots` streams decode at a time out of `level`."""
    decode_ms = 64 * tpot_ms
    wait_ms = decode_ms * max(level / slots - 1, 0)
    return seen(ttft_ms + wait_ms, tpot_ms, level)


def of(found: list[Finding]) -> list[str]:
    return [finding.slug for finding in found]


def test_slots_that_are_full_make_a_queue() -> None:
    found = limits([(n, queued(n, 3)) for n in (1, 4, 8)])
    assert of(found) == ["queue"]
    queue = found[0]
    assert queue.kind == "cause"
    assert queue.confidence == "likely"
    assert (queue.params["slots"], queue.params["concurrency"]) == (3, 8)
    assert queue.params["wait"] == pytest.approx(1 - 50 / (50 + 1280 * 5 / 3))
    told = {(evidence.name, evidence.level): evidence.value for evidence in queue.evidence}
    assert told[("tpot_ratio", "4 -> 8")] == pytest.approx(1.0)
    assert told[("decoding", "8")] == pytest.approx(3.0, abs=0.15)
    assert queue.against
    assert "kv_capacity" in queue.rivals


def test_a_slot_is_taken_while_its_prompt_is_at_work_too() -> None:
    """3 slots, each taken for 250 ms of prefill and 890 ms of decoding: 2.3 streams decode at a time."""
    first_ms = {1: 250.0, 4: 250.0 + 1140 / 3, 8: 250.0 + 1140 * 5 / 3}
    found = limits([(n, seen(ttft, 890 / 64, n)) for n, ttft in first_ms.items()])
    assert (of(found), found[0].params["slots"]) == (["queue"], 3)
    assert found[0].evidence[2].value == pytest.approx(8 / 3.04 * 0.89)


def test_the_order_of_the_levels_does_not_matter() -> None:
    assert limits([(n, queued(n, 3)) for n in (8, 1, 4)]) == limits([(n, queued(n, 3)) for n in (1, 4, 8)])


def test_a_plateau_seen_once_is_possible_only() -> None:
    found = limits([(1, queued(1, 4)), (4, queued(4, 4)), (8, queued(8, 4))])
    assert (of(found), found[0].confidence) == (["queue"], "likely")
    found = limits([(1, queued(1, 4)), (8, queued(8, 4))])
    assert (of(found), found[0].confidence) == (["queue"], "possible")


def test_a_queue_without_a_lowest_level_of_one_is_possible_only() -> None:
    found = limits([(n, queued(n, 3)) for n in (2, 8, 16)])
    assert (of(found), found[0].confidence) == (["queue"], "possible")


def test_few_requests_make_it_possible_only() -> None:
    levels = [(1, queued(1, 3)), (4, queued(4, 3)), (8, seen(2183.0, 20.0, 8, n=19))]
    found = limits(levels)
    assert (of(found), found[0].confidence) == (["queue"], "possible")


def test_streams_that_slow_down_as_slots_fill_speak_against_more_slots() -> None:
    slow = {1: 20.0, 4: 70.0, 8: 70.0}
    found = limits([(n, queued(n, 4, tpot_ms=slow[n])) for n in (1, 4, 8)])
    assert of(found) == ["queue", "decode"]
    assert "tpot_elasticity" in [evidence.name for evidence in found[0].against]
    assert found[1].level == "4"
    assert found[1].severity == "medium"


def test_prompts_that_fill_the_server_are_no_queue_for_slots() -> None:
    """Long prompts, short answers: the work of the prompts alone takes the whole time."""
    ttft_tpot = {1: (400.0, 20.0), 4: (1600.0, 40.0), 8: (3400.0, 45.0)}
    levels = [(n, seen(ttft, tpot, n, output=5)) for n, (ttft, tpot) in ttft_tpot.items()]
    assert of(limits(levels)) == ["not_yet_known"]


def test_half_a_server_full_of_prompts_makes_prefill_a_rival() -> None:
    found = limits([(n, queued(n, 2, ttft_ms=350.0)) for n in (1, 4, 8)])
    assert (of(found), found[0].confidence) == (["queue"], "possible")
    assert found[0].rivals[0] == "prefill"


def test_decoding_at_its_limit() -> None:
    """TPOT 20, 78, 160 ms at 1, 4, 8: each stream slows down as the load grows, tokens/s stand still."""
    found = limits([(1, seen(60.0, 20.0, 1)), (4, seen(90.0, 78.0, 4)), (8, seen(120.0, 160.0, 8))])
    assert of(found) == ["decode"]
    decode = found[0]
    assert (decode.kind, decode.confidence, decode.severity, decode.level) == ("cause", "likely", "high", "8")
    told = {evidence.name: evidence.value for evidence in decode.evidence}
    assert told["tpot_elasticity"] == pytest.approx(1.036, abs=0.01)
    assert decode.params == {
        "before": 4,
        "after": 8,
        "tokens_per_s": pytest.approx(8 * 65 / 10.36, rel=1e-6),
    }
    assert [evidence.name for evidence in decode.against] == ["decoding_share"]


def test_a_decode_that_slows_is_possible_only() -> None:
    found = limits([(1, seen(60.0, 20.0, 1)), (4, seen(70.0, 24.0, 4)), (8, seen(80.0, 42.0, 8))])
    assert (of(found), found[0].confidence) == (["decode"], "possible")


def test_a_server_with_room_has_no_cause_yet() -> None:
    found = limits([(1, seen(60.0, 20.0, 1)), (4, seen(70.0, 21.0, 4)), (8, seen(80.0, 23.0, 8))])
    assert of(found) == ["not_yet_known"]
    assert (found[0].kind, found[0].confidence, found[0].missing) == ("note", None, [])
    told = {evidence.name: evidence.value for evidence in found[0].evidence}
    assert told["throughput_gain"] == pytest.approx((8 * 1340 / 1552) ** (1 / 3) - 1, rel=1e-6)


def test_a_limited_generator_forbids_a_diagnosis() -> None:
    levels = [(n, queued(n, 3)) for n in (1, 4, 8)]
    limited = Summary(**{field: getattr(levels[2][1], field) for field in Summary.__struct_fields__} | {
        "generator": Generator(verdict="limited")
    })  # fmt: skip
    found = limits([*levels[:2], (8, limited)])
    assert (of(found), found[0].missing) == (["not_yet_known"], ["fit_generator"])


@pytest.mark.parametrize("levels", [[], [(1, queued(1, 3))], [(1, queued(1, 3)), (8, seen(0.0, 0.0, 8, n=0))]])
def test_one_level_is_not_enough(levels: list[tuple[int, Summary]]) -> None:
    found = limits(levels)
    assert (of(found), found[0].missing) == (["not_yet_known"], ["two_levels"])


def test_figures_of_a_level() -> None:
    low, high = level_of(1, seen(60.0, 20.0, 1)), level_of(8, queued(8, 3))
    assert low is not None
    assert high is not None
    assert low.decoding == pytest.approx(1 - 60 / 1340)
    assert high.decoding == pytest.approx(3.0, abs=0.12)
    assert level_of(8, seen(0.0, 0.0, 8)) is None


def test_changes_between_levels() -> None:
    before, after = level_of(2, seen(60.0, 20.0, 2)), level_of(8, seen(60.0, 80.0, 8))
    assert before is not None
    assert after is not None
    assert elasticity(before, after) == pytest.approx(1.0)
    assert gain_per_doubling(before, after) == pytest.approx((4 * 1340 / 5180) ** 0.5 - 1)
