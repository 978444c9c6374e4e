"""`nilo verify`, `compare` and `gate` as a user runs them, on mock servers that differ by what is known.

The guide's lesson: a version that felt faster, its first token comes sooner, had lost 10 % TPOT: 20 -> 22 ms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.loopback.test_measure import Env, env, nilo

from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_script import Script

__all__ = ["env"]

LOAD = (
    "-c",
    "6",
    "--warmup",
    "0.3s",
    "--duration",
    "1.5s",
    "--input-tokens",
    "16",
    "--output-tokens",
    "10",
    "--no-probe",
)


@pytest.fixture(scope="module")
def before() -> Iterator[Mock]:
    with launched(Script(models=("m",), ttft_ms=80, gap_ms=20)) as server:
        yield server


@pytest.fixture(scope="module")
def after() -> Iterator[Mock]:
    with launched(Script(models=("m",), ttft_ms=50, gap_ms=22)) as server:
        yield server


@pytest.fixture(scope="module")
def slow() -> Iterator[Mock]:
    """Half as slow again: beyond all that a busy machine adds."""
    with launched(Script(models=("m",), ttft_ms=80, gap_ms=30)) as server:
        yield server


def judged(told: dict[str, Any]) -> dict[str, Any]:
    return {one["metric"]: one for one in told["metrics"] if one["verdict"] is not None}


def test_what_felt_faster_is_caught(env: Env, before: Mock, after: Mock) -> None:
    for _ in range(3):  # where other tests take the processors, two runs in a row may be no evidence
        done = nilo(env, "verify", before.url, after.url, *LOAD, "--metrics", "tpot_p50", "--json", timeout=120)
        if done.returncode != 4:
            break
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["kind"], told["verdict"], told["more_runs_needed"]) == ("comparison", "REGRESSED", 0)
    tpot = judged(told)["tpot_p50"]
    ttft = next(one for one in told["metrics"] if one["metric"] == "ttft_p50")
    assert tpot["ratio"] == pytest.approx(1.10, abs=0.02)
    assert tpot["ci"][0] < tpot["ratio"] < tpot["ci"][1]
    assert tpot["verdict"] == "REGRESSED"
    assert (ttft["ratio"] < 0.8, ttft["verdict"]) == (True, None), "it felt faster; that is shown, not judged"
    assert [one["metric"] for one in told["noise"]] == ["tpot_p50"]
    shown = nilo(env, "runs", "show", told["group"])
    assert shown.stdout.startswith("REGRESSED: TPOT p50 +"), "the archive tells it as it was told"
    archived = json.loads(nilo(env, "runs", "show", told["group"], "--json").stdout)
    assert "".join(run["role"] for run in archived["runs"]).startswith("abba")
    assert {**archived["comparison"], "group": told["group"], "noise": told["noise"]} == told
    report = json.loads(nilo(env, "report", told["group"], "--format", "json", "-o", "-").stdout)
    assert report.items() <= archived.items(), "a report is what the archive shows, but for tags and notes"


def repeated(env: Env, target: str, version: str) -> dict[str, Any]:
    """Three runs of one service in a group, all admissible where the machine lets them."""
    words = ("--repeat", "3", "--service", "chat", "--service-version", version, "--json", "-q")
    for _ in range(3):
        group: dict[str, Any] = json.loads(nilo(env, "measure", target, *LOAD, *words, timeout=60).stdout)
        if all(run["verdict"] != "inadmissible" for run in group["runs"]):
            break
    return group


def admissible(group: dict[str, Any]) -> list[str]:
    """The runs that count: where other tests take the processors, one of three may be no evidence after all tries."""
    return [run["run"] for run in group["runs"] if run["verdict"] != "inadmissible"]


def test_a_gate_tells_the_pipeline(env: Env, before: Mock, slow: Mock, tmp_path: Path) -> None:
    was, now = repeated(env, before.url, "1"), repeated(env, slow.url, "2")
    junit, comment = tmp_path / "gate.xml", tmp_path / "gate.md"
    options = (
        "--baseline",
        was["group"],
        "--metrics",
        "tpot_p50=5%",
        "--junit",
        str(junit),
        "--markdown",
        str(comment),
    )
    gate = nilo(env, "gate", now["group"], *options)
    assert gate.returncode == 1, gate.stderr
    assert gate.stdout.startswith("REGRESSED: TPOT p50 +")
    (suite,) = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert comment.read_text("utf-8").startswith("**REGRESSED: TPOT p50 +")
    assert "| TPOT p50 | ms |" in comment.read_text("utf-8")

    other = nilo(env, "gate", now["group"], "--baseline", was["group"], "--level", "9", "--junit", str(junit))
    assert (other.returncode, "(side_empty)" in other.stderr) == (2, True)
    (suite,) = ElementTree.parse(junit).getroot()
    assert suite.get("errors") == "1", "the file of the time before is not left to be read as this one's"

    refused = nilo(env, "compare", was["group"], now["group"])
    assert refused.returncode == 4
    assert "service_version: 1 | 2 (conditions_differ)" in refused.stderr

    (chapter,) = json.loads(nilo(env, "runs", "history", "chat", "--json").stdout)["conditions"]
    assert [one["service_version"] for one in chapter["tests"]][-1] == "2"
    assert chapter["tests"][-1]["runs"] == admissible(now), "a group is one test, of the runs that count"
    assert chapter["tests"][-1]["tpot_p50"] == pytest.approx(30, rel=0.05)
    assert nilo(env, "runs", "history", "chat").stdout.startswith("chat: ")
    assert "(service_unknown)" in nilo(env, "runs", "history", "other").stderr

    one = now["runs"][0]["run"]
    whole = nilo(env, "compare", was["group"], one, "--change", "service-version", "--json")
    assert json.loads(whole.stdout)["runs"]["b"] == admissible(now), "a run stands for its repeats"
    assert json.loads(whole.stdout)["condition_differences"][0]["field"] == "service_version"


def test_one_run_a_side_is_no_verdict(env: Env, before: Mock) -> None:
    for _ in range(3):
        runs = [json.loads(nilo(env, "measure", before.url, *LOAD, "--json", "-q").stdout)["run"] for _ in range(2)]
        done = nilo(env, "compare", *runs, "--json")
        if done.returncode != 4:
            break
    assert done.returncode == 5, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["more_runs_needed"]) == ("UNDECIDED", 2)
    assert {one["ci"] for one in told["metrics"] if one["ratio"]} == {None}


@pytest.fixture(scope="module")
def brief() -> Iterator[Mock]:
    """Ends its answers by itself after 4 tokens, whatever is asked."""
    script = Script(models=("m",), ttft_ms=80, gap_ms=20, stop_after=(4, 4), honours_ignore_eos=False)
    with launched(script) as server:
        yield server


def test_answers_of_unlike_length_are_refused_after_one_pair(env: Env, before: Mock, brief: Mock) -> None:
    for _ in range(3):
        done = nilo(env, "verify", before.url, brief.url, *LOAD, timeout=60)
        if "conditions_differ" in done.stderr:
            break
    assert done.returncode == 4
    assert "lengths.output.p50: 10.0 | 4.0" in done.stderr
    archived = json.loads(nilo(env, "runs", "show", "latest", "--json").stdout)
    assert (len(archived["runs"]), archived["comparison"]) == (2, None)


def test_sides_that_ask_for_different_things_are_refused_before_anything_is_sent(env: Env, tmp_path: Path) -> None:
    other = tmp_path / "b.toml"
    other.write_text('target = "http://127.0.0.1:9"\nstream = false\n')
    words = ("verify", "http://127.0.0.1:9", str(other), *LOAD, "--no-archive")
    refused = nilo(env, *words)
    assert refused.returncode == 2
    assert "stream: True | False (sides_ask_differently)" in refused.stderr
    assert "--change api" in refused.stderr
    declared = nilo(env, *words, "--change", "api")
    assert declared.returncode == 3, "nothing listens there"


REFUSED = {
    ("compare", "nope", "latest"): "run_unknown",
    ("compare", "latest", "latest"): "same_runs",
    ("compare", "latest", "latest", "--metrics", "speed"): "family_invalid",
    ("gate", "latest", "--baseline", "none"): "run_unknown",
    ("gate", "latest", "--baseline", "latest", "--junit", "/nowhere/x.xml"): "file_unwritable",
    ("verify", "nowhere", "http://127.0.0.1:1"): "target_unknown",
}


def test_what_cannot_be_compared_is_one_line(env: Env, before: Mock) -> None:
    nilo(env, "measure", before.url, *LOAD, "-q")
    for words, slug in REFUSED.items():
        done = nilo(env, *words)
        assert (done.returncode, f"({slug})" in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
