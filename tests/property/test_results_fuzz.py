"""Whatever a result file holds: runs with figures that can be, or one refusal of ours. Never anything else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.test_sources_fuzz import PIECES, mutated

from nilometer.archive.rows import from_run
from nilometer.cli.machine import run_object
from nilometer.core.errors import NiloError
from nilometer.report.build import run_document
from nilometer.report.findings import cause, step
from nilometer.report.lead import taken_over
from nilometer.report.terminal import render
from nilometer.sources.results.formats import NAMES, read_results
from nilometer.text.i18n import Catalogue

TESTS = Path(__file__).parents[1]
CAPTURES = TESTS / "captures" / "results"
FILES = [
    *(path for path in sorted((TESTS / "cases" / "results").iterdir()) if "expected" not in path.name),
    *sorted(CAPTURES.glob("vllm-0.32.0-c*/*.json")),
    *sorted(CAPTURES.glob("sglang*/*.jsonl")),
    CAPTURES / "genai-perf-0.0.16" / "profile_export.json",
    *sorted(CAPTURES.glob("aiperf*/profile*")),
    *sorted(CAPTURES.glob("guidellm*/benchmarks.json")),
    *sorted(CAPTURES.glob("inference*/[ps]*.json")),
    *sorted(CAPTURES.glob("evalscope*/benchmark_[ds]*")),
    *sorted(CAPTURES.glob("llama*/out.*")),
]
FILES = [path for path in FILES if path.name != "truth.jsonl"]
WORDS = Catalogue("en")
ODD: list[Any] = [None, -1, 0, 1e300, -0.5, 10**25, "", "inf", "nan", "x", True, [], [None], {}, {"a": 1}]
ODD += [math.nan, math.inf, 1.5e9, [[]], "2026-13-01", 2**63, "\ud800"[:0]]
quickly = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def numbers(tree: Any) -> Iterator[float]:
    if isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from numbers(each)
    elif isinstance(tree, float):
        yield tree


def held(path: Path, data: bytes, name: str | None = None) -> None:
    """Everything that the command does with a file, but for opening the archive."""
    path.write_bytes(data)
    try:
        found = read_results(path, Random(0), name=name)
    except NiloError as refused:
        assert refused.exit_code == 2
        assert WORDS.say(f"error.{refused.slug}.what", **refused.params)
        assert WORDS.say(f"error.{refused.slug}.next", **refused.params)
        return
    for one in found:
        run = one.run
        from_run(run)
        assert all(math.isfinite(number) for number in numbers(run_object(run)))
        assert taken_over(run, WORDS)
        assert render(run_document(run, WORDS, conditions=True), width=80)
        for finding in run.findings:
            assert cause(finding, WORDS, "abcdef")
            step(finding, WORDS, "abcdef")
        for figures in run.summary.latency_ms.values():
            values = [getattr(figures, stat) for stat in ("mean", "min", "p50", "p90", "p95", "p99", "max")]
            assert all(value is None or 0 <= value < math.inf for value in values)
        counts = run.summary.requests
        if None not in (counts.started, counts.ok, counts.error, counts.incomplete, counts.cancelled):
            assert min(counts.started or 0, counts.ok or 0, counts.failed, counts.cancelled or 0) >= 0


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
@given(data=st.data())
@quickly
def test_a_file_that_was_touched(file: Path, data: st.DataObject, tmp_path: Path) -> None:
    held(tmp_path / file.name, data.draw(mutated(file.read_bytes())))


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
@given(share=st.floats(0, 1))
@quickly
def test_a_file_that_was_cut_off(file: Path, share: float, tmp_path: Path) -> None:
    whole = file.read_bytes()
    held(tmp_path / file.name, whole[: int(share * len(whole))])


@st.composite
def changed(draw: st.DrawFn, tree: Any) -> Any:
    """The value with one of its members, somewhere, taken out or replaced by what has no business there."""
    if not isinstance(tree, dict | list) or not tree or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(ODD))
    key = draw(st.sampled_from(sorted(tree) if isinstance(tree, dict) else range(len(tree))))
    if draw(st.integers(0, 9)) == 0:
        return {name: tree[name] for name in tree if name != key} if isinstance(tree, dict) else tree[:key]
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[key] = draw(changed(tree[key]))
    return copy


@pytest.mark.parametrize(
    "file",
    [path for path in FILES if path.suffix in (".json", ".jsonl")],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
@given(data=st.data())
@settings(quickly, max_examples=25)
def test_a_file_with_a_member_that_is_another(file: Path, data: st.DataObject, tmp_path: Path) -> None:
    text = file.read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place] = data.draw(changed(lines[place]))
    held(tmp_path / file.name, "\n".join(map(json.dumps, lines)).encode())


@pytest.mark.parametrize("name", NAMES)
@given(data=st.sampled_from(PIECES) | st.binary(max_size=60))
@quickly
def test_anything_read_as_of_a_tool(name: str, data: bytes, tmp_path: Path) -> None:
    held(tmp_path / "x.json", data, name)
