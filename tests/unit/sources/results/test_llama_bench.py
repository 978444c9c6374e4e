"""llama-bench: which test is what, samples, its table."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from nilometer.core.errors import DataError
from nilometer.sources.results.formats import read_results

from .written import run_of, slugs

ROW: dict[str, Any] = {
    "build_commit": "abc1234",
    "build_number": 5000,
    "cpu_info": "CPU X",
    "gpu_info": "GPU Y",
    "model_filename": "C:\\models\\m.gguf",
    "model_type": "m 8x7B Q4_K - Medium",
    "model_size": 800,
    "model_n_params": 1000,
    "type_k": "q8_0",
    "n_prompt": 0,
    "n_gen": 100,
    "n_depth": 0,
    "test_time": "2026-01-05T08:00:00Z",
    "avg_ns": 6_000_000_000,
    "avg_ts": 17.0,
    "samples_ns": [5_000_000_000, 7_000_000_000],
}


def test_decoding(tmp_path: Path) -> None:
    run = run_of(tmp_path, [ROW])
    tpot = run.summary.latency_ms["tpot"]
    assert (tpot.n, tpot.mean, tpot.min, tpot.max) == (2, 60.0, 50.0, 70.0)
    assert (run.level, run.spec.load.concurrency, run.spec.load.requests) == ("tg100", 1, 2)
    assert run.phases.started_wall_ns == 1_767_600_000 * 10**9
    assert (run.environment.model.file, run.environment.model.precision) == ("m.gguf", "Q4_K - Medium")
    assert (run.environment.machine.cpu_model, run.environment.machine.devices) == ("CPU X", ["GPU Y"])
    assert (run.tool_version, run.environment.engine.flags) == ("b5000 abc1234", ["-ctk", "q8_0"])


@pytest.mark.parametrize(
    ("prompt", "made", "depth", "level"),
    [(512, 0, 0, "pp512"), (0, 128, 512, "tg128 @ d512"), (512, 128, 0, "pp512+tg128")],
)
def test_the_name_of_a_test(prompt: int, made: int, depth: int, level: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, [ROW | {"n_prompt": prompt, "n_gen": made, "n_depth": depth}])
    made_per_s = run.summary.throughput
    assert run.level == level
    assert made_per_s.output_tokens_per_s == (17.0 if level.startswith("tg") else None)
    assert made_per_s.input_tokens_per_s == (17.0 if level == "pp512" else None)
    assert ("import_not_mapped" in slugs(run)) == (level == "pp512+tg128")


def test_a_table_has_means_only(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    cells = {name: value for name, value in ROW.items() if name != "samples_ns"}
    row = ",".join(f'"{value}"' for value in cells.values())
    path.write_text(f"{','.join(cells)}\n{row}\n\n")
    (one,) = read_results(path, Random(1))
    assert (one.run.summary.latency_ms["tpot"].n, one.run.summary.latency_ms["tpot"].mean) == (None, 60.0)
    path.write_text(f"{','.join(cells)}\n{row},1\n")
    with pytest.raises(DataError) as fault:
        read_results(path, Random(1))
    assert (fault.value.slug, fault.value.params["line"]) == ("result_broken", 2)
