"""Every cause that holds has its sentence in both languages, with every number of it measured."""

from __future__ import annotations

import pytest
from tests.unit.diagnose.cases import SHOWN, Shown, case_of, group_of, level_of

from nilometer.diagnose.case import Case
from nilometer.diagnose.params import load_of, params_of, slots_at
from nilometer.diagnose.rules import RULES, Rule
from nilometer.text.i18n import LANGUAGES, Catalogue

RAISED = {"run": "k3v9", "evidence": "loop lag p99 12 ms", "spread": "`--workers 2`"}
"""What a report gives to the sentence of any finding."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_a_cause_that_holds_is_told_with_all_its_numbers(rule: Rule) -> None:
    case = case_of(SHOWN[rule.slug])
    assert rule.of(case).holds
    told = params_of(rule.slug, case)
    assert None not in told.values()
    for lang in LANGUAGES:
        words = Catalogue(lang)
        for part in ("what", "next"):
            text = words.say(f"finding.{rule.slug}.{part}", **(RAISED | told))
            assert "{" not in text
            assert " - " not in f" {text} "


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_cause_has_its_row_of_the_handbook(lang: str) -> None:
    words = Catalogue(lang)
    rows = {key.split(".")[1] for key in words.keys() if key.startswith("cause.")}
    assert rows == {rule.slug for rule in RULES}
    names = [words.say(f"cause.{rule.slug}.name") for rule in RULES]
    assert len(set(names)) == len(names)
    assert lang == "zh" or all(2 <= len(name.split()) <= 5 for name in names)


def test_a_sentence_says_the_numbers_of_its_case() -> None:
    en = Catalogue("en")
    queue = en.say("finding.queue.what", **params_of("queue", case_of(SHOWN["queue"])))
    assert queue == "requests queue for a slot: at load 16 about 3 decode at a time, and 90 % of the TTFT is waiting"
    front = params_of("front_end", case_of(SHOWN["front_end"]))
    assert (front["spacing_ms"], front["wait"], front["load"]) == (55.0, 0.9, "16")
    assert params_of("kv_reserved", case_of(SHOWN["kv_reserved"]))["used"] == 500 / 8192
    assert (
        params_of("cold_start", case_of(Shown(low={"head_ratio": 4.0}, high={"after_idle_ratio": 7.0})))["ratio"] == 7
    )


def test_a_load_is_told_as_what_it_is() -> None:
    assert load_of(level_of(16, {})) == "16"
    assert load_of(level_of(2.5, {}, is_open=True)) == "2.5/s"


def test_slots_are_those_that_decode_while_others_wait_else_those_that_decode() -> None:
    assert slots_at(case_of(Shown(high={"full_decoding": 3.1, "decoding_share": 0.5}))) == 3.1
    assert slots_at(case_of(Shown(high={"decoding_share": 0.5}))) == 8
    assert slots_at(Case(group_of([level_of(1, {})]))) is None
