from __future__ import annotations

import pytest

from nilometer.plan.versions import Span, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.19.0", (0, 19, 0)),
        ("v0.11.0rc2", (0, 11, 0)),
        ("0.10434.0", (0, 10434, 0)),
        ("b7079", (7079,)),
        ("0.24", (0, 24)),
        ("2026-08", None),
        ("nightly", None),
        ("", None),
        (None, None),
    ],
)
def test_versions_are_their_leading_numbers(text: str | None, expected: tuple[int, ...] | None) -> None:
    assert parse_version(text) == expected


def test_a_span_holds_its_first_and_not_its_end() -> None:
    span = Span(since=(0, 17), until=(0, 21))
    assert [span.holds(version) for version in ((0, 16, 9), (0, 17), (0, 20, 1), (0, 21), (0, 21, 0))] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert span.words() == ">=0.17,<0.21"
    assert Span(since=(0, 21)).words() == ">=0.21"
