"""Findings, environment and group as they go into JSON: the keys of the contract, lists of their own."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.environment import Client, Environment
from nilometer.core.finding import Evidence, Experiment, Finding, Remedy
from nilometer.core.group import Group


def test_a_finding_has_the_keys_of_the_contract() -> None:
    finding = Finding(
        slug="queue",
        kind="cause",
        severity="high",
        evidence=[Evidence(name="waiting", value=3)],
        experiment=Experiment(command="nilo measure"),
        remedies=[Remedy(slug="more_slots")],
    )
    told = msgspec.to_builtins(finding)
    assert told["class"] == "cause"
    assert {"slug", "class", "severity", "confidence", "metric", "level", "evidence", "against", "missing"} <= set(told)
    assert {"rivals", "experiment", "remedies"} <= set(told)
    assert set(told["evidence"][0]) == {"name", "value", "lo", "hi", "unit", "n", "window", "level", "source"}
    assert (set(told["experiment"]), set(told["remedies"][0])) == (
        {"command", "predictions"},
        {"slug", "flags", "gain"},
    )
    assert msgspec.convert(told, Finding) == finding


def test_findings_do_not_share_their_lists() -> None:
    one = Finding(slug="a", kind="note", severity="low")
    one.missing.append("x")
    assert Finding(slug="b", kind="note", severity="low").missing == []


def test_an_unknown_severity_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"slug": "a", "class": "note", "severity": "grave"}, Finding)


def test_an_environment_of_nothing_is_all_unknown() -> None:
    told = msgspec.to_builtins(Environment())
    assert told["client"] is None
    assert told["machine"].pop("devices") == []
    assert all(value is None for value in told["machine"].values())
    assert told["engine"].pop("launched_by_us") is False
    assert all(value is None for part in ("engine", "model") for value in told[part].values())
    assert msgspec.convert({"client": {"nilometer": "1", "python": "3"}}, Environment).client == Client(
        nilometer="1", python="3"
    )


def test_a_group_is_one_of_the_known_types() -> None:
    told = {"id": "g", "type": "sweep", "started_wall_ns": 1}
    assert msgspec.convert(told, Group).type == "sweep"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**told, "type": "pile"}, Group)
