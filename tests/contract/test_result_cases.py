"""The handed result files through the command: every value that is right stands where the contract says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nilometer.cli.root import nilo

CASES = Path(__file__).parents[1] / "cases" / "results"
NAMES = sorted(path.name for path in CASES.iterdir() if "expected" not in path.name)
Told = dict[str, Any]


def right(name: str) -> Told:
    found: Told = json.loads((CASES / f"{name}.expected.json").read_text("utf-8"))
    return found


@pytest.fixture(name="told", params=NAMES)
def _told(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Told]:
    done = CliRunner().invoke(
        nilo, ["runs", "import", str(CASES / request.param), "--json", "--archive", f"sqlite:///{tmp_path}/a.sqlite"]
    )
    assert done.exit_code == 0, done.output
    return request.param, json.loads(done.stdout)


def test_each_case_has_its_values(told: tuple[str, Told]) -> None:
    name, machine = told
    wanted, runs = right(name), machine["runs"]
    assert machine["kind"] == "runs"
    assert {(run["origin"], run["tool"]) for run in runs} == {("imported", wanted["tool"])}
    for key in set(wanted) - {"tool", "traps", "map", "tests", "date_zone", "quant", "weights_bytes"}:
        CHECKS[key](runs, wanted[key])


def test_a_run_of_a_case_can_be_shown(told: tuple[str, Told], tmp_path: Path) -> None:
    _, machine = told
    where = ["--archive", f"sqlite:///{tmp_path}/a.sqlite"]
    for run in machine["runs"]:
        again = CliRunner().invoke(nilo, ["runs", "show", run["run"], "--json", *where])
        assert (again.exit_code, json.loads(again.stdout)) == (0, {**run, "tags": [], "notes": []})
        shown = CliRunner().invoke(nilo, ["runs", "show", run["run"], *where])
        assert shown.exit_code == 0, shown.output
        assert run["tool"] in shown.output
    listed = CliRunner().invoke(nilo, ["runs", "list", "--json", *where])
    assert {row["run"] for row in json.loads(listed.stdout)["runs"]} == {run["run"] for run in machine["runs"]}
    checked = CliRunner().invoke(nilo, ["runs", "check", *where])
    assert checked.exit_code == 0, checked.output


def _loads(runs: list[Told], wanted: Any) -> None:
    words = [wanted] if isinstance(wanted, str) else wanted
    found = []
    for run in runs:
        load = run["spec"]["load"]
        closed = f"closed loop, concurrency {load['concurrency']}"
        found.append(closed if load["rate_per_s"] is None else f"open loop {load['rate_per_s']:g} req/s")
    assert found == words


def _latency(metric: str, scale: float = 1.0) -> Any:
    def check(runs: list[Told], wanted: Told) -> None:
        for stat in set(wanted) - {"source"}:
            expected = wanted[stat] if wanted[stat] is None else pytest.approx(wanted[stat] * scale)
            assert runs[0]["latency_ms"][metric][stat] == expected, (metric, stat)

    return check


def _at(*path: str, scale: float = 1.0) -> Any:
    """One value, or one for each run."""

    def check(runs: list[Told], wanted: Any) -> None:
        found = []
        for run in runs:
            value: Any = run
            for key in path:
                value = value[key]
            found.append(value)
        expected = wanted if isinstance(wanted, list) else [wanted] * len(runs)
        for got, want in zip(found, expected, strict=True):
            assert got == (pytest.approx(want * scale) if isinstance(want, float) else want)

    return check


def _model(runs: list[Told], wanted: str) -> None:
    assert {run["spec"]["model"] for run in runs} == {wanted}


def _window(runs: list[Told], wanted: float) -> None:
    window = runs[0]["window"]
    assert window["end_s"] - window["start_s"] == pytest.approx(wanted)


CHECKS: dict[str, Any] = {
    "model": _model,
    "load": _loads,
    "runs": lambda runs, wanted: _equal(len(runs), wanted),
    "requests_ok": _at("requests", "ok"),
    "requests_failed": _at("requests", "error"),
    "requests_incomplete": _at("requests", "incomplete"),
    "duration_s": _window,
    "window_s": _window,
    "ttft_ms": _latency("ttft"),
    "tpot_ms": _latency("tpot"),
    "e2e_ms": _latency("e2e"),
    "e2e_s": _latency("e2e", 1000),
    "output_tps": _at("throughput", "output_tokens_per_s"),
    "p95_ttft_ms_from_detail": _at("latency_ms", "ttft", "p95"),
    "ttft_p50_ms": _at("latency_ms", "ttft", "p50"),
    "spec_accept_length": _at("server", "spec_accept_length"),
    "peak_gpu_mem_gb": _at("memory", "device_used_peak_bytes", scale=1e9),
}


def _equal(got: object, wanted: object) -> None:
    assert got == wanted


def _imported(name: str) -> Told:
    done = CliRunner().invoke(nilo, ["runs", "import", str(CASES / name), "--json", "--no-archive"])
    assert done.exit_code == 0, done.output
    found: Told = json.loads(done.stdout)
    return found


def test_llama_bench_is_marked_as_the_engine_alone() -> None:
    name = "r10_llama_bench.json"
    machine, wanted = _imported(name), right(name)
    for run, test in zip(machine["runs"], wanted["tests"], strict=True):
        rates = run["throughput"]
        assert run["level"] == test["kind"]
        assert (rates["output_tokens_per_s"] or rates["input_tokens_per_s"]) == test["tps"]
        assert run["latency_ms"]["ttft"] is None
        model = run["environment"]["model"]
        assert (model["precision"], model["file_bytes"]) == (wanted["quant"], wanted["weights_bytes"])
        assert "import_engine_only" in {finding["slug"] for finding in run["findings"]}
    decode = machine["runs"][1]
    assert decode["latency_ms"]["tpot"]["mean"] == wanted["tests"][1]["tpot_ms"]
    flags = decode["environment"]["engine"]["flags"]
    assert f"{flags[flags.index('-ctk') + 1]}/{flags[flags.index('-ctv') + 1]}" == wanted["tests"][1]["kv"]


def test_what_a_file_does_not_hold_is_null() -> None:
    """No default of ours stands in for what another tool did."""
    run = _imported("r03_sglang_bench.jsonl")["runs"][0]
    assert (run["started"], run["spec"]["model"], run["spec"]["target"], run["spec"]["api"]) == (None,) * 4
    assert (run["requests"]["error"], run["requests"]["started"]) == (None, None)
    assert run["spec"]["load"]["warmup_s"] is None
    assert set(run["spec"]["prompts"].values()) == {None}
    assert run["spec"]["timeouts"]["total_s"] is None
    assert run["latency_ms"]["ttft"]["p95"] is None
    assert run["latency_ms"]["frame_gap"]["n"] is None
    assert run["generator"]["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("r01_vllm_bench_serve.json", "import_failed_zeros"),
        ("r01_vllm_bench_serve.json", "import_date_without_zone"),
        ("r03_sglang_bench.jsonl", "import_failed_unknown"),
        ("r04_genai_perf.json", "import_percentiles_missing"),
        ("r07_guidellm_benchmarks.json", "import_not_mapped"),
        ("r07_guidellm_benchmarks.json", "import_cut_by_tool"),
        ("r10_llama_bench.json", "import_engine_only"),
    ],
)
def test_what_could_not_be_taken_over_is_a_warning(name: str, slug: str) -> None:
    warnings = _imported(name)["warnings"]
    assert slug in {warning["slug"] for warning in warnings}
    assert {warning["params"]["file"] for warning in warnings} == {name}
