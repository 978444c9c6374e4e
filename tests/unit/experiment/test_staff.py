"""How many processes a load needs, worked out by hand; what cannot come about is said."""

from __future__ import annotations

import pytest

from nilometer.core.spec import Load
from nilometer.experiment.staff import events_per_s, more, staff, trace_cut

OPEN = Load(rate_per_s=1_000)


@pytest.mark.parametrize(
    ("load", "e2e_s", "recorded_s", "events"),
    [
        (Load(rate_per_s=100), None, None, 100 * 65),
        (Load(concurrency=64), 0.5, None, 128 * 65),
        (Load(concurrency=64), None, None, None),
        (Load(arrivals="ramp:10,50,60s", duration_s=30), None, None, 30 * 65),
        (Load(arrivals="spike:10,90,10s", duration_s=60), None, None, 90 * 65),
        (Load(arrivals="spike:10,90,10s", duration_s=10), None, None, 10 * 65),
        (Load(arrivals="recorded"), None, [0.1, 1.1, 1.5, 1.9, 2.0], 3 * 65),
    ],
)
def test_what_a_load_asks_in_its_busiest_second(
    load: Load, e2e_s: float | None, recorded_s: list[float] | None, events: float | None
) -> None:
    """A request of 50 tokens is 65 events."""
    assert events_per_s(load, 50, e2e_s, recorded_s) == (None if events is None else pytest.approx(events))


def test_each_turn_of_a_conversation_is_a_request() -> None:
    assert events_per_s(Load(rate_per_s=100), 50, None, None, per_arrival=4) == pytest.approx(400 * 65)
    assert events_per_s(Load(concurrency=64), 50, 0.5, None, per_arrival=4) == pytest.approx(128 * 65)


@pytest.mark.parametrize(
    ("load", "asked", "one", "cores", "workers", "slugs"),
    [
        (OPEN, 39_000, 80_000, 8, 1, []),  # one bears 40,000
        (OPEN, 41_000, 80_000, 8, 2, ["workers_chosen"]),
        (OPEN, 270_000, 80_000, 8, 7, ["workers_chosen"]),  # 6.75; one processor is left
        (OPEN, 290_000, 80_000, 8, 7, ["workers_chosen", "generator_too_slow"]),
        (OPEN, 41_000, 80_000, 2, 1, ["generator_too_slow"]),
        (OPEN, 41_000, 80_000, 1, 1, ["generator_too_slow"]),
        (OPEN, 41_000, None, 8, 1, []),  # nothing is known of the machine
        (Load(rate_per_s=9, workers=3), 41_000, 80_000, 2, 3, []),  # as it was said
        (Load(rate_per_s=9, workers=1), 41_000, 80_000, 8, 1, ["generator_too_slow"]),
        (Load(concurrency=64), 290_000, 80_000, 4, 3, ["workers_chosen"]),  # it waits for the service
        (Load(concurrency=2), 290_000, 80_000, 8, 2, ["workers_chosen"]),
        (Load(rate_per_s=9, requests=1), 290_000, 80_000, 8, 1, ["generator_too_slow"]),
    ],
)
def test_as_many_as_are_needed_and_there_are_processors_for(
    load: Load, asked: float, one: float | None, cores: int, workers: int, slugs: list[str]
) -> None:
    got, found = staff(load, asked, one, cores)
    assert (got, [finding.slug for finding in found]) == (workers, slugs)
    assert all(finding.params["asked"] == asked for finding in found)


def test_a_trace_that_is_longer_than_the_load_is_said_to_be_cut() -> None:
    load = Load(arrivals="recorded", warmup_s=10, duration_s=20)
    (cut,) = trace_cut(load, [1.0, 12.0, 30.0, 45.0])
    assert (cut.slug, cut.params) == ("trace_cut", {"trace_s": 45.0, "asked_s": 30.0, "n": 2, "of": 4})
    assert trace_cut(load, [1.0, 29.995]) == []
    (short,) = trace_cut(load, [1.0, 12.0])
    assert (short.slug, short.params) == ("trace_short", {"trace_s": 12.0, "asked_s": 30.0})
    assert trace_cut(load, []) == trace_cut(load, None) == []


@pytest.mark.parametrize(
    ("load", "workers", "cores", "n"),
    [
        (Load(concurrency=64), 1, 8, 2),
        (Load(concurrency=64), 4, 8, 7),
        (Load(concurrency=64), 7, 8, None),
        (Load(concurrency=64), 1, 2, None),
        (Load(concurrency=3), 2, 8, 3),
        (Load(concurrency=1), 1, 8, None),
        (Load(rate_per_s=9.0), 1, 1, None),
    ],
)
def test_more_of_the_generator_where_there_is_work_and_room(
    load: Load, workers: int, cores: int, n: int | None
) -> None:
    assert more(load, workers, cores) == n
