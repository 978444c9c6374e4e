"""What prompts begin with is told by their blocks."""

from __future__ import annotations

import pytest

from nilometer.workload import prefix
from nilometer.workload.prefix import BLOCK_CHARACTERS, Prefixes, text_blocks


def test_an_id_stands_for_its_block_and_all_before_it() -> None:
    known = Prefixes(512)
    assert known.shared([7, 8], 1000) == (0, [0, 1])
    assert known.shared([7], 512) == (512, [0])
    assert known.shared([8, 7], 1024) == (0, [2, 3])
    assert known.shared([7, 8, 9], 1100) == (1024, [0, 1, 4])
    assert known.shared([7, 8], 700) == (700, [0, 1])


def test_a_prompt_does_not_share_with_itself() -> None:
    assert Prefixes(64).shared([5, 5, 5], 192) == (0, [0, 1, 2])


def test_beyond_the_bound_what_is_new_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "MOST_BLOCKS", 2)
    known = Prefixes(64)
    assert known.shared([1, 2, 3], None) == (0, [0, 1])
    assert known.full
    assert known.shared([1, 2, 3], None) == (128, [0, 1])


def test_blocks_of_a_text_are_its_whole_ones() -> None:
    text = "a" * BLOCK_CHARACTERS + "b" * BLOCK_CHARACTERS + "c"
    assert len(text_blocks(text)) == 2
    assert text_blocks(text)[:1] == text_blocks("a" * BLOCK_CHARACTERS)
    assert text_blocks("short") == []
