"""A request of a tool as a Record: moments by hand, empty frames, kinds of failure."""

from __future__ import annotations

import pytest

from nilometer.metrics.request import frame_gaps_ns, shown_ms
from nilometer.sources.results.request import Empty, Seen, error_kind, gaps_of, record, short
from nilometer.sources.results.told import Notes


def test_moments_lie_on_the_clock_of_the_run() -> None:
    one = record(
        3, Seen(start_s=2.0, ttft_s=0.5, gaps_s=[0.02, 0.03], e2e_s=0.6, output_tokens=3, token_source="usage"), Notes()
    )
    assert (one.sent_ns, one.first_token_ns, one.last_token_ns, one.end_ns) == (
        2_000_000_000,
        2_500_000_000,
        2_550_000_000,
        2_600_000_000,
    )
    assert shown_ms(one) == {"ttft_ms": 500.0, "ttfa_ms": None, "tpot_ms": 25.0, "e2e_ms": 600.0}
    assert frame_gaps_ns(one.frames).tolist() == [20_000_000, 30_000_000]


def test_connecting_comes_before_the_sending() -> None:
    one = record(0, Seen(start_s=1.0, connect_s=0.1, ttft_s=0.5, e2e_s=0.9), Notes())
    assert (one.connect_ns, one.sent_ns, one.new_connection) == (100_000_000, 1_100_000_000, True)
    assert shown_ms(one)["ttft_ms"] == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("empty", "gaps", "ttft_ms", "tpot_ms", "slug"),
    [
        ("no", [0.2, 0.02, 0.02, 0.001], 40.0, 120.5, None),
        ("end", [0.02, 0.03, 0.1], 40.0, 25.0, None),
        ("end", [0.02, 0.03], 40.0, 25.0, None),
        ("either", [0.02, 0.03], 40.0, 25.0, None),
        ("either", [0.0005, 0.02, 0.03], 40.5, 25.0, None),
        ("either", [0.02, 0.03, 0.0005], 40.0, 25.0, None),
        ("either", [0.2, 0.02, 0.03], None, None, "import_first_frame_empty"),
        ("either", [0.02, 0.02, 0.03, 0.0005], 60.0, 25.0, "import_role_frame_left_out"),
    ],
)
def test_frames_without_text(
    empty: Empty, gaps: list[float | None], ttft_ms: float | None, tpot_ms: float | None, slug: str | None
) -> None:
    """Three tokens. With one frame a token all are tokens; of a spare one it must be clear which it is."""
    notes = Notes()
    one = record(
        0, Seen(ttft_s=0.04, gaps_s=gaps, empty=empty, e2e_s=1.0, output_tokens=3, token_source="usage"), notes
    )
    told = shown_ms(one)
    assert told["ttft_ms"] == (None if ttft_ms is None else pytest.approx(ttft_ms))
    assert told["tpot_ms"] == (None if tpot_ms is None else pytest.approx(tpot_ms))
    assert [note.slug for note in notes.all()] == ([] if slug is None else [slug])


def test_what_lies_before_the_start_is_left_out() -> None:
    notes = Notes()
    one = record(0, Seen(ttft_s=-0.1, e2e_s=0.5, output_tokens=3, token_source="usage"), notes)
    assert (one.first_token_ns, one.end_ns) == (None, 500_000_000)
    assert notes.all()[0].params == {"fields": "ttft", "n": 1}
    late = record(0, Seen(ttft_s=0.5, last_s=0.2, output_tokens=3, token_source="usage"), Notes())
    assert late.last_token_ns is None


def test_zero_is_no_first_token() -> None:
    assert (
        record(0, Seen(ttft_s=0.0, gaps_s=[0.1], output_tokens=2, token_source="usage"), Notes()).first_token_ns is None
    )


def test_gaps_of_moments() -> None:
    assert gaps_of([1.0, 1.5, 1.25]) == [0.5, None]


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("Bad Gateway", None, "http_5xx"),
        ("Internal Server Error: {}", None, "http_5xx"),
        ("Too Many Requests", None, "http_429"),
        ("HTTPStatusError(\"Client error '404 Not Found' for url 'x'\")", None, "http_4xx"),
        ("HTTP Error 503", None, "http_5xx"),
        ("status code: 429", None, "http_429"),
        ("anything", 500, "http_5xx"),
        ('File "a.py", line 500, in b', None, None),
        ("Traceback (most recent call last): aiohttp.client_exceptions.ClientConnectorError: x", None, "connect"),
        ("asyncio.exceptions.TimeoutError", None, "timeout_total"),
        ("", None, None),
        (None, None, None),
    ],
)
def test_the_kind_of_a_failure(text: str | None, code: int | None, kind: str | None) -> None:
    assert error_kind(text, code) == kind


def test_a_tools_words_are_short() -> None:
    assert short("a\n  b") == "a b"
    assert len(short("x" * 999)) == 200
