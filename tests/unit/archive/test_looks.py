"""Looks at a page: exact, cut into pieces, next to nothing where the page hardly changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.archive import looks
from nilometer.archive.columns import DamagedError, fold, ints, pack
from nilometer.core.telemetry import Look

SEEN = [Look(5, 9, "vllm:num_requests_running 3\n中文"), Look(10, 10, fault="http_503"), Look(2**62, 2**62 + 1, "")]


def back(seen: list[Look]) -> list[Look]:
    return looks.decode({looks.LOOKS}, list(looks.encode(seen)))


def test_looks_come_back() -> None:
    assert back(SEEN) == SEEN
    assert list(looks.encode([])) == []
    assert looks.decode(set(), []) == []


def test_many_are_cut_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 31, 8 and 0 signs: the first stands alone each time, the others together."""
    monkeypatch.setattr(looks, "PIECE_CHARS", 30)
    assert len(list(looks.encode(SEEN * 3))) == 6
    assert back(SEEN * 3) == SEEN * 3


def test_a_page_that_hardly_changes_takes_little() -> None:
    """100 kB of pages, of which each has one new number."""
    page = "".join(f'vllm:request_queue_time_seconds_bucket{{le="{i}"}} 17\n' for i in range(20))
    seen = [Look(i, i + 1, f"{page}vllm:generation_tokens_total {i * 977}\n") for i in range(100)]
    (segment,) = looks.encode(seen)
    assert len(segment) < 2_000


def test_what_is_no_segment_of_looks_is_refused() -> None:
    (segment,) = looks.encode(SEEN)
    with pytest.raises(DamagedError):
        looks.decode({"looks-9"}, [segment])
    with pytest.raises(DamagedError):
        looks.decode({looks.LOOKS}, [segment[:-3]])
    with pytest.raises(DamagedError):
        looks.decode({looks.LOOKS}, [pack({"asked": fold(ints([1]))})])


@given(
    st.lists(
        st.builds(Look, st.integers(0, 2**62), st.integers(0, 2**62), st.none() | st.text(), st.none() | st.text()),
        max_size=8,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_looks_come_back(seen: list[Look]) -> None:
    assert back(seen) == seen
