"""The stream cases of this project, served on a real socket at their schedule and measured by the real worker.

Each case goes through three framings of HTTP/1.1. Times are held against the moments the server really wrote, and
loosely against the schedule; all else is exact. `tests/cases/INDEX.md` says why each value is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from tests.loopback.driving import MS, S, drive, order, request
from tests.loopback.replay import CASES, Exchange, Framing, Replay, Reply, case

from nilometer.core.record import Call, Record

OTHER_DIALECTS = ("s19", "s21", "s23")
STEMS = [
    stem
    for stem in sorted(path.name.removesuffix(".expected.json") for path in (CASES / "sse").glob("*.expected.json"))
    if not stem.startswith(OTHER_DIALECTS)
]
FRAMINGS: tuple[Framing, ...] = ("chunked", "length", "close")
PLAYS = [(stem, framing) for framing in FRAMINGS for stem in STEMS]
STAMP_MS = 25.0
"""From the server's write to the stamp: mostly 0.05 ms, but its thread may be held up between the two."""
MOSTLY_MS = 1.0
LATE_MS = 100.0
"""How late a busy machine may let the server keep its schedule."""


class Play(NamedTuple):
    """One case as it was sent and as it was measured."""

    expected: dict[str, Any]
    sent: Exchange
    record: Record

    def truth_ns(self, ms: float) -> int:
        """When the bytes scheduled for `ms` were really written."""
        times = [at for at, _ in self.expected["schedule_ms_bytes"]]
        return self.sent.writes[times.index(ms)][0]


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Framing], Play]:
    replies = [case(stem, framing) for stem, framing in PLAYS]

    def choose(exchange: Exchange) -> Reply:
        return replies[int(exchange.headers["x-case"])][0]

    def calls() -> Iterator[Call]:
        for i, (_, expected) in enumerate(replies):
            yield Call(seq=i, request=request("replay", expected["endpoint"], head=f"X-Case: {i}\r\n"))

    with Replay(choose) as replay:
        told = order(
            tmp_path_factory.mktemp("cases"), replay.url, lanes=len(STEMS), requests=len(PLAYS),
            ramp_ns=50 * MS, drain_ns=20 * S, keep_text=True,
        )  # fmt: skip
        outcome = drive(told, calls())
    assert outcome.status == 0, outcome.said
    assert len(outcome.records) == len(PLAYS)
    sent = {int(exchange.headers["x-case"]): exchange for exchange in replay.exchanges}
    return {PLAYS[r.seq]: Play(replies[r.seq][1], sent[r.seq], r) for r in outcome.records}


pytestmark = pytest.mark.xdist_group("cases_sse")
each_play = pytest.mark.parametrize(("stem", "framing"), PLAYS)


def test_every_case_of_these_dialects_is_here() -> None:
    assert [stem[:3] for stem in STEMS] == [
        "s01", "s02", "s04", "s06", "s07", "s09", "s10", "s13", "s14", "s17", "s25",
    ]  # fmt: skip


@each_play
def test_outcome(plays: dict[tuple[str, Framing], Play], stem: str, framing: Framing) -> None:
    expected, _, record = plays[stem, framing]
    assert (record.outcome, record.status) == (expected["outcome"], expected["status"])
    assert record.finish_reason == expected["finish_reason"]
    if "error_contains" in expected:
        assert record.error == "stream_error"
        assert expected["error_contains"] in (record.error_detail or "")
    else:
        assert (record.error, record.error_detail) == (None, None)


