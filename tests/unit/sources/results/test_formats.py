"""Which tool wrote a file: by what only its files have, by its name, or not at all."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from nilometer.core.errors import DataError
from nilometer.sources.results.formats import FORMATS, NAMES, read_results
from nilometer.sources.results.opened import Opened

TESTS = Path(__file__).parents[3]
FILES = [path for path in (TESTS / "captures" / "results").rglob("*") if path.is_file() and path.suffix != ".md"]
FILES = [path for path in FILES if path.stem not in ("truth", "benchmark_args", "benchmark_percentile")]
FILES += [path for path in (TESTS / "cases" / "results").iterdir() if "expected" not in path.name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_is_claimed_by_its_tool_alone(path: Path) -> None:
    opened = Opened(path)
    assert len([each.name for each in FORMATS if each.claims(opened)]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_is_of_another_tool_is_refused_by_name(name: str) -> None:
    foreign = "vllm-0.32.0-plain/plain.json" if name != "vllm" else "guidellm-0.4.0/benchmarks.json"
    with pytest.raises(DataError) as fault:
        read_results(TESTS / "captures" / "results" / foreign, Random(1), name=name)
    assert (fault.value.slug, fault.value.params["tool"]) == ("result_other", name)


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "a,b\n1,2\n", "words", '[{"a": 1}]', '{"a": 1}\n{"a": 2}\n'])
def test_what_nobody_wrote_is_unknown(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DataError) as fault:
        read_results(path, Random(1))
    assert (fault.value.slug, fault.value.exit_code) == ("result_unknown", 2)
