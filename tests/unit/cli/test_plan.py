"""`nilo plan` from its command line: the arithmetic of the handbook's first screen, what fits, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from nilometer.archive.store import open_archive
from nilometer.cli.root import nilo
from nilometer.core.run import Run

RUNS = Path(__file__).parents[2] / "golden" / "runs"

RAW = ("--layers", "32", "--kv-heads", "8", "--head-dim", "128")
H100 = ("llama-3.1-8b", "--device", "h100", "--engine-version", "0.19")


def plan(*words: str) -> Result:
    return CliRunner().invoke(nilo, ["plan", *words, "--lang", "en"])


def told(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(*words, "--json").stdout)
    return found


def test_the_guides_own_arithmetic() -> None:
    """2 x 32 layers x 8 heads x 128 x 2 bytes = 128 KiB a token; 16 x 2,048 of them are 4 GiB."""
    found = told(*RAW, "--kv-precision", "fp16", "--context", "2048", "--concurrency", "16")
    assert found["kind"] == "plan"
    assert found["kv"]["bytes_per_token"] == 131072
    assert found["kv"]["bytes"] == 4294967296
    assert (found["kv"]["tokens"], found["kv"]["max_concurrency"], found["weights"]["bytes"]) == (None, None, None)
    assert found["latency"] == []


def test_a_shape_by_numbers_on_a_device() -> None:
    """8 billion parameters: 2 x 128,256 x 4,096 of tables, and 32 layers of attention, gate, up, down."""
    words = ("--heads", "32", "--hidden", "4096", "--intermediate", "14336", "--vocab", "128256", "--device", "h100")
    by_numbers, by_name = told(*RAW, *words), told("llama-3.1-8b", "--device", "h100")
    assert by_numbers["model"]["parameters"] == by_name["model"]["parameters"] == 8_030_261_248
    assert by_numbers["kv"]["tokens"] is not None
    assert by_numbers["weights"]["bytes"] == 2 * 8_030_261_248


def test_a_model_without_a_device() -> None:
    found = told("llama-3.1-8b", "--context", "8k", "-c", "32")
    assert found["kv"]["bytes"] == 32 * 8192 * 131072
    assert (found["device"], found["fits"], found["kv"]["tokens"]) == (None, None, None)
    assert plan("llama-3.1-8b").stdout.startswith("meta-llama/Llama-3.1-8B in BF16: 15.0 GiB of weights")


def test_a_model_that_fits() -> None:
    done = plan(*H100, "--context", "8192", "-c", "32")
    assert (done.exit_code, done.stdout[:28]) == (0, "Fits on one H100-SXM-80G in ")
    found = told(*H100, "--context", "8192", "-c", "32")
    kv = found["kv"]
    assert kv["pool_bytes"]["low"] < kv["pool_bytes"]["mid"] < kv["pool_bytes"]["high"]
    assert kv["tokens"] == pytest.approx(kv["pool_bytes"]["mid"] / 131072, abs=16)
    assert kv["max_concurrency"] == pytest.approx(kv["tokens"] / 8192)
    at = {row["concurrency"]: row for row in found["latency"]}[32]
    for figure in ("ttft_ms", "tpot_ms", "output_tokens_per_s"):
        assert at[figure]["low"] < at[figure]["mid"] < at[figure]["high"]
    assert at["bound"] == "bandwidth"


def test_a_model_that_does_not_fit() -> None:
    done = plan("llama-3.1-70b", "--device", "h100")
    assert (done.exit_code, done.stdout[:12]) == (1, "Does not fit")
    found = told("llama-3.1-70b", "--device", "h100")
    assert (found["fits"], found["latency"], found["greatest_throughput"]) == (False, [], None)


def test_more_requests_than_memory_holds() -> None:
    done = plan("llama-3.1-8b", "--device", "h100", "--context", "8192", "-c", "100")
    assert done.exit_code == 1
    assert "of 100 requests of 8,192 tokens it holds 54 at once" in " ".join(done.stdout.split())
    found = told("llama-3.1-8b", "--device", "h100", "--context", "8192", "-c", "100")
    assert {row["concurrency"]: row["bound"] for row in found["latency"]}[100] == "capacity"


def test_devices_by_numbers() -> None:
    """A made-up device of the figures of a known one plans like it."""
    known = told("llama-3.1-8b", "--device", "h100")
    given = told("llama-3.1-8b", "--memory", "79.19GiB", "--bandwidth", "3350GB/s", "--flops", "989TFLOPS")
    assert given["kv"]["tokens"] == known["kv"]["tokens"]
    assert given["latency"] == known["latency"]


def test_lengths_of_ones_own(tmp_path: Path) -> None:
    found = told(*H100, "--input-tokens", "uniform:100,300", "--output-tokens", "50")
    assert found["requests"]["input_tokens"] == pytest.approx(200, abs=5)
    assert found["requests"]["context"] <= 350
    log = tmp_path / "log.csv"
    log.write_text("input_tokens,output_tokens\n" + "100,20\n300,60\n" * 20)
    columns = "input_tokens=input_tokens,output_tokens=output_tokens"
    words = ["workload", "make", str(log), "--map", columns, "-o", str(tmp_path / "w.toml")]
    made = CliRunner().invoke(nilo, words)
    assert made.exit_code == 0, made.output
    found = told(*H100, "--workload", str(tmp_path / "w.toml"))
    assert (found["requests"]["input_tokens"], found["requests"]["output_tokens"]) == (200, 40)
    assert (found["requests"]["context"], found["requests"]["lengths_from"]) == (360, "workload")


def test_precisions_and_engine_flags() -> None:
    plain, small = told(*H100), told(*H100, "--precision", "fp8", "--kv-precision", "fp8")
    assert small["weights"]["bytes"] < 0.6 * plain["weights"]["bytes"]
    assert small["kv"]["bytes_per_token"] == plain["kv"]["bytes_per_token"] / 2
    more = told(*H100, "--memory-share", "0.95", "--max-seqs", "256")
    assert more["kv"]["tokens"] > plain["kv"]["tokens"]
    slots = told("llama-3.1-8b", "--device", "4090", "--engine", "llama.cpp", "--slots", "4", "--max-context", "16384")
    assert (slots["kv"]["tokens"], slots["kv"]["max_concurrency"]) == (16384, 4)


def test_gguf_is_planned_for_the_engine_that_reads_it() -> None:
    assert told("llama-3.1-8b", "--precision", "q4_k_m", "--device", "4090")["engine"]["name"] == "llama.cpp"
    assert told("llama-3.1-8b", "--precision", "int4", "--device", "4090")["engine"]["name"] == "vllm"


def test_a_tower_that_is_not_counted_is_told(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "vision_config": {"model_type": "never_seen", "hidden_size": 8},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = told(str(tmp_path))
    assert [finding["slug"] for finding in found["findings"]] == ["vision_tower_uncounted"]
    assert found["model"]["left_out"] == ["vision_tower_uncounted"]
    assert "a vision tower of a family that is not known" in " ".join(plan(str(tmp_path)).stdout.split())


def test_slots_are_not_memory() -> None:
    """llama.cpp makes its cache for its slots: where these are too few, nothing is missing but slots."""
    words = ("llama-3.1-8b", "--device", "4090", "--engine", "llama.cpp", "--slots", "2", "--max-context", "8192")
    done = plan(*words, "-c", "4", "--input-tokens", "512", "--output-tokens", "128")
    assert (done.exit_code, done.stdout[:13]) == (1, "Too few slots")


def test_what_is_wanted_of_a_plan() -> None:
    words = (*H100, "--context", "8192", "-c", "32", "--slo", "tpot_p95<=9ms,error_rate<=1%", "--rate", "20")
    found = told(*words, "--price", "hour=2.5,currency=EUR", "--against", "l40s=1.2,h200")
    assert plan(*words).exit_code == 1
    assert [(one["metric"], one["met"]) for one in found["slo"]] == [("tpot_ms", "no")]
    assert found["greatest_load"]["mid"] < 32
    assert found["options"][0]["kind"] == "precision"
    assert found["first_move"] in [option["slug"] for option in found["options"]]
    assert found["cost"]["currency"] == "EUR"
    hour = 2.5 / 3600 * 1e6 / {row["concurrency"]: row for row in found["latency"]}[32]["output_tokens_per_s"]["mid"]
    assert found["cost"]["per_million_output"]["mid"] == pytest.approx(hour)
    assert {row["name"] for row in found["devices"]} == {"H100-SXM-80G", "L40S", "H200-SXM-141G"}
    slugs = [finding["slug"] for finding in found["findings"]]
    assert {"plan_percentile_as_mean", "plan_bound_unforetold"} <= set(slugs)
    assert "What could be changed, in this order" in plan(*words, "--advice").stdout


def test_what_does_not_fit_is_told_the_cheapest_ways() -> None:
    found = told("llama-3.1-70b", "--device", "h100")["shortfall"]
    assert len(found["ways"]) == 3
    assert found["short_bytes"] > 50e9
    assert "The cheapest ways to make it fit" in plan("llama-3.1-70b", "--device", "h100").stdout


def test_scaled_by_a_run_of_ones_own(tmp_path: Path) -> None:
    """A run at four in flight is given back by the plan of that load; what it was made with is told."""
    stored: Run = msgspec.json.decode((RUNS / "admissible.json").read_bytes(), type=Run)
    archive = f"sqlite:///{tmp_path}/a.sqlite"
    with open_archive(archive) as store:
        store.put(stored, ())
    load, lengths = stored.spec.load.concurrency, stored.summary.lengths
    words: tuple[str, ...] = (*H100, "-c", str(load), "--input-tokens", str(round(lengths.input.mean or 0)))
    words = (*words, "--output-tokens", str(round(lengths.output.mean or 0)), "--archive", archive)
    found = told(*words, "--calibrate", stored.id[:6])
    at = {row["concurrency"]: row for row in found["latency"]}[load]
    assert at["tpot_ms"]["mid"] == pytest.approx(stored.summary.latency_ms["tpot"].mean, rel=0.01)
    assert at["basis"].startswith("your run of ")
    assert found["findings"] == [], "it was a run of this model"
    other = told("qwen2.5-7b", *words[1:], "--calibrate", stored.id[:6])
    assert [finding["slug"] for finding in other["findings"]] == ["calibration_model_differs"]
    assert "your own runs (" in plan(*words, "--calibrate", stored.id).stdout
    wider = told(*words)["latency"][0]["tpot_ms"]
    assert at["tpot_ms"]["high"] / at["tpot_ms"]["low"] < wider["high"] / wider["low"]


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ((), "plan_model_missing"),
        (("llama-3.1-8bb",), "plan_model_unknown"),
        (("llama-3.1-8b", "--device", "h1000"), "device_unknown"),
        (("llama-3.1-8b", "--device", "h100", "--tensor", "5"), "tensor_not_dividing"),
        (("llama-3.1-8b", "--device", "h100", "--pipeline", "33"), "pipeline_too_long"),
        (("llama-3.1-8b", "--device", "h100", "--tensor", "0"), "value_wrong"),
        (("llama-3.1-8b", "--context", "-5"), "value_wrong"),
        (("llama-3.1-8b", "--context", "0"), "value_wrong"),
        (("llama-3.1-8b", "--precision", "int3"), "precision_unknown"),
        (("llama-3.1-8b", "--kv-precision", "int3"), "kv_precision_unknown"),
        (("llama-3.1-8b", "--device", "h100", "--engine", "vlm"), "plan_engine_unknown"),
        (("llama-3.1-8b", "--memory", "80"), "plan_device_incomplete"),
        (("llama-3.1-8b", "--device", "ddr5"), "plan_device_memory_unknown"),
        (("llama-3.1-8b", *RAW), "plan_shape_twice"),
        (RAW[:4], "plan_shape_incomplete"),
        ((*RAW, "--heads", "32"), "plan_shape_incomplete"),
        ((*RAW, "--device", "h100"), "plan_shape_incomplete"),
        ((*RAW, "--input-tokens", "x"), "lengths_unknown"),
        ((*RAW, "--workload", "no.toml"), "file_unreadable"),
        ((*RAW, "--workload", "no.toml", "--input-tokens", "5"), "plan_lengths_twice"),
        (("no/such/config.json",), "file_unreadable"),
        (("llama-3.1-8b", "--slo", "speed<=1"), "slo_invalid"),
        (("llama-3.1-8b", "--rate", "1", "--users", "5"), "plan_traffic_twice"),
        (("llama-3.1-8b", "--price", "in=1"), "plan_price_by_hour"),
        ((*H100, "--against", "l40s=x"), "plan_against_wrong"),
        ((*H100, "--against", "h1000"), "device_unknown"),
        ((*H100, "--draft", "nosuchmodel"), "plan_model_unknown"),
        ((*H100, "--acceptance", "120%"), "value_wrong"),
        (("llama-3.1-8b", "--calibrate", "x"), "plan_calibration_without_device"),
    ],
)
def test_what_cannot_be_planned_is_one_line(words: tuple[str, ...], slug: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nilometer", "plan", *words, "--lang", "en"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nilo: ")
    assert f"({slug})" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("--input-tokens", "9" * 400), "lengths_too_long"),
        (("--output-tokens", "99999999"), "lengths_too_long"),
        (("--input-tokens", "²"), "lengths_unknown"),
        (("--input-tokens", "empirical:/dev/zero"), "file_piped"),
        (("--workload", "/dev/zero"), "file_piped"),
        (("--max-context", "1", "--input-tokens", "uniform:1,9"), "plan_number_too_small"),
        (("--engine", "llama.cpp", "--slots", "257"), "plan_number_too_large"),
        (("--engine", "x" * 10_000), "plan_engine_unknown"),
    ],
)
def test_what_is_absurd_is_one_line(words: tuple[str, ...], slug: str) -> None:
    done = plan(*H100, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"({slug})" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 1_500


@pytest.mark.parametrize("option", ["--memory", "--bandwidth", "--flops"])
@pytest.mark.parametrize("value", ["0", "0.0", "-1", "nan", "inf", "1e9", "9" * 5_000, "", "１2x"])
def test_a_device_of_no_size_or_speed_is_refused(option: str, value: str) -> None:
    assert plan(*H100, f"{option}={value}").exit_code == 2


def test_requests_longer_than_the_model_takes_are_told() -> None:
    """Llama 2 was trained for 4,096 tokens."""

    def noted(*words: str) -> list[str]:
        return [one["slug"] for one in told("llama-2-7b", "--device", "h100", *words)["findings"]]

    assert "plan_context_over" in noted("--context", "8k")
    assert "plan_context_over" in noted("--input-tokens", "500", "--max-context", "100")
    assert "plan_context_over" not in noted("--context", "4k")


def test_names_are_taken_in_any_case() -> None:
    assert told("LLAMA-3.1-8B", "--device", "H100", "--engine", "VLLM")["engine"]["name"] == "vllm"


def test_nearest_names_are_offered() -> None:
    assert "llama-3.1-8b" in plan("llama-3.1-8bb").stderr.lower()
    assert "H100" in plan("llama-3.1-8b", "--device", "h1000").stderr


def test_a_plan_takes_no_numpy() -> None:
    """It stays within a third of a second: what is slow to import is not imported."""
    words = ["plan", "llama-3.1-8b", "--device", "h100", "--json", "-q"]
    code = f"import sys; sys.argv = ['nilo', *{words}]\nfrom nilometer.cli import main\ntry:\n main()\n"
    code += "except SystemExit as left:\n print(left.code, 'numpy' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False False"
