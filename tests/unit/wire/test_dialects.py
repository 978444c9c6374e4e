"""The table of dialects."""

from __future__ import annotations

import pytest

from nilometer.wire.dialects import DIALECTS


def test_rows_stand_under_their_names_with_paths_below_the_base() -> None:
    assert {name: row.path for name, row in DIALECTS.items()} == {
        "chat": "/chat/completions",
        "completions": "/completions",
    }
    assert all(name == row.name for name, row in DIALECTS.items())


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("event_stream", [True, False])
def test_a_reader_that_was_fed_nothing_has_nothing(name: str, event_stream: bool) -> None:
    reader = DIALECTS[name].reader(event_stream, False)
    assert reader.feed(b"") == 0
    assert not reader.complete
    assert (reader.tokens, reader.first_answer) == ([], None)
    answer = reader.close()
    assert (answer.complete, answer.choices, answer.fault, answer.token_source) == (False, 0, None, "none")
