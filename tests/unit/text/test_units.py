"""Numbers become words: every expected text is written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from nilometer.text import units


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (units.count, 2610, "2,610"),
        (units.count, 0, "0"),
        (units.count, 999.5, "1,000"),
        (units.rate, 2610.4, "2,610"),
        (units.rate, 650.2, "650"),
        (units.rate, 99.96, "100"),
        (units.rate, 43.29, "43.3"),
        (units.rate, 9.996, "10.0"),
        (units.rate, 4.806, "4.81"),
        (units.rate, 0.0, "0"),
        (units.rate, 0.004, "0.00"),
        (units.brief, 650.2, "650"),
        (units.brief, 43.29, "43"),
        (units.brief, 9.96, "10"),
        (units.brief, 4.83, "4.8"),
        (units.brief, 0.523, "0.52"),
        (units.brief, 0.0, "0"),
        (units.percent, 0.005, "0.5 %"),
        (units.percent, 0.01, "1 %"),
        (units.percent, 0.0102, "1.0 %"),
        (units.percent, 0.11, "11 %"),
        (units.percent, 0.0, "0 %"),
        (units.percent, 1.0, "100 %"),
        (units.percent, 0.0001, "<0.1 %"),
        (units.percent, -0.0001, ">-0.1 %"),
        (units.percent, 0.9996, "99.9 %"),
        (units.percent, 0.9949, "99 %"),
        (units.percent, 1.27, "127 %"),
        (units.change, 0.004, "+0.4 %"),
        (units.change, -0.12, "-12 %"),
        (units.change, 0.0, "0 %"),
        (units.change, 0.0001, "<0.1 %"),
        (units.latency, 0.418, "0.42 ms"),
        (units.latency, 23.14, "23.1 ms"),
        (units.latency, 480.1, "480 ms"),
        (units.latency, 999.4, "999 ms"),
        (units.latency, 999.6, "1.00 s"),
        (units.latency, 3150.2, "3.15 s"),
        (units.latency, 123_456.0, "123.5 s"),
        (units.seconds, 60.0, "60 s"),
        (units.seconds, 2.5, "2.5 s"),
        (units.mean, 514.1, "514.1"),
        (units.mean, 128.0, "128"),
        (units.mean, 2610.4, "2,610"),
        (units.clock, 72.9, "01:12"),
        (units.clock, 0.0, "00:00"),
        (units.clock, 3753.0, "1:02:33"),
        (units.clock, -12.5, "-00:12"),
        (units.clock, -0.4, "00:00"),
        (units.size, 512, "512 B"),
        (units.size, 671_088_640, "640 MiB"),
        (units.size, 2_048_000_000, "1.91 GiB"),
        (units.size, 1024 * 1024 - 1, "1.00 MiB"),
        (units.about, 420, "420"),
        (units.about, 13_200, "13 k"),
        (units.about, 2_300, "2.3 k"),
        (units.about, 800_000, "0.8 M"),
        (units.about, 12_300_000, "12 M"),
    ],
)
def test_a_number_reads_as_an_engineer_writes_it(show: Callable[[float | None], str], value: float, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize("show", list(units.FORMATS.values()), ids=list(units.FORMATS))
@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_was_not_measured_is_a_dash_never_zero(show: Callable[[float | None], str], value: float | None) -> None:
    assert show(value) == "-"


def test_a_small_negative_rounds_to_zero_without_a_sign() -> None:
    assert units.fixed(-0.04, 1) == "0.0"
    assert units.plain(-0.0) == "0"


@pytest.mark.parametrize(
    ("values", "symbol", "shown"),
    [
        ([212.4, 480.1], "ms", "212.4"),
        ([0.41, 0.9], "ms", "0.41"),
        ([0.41, 1.12], "ms", "0.4"),
        ([3150.2, 3710.0], "s", "3.15"),
        ([612.0, 4020.4], "s", "0.61"),
        ([250_000.0, 300_000.0], "s", "250.0"),
        ([None, 480.1], "ms", "-"),
        ([None, None], "ms", "-"),
    ],
)
def test_a_row_has_one_unit(values: list[float | None], symbol: str, shown: str) -> None:
    scale = units.latency_scale(values)
    assert (scale.symbol, scale.show(values[0])) == (symbol, shown)


def test_a_moment_names_its_zone() -> None:
    assert units.moment(1_786_699_613_000_000_000) == "2026-08-14 09:26:53 UTC"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.021, "share", "2.1 %"),
        (1890.0, "ms", "1.89 s"),
        (8, None, "8"),
        (8.04, "requests", "8.04 requests"),
        (2 * 1024**3, "bytes", "2.00 GiB"),
        ("kernel", "ms", "kernel"),
        (None, "ms", "-"),
    ],
)
def test_a_figure_of_evidence_in_its_unit(value: float | str | None, unit: str | None, text: str) -> None:
    assert units.measured(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"), [(8000, "8000"), ("llama3", "llama3"), (None, "-"), (0.33333, "0.3333"), (12345.6, "12346")]
)
def test_a_parameter_without_a_form_shows_as_it_is(value: object, text: str) -> None:
    assert units.worded(value, "") == text


def test_forms_of_a_parameter() -> None:
    assert units.worded(0.11, "percent") == "11 %"
    assert units.worded(1, "of|request|requests") == "1 request"
    assert units.worded(1200, "of|request|requests") == "1,200 requests"
    assert units.worded("uniform:64,256", "count") == "uniform:64,256"


def test_an_unknown_form_or_a_value_without_words_is_a_fault() -> None:
    with pytest.raises(KeyError):
        units.worded(1, "furlongs")
    with pytest.raises(TypeError):
        units.worded([1], "count")
