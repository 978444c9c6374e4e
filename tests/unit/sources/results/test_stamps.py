"""Moments as tools write them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nilometer.sources.results.fields import Fields
from nilometer.sources.results.stamps import local_ns, seconds_ns, whole_ns
from nilometer.sources.results.told import Notes

EIGHT = 1_767_600_000  # 2026-01-05 08:00:00 UTC


@pytest.mark.parametrize(
    ("text", "second", "slug"),
    [
        ("20260105-080000", EIGHT, "import_date_without_zone"),
        ("2026-01-05T08:00:00.250000", EIGHT + 0.25, "import_date_without_zone"),
        ("2026-01-05T08:00:00Z", EIGHT, None),
        ("2026-01-05T10:00:00+02:00", EIGHT, None),
        ("20261305-080000", None, "import_impossible"),
        ("soon", None, "import_impossible"),
    ],
)
def test_a_date(text: str, second: float | None, slug: str | None) -> None:
    notes = Notes()
    found = local_ns(Fields(Path("x"), {"date": msgspec.Raw(msgspec.json.encode(text))}, notes), "date", notes)
    assert found == (None if second is None else round(second * 4) * 250_000_000)
    assert [one.slug for one in notes.all()] == ([] if slug is None else [slug])


def test_no_date() -> None:
    assert local_ns(Fields(Path("x"), {}, Notes()), "date", Notes()) is None


def test_seconds_that_no_calendar_holds_are_none() -> None:
    assert seconds_ns(EIGHT + 0.5) == EIGHT * 10**9 + 500_000_000
    assert (seconds_ns(None), seconds_ns(0.0), seconds_ns(1e12), whole_ns(10**25)) == (None, None, None, None)
