"""The bench of faulty services: every kind is made, is what its label says, and comes out the same again."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from benchmarks.faults import holds, score
from benchmarks.faults.cases import SEVERITIES, Label, case_of, labels
from benchmarks.faults.client import Met, Reader, read_by
from benchmarks.faults.kinds import BY_SLUG, DOUBLES, HEALTHY, KINDS
from benchmarks.faults.play import by_client, page_of
from benchmarks.faults.service import Draw, draft, setting_of
from benchmarks.faults.store import Kept, kept_of

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import LATE, SHARED
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.sim.cost import Linear
from nilometer.sim.drive import ORIGIN_NS, Offer, simulate
from nilometer.sim.faults import Faults
from nilometer.sim.machine import Plan
from nilometer.sim.page import Ledger, shown
from nilometer.sim.setting import Ask, Setting

QUICK = Setting(cost=Linear(fixed_s=0.01), slots=4, kv_blocks=100)


def met(reader: Reader | None = None, pool: int | None = None, **faults: Any) -> Met:
    return Met(Plan(setting=QUICK, faults=Faults(**faults)), Random(1), reader, pool)


def test_the_splits_share_no_number() -> None:
    tune, scored = (Draw(Random(1), split) for split in ("tune", "score"))
    bins = [{int(8 * np.log(one.between(1, np.e) + 1e-12)) for _ in range(300)} for one in (tune, scored)]
    assert bins == [{0, 2, 4, 6}, {1, 3, 5, 7}]
    assert {tune.pick((1, 2, 3, 4)) for _ in range(50)} == {1, 3}
    assert {scored.pick((1, 2, 3, 4)) for _ in range(50)} == {2, 4}


def test_there_are_enough_of_each() -> None:
    every = list(labels())
    plain = [one for one in every if not one.sweep]
    assert len({one.name for one in every}) == len(every)
    assert len(KINDS) >= 24
    assert all(sum(one.kinds == (kind.slug,) for one in plain) == 15 for kind in KINDS)
    assert sum(not one.kinds for one in plain) >= 100
    assert sum(len(one.kinds) == 2 for one in plain) >= 40
    assert sum(one.sweep for one in every) == 2 * len(KINDS) * len(SEVERITIES)
    assert all(set(pair) <= set(BY_SLUG) for pair in DOUBLES)


def test_a_case_is_the_same_again() -> None:
    one, same = (case_of(Label(("too_short",), 0, 1), "score") for _ in range(2))
    assert [level.run.summary for level in one.levels] == [level.run.summary for level in same.levels]
    other = case_of(Label(("too_short",), 0, 2), "score")
    assert other.draft.tpot == one.draft.tpot
    assert other.levels[0].records != one.levels[0].records


@pytest.mark.parametrize("kind", ["queue", "kv_reserved", "front_end", "buffered_stream", "client_pool"])
def test_a_case_is_what_its_label_says(kind: str) -> None:
    case = case_of(Label((kind,), 0, 0), "tune")
    levels, top = case.levels, case.levels[-1]
    assert [level.truth.users for level in levels] == case.draft.levels[: len(levels)]
    assert BY_SLUG[kind].holds(case.draft, levels)
    told = top.run.summary.server
    running, waiting = told["running_max"] or 0, told["waiting_mean"] or 0
    if kind == "queue":
        assert running == case.draft.slots
        assert waiting > 1
    if kind == "kv_reserved":
        assert waiting > 1
        assert (told["kv_usage_mean"] or 1) < 0.5
        assert running < (case.draft.slots or 0)
    if kind in ("front_end", "client_pool"):
        assert waiting < 0.5
        assert running < 0.8 * top.truth.users
    if kind == "buffered_stream":
        seen = top.run.summary.latency_ms["ttft"].mean or 0
        assert seen > 3 * 1000 * (told["ttft_mean_s"] or 0)


def test_every_kind_changes_a_draft_into_one_that_can_be_played() -> None:
    for split in ("tune", "score"):
        for kind in KINDS:
            for severity in SEVERITIES:
                draw = Draw(Random(3), split)
                made = draft(draw)
                kind.change(made, draw, severity)
                setting = setting_of(made, Random(1))
                assert made.levels[0] == 1
                assert made.levels[-1] == made.top
                assert (setting.kv_blocks or 0) * 16 >= 3 * (made.prompt + made.output)
    for change in HEALTHY.values():
        draw = Draw(Random(3), "tune")
        made = draft(draw)
        change(made, draw)
        assert setting_of(made, Random(1)).slots >= made.top


def test_a_service_that_is_well_has_no_limit() -> None:
    case = case_of(Label((), 0, 0, sort="idle"), "tune")
    assert holds.clean(case.draft, case.levels)
    assert case.levels[-1].run.summary.generator.verdict == "fit"


def test_evidence_with_and_without_the_page() -> None:
    case = case_of(Label(("too_short",), 1, 0), "tune")
    kept = kept_of(case)
    assert by_client(case.levels[-1]).environment.engine.name is None
    assert kept.client.levels[-1].value("running_mean") is None
    assert kept.client.levels[-1].value("ttft_mean") == kept.server.levels[-1].value("ttft_mean")


def test_a_page_without_text_is_the_page_that_is_read() -> None:
    of = met()
    simulate(Offer(users=6, requests=20), [Ask(0, 40, 10)] * 20, of, sample_s=0.05, sample=lambda *_: None)
    ledger = Ledger(of.plan)
    for key, answer in of.answers:
        ledger.begins(key, answer)
        ledger.ends(key, answer)
    now, whole = shown(of), read(ledger.text(shown(of)), FAMILIES)
    quick = page_of(ledger, now)
    assert {name: sorted(map(repr, rows)) for name, rows in quick.series.items()} == {
        name: sorted(map(repr, rows)) for name, rows in whole.series.items()
    }
    assert set(quick.names) == set(whole.names)


def test_a_loop_that_is_away_reads_late() -> None:
    reader = Reader(Random(1), 0.0, 0.0, 0.1)
    reader.begins, reader.ends = np.array([1.0, 3.0]), np.array([1.5, 3.25])
    assert reader.at([0.5, 1.0, 1.2, 1.5, 3.1, 9.0]).tolist() == [0.5, 1.5, 1.5, 1.5, 3.25, 9.0]


@pytest.mark.parametrize("kernel", [True, False])
def test_what_is_read_late_is_marked_and_stamped_once(kernel: bool) -> None:
    reader = Reader(Random(1), 0.0, 0.0, 0.1)
    reader.begins, reader.ends = np.array([0.015]), np.array([0.038])
    of = met(reader)
    played = simulate(Offer(users=1, requests=2), [Ask(0, 10, 5)] * 2, of)
    first, second = read_by(played.records, reader, Random(1), kernel=kernel)
    at = [round((frame.at_ns - ORIGIN_NS) / NS_PER_S, 4) for frame in first.frames]
    # Tokens came at 10, 20, 30, 40, 50 ms; the loop was away from 15 to 38 ms.
    assert at == ([0.01, 0.03, 0.03, 0.04, 0.05] if kernel else [0.01, 0.038, 0.038, 0.04, 0.05])
    assert list(first.frames.flags) == [0, LATE | SHARED, LATE | SHARED, 0, 0]
    assert second.refill_ns == 0


def test_a_pool_lets_in_as_many_as_it_holds() -> None:
    most = []
    of = met(pool=2)
    simulate(
        Offer(users=5, requests=30),
        [Ask(0, 10, 20)] * 30,
        of,
        sample_s=0.01,
        sample=lambda _, machine: most.append(machine.gauges[0].running + machine.gauges[0].waiting),
    )
    assert max(most) == 2
    assert len(of.answers) == 30


def test_shares_have_wilsons_interval() -> None:
    # By hand: 8 of 10, z = 1.96 -> 0.490, 0.943 (Newcombe 1998, table of examples).
    low, high = score.interval(8, 10)
    assert low == pytest.approx(0.490, abs=5e-4)
    assert high == pytest.approx(0.943, abs=5e-4)
    assert score.interval(0, 0) == (0.0, 1.0)


def test_what_is_true_besides_the_label_is_right() -> None:
    kept = kept_of(case_of(Label(("too_short",), 1, 0), "tune"))
    one = Kept(**{name: getattr(kept, name) for name in Kept.__struct_fields__} | {"also_client": ("queue",)})
    assert score.truths(one, "client") == {"too_short", "queue"}
    assert score.truths(one, "server") == {"too_short"}
