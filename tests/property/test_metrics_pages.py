"""Laws of metrics pages: any bytes are figures or one refusal; a page against itself is nothing; engines add up."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.test_results_fuzz import numbers
from tests.property.test_sources_fuzz import mutated

from nilometer.cli.scrape_machine import scrape_object
from nilometer.cli.session import indented
from nilometer.core.errors import NiloError
from nilometer.metrics.buckets import Bound, Histogram
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.page_lines import kept
from nilometer.metrics.pages import Page, read
from nilometer.metrics.server_figures import ServerFigures, figures
from nilometer.report.scrape import scrape_document
from nilometer.report.terminal import render
from nilometer.sources.metrics_page import read_file
from nilometer.text.i18n import LANGUAGES, Catalogue

CASES = sorted((Path(__file__).parents[1] / "cases" / "metrics").glob("*.prom"))
WORDS = [Catalogue(lang) for lang in LANGUAGES]
quickly = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
NAMES = sorted(FAMILIES)
VALUES = st.sampled_from(
    ["0", "1", "-1", "NaN", "+Inf", "-Inf", "1e308", "1e999", "9" * 330, "0.5", "7 1726"]
) | st.floats(0, 1e9).map(repr)
LABELS = st.dictionaries(
    st.sampled_from(["engine", "le", "tp_rank", "dp_rank", "finished_reason", "num_gpu_blocks", "block_size", "x"]),
    st.sampled_from(["0", "1", "0.5", "+Inf", "-Inf", "nan", "", 'a\\"b', "stop"]),
    max_size=3,
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(NAMES)) + draw(st.sampled_from(["", "", "_total", "_bucket", "_sum", "_count"]))
    labels = ",".join(f'{key}="{value}"' for key, value in draw(LABELS).items())
    return f"{name}{{{labels}}} {draw(VALUES)}"


PAGES = st.lists(lines() | st.text(max_size=30), max_size=25).map("\n".join)


def held(found: ServerFigures) -> dict[str, Any]:
    """All that the command does with figures: whatever they are, both forms can be made of them."""
    machine: dict[str, Any] = json.loads(indented(scrape_object(found)))
    assert all(math.isfinite(number) for number in numbers(machine))
    for words in WORDS:
        assert render(scrape_document(found, "page", words))
    return machine


@given(text=PAGES, before=PAGES)
@quickly
def test_whatever_stands_on_two_pages(text: str, before: str) -> None:
    held(figures(read(text, FAMILIES)))
    held(figures(read(text, FAMILIES), read(before, FAMILIES), 10.0))


@pytest.mark.parametrize("file", CASES, ids=lambda path: path.stem)
@given(data=st.data())
@settings(quickly, max_examples=15)
def test_a_page_that_was_touched(file: Path, data: st.DataObject, tmp_path: Path) -> None:
    touched = tmp_path / "page"
    touched.write_bytes(data.draw(mutated(file.read_bytes())))
    try:
        found = read_file(touched)
    except NiloError as refused:
        assert refused.exit_code == 2
        for words in WORDS:
            assert words.say(f"error.{refused.slug}.what", **refused.params)
        return
    held(found.beside(figures(found.page)))
    held(figures(found.page, read(file.read_text("utf-8"), FAMILIES), 1.0))


@given(text=PAGES)
@quickly
def test_a_page_against_itself_is_nothing(text: str) -> None:
    page = read(text, FAMILIES)
    found = figures(page, page, 10.0)
    assert not found.reset
    assert (found.appeared, found.vanished) == (0, 0)
    counts = (found.prompt_tokens, found.generation_tokens, found.preemptions, found.requests, found.generation_tps)
    assert set(counts) <= {None, 0}
    assert {spread.count for spread in found.latencies.values()} <= {0}


@given(text=PAGES)
@quickly
def test_what_is_kept_reads_as_the_whole(text: str) -> None:
    assert read(kept(text, FAMILIES), FAMILIES).series == read(text, FAMILIES).series


COUNTS = st.integers(0, 10**9)


@given(engines=st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=5))
@quickly
def test_counts_and_queues_of_engines_add_up_and_shares_do_not(engines: list[tuple[int, int, int]]) -> None:
    page = _page(engines)
    found = figures(page)
    tokens, waiting, shares = zip(*engines, strict=True)
    assert (found.engines, found.generation_tokens, found.waiting) == (len(engines), sum(tokens), sum(waiting))
    assert found.kv_usage is not None
    assert found.kv_usage.max == max(shares) / 1e9
    assert len(found.kv_usage.per_engine) == len(engines)


def _page(engines: list[tuple[int, int, int]]) -> Page:
    rows = [
        f'vllm:generation_tokens_total{{engine="{i}"}} {tokens}\nvllm:num_requests_waiting{{engine="{i}"}} {waiting}\n'
        f'vllm:kv_cache_usage_perc{{engine="{i}"}} {share / 1e9!r}'
        for i, (tokens, waiting, share) in enumerate(engines)
    ]
    return read("\n".join(rows), FAMILIES)


@given(
    values=st.lists(st.floats(0.001, 99.0), min_size=1, max_size=200),
    edges=st.lists(st.floats(0.01, 50.0), min_size=1, max_size=12, unique=True),
    percent=st.sampled_from([50, 95]),
)
@quickly
def test_a_percentile_of_buckets_is_in_the_bucket_of_the_true_one(
    values: list[float], edges: list[float], percent: int
) -> None:
    """The true one: the value at that rank, among all values."""
    bounds = [*sorted(edges), math.inf]
    cumulative = [(edge, float(sum(value <= edge for value in values))) for edge in bounds]
    found = Histogram(count=len(values), total=sum(values), cumulative=cumulative).percentile(percent)
    true = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    i = next(i for i, edge in enumerate(bounds) if true <= edge)
    lower, upper = (bounds[i - 1] if i else 0.0), bounds[i]
    if isinstance(found, Bound):
        assert found.at_least <= true <= (math.inf if found.at_most is None else found.at_most)
    else:
        assert found is not None
        assert lower - 1e-9 <= found <= upper + 1e-9
