"""Reading the text format: what is kept, what is left, and that one bad line costs one line."""

from __future__ import annotations

import time

import pytest

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.page_lines import kept
from nilometer.metrics.pages import Page, Series, read

ASKED = {"a:count_of", "a:gauge", "a:seconds", "a:steps_total", "tgi_request_count"}


def values(page: Page, key: str) -> list[float]:
    return [row.value for row in page.series.get(key, ())]


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("a:gauge 4", "a:gauge", 4.0),
        ("  a:gauge\t4.5e3  ", "a:gauge", 4500.0),
        ("a:gauge{} 4", "a:gauge", 4.0),
        ('a:gauge{m="x",} 4 1726000000000', "a:gauge", 4.0),
        ("a:count_of_total 7", "a:count_of", 7.0),
        ("a:count_of 7", "a:count_of", 7.0),
        ("tgi_request_count 120", "tgi_request_count", 120.0),
        ('a:seconds_bucket{le="+Inf"} 3', "a:seconds_bucket", 3.0),
        ("a:seconds_sum 0.25", "a:seconds_sum", 0.25),
        ('a:count_of_total{m="x"} 7 # {trace_id="a b"} 0.5 1726000000.1', "a:count_of", 7.0),
        ("a:gauge 4 # {} 1", "a:gauge", 4.0),
    ],
)
def test_a_line_of_a_family_that_is_asked_for(line: str, key: str, value: float) -> None:
    page = read(line + "\n", ASKED)
    assert {name: values(page, name) for name in page.series} == {key: [value]}
    assert (page.ignored, page.broken) == (0, 0)


def test_labels_may_hold_whatever_is_escaped() -> None:
    page = read('a:gauge{m="a \\"b\\", c=\\\\d}e\\nf",n="中文"} 1', ASKED)
    assert page.series["a:gauge"] == [Series({"m": 'a "b", c=\\d}e\nf', "n": "中文"}, 1.0)]


def test_a_counter_is_one_with_and_without_its_type_line_and_its_total() -> None:
    """Prometheus names the family `..._total`, OpenMetrics leaves it off, TGI's counters never have it."""
    for told in ("# TYPE a:count_of_total counter\n", "# TYPE a:count_of counter\n", "# TYPE a:count_of unknown\n", ""):
        assert values(read(f"{told}a:count_of_total 7\n", ASKED), "a:count_of") == [7.0]
    page = read("# TYPE tgi_request_count counter\ntgi_request_count 5\n", ASKED)
    assert (values(page, "tgi_request_count"), page.names) == ([5.0], ["tgi_request_count"])


def test_a_histogram_whose_name_ends_in_total_is_a_histogram() -> None:
    page = read(
        "# TYPE a:steps_total histogram\n"
        'a:steps_total_bucket{le="1.0"} 1\na:steps_total_bucket{le="+Inf"} 2\n'
        "a:steps_total_count 2\na:steps_total_sum 9\n",
        ASKED,
    )
    assert values(page, "a:steps_total_bucket") == [1.0, 2.0]
    assert (values(page, "a:steps_total_count"), values(page, "a:steps_total")) == ([2.0], [])


def test_start_times_are_not_counts() -> None:
    page = read("a:count_of_total 7\na:count_of_created 1.76e9\n", ASKED)
    assert (values(page, "a:count_of"), page.ignored, page.broken) == ([7.0], 1, 0)


def test_what_is_left_is_counted() -> None:
    page = read(
        "# HELP a:gauge Words.\n# TYPE a:gauge gauge\na:gauge 1\n\n"
        "python_gc_objects_collected_total 3\n"
        'other{x="y"} 2\n'
        "# EOF\n",
        ASKED,
    )
    assert (page.ignored, page.broken) == (2, 0)
    assert page.names == ["a:gauge", "python_gc_objects_collected", "other"]


@pytest.mark.parametrize(
    "line",
    [
        "<html>",
        "a:gauge",
        "a:gauge four",
        'a:gauge{m="x} 4',
        'a:gauge{m=x"} 4',
        "a:gauge{ 4",
        'a:gauge{m="x"}',
        'a:gauge{m="x",m="y"} 4',
        "a:gauge " + "9" * 9_000,
        'a:gauge{m="' + "x" * 9_000 + '"} 4',
        '{"a": 1}',
        "{} 1",
        "\x00\x01\x02",
    ],
    ids=range(13),
)
def test_a_broken_line_costs_no_other(line: str) -> None:
    page = read(f"a:gauge 1\n{line}\na:count_of_total 2\n", ASKED)
    assert (values(page, "a:gauge"), values(page, "a:count_of")) == ([1.0], [2.0])
    assert (page.ignored, page.broken) == (1, 1)


def test_a_series_without_a_number_is_not_there() -> None:
    page = read("a:gauge NaN\na:count_of_total +Inf\n" + "a:seconds_sum 1" + "0" * 400 + "\n", ASKED)
    assert (page.series, page.broken, page.is_metrics) == ({}, 0, True)


def test_of_a_series_that_is_there_twice_the_later_value_holds() -> None:
    assert values(read('a:gauge{m="x",n="y"} 1\na:gauge{n="y",m="x"} 2\n', ASKED), "a:gauge") == [2.0]


def test_windows_lines_and_a_page_that_is_cut() -> None:
    page = read("a:gauge 1\r\na:count_of_total 2\r\na:ga", ASKED)
    assert (values(page, "a:gauge"), values(page, "a:count_of"), page.broken) == ([1.0], [2.0], 1)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "<!doctype html><p>404", "Not Found", "# HELP a b\n", "\x7fELF\x00", "{}"]
)
def test_what_is_no_page(text: str) -> None:
    assert not read(text, ASKED).is_metrics


def test_what_is_kept_of_a_page_reads_the_same() -> None:
    text = "# HELP a:gauge Words.\n# TYPE a:count_of_total counter\na:count_of_total 7\nother 1\na:gauge 2\n"
    assert kept(text, ASKED) == "# TYPE a:count_of_total counter\na:count_of_total 7\na:gauge 2"
    assert read(kept(text, ASKED), ASKED).series == read(text, ASKED).series


def test_a_page_of_half_a_megabyte_costs_little() -> None:
    """Ten times what it takes here: 5,000 lines of other families are dropped by their names alone."""
    bucket = 'vllm:request_params_max_tokens_bucket{{engine="0",le="{}.0",model_name="meta-llama/Llama-3.1-8B"}} 12.0\n'
    text = "".join(bucket.format(n) for n in range(5_000)) + "vllm:num_requests_running 3\n"
    assert len(text) > 450_000
    before = time.process_time()
    assert values(read(text, FAMILIES), "vllm:num_requests_running") == [3.0]
    assert time.process_time() - before < 0.2
