"""Every cause has remedies in words, with flags that its engine knows; a gain has an interval, or there is none."""

from __future__ import annotations

import pytest
from tests.unit.diagnose.cases import SHOWN, case_of
from tests.unit.diagnose.played import COST, case_of_machine

from nilometer.core.finding import Remedy
from nilometer.diagnose.advise import remedies
from nilometer.diagnose.case import Case
from nilometer.diagnose.remedies import ADVICE, ENGINES, FLAGS
from nilometer.diagnose.rules import RULES, Rule
from nilometer.plan.launch.flags_others import DIALECTS, PARAMETERS
from nilometer.sim.setting import Setting
from nilometer.text.i18n import LANGUAGES, Catalogue

SLUGS = sorted({one.slug for row in ADVICE.values() for one in row})


@pytest.fixture(scope="module")
def queue() -> Case:
    return case_of_machine(Setting(cost=COST, slots=3))


def _first(slug: str, found: list[Remedy]) -> Remedy:
    return next(one for one in found if one.slug == slug)


def test_each_cause_has_one_to_four_remedies() -> None:
    assert list(ADVICE) == [rule.slug for rule in RULES]
    assert [slug for slug, row in ADVICE.items() if not 1 <= len(row) <= 4] == []
    assert remedies("no_such_cause", case_of(SHOWN["queue"])) == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_remedy_is_told_in_words(lang: str) -> None:
    told = {key.split(".")[1] for key in sorted(Catalogue(lang).keys()) if key.startswith("remedy.")}
    assert told == set(SLUGS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_a_cause_that_was_hardly_measured_has_remedies_without_a_gain_made_up(rule: Rule) -> None:
    for one in remedies(rule.slug, case_of(SHOWN[rule.slug])):
        assert one.flags == [] or "engine" in SHOWN[rule.slug].facts
        if one.gain is not None:
            low, mid, high = (one.gain[name] for name in ("low", "mid", "high"))
            assert isinstance(low, float)
            assert isinstance(mid, float)
            assert isinstance(high, float)
            assert low <= mid <= high


@pytest.mark.parametrize("engine", sorted({engine for row in FLAGS.values() for engine in row}))
def test_flags_are_those_that_the_engine_knows(engine: str) -> None:
    known = {*DIALECTS[engine].flags, *DIALECTS[engine].env}
    known |= set(PARAMETERS.flags) if engine == "ollama" else set()
    written = [word for row in FLAGS.values() for word in row.get(engine, "").split()]
    names = [word.partition("=")[0] for word in written if word.startswith("--") or ("=" in word and word[0].isupper())]
    assert names
    assert [name for name in names if name not in known] == []


def test_flags_are_of_remedies_that_there_are_and_engines_of_flags() -> None:
    assert set(FLAGS) <= set(SLUGS)
    assert set(ENGINES.values()) <= {engine for row in FLAGS.values() for engine in row}


def test_a_queue_is_capped_first_and_then_given_more_slots(queue: Case) -> None:
    found = remedies("queue", queue)
    assert [one.slug for one in found] == ["cap_load", "more_slots", "shorter_outputs", "more_replicas"]
    capped, slots = (_first(slug, found).gain for slug in ("cap_load", "more_slots"))
    assert capped is not None
    assert slots is not None
    assert (capped["metric"], capped["unit"]) == ("ttft_p95_ms", "ms")
    assert (slots["metric"], slots["unit"]) == ("output_tokens_per_s", "tokens/s")
    assert _first("more_slots", found).flags == []


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("vllm", ["--max-num-seqs", "6"]),
        ("sglang", ["--max-running-requests", "6"]),
        ("llama.cpp", ["--parallel", "6"]),
        ("llama-server", ["--parallel", "6"]),
        ("ollama", ["OLLAMA_NUM_PARALLEL=6"]),
        ("triton", []),
    ],
)
def test_flags_are_of_the_engine_at_hand(queue: Case, engine: str, flags: list[str]) -> None:
    shown = SHOWN["queue"]._replace(facts={"engine": engine})
    assert _first("more_slots", remedies("queue", case_of(shown))).flags == flags


def test_where_the_load_has_no_more_to_fill_slots_with_none_are_offered() -> None:
    shown = SHOWN["queue"]
    full = case_of(shown._replace(high={**shown.high, "full_decoding": 16.0}))
    assert "more_slots" not in [one.slug for one in remedies("queue", full)]
    crowded = case_of(shown._replace(high={**shown.high, "kv_usage_max": 0.95}))
    assert "more_slots" not in [one.slug for one in remedies("queue", crowded)]
