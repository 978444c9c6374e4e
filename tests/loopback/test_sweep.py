"""`nilo sweep` as a user runs it, against a mock whose greatest load and knee are known."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.loopback.driving import free_port
from tests.loopback.test_measure import Env, env, nilo

from nilometer.engines.mock import IN_MEMORY, Hosting, Mock, launched
from nilometer.engines.mock_script import Script

__all__ = ["env"]

SHORT = ("--warmup", "0.3s", "--duration", "1.3s", "--input-tokens", "16", "--output-tokens", "10")


@pytest.fixture(scope="module")
def four() -> Iterator[Mock]:
    """Four slots, 50 ms to the first token, 10 ms for each of the others: 140 ms a request, 28 requests a second."""
    with launched(Script(models=("m",), ttft_ms=50, gap_ms=10, slots=4)) as server:
        yield server


def swept(env: Env, *words: str, tries: int = 3) -> tuple[int, dict[str, Any], str]:
    """Where other tests take the processors a level may be no evidence (exit 4), and the sweep is made again."""
    for _ in range(tries):
        done = nilo(env, "sweep", *words, "--json", timeout=120)
        if done.returncode != 4:
            break
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def levels(group: dict[str, Any]) -> list[float]:
    return [float(run["level"]) for run in group["runs"]]


def test_the_greatest_load_and_the_knee_of_a_closed_loop(env: Env, four: Mock) -> None:
    """Six in flight at four slots wait for half a request: 50 + 70 ms; eight wait for a whole one: 190 ms."""
    for _ in range(3):  # where other tests take the processors, a level may tell of them and ends the search
        code, group, said = swept(env, four.url, *SHORT, "--slo", "ttft_p95<=150ms", tries=1)
        if levels(group)[:4] == [1, 2, 4, 8] and all(run["generator"]["verdict"] == "fit" for run in group["runs"]):
            break
    assert (code, group["kind"], group["type"]) == (0, "group", "sweep"), said
    assert levels(group)[:4] == [1, 2, 4, 8]
    found = group["greatest_load"]
    assert 4 <= found["lo"] <= 6
    assert found["hi"] == found["lo"] + 1
    assert group["knee"] == pytest.approx(4, rel=0.15)
    assert [run["order"] for run in group["runs"]] == list(range(len(group["runs"])))
    assert {run["group"] for run in group["runs"]} == {group["group"]}
    per_core = [run["efficiency"]["tokens_per_core_s"] for run in group["runs"]]
    assert max(one or 0 for one in per_core) > 0, "the mock is a process of this machine; its clock has ticks of 10 ms"


def test_a_rate_that_piles_up_is_stopped_and_is_too_much(env: Env, four: Mock) -> None:
    """28 requests a second are served; at 64 they pile up by 36 a second."""
    begun_s = time.monotonic()
    options = ("--rate", "16", "--warmup", "0.4s", "--duration", "20s", "--levels", "64", "--drain", "2s")
    code, group, said = swept(env, four.url, *SHORT, *options, "--slo", "ttft_p95<=150ms", tries=1)
    assert code in (1, 4), said  # a busy machine may limit the generator
    assert time.monotonic() - begun_s < 20
    slugs = [finding["slug"] for finding in group["runs"][0]["findings"]]
    assert "oversaturated" in slugs
    assert group["greatest_load"] is None
    assert group["knee"] is None


def test_the_greatest_rate(env: Env, four: Mock) -> None:
    """28 requests a second are served: 12 are borne, 60 are not. (How it is narrowed down: tests of the ladder.)"""
    options = ("--rate", "12", "--arrivals", "constant", "--slo", "ttft_p95<=100ms", "--drain", "2s")
    code, group, said = swept(env, four.url, *SHORT, *options, "--levels", "12,60")
    assert code == 0, said
    found = group["greatest_load"]
    assert (found["lo"], found["hi"]) == (12, 60)


def test_a_price_is_foretold_for_all_levels_and_told_of_each(env: Env, four: Mock) -> None:
    """Open loop: (4 + 8) requests/s for 1.6 s, some 16 tokens in and 10 out each."""
    options = ("--rate", "4", "--levels", "4,8", "--price", "in=1000,out=10000,currency=CNY")
    code, group, said = swept(env, four.url, *SHORT, *options)
    assert code == 0, said
    assert "all together: about 499 tokens, about 2.23 CNY" in said
    for run in group["runs"]:
        used = run["cost"]
        assert used["spent"] == pytest.approx(used["prompt_tokens"] / 1e3 + used["output_tokens"] / 1e2)
        assert run["spec"]["price"]["currency"] == "CNY"
        assert used["tokens_per_currency"] < 100, "an output token alone costs a hundredth"


def test_a_token_budget_is_that_of_all_levels(env: Env, four: Mock) -> None:
    """A level of 8 requests/s takes about 13 requests of some 26 tokens: 500 are not two of them."""
    options = ("--rate", "8", "--levels", "8,8.1,8.2,8.3", "--arrivals", "constant", "--max-total-tokens", "500")
    code, group, said = swept(env, four.url, *SHORT, *options)
    assert code == 0, said
    first, second = group["runs"]
    used = first["cost"]
    left = 500 - used["prompt_tokens"] - used["output_tokens"] - 16 * used["uncounted"]
    assert (first["spec"]["load"]["max_total_tokens"], second["spec"]["load"]["max_total_tokens"]) == (500, left)
    assert "budget_reached" in [finding["slug"] for finding in second["findings"]]


def test_what_is_bought_has_a_column_where_it_is_known(env: Env, four: Mock) -> None:
    priced = nilo(env, "sweep", four.url, *SHORT, "--rate", "8", "--levels", "8", "--price", "devices=2,out=10000")
    assert ("per USD" in priced.stdout, "per device" in priced.stdout, "per core" in priced.stdout) == (
        True,
        True,
        False,
    )


def test_levels_by_list_without_a_promise(env: Env, four: Mock) -> None:
    done = nilo(env, "sweep", four.url, *SHORT, "--levels", "8,1,4", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "bends at about 4" in " ".join(done.stdout.split())
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.lstrip()[:1].isdigit() and "#" in line]
    assert rows == ["1", "4", "8"], "from the lowest to the highest"


def test_a_curve_over_rates_without_a_promise(env: Env, four: Mock) -> None:
    """Beside the rate that was asked stands the one that came."""
    done = nilo(env, "sweep", four.url, *SHORT, "--rate", "5", "--levels", "5,10", timeout=60)
    assert done.returncode in (0, 4), done.stderr  # a busy machine may limit the generator
    assert "From 5 to 10 requests/s no bend was seen" in " ".join(done.stdout.split())
    assert "came" in done.stdout
    assert not any(f"per {what}" in done.stdout for what in ("USD", "device", "kWh")), "nothing is known of them"


def test_an_interrupted_sweep_is_gone_on_with(env: Env, four: Mock) -> None:
    command = [sys.executable, "-m", "nilometer", "sweep", four.url, *SHORT, "--levels", "1,2,3", "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("measured") and "2 in flight" in line:
                break
        child.send_signal(signal.SIGINT)
        out, said = child.communicate(timeout=30)
    assert child.returncode == 130, said
    first = json.loads(out)
    assert levels(first) == [1, 2]
    assert first["runs"][1]["window"]["end_s"] < 1.3
    code, group, said = swept(env, "--resume", first["group"])
    assert code == 0, said
    assert (group["group"], levels(group)) == (first["group"], [1, 2, 3])
    assert group["runs"][0]["run"] == first["runs"][0]["run"], "what was whole is not repeated"
    assert group["runs"][1]["run"] != first["runs"][1]["run"], "what was cut short is"
    assert [run["order"] for run in group["runs"]] == [0, 2, 3], "and stands behind what was cut short"
    shown = nilo(env, "runs", "show", first["group"], "--json")
    assert levels(json.loads(shown.stdout)) == [1, 2, 3]
    code, again, said = swept(env, "--resume", first["group"])
    assert (code, levels(again)) == (0, [1, 2, 3]), "nothing is left to measure"


def test_a_level_whose_target_died_is_unfinished_and_measured_again(env: Env) -> None:
    """It is ended when the second level begins, too late for the load to be stopped for it."""
    script, hosting = Script(models=("m",), ttft_ms=20, gap_ms=10), Hosting(port=free_port(), truth=IN_MEMORY)
    options = (
        "--warmup",
        "0",
        "--duration",
        "2s",
        "--output-tokens",
        "5",
        "--input-tokens",
        "8",
        "--slo",
        "ttft_p95<=1s",
    )
    with launched(script, hosting) as server:
        command = [sys.executable, "-m", "nilometer", "sweep", server.url, *options, "--levels", "1,2,4", "--json"]
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("measured") and "2 in flight" in line:
                break
    out, said = child.communicate(timeout=60)
    assert (child.returncode, "(target_lost)" in said) == (3, True), said
    first = json.loads(out)
    assert levels(first) == [1, 2], "the sweep ends with its target"
    assert first["greatest_load"] == {"level": 1, "lo": 1, "hi": None}
    shown = " ".join(nilo(env, "runs", "show", first["group"]).stdout.split())
    assert "at 2 in flight is unfinished" in shown
    assert f"nilo sweep --resume {first['group']}" in shown
    with launched(script, hosting):
        code, group, said = swept(env, "--resume", first["group"])
    assert (code, levels(group)) == (0, [1, 2, 4]), said
    assert group["runs"][0]["run"] == first["runs"][0]["run"]
    assert group["runs"][1]["run"] != first["runs"][1]["run"]


def test_a_sweep_is_gone_on_with_as_it_was_begun(env: Env, four: Mock) -> None:
    code, begun, said = swept(env, four.url, *SHORT, "--levels", "1")
    assert code == 0, said
    for changed, key in (
        (("--rate", "3", "--levels", "3"), "load.rate_per_s"),
        (("--slo", "chat", "--levels", "2"), "slo"),
    ):
        code, _, said = swept(env, four.url, "--resume", begun["group"], *changed)
        assert (code, key in said, "resume_changed" in said) == (2, True, True), said
    code, group, said = swept(env, four.url, "--resume", begun["group"], *SHORT, "--levels", "2", "--label", "by=hand")
    assert (code, levels(group)) == (0, [1, 2]), said


def test_a_curve_without_an_admissible_level_is_no_answer(env: Env, four: Mock) -> None:
    options = ("--rate", "0.001", "--levels", "0.001", "--arrivals", "poisson")
    code, group, said = swept(env, four.url, *SHORT, *options, tries=1)
    assert [run["verdict"] for run in group["runs"]] == ["inadmissible"], said
    assert code == 4


def test_a_budget_of_time_is_kept(env: Env, four: Mock) -> None:
    for _ in range(3):  # where other tests take the processors, a level may tell of them
        begun_s = time.monotonic()
        done = nilo(env, "sweep", four.url, *SHORT, "--budget", "6s", "--slo", "ttft_p95<=150ms", timeout=60)
        if done.returncode != 4 and time.monotonic() - begun_s < 6 + 3:
            break
    assert time.monotonic() - begun_s < 6 + 3  # the start of the program beside it
    assert done.returncode == 0, done.stderr
    assert "did not suffice" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "no TARGET"),
        (("URL", "--levels", "1,x"), 2, "1,2,4,8"),
        (("URL", "--levels", "2,2"), 2, "different"),
        (("URL", "--levels", "1.5"), 2, "whole"),
        (("URL", "--arrivals", "ramp:1,2,3s"), 2, "shape"),
        (("URL", "--requests", "5"), 2, "--requests"),
        (("URL", "--most", "0"), 2, "sweep_most"),
        (("URL", "-c", "8", "--most", "4"), 2, "sweep_most"),
        (("URL", "--most", "nan"), 2, "sweep_most"),
        (("URL", "--most", "100001"), 2, "sweep_most"),
        (("URL", "--levels", "200000"), 2, "levels_invalid"),
        (("URL", "--levels", "2,3", "--most", "9"), 2, "levels_beside"),
        (("URL", "--budget", "1s"), 2, "sweep_budget"),
        (("URL", "--slo", "speed<=1"), 2, "speed"),
        (("URL", "--resume", "nosuch"), 2, "nosuch"),
        (("URL", "--most", "x"), 2, "--most"),
        (("http://127.0.0.1:9",), 3, "refused"),
    ],
)
def test_bad_input_is_one_line_and_the_right_code(
    env: Env, four: Mock, words: tuple[str, ...], code: int, told: str
) -> None:
    done = nilo(env, "sweep", *(four.url if word == "URL" else word for word in words))
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
