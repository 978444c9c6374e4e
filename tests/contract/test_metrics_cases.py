"""The handed metrics pages through the command: every value that is right stands where the contract says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nilometer.cli.root import nilo

CASES = Path(__file__).parents[1] / "cases" / "metrics"
Told = dict[str, Any]
KEYS = [
    *("nilometer", "format", "kind", "engine", "dialect", "engines", "elapsed_s", "reset", "ignored_lines"),
    *("running", "waiting", "kv_usage", "kv_capacity_tokens", "preemptions", "prompt_tokens", "generation_tokens"),
    *("generation_tps", "prefix_hit_ratio", "spec", "ttft", "per_token", "queue", "e2e", "hints"),
]
EXPLAINS = {"notes", "traps", "trap"}
HINTS = {"m07_llamacpp.prom": "slots_limit"}


def scraped(*words: str) -> Told:
    done = CliRunner().invoke(nilo, ["scrape", *words, "--json"])
    assert done.exit_code == 0, done.output
    found: Told = json.loads(done.stdout)
    return found


def right(name: str) -> Told:
    found: Told = json.loads((CASES / f"{name}.expected.json").read_text("utf-8"))
    return found


def holds(found: Any, wanted: Any) -> bool:
    """What is wanted is there; an object may hold more."""
    if isinstance(wanted, dict):
        return all(holds(found[key], value) for key, value in wanted.items())
    return bool(found == (pytest.approx(wanted, rel=1e-6) if isinstance(wanted, float | list) else wanted))


def place(name: str, key: str, machine: Told) -> Any:
    """By the shorthand of the expected files: `X_mean_s` is `X.mean_s`, `kv_usage` a number its `max`."""
    if key == "hint":
        return HINTS[name] in machine["hints"]
    if key.endswith("_mean_s"):
        return machine[key.removesuffix("_mean_s")]["mean_s"]
    return machine[key]


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.prom") if "delta" not in path.name))
def test_each_page_has_its_values(name: str) -> None:
    machine, wanted = scraped(str(CASES / name)), right(name)
    assert list(machine)[: len(KEYS)] == KEYS
    for key in set(wanted) - EXPLAINS:
        expected = wanted[key]
        if key == "kv_usage" and isinstance(expected, float):
            expected = {"max": expected}
        found = place(name, key, machine)
        assert holds(found, True if key == "hint" else expected), (key, found, expected)


def test_two_pages_are_the_time_between_them() -> None:
    before, after = str(CASES / "m03_delta_before.prom"), str(CASES / "m03_delta_after.prom")
    wanted = right("m03_delta")
    machine = scraped(after, "--before", before, "--elapsed", "60s")
    for key in set(wanted) - EXPLAINS:
        assert holds(machine[key], wanted[key]), key
    rateless = scraped(after, "--before", before)
    assert holds(rateless["ttft"], wanted["ttft"])
    assert {value for key, value in rateless.items() if "tps" in key or key.endswith("per_s")} == {None}
    assert rateless["elapsed_s"] is None
    alone = scraped(after)
    assert alone["ttft"]["mean_s"] == pytest.approx(75 / 1040)  # the trap: what the totals alone say
    assert alone["ttft"]["p95_s"]["at_most"] == 0.1


def test_what_a_page_does_not_tell_is_null() -> None:
    machine = scraped(str(CASES / "m06_tgi.prom"))
    unknown = (
        "kv_usage",
        "kv_capacity_tokens",
        "preemptions",
        "prompt_tokens",
        "generation_tps",
        "spec",
        "ttft",
        "e2e",
    )
    assert {machine[key] for key in unknown} == {None}
    assert "kv_unknown" in machine["hints"]
