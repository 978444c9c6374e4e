"""Files in, screens of `nilo workload` out; kept as the other screens are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.golden.test_screens import hold

from nilometer.cli.workload_screens import inspect_document, written_document
from nilometer.sources.reading import Reading
from nilometer.text.i18n import LANGUAGES, Catalogue
from nilometer.workload.entry import Head
from nilometer.workload.shape import Measure, Shape

CASES = Path(__file__).parents[1] / "cases" / "datasets"
NOW_NS = 1_790_000_000_000_000_000


def _read(path: Path) -> tuple[Reading, Shape]:
    reading, measure = Reading(path, now_ns=NOW_NS), Measure()
    for batch in reading.batches():
        measure.add(batch)
    reading.path = Path(path.name)
    return reading, measure.shape()


def _trace(folder: Path) -> Path:
    """Five thousand rows of Mooncake's layout, a third of them bursts, with three prefixes."""
    draw = random.Random(4)
    path = folder / "trace.jsonl"
    at_ms = 0
    with path.open("w") as file:
        for n in range(5_000):
            at_ms += draw.choice([0, 0, 3000])
            asked = max(1, min(126_000, int(draw.lognormvariate(8, 1))))
            blocks = -(-asked // 512)
            ids = [draw.randrange(3), *(1000 + 300 * n + block for block in range(blocks - 1))]
            answered = max(1, int(draw.lognormvariate(5, 1)))
            file.write(
                f'{{"timestamp": {at_ms}, "input_length": {asked}, "output_length": {answered}, "hash_ids": {ids}}}\n'
            )
    return path


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_trace(lang: str, tmp_path: Path) -> None:
    hold("workload_trace", inspect_document(*_read(_trace(tmp_path)), Catalogue(lang)))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_data_set(lang: str) -> None:
    hold("workload_sharegpt", inspect_document(*_read(CASES / "d01_sharegpt.json"), Catalogue(lang)))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_log_with_rows_that_cannot_be_read(lang: str, tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    row = '{{"startTime": {}, "call_type": "completion", "prompt_tokens": {}, "completion_tokens": 9}}\n'
    rows = [(1.7e9, 12), (1.7e12, 12), (1.7e9, -3), ('"soon"', 7), *[("null", 1)] * 4]
    path.write_text("".join(row.format(*each) for each in rows) + '{"startTime": \n')
    hold("workload_broken", inspect_document(*_read(path), Catalogue(lang)))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("representative", [True, False])
def test_what_was_written(representative: bool, lang: str) -> None:
    reading, _ = _read(CASES / "d09_burstgpt.csv")
    head = Head(
        nilometer_workload=1,
        name="mix",
        data="mix.jsonl",
        sha256="d341d1fe4b2fda2d" * 4,
        source_format="burstgpt",
        rows=200,
        text="redacted",
        source_rows=1_000_000,
        representative=representative,
        ks={"input": 0.03, "output": 0.025 if representative else 0.081, "turns": 0.0},
    )
    name = "workload_sample" if representative else "workload_sample_off"
    hold(name, written_document(reading, head, Path("mix.toml"), Catalogue(lang)))
