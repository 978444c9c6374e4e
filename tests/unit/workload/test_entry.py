"""Batches and rows say the same."""

from __future__ import annotations

from nilometer.workload.entry import Entry, batch


def test_rows_made_of_columns_are_the_entries() -> None:
    entries = [
        Entry(line=2, at_ns=5, input_tokens=3, output_tokens=None, turns=2),
        Entry(line=4, at_ns=None, input_tokens=None, output_tokens=0),
    ]
    made = batch(entries, [-1, -1], [-1, -1])
    assert list(made.rows()) == entries
    assert list(made._replace(entries=()).rows()) == entries
    assert made.size == 2
