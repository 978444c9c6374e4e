"""The table of tools: how a file of each is told from the others, and what reads it.

A tool is named, or it is recognised by what only its files have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import NamedTuple

from nilometer.core.errors import DataError
from nilometer.core.spec import Labels

from . import aiperf, evalscope, genai_perf, guidellm, inference_perf, llama_bench, sglang_bench, vllm_bench
from .build import Source, imported
from .opened import Opened
from .told import Imported, Told


class Format(NamedTuple):
    """`name` as the command line takes it, `tool` as runs are filed; `read` gives one Told for each run in the file."""

    name: str
    tool: str
    claims: Callable[[Opened], bool]
    read: Callable[[Opened], Iterable[Told]]


FORMATS: tuple[Format, ...] = (
    Format("vllm", "vllm bench serve", vllm_bench.claims, vllm_bench.read),
    Format("sglang", "sglang bench_serving", sglang_bench.claims, sglang_bench.read),
    Format("genai-perf", "genai-perf", genai_perf.claims, genai_perf.read),
    Format("aiperf", "aiperf", aiperf.claims, aiperf.read),
    Format("guidellm", "guidellm", guidellm.claims, guidellm.read),
    Format("inference-perf", "inference-perf", inference_perf.claims, inference_perf.read),
    Format("evalscope", "evalscope", evalscope.claims, evalscope.read),
    Format("llama-bench", "llama-bench", llama_bench.claims, llama_bench.read),
)
"""In the order of the documentation."""
NAMES = tuple(each.name for each in FORMATS)


def read_results(
    path: Path, random: Random, *, name: str | None = None, labels: Labels | None = None, model: str | None = None
) -> list[Imported]:
    """The runs of one file, all of them or none.

    Refuses `result_unknown`, `result_other`, `result_newer`, `result_without_runs`, those of opening (`opened.Opened`)
    and of a member that cannot be (`fields.Fields`).
    """
    opened = Opened(path)
    found = _choose(opened, name)
    source = Source(found.tool, path.name, opened.modified_ns, labels or Labels(), model)
    runs = [imported(told, source, random) for told in found.read(opened)]
    if not runs:
        raise DataError("result_without_runs", file=str(path), tool=found.tool)
    return runs


def _choose(opened: Opened, name: str | None) -> Format:
    claimed = [each for each in FORMATS if each.claims(opened)]
    if name is not None:
        claimed = [each for each in claimed if each.name == name]
        if not claimed:
            raise DataError("result_other", file=str(opened.path), tool=name)
    if not claimed:
        raise DataError("result_unknown", file=str(opened.path), known=", ".join(NAMES))
    return claimed[0]