@each_play
def test_times(plays: dict[tuple[str, Framing], Play], stem: str, framing: Framing) -> None:
    play = plays[stem, framing]
    expected, sent, record = play
    assert record.sent_ns is not None
    assert record.sent_ns <= sent.read_ns
    for key, stamp in [
        ("ttft_ms", record.first_token_ns),
        ("ttfa_ms", record.first_answer_ns),
        ("last_token_ms", record.last_token_ns),
        ("end_ms", record.end_ns),
    ]:
        if expected[key] is None:
            assert stamp is None, key
            continue
        assert stamp is not None, key
        assert 0 <= stamp - play.truth_ns(expected[key]) < STAMP_MS * MS, key
        assert 0 <= (stamp - record.sent_ns) / MS - expected[key] < LATE_MS, key
    assert record.first_byte_ns is not None
    assert 0 <= record.first_byte_ns - sent.writes[0][0] < STAMP_MS * MS


def test_stamps_are_mostly_those_of_the_writes(plays: dict[tuple[str, Framing], Play]) -> None:
    off_ms = [
        (stamp - play.truth_ns(play.expected[key])) / MS
        for play in plays.values()
        for key, stamp in [("ttft_ms", play.record.first_token_ns), ("end_ms", play.record.end_ns)]
        if stamp is not None
    ]
    assert len(off_ms) == 2 * len(PLAYS) - len(FRAMINGS)  # the whole answer has no first token
    assert sorted(off_ms)[len(off_ms) // 2] < MOSTLY_MS
    assert {play.record.stamp_source for play in plays.values()} <= {"kernel", "user"}


@each_play
def test_counts(plays: dict[tuple[str, Framing], Play], stem: str, framing: Framing) -> None:
    expected, _, record = plays[stem, framing]
    assert record.token_source == expected["token_source"]
    if expected["token_source"] == "usage":
        assert record.output_tokens == expected["completion_tokens"]
    assert (record.output_tokens is None) == (expected["token_source"] == "none")
    for name in ("prompt_tokens", "reasoning_tokens", "cached_tokens"):
        assert getattr(record, name) == expected[name], name
    assert len(record.frames) == expected["token_events"]
    if "tokens_per_event" in expected:
        assert [frame.tokens for frame in record.frames] == expected["tokens_per_event"]


@each_play
def test_tpot_and_frame_gaps(plays: dict[tuple[str, Framing], Play], stem: str, framing: Framing) -> None:
    play = plays[stem, framing]
    expected, _, record = play
    assert record.has_tpot == (expected["tpot_ms"] is not None)
    stamps = [frame.at_ns for frame in record.frames]
    assert stamps == sorted(stamps)
    if record.has_tpot:
        assert record.first_token_ns is not None
        assert record.last_token_ns is not None
        assert record.output_tokens is not None
        assert (stamps[0], stamps[-1]) == (record.first_token_ns, record.last_token_ns)
        truth_ns = play.truth_ns(expected["last_token_ms"]) - play.truth_ns(expected["ttft_ms"])
        steps = record.output_tokens - 1
        tpot_ms = (record.last_token_ns - record.first_token_ns) / steps / MS
        assert tpot_ms == pytest.approx(truth_ns / steps / MS, abs=STAMP_MS / steps)
        assert tpot_ms == pytest.approx(expected["tpot_ms"], abs=LATE_MS / steps)
    if "chunk_gaps_ms" in expected:
        gaps_ms = [(after - before) / MS for before, after in pairwise(stamps)]
        assert gaps_ms == pytest.approx(expected["chunk_gaps_ms"], abs=LATE_MS)


@each_play
def test_texts(plays: dict[tuple[str, Framing], Play], stem: str, framing: Framing) -> None:
    expected, _, record = plays[stem, framing]
    assert record.text == expected["text"]
    assert record.reasoning == expected.get("reasoning_text")
    assert record.tool_arguments == expected.get("tool_arguments")


def test_a_connection_that_is_kept_is_used_again_and_one_that_closes_is_not(
    plays: dict[tuple[str, Framing], Play],
) -> None:
    """All replies say `Connection: close`: every request had a connection of its own, opened outside its latency."""
    records = [play.record for play in plays.values()]
    assert all(record.new_connection and record.connect_ns is not None for record in records)
    assert len({play.sent.connection for play in plays.values()}) == len(PLAYS)
