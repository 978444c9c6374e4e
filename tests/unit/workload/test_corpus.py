from __future__ import annotations

from importlib import resources

import pytest
from tests.unit.workload.toy import text

from nilometer.workload import corpus


@pytest.mark.parametrize(("name", "characters"), [("en", 100_000), ("zh", 3_000)])
def test_the_shipped_texts_are_running_text_without_doubles(name: str, characters: int) -> None:
    lines = text(name).lines
    assert sum(map(len, lines)) > characters
    assert len(set(lines)) == len(lines)
    assert not [line for line in lines if "  " in line or "\ufffd" in line]


def test_the_texts_say_where_they_come_from() -> None:
    licence = resources.files("nilometer.workload").joinpath("corpus", "LICENCE.txt").read_text("utf-8")
    assert "en.txt" in licence
    assert "zh.txt" in licence


def test_blank_lines_are_no_sentences() -> None:
    assert corpus.read("en", "One.\n\n  Two. \n").lines == ("One.", "Two.")


def test_sentences_are_spread_over_all_lengths_up_to_160_characters() -> None:
    chosen = corpus.spread(text().lines, 16)
    lengths = [len(sentence) for sentence in chosen]
    assert len(chosen) == 16
    assert lengths == sorted(lengths)
    assert lengths[0] < 30
    assert 120 < lengths[-1] <= 160


def test_fewer_sentences_than_asked_are_all_taken() -> None:
    assert corpus.spread(["bb", "a", "x" * 161], 5) == ["a", "bb"]


def test_passages_share_no_sentence_and_have_the_asked_size() -> None:
    lines = text().lines
    found = corpus.passages(lines, 12, 900)
    assert len(found) == 12
    assert all(900 <= len(passage) < 900 + max(map(len, lines)) for passage in found)
    starts = ["".join(lines).find(passage[:40].strip()) for passage in found]
    assert starts == sorted(set(starts))


def test_passages_are_as_long_as_the_text_allows() -> None:
    assert corpus.passages(["a b.", "c d.", "e f.", "g h."], 2, 1000) == ["a b. c d.", "e f. g h."]


def test_there_are_enough_words_and_all_differ() -> None:
    assert len(set(corpus.WORDS)) == len(corpus.WORDS) >= 96
    assert len(set(corpus.STARTS)) == len(corpus.STARTS) >= 8
