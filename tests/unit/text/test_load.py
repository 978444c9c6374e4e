"""A rate counts what it starts: requests, or conversations of several turns."""

from __future__ import annotations

import pytest

from nilometer.core.spec import Load, Prompts, Scenario, Spec
from nilometer.text import load
from nilometer.text.i18n import Catalogue


@pytest.mark.parametrize(
    ("prompts", "conversations"),
    [
        (Prompts(), False),
        (Prompts(turns=" 1"), False),
        (Prompts(turns="4"), True),
        (Prompts(turns="uniform:1,3"), True),
        (Prompts(scenarios=(Scenario(name="a"), Scenario(name="b", turns="2"))), True),
        (Prompts(scenarios=(Scenario(name="a"), Scenario(name="b", turns="1"))), False),
        (Prompts(turns="4", scenarios=(Scenario(name="a", turns="1"),)), False),
        (Prompts(turns="4", scenarios=(Scenario(name="a"),)), True),
    ],
)
def test_a_rate_is_named_by_what_it_starts(prompts: Prompts, conversations: bool) -> None:
    spec = Spec(target="embedded", load=Load(rate_per_s=5.0), prompts=prompts)
    for lang, requests, several in (("en", "requests/s", "conversations/s"), ("zh", "请求/s", "会话/s")):
        words = Catalogue(lang)
        unit = several if conversations else requests
        assert load.rate_unit(spec, words) == unit
        assert f"5 {unit}" in load.kind(spec, words)
    assert ("conversations" in load.who(spec, Catalogue("en"))) is conversations
    assert ("会话" in load.who(spec, Catalogue("zh"))) is conversations


@pytest.mark.parametrize(("lang", "told"), [("en", "under the replayed traffic users get"), ("zh", "回放所录流量时")])
def test_who_a_replay_serves(lang: str, told: str) -> None:
    spec = Spec(target="http://t", load=Load(arrivals="recorded"))
    assert load.who(spec, Catalogue(lang)) == told
