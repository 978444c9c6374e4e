"""A sweep's plan beside the Spec in the text of its group."""

from __future__ import annotations

import pytest

from nilometer.core.group import parted, with_plan
from nilometer.core.spec import Prompts, Scenario, Spec, from_tree, to_toml


def test_a_plan_stands_behind_any_spec_and_both_come_back() -> None:
    spec = Spec(target="embedded", prompts=Prompts(scenarios=(Scenario(name="a"), Scenario(name="b"))))
    plan = {"levels": [2.0, 4.5], "budget": 60.0}
    tree, kept = parted(with_plan(to_toml(spec), "sweep", plan), "sweep")
    assert (from_tree(tree), kept) == (spec, plan)


def test_a_group_without_a_plan_and_a_text_that_is_none() -> None:
    assert parted('target = "embedded"\n', "sweep") == ({"target": "embedded"}, {})
    with pytest.raises(ValueError, match="Expected"):
        parted("no toml [", "sweep")
