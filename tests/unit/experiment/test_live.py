"""How a run stands: what the requests sent so far use, told from a journal that grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.unit.load.made import header, record

from nilometer.experiment.live import Observer
from nilometer.load import journal


def used(path: Path, *ended: dict[str, Any], in_flight: int = 0) -> int:
    """The tokens counted after these requests, each asked for 100 tokens of prompt, have ended."""
    journal.create(path, header()).close()
    writer = journal.Writer(path)
    for seq, fields in enumerate(ended):
        writer.record(msgspec.structs.replace(record(seq), asked_input=100, asked_output=10, **fields))
    writer.close()
    observer = Observer([path])
    observer.look("measured", 1.0, 1_000_000_000, 0, in_flight)
    observer.close()
    return observer.tokens


def test_what_the_server_counted_counts_as_counted(tmp_path: Path) -> None:
    assert used(tmp_path / "j", {"prompt_tokens": 98, "output_tokens": 9}) == 107


def test_a_prompt_that_nothing_counted_is_taken_as_it_was_asked_for(tmp_path: Path) -> None:
    failed = {"outcome": "error", "error": "timeout_total"}
    assert used(tmp_path / "j", {"output_tokens": 9}, failed) == 109 + 100


def test_a_request_that_was_never_sent_uses_nothing(tmp_path: Path) -> None:
    assert used(tmp_path / "j", {"outcome": "error", "error": "connect", "sent_ns": None}) == 0


def test_those_in_flight_are_taken_at_the_mean_of_those_that_ended(tmp_path: Path) -> None:
    ended = ({"prompt_tokens": 100, "output_tokens": 10}, {"prompt_tokens": 100, "output_tokens": 30})
    assert used(tmp_path / "j", *ended, in_flight=3) == 240 + 3 * 120
    assert used(tmp_path / "k", in_flight=3) == 0
