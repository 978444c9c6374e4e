"""Whose turn it is in a verify, and which pairs count: what a run would have measured is told by each test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.archive.samples import make_run

from nilometer.core.group import Group
from nilometer.core.run import Run
from nilometer.core.summary import Cost, Counts
from nilometer.experiment.follow import Stop
from nilometer.experiment.verify import Pair, Plan, Reached, Role, Side, Verified, order_of, pairs_of, verify

SPEC = make_run().spec
GROUP = Group(id="g", type="verify", started_wall_ns=1)


class Lab:
    """Takes the place of `measure`: files which side was asked, and hands out runs with the given traits."""

    def __init__(self, traits: dict[int, dict[str, Any]] | None = None, run_s: float = 100.0) -> None:
        self.traits = traits or {}
        self.run_s = run_s
        self.now_s = 0.0
        self.asked: list[str] = []
        self.entered: list[str] = []

    def measure(self, spec: Any, _headers: Any, *, place: Any, **_: Any) -> Run:
        assert self.entered[-1] == place.role, "its target is there while it is measured"
        self.now_s += self.run_s
        self.asked.append(place.role)
        run = replace(make_run(), id=f"run{place.order}", spec=spec, role=place.role, order=place.order)
        return replace(run, **{"verdict": "admissible", **self.traits.get(place.order, {})})

    def side(self, role: Role) -> Side:
        @contextlib.contextmanager
        def reach() -> Iterator[Reached]:
            self.entered.append(role)
            yield Reached((), None)
            self.entered.append("left")

        load = replace(SPEC.load, max_total_tokens=1_000)
        return Side(replace(SPEC, load=load), reach)

    def verify(self, monkeypatch: pytest.MonkeyPatch, plan: Plan, enough: int = 99) -> Verified:
        monkeypatch.setattr("nilometer.experiment.verify.measure", self.measure)
        sides: dict[Role, Side] = {"a": self.side("a"), "b": self.side("b")}

        def decided(pairs: Sequence[Pair]) -> bool:
            return len(pairs) >= enough

        return verify(
            sides, plan, GROUP, decided=decided, runs=None, watch=None, stop=Stop(), random=Random(1),  # type: ignore[arg-type]
            monotonic=lambda: self.now_s,
        )  # fmt: skip


INADMISSIBLE = {"verdict": "inadmissible"}


def test_the_sides_take_turns_and_the_first_changes_from_pair_to_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    found = lab.verify(monkeypatch, Plan(most=9), enough=4)
    assert "".join(lab.asked) == "abbaabba"
    assert [(pair.a.id, pair.b.id) for pair in found.pairs] == [
        ("run0", "run1"), ("run3", "run2"), ("run4", "run5"), ("run7", "run6"),
    ]  # fmt: skip
    assert (found.short, found.series.fault, len(found.series.runs)) == (None, None, 8)
    assert order_of(0) == order_of(2) != order_of(1)


def test_each_run_has_its_target_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.verify(monkeypatch, Plan(most=2))
    assert lab.entered == ["a", "left", "b", "left", "b", "left", "a", "left"]


def test_it_ends_with_the_most_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Lab().verify(monkeypatch, Plan(most=3))
    assert (len(found.pairs), found.short) == (3, "pairs")


def test_no_pair_begins_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of 200 s: the third would end at 600 s."""
    assert len(Lab().verify(monkeypatch, Plan(most=9, budget_s=599.0)).pairs) == 2
    found = Lab().verify(monkeypatch, Plan(most=9, budget_s=600.0))
    assert (len(found.pairs), found.short) == (3, "time")


def test_a_pair_that_is_no_evidence_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab({1: INADMISSIBLE})
    found = lab.verify(monkeypatch, Plan(most=2))
    assert "".join(lab.asked) == "ababba", "in the same order, so that the order of pairs that count stays"
    assert [pair.a.id for pair in found.pairs] == ["run2", "run5"]
    assert len(found.series.runs) == 6, "nothing measured is lost"


def test_two_such_pairs_in_a_row_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Lab({3: INADMISSIBLE, 4: INADMISSIBLE}).verify(monkeypatch, Plan(most=9))
    assert (len(found.pairs), found.short, len(found.series.runs)) == (1, "unfit", 6)


def test_no_pair_begins_that_the_tokens_do_not_suffice_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 a run of 1,000: after a pair 400 are left, less than the 600 of another."""
    made = make_run()
    spent = {"summary": replace(made.summary, cost=Cost(prompt_tokens=200, output_tokens=100, uncounted=0))}
    found = Lab(dict.fromkeys(range(9), spent)).verify(monkeypatch, Plan(most=9))
    left = [run.spec.load.max_total_tokens for run in found.series.runs]
    assert (left, found.short) == ([1_000, 700], "tokens")


def test_no_run_begins_without_a_token_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run has used more than there was: the other one of its pair would be asked for less than none."""
    spent = {"summary": replace(make_run().summary, cost=Cost(prompt_tokens=900, output_tokens=200, uncounted=0))}
    found = Lab({0: spent}).verify(monkeypatch, Plan(most=9))
    assert (len(found.series.runs), found.pairs, found.short, found.series.fault) == (1, [], "tokens", None)


def test_a_target_that_is_lost_ends_it_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(make_run().summary, run_requests=Counts(started=9, error=9, errors={"connect": 9}))
    found = Lab({2: {"summary": gone}}).verify(monkeypatch, Plan(most=9))
    assert found.series.fault is not None
    assert (found.series.fault.slug, len(found.series.runs), len(found.pairs)) == ("target_lost", 3, 1)


def test_half_a_pair_is_none() -> None:
    runs = [replace(make_run(), id=str(i), role=role, order=i, verdict="admissible") for i, role in enumerate("abb")]
    assert [(pair.a.id, pair.b.id) for pair in pairs_of(runs)] == [("0", "1")]
    assert pairs_of(runs[1:]) == []
