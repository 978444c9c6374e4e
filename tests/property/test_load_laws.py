"""Laws of what a load leaves: any records, cut, flipped or growing in a journal; any split of a response's reads."""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.loopback.driving import DONE, event, finish, usage
from tests.unit.load.fakes import FakeLoop
from tests.unit.load.made import S, exchange, header, trailer

from nilometer.core.record import Frames, Record
from nilometer.load import journal
from nilometer.load.backlog import NEVER_NS
from nilometer.load.digest import Digest
from nilometer.load.pulse import Pulse
from nilometer.wire.dialects import DIALECTS

NS = st.one_of(st.none(), st.integers(0, 2**62))
COUNT = st.one_of(st.none(), st.integers(0, 2**40))
TEXT = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
FRAMES = st.lists(st.integers(0, 2**62), max_size=6).map(lambda stamps: Frames(user=array("q", stamps).tobytes()))
RECORDS = st.builds(
    Record,
    id=st.text("0123456789-", min_size=1, max_size=10),
    seq=st.integers(0, 2**40),
    phase=st.sampled_from(["warmup", "measured", "drain"]),
    outcome=st.sampled_from(["ok", "error", "incomplete", "cancelled"]),
    due_ns=NS,
    sent_ns=NS,
    first_token_ns=NS,
    end_ns=NS,
    error=st.sampled_from([None, "connect", "http_429", "malformed"]),
    error_detail=TEXT,
    retry_after_s=st.one_of(st.none(), st.floats(0, 1e6)),
    output_tokens=COUNT,
    server=st.one_of(st.none(), st.dictionaries(st.text("abc", max_size=3), st.one_of(st.floats(0, 1), st.booleans()))),
    frames=FRAMES,
    text=TEXT,
)


def written(path: Path, records: list[Record]) -> list[int]:
    """A journal of these; returns its size after each entry."""
    journal.create(path, header()).close()
    writer = journal.Writer(path)
    sizes = [path.stat().st_size]
    for record in records:
        writer.record(record)
        sizes.append(path.stat().st_size)
    writer.trailer(trailer())
    writer.close()
    return [*sizes, path.stat().st_size]


@given(st.lists(RECORDS, max_size=4), st.data())
def test_a_journal_gives_back_what_was_whole_at_the_cut(records: list[Record], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        sizes = written(path, records)
        entries = [header(), *records, trailer()]
        assert list(journal.read(path)) == entries
        size = data.draw(st.integers(len(journal.MAGIC), sizes[-1]))
        path.write_bytes(path.read_bytes()[:size])
        assert list(journal.read(path)) == entries[: sum(end <= size for end in sizes)]


@given(st.lists(RECORDS, max_size=4), st.data())
def test_a_flipped_bit_costs_its_own_entry_and_invents_nothing(records: list[Record], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        sizes = written(path, records)
        entries = [header(), *records, trailer()]
        bit = data.draw(st.integers(len(journal.MAGIC) * 8, sizes[-1] * 8 - 1))
        spoilt = bytearray(path.read_bytes())
        spoilt[bit // 8] ^= 1 << bit % 8
        path.write_bytes(spoilt)
        spoilt_entry = sum(end <= bit // 8 for end in sizes)
        assert list(journal.read(path)) == entries[:spoilt_entry] + entries[spoilt_entry + 1 :]


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_a_growing_journal_is_read_once_each(records: list[Record], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, growing = Path(folder) / "whole", Path(folder) / "growing"
        size = written(whole, records)[-1]
        content = whole.read_bytes()
        cuts = sorted(data.draw(st.lists(st.integers(len(journal.MAGIC), size), max_size=6)))
        growing.write_bytes(content[: len(journal.MAGIC)])
        tail = journal.Tail(growing)
        seen: list[journal.Entry] = []
        for end in [*cuts, size]:
            growing.write_bytes(content[:end])
            seen += tail.new()
        tail.close()
        assert seen == [header(), *records, trailer()]


WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=1, max_size=6)


@given(WORDS, st.booleans(), st.data())
def test_any_split_of_a_response_makes_the_same_record(words: list[str], counted: bool, data: st.DataObject) -> None:
    """But for the moments: a frame has the stamp of the read that ended it."""
    frames = [event(word) for word in words]
    body = b"".join(frames) + finish() + (usage(5, len(words)) if counted else b"") + DONE
    cuts = sorted(set(data.draw(st.lists(st.integers(1, len(body) - 1), max_size=12))))
    bounds = list(zip([0, *cuts], [*cuts, len(body)], strict=True))
    made = exchange([(S + i, None, [body[start:end]]) for i, (start, end) in enumerate(bounds)])
    digest = Digest(made, DIALECTS["chat"], keep_text=True)
    deadlines = data.draw(st.lists(st.just(0), max_size=3))
    for deadline in deadlines:
        digest.step(deadline)
    assert digest.step(NEVER_NS)
    watch = Pulse(FakeLoop().as_loop, lambda: 0, lambda _: None)
    watch.row(0)
    record = digest.record(watch, 0)
    assert (record.outcome, record.finish_reason) == ("ok", "stop")
    assert record.text == "".join(words)
    assert (record.output_tokens, record.token_source) == (
        (len(words), "usage") if counted else (record.output_tokens, "estimated")
    )
    ends = [sum(map(len, frames[: i + 1])) for i in range(len(frames))]
    assert [frame.user_ns for frame in record.frames] == [
        S + next(i for i, (_, end) in enumerate(bounds) if end >= size) for size in ends
    ]
    stamps = [frame.user_ns for frame in record.frames]
    assert [frame.shared_read for frame in record.frames] == [stamps.count(stamp) > 1 for stamp in stamps]
