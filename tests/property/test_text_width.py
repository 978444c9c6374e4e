"""Laws of breaking lines: nothing is lost, nothing is wider than it must be, in any script."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nilometer.text.width import columns, pad, wrap

WORDS = st.text(alphabet="ab1 .,%`-（，。）中文时延é·", max_size=80)
WIDTHS = st.integers(min_value=1, max_value=60)


@given(WORDS, WIDTHS)
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


@given(WORDS, WIDTHS)
def test_a_line_is_wider_than_asked_only_where_it_is_a_single_piece(text: str, width: int) -> None:
    for line in wrap(text, width):
        assert line == line.strip()
        assert columns(line) <= width or wrap(line, 1) == [line]


@given(WORDS, WIDTHS)
def test_wrapping_again_changes_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert [again for line in lines for again in wrap(line, width)] == lines


@given(WORDS, WIDTHS, st.booleans())
def test_padding_reaches_the_width_and_adds_only_blanks(text: str, width: int, right: bool) -> None:
    padded = pad(text, width, right)
    assert columns(padded) == max(columns(text), width)
    assert padded.removesuffix(text) + text == padded if right else padded.startswith(text)
