"""A run through a protocol of one's own: what its places found, over all its answers."""

from __future__ import annotations

from typing import Any

import pytest

from nilometer.core.finding import Finding
from nilometer.core.record import Record
from nilometer.core.spec import Spec
from nilometer.experiment.unfound import Witness

PROTOCOL = {
    "path": "/p",
    "body": {"q": "{prompt}"},
    "stream": {"text": "t", "finish": "f", "prompt_tokens": "n"},
    "whole": {"text": "t", "prompt_tokens": "n"},
}
OTHER = Finding(slug="usage_missing", kind="validity", severity="medium")
PROBED = Finding(slug="places_not_found", kind="validity", severity="high", params={"places": "x"})


def record(**told: Any) -> Record:
    return Record(id="0-0", seq=0, phase="measured", **{"outcome": "ok", "status": 200, **told})


def told(records: list[Record], **spec: Any) -> list[str]:
    witness = Witness(Spec(target="http://t:1", **{"api": "x.toml", "protocol": PROTOCOL, **spec}))
    assert list(witness.watch(records)) == records
    return [str(finding.params.get("places", finding.slug)) for finding in witness.told([PROBED, OTHER])]


@pytest.mark.parametrize(
    ("records", "places"),
    [
        ([record(first_token_ns=1, native_finish_reason="x", prompt_tokens=3)], []),
        ([record(), record(first_token_ns=1, native_finish_reason="x"), record(prompt_tokens=3)], []),
        ([record(native_finish_reason="x", prompt_tokens=3)], ["stream.text = t"]),
        ([record(outcome="incomplete", first_token_ns=1)], ["stream.finish = f, stream.prompt_tokens = n"]),
    ],
)
def test_the_answers_of_the_run_decide(records: list[Record], places: list[str]) -> None:
    assert told(records) == ["usage_missing", *places]


def test_a_run_without_answers_shows_nothing_and_the_probes_word_stands() -> None:
    assert told([record(outcome="error", error="http_5xx", status=500)]) == ["x", "usage_missing"]


def test_whole_answers_have_their_own_places_and_no_first_token() -> None:
    assert told([record()], stream=False) == ["usage_missing", "whole.prompt_tokens = n"]


def test_an_api_of_ours_is_not_looked_at() -> None:
    assert told([record()], protocol={}, api="chat") == ["x", "usage_missing"]
