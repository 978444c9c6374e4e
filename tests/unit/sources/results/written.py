"""Result files by hand, in the shapes that the tools write, and what they are read as."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from nilometer.core.finding import Finding
from nilometer.core.run import Run
from nilometer.core.spec import Labels
from nilometer.sources.results.formats import read_results
from nilometer.sources.results.told import Imported

Tree = dict[str, Any]


def laid(folder: Path, name: str, *objects: Any) -> Path:
    """A file of these values, one a line."""
    path = folder / name
    path.write_text("\n".join(map(json.dumps, objects)), "utf-8")
    return path


def all_of(folder: Path, *objects: Any, name: str = "x.json") -> list[Imported]:
    """What is in a file of these values."""
    return read_results(laid(folder, name, *objects), Random(1), labels=Labels(service="reed"))


def run_of(folder: Path, *objects: Any, name: str = "x.json") -> Run:
    """The one run in it."""
    (one,) = all_of(folder, *objects, name=name)
    return one.run


def slugs(run: Run) -> set[str]:
    return {finding.slug for finding in run.findings}


def finding(run: Run, slug: str) -> Finding:
    """The one finding of this slug."""
    (found,) = (one for one in run.findings if one.slug == slug)
    return found


VLLM: Tree = {
    "date": "20260105-080000",
    "backend": "openai",
    "model_id": "org/m",
    "num_prompts": 4,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 2,
    "duration": 10.0,
    "completed": 4,
    "failed": 0,
    "total_input_tokens": 400,
    "total_output_tokens": 80,
    "request_throughput": 0.4,
    "output_throughput": 8.0,
    "mean_ttft_ms": 600.0,
    "median_ttft_ms": 590.0,
    "std_ttft_ms": 30.0,
    "p99_ttft_ms": 700.0,
}
"""Four requests, without the lists."""
SGLANG: Tree = {
    "backend": "sglang",
    "request_rate": 4.0,
    "max_concurrency": None,
    "duration": 25.0,
    "completed": 100,
    "total_input_tokens": 25600,
    "total_output_tokens": 6400,
    "total_output_tokens_retokenized": 6390,
    "request_throughput": 4.0,
    "output_throughput": 256.0,
    "mean_ttft_ms": 80.0,
    "median_ttft_ms": 75.0,
}
