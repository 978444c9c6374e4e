"""The Summary as rows: the contract's names, no row for what was not measured."""

from __future__ import annotations

import math

from msgspec.structs import replace
from tests.unit.archive.samples import make_summary

from nilometer.core.summary import Throughput
from nilometer.metrics.figures import figures


def test_every_figure_stands_under_the_names_of_the_contract() -> None:
    found = set(figures(make_summary()))
    assert ("latency_ms", "ttft", "p95", 480.125) in found
    assert ("latency_ms", "ttft", "n", 610.0) in found
    assert ("throughput", "output_tokens_per_s", "value", 650.5) in found
    assert ("requests", "errors", "http_5xx", 3.0) in found
    assert ("run_requests", "started", "value", 900.0) in found
    assert ("lengths", "output", "mean", 128.0) in found
    assert ("lengths", "token_source", "usage", 610.0) in found
    assert ("generator", "loop_lag_ms", "p99", 0.4) in found
    assert ("memory", "server_rss_peak_bytes", "value", 1_234_567_890.0) in found
    assert ("server", "kv_usage", "value", 0.41) in found
    assert ("window", "steady", "value", 1.0) in found


def test_what_was_not_measured_has_no_row_and_words_have_none() -> None:
    names = {(figure.scope, figure.metric, figure.stat) for figure in figures(make_summary())}
    assert ("latency_ms", "itl", "p95") not in names
    assert ("latency_ms", "itl", "n") in names
    assert ("server", "preemptions", "value") not in names
    assert ("latency_ms", "ttft", "marked") not in names
    assert not {name for name in names if name[0] in ("timeline", "latency_from")}
    assert not {name for name in names if name[1] in ("rule", "verdict", "source")}


def test_each_name_stands_once() -> None:
    found = figures(make_summary())
    assert len({figure[:3] for figure in found}) == len(found)


def test_what_is_no_number_has_no_row() -> None:
    summary = replace(make_summary(), throughput=Throughput(output_tokens_per_s=math.nan, input_tokens_per_s=math.inf))
    assert not [figure for figure in figures(summary) if figure.scope == "throughput"]
