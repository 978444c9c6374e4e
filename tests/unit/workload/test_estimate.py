"""Tokens from characters: near enough to sort lengths, and never 0."""

from __future__ import annotations

from nilometer.workload.estimate import tokens


def test_estimates() -> None:
    assert [tokens(text) for text in ("", "a", "x" * 420, "水位怎么测？", "水位 gauge " * 10)] == [1, 1, 100, 4, 32]
