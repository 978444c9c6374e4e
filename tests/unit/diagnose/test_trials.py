"""What a trial changes, what is foretold of it, and what its outcome makes of the findings."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.diagnose.cases import level_of

from nilometer.core.finding import Finding
from nilometer.core.spec import Load, Prompts, Spec
from nilometer.diagnose.rules import RULES
from nilometer.diagnose.trials import TRIALS, halved, outcome_of, trial_for, updated, with_experiment
from nilometer.text.i18n import LANGUAGES, Catalogue

SPEC = Spec(
    target="http://127.0.0.1:1",
    load=Load(concurrency=16, duration_s=20.0),
    prompts=Prompts(input_tokens="uniform:100,300", output_tokens="64"),
)


def finding(slug: str, rivals: tuple[str, ...] = ()) -> Finding:
    return Finding(slug=slug, kind="cause", severity="high", confidence="likely", rivals=list(rivals))


@pytest.mark.parametrize(
    ("text", "half"), [("64", "32"), ("uniform:100,300", "uniform:50,150"), ("lognormal:9,1", "lognormal:4,1")]
)
def test_lengths_are_halved_in_their_own_words(text: str, half: str) -> None:
    assert halved(text) == half


def test_lengths_of_a_file_cannot_be_halved() -> None:
    assert halved("empirical:lengths.csv") is None
    in_file = replace(SPEC, prompts=replace(SPEC.prompts, output_tokens="empirical:lengths.csv"))
    assert trial_for("queue", ["kv_capacity"], in_file) is not TRIALS[0]


def test_a_trial_is_one_on_which_the_rivals_do_not_agree() -> None:
    trial = trial_for("queue", ["kv_capacity"], SPEC)
    assert trial is not None
    assert trial.slug == "half_lengths"
    assert trial.foretold["queue"] != trial.foretold["kv_capacity"]
    changed = trial.changed(SPEC)
    assert changed is not None
    assert (changed.prompts.input_tokens, changed.prompts.output_tokens) == ("uniform:50,150", "32")
    assert trial_for("generator_limited", [], SPEC) is None


def test_half_the_load_of_one_request_is_none() -> None:
    assert trial_for("decode_compute", [], replace(SPEC, load=Load(concurrency=1))) is None


def test_a_finding_carries_its_trial_with_what_each_rival_foretells() -> None:
    told = with_experiment([finding("queue", ("kv_capacity",))], SPEC, "nilo diagnose k3 --experiment")[0].experiment
    assert told is not None
    assert told.predictions == ["half_lengths.plateau_stays:queue", "half_lengths.plateau_grows:kv_capacity"]
    confirmed = replace(finding("queue"), confidence="confirmed")
    assert with_experiment([confirmed], SPEC, "x")[0].experiment is None


@pytest.mark.parametrize(
    ("plateau", "held", "refuted"), [(8.0, "queue", "kv_capacity"), (15.5, "kv_capacity", "queue")]
)
def test_who_foretold_what_came_about_is_confirmed(plateau: float, held: str, refuted: str) -> None:
    before, after = level_of(16, {"full_decoding": 8.0}), level_of(16, {"full_decoding": plateau})
    outcome = outcome_of(TRIALS[0], ("queue", "kv_capacity"), before, after)
    assert (outcome.held, outcome.refuted) == ((held,), (refuted,))
    told = updated([finding("queue", ("kv_capacity",)), finding("kv_capacity", ("queue",))], outcome)
    assert [(one.slug, one.confidence) for one in told] == [(held, "confirmed"), (refuted, "possible")]
    assert told[0].evidence[0].value == pytest.approx(plateau / 8)


def test_what_was_not_measured_decides_nothing() -> None:
    outcome = outcome_of(TRIALS[0], ("queue", "kv_capacity"), level_of(16, {}), level_of(16, {}))
    assert outcome.held == outcome.refuted == ()
    before = [finding("queue")]
    assert updated(before, outcome) == before


def test_causes_of_trials_exist_and_outcomes_have_words() -> None:
    slugs = {rule.slug for rule in RULES}
    for trial in TRIALS:
        assert set(trial.foretold) <= slugs
        assert set(trial.foretold.values()) == set(trial.outcomes)
        for lang in LANGUAGES:
            words = Catalogue(lang)
            assert f"trial.{trial.slug}" in words
            assert all(f"outcome.{trial.slug}.{name}" in words for name in trial.outcomes)
