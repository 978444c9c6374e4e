"""Segments of records: every field, the fallback, and where a segment is cut."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.archive import codec
from nilometer.archive.columns import DamagedError, fold, ints, pack, unpack
from nilometer.core.record import Frames, Record

from .samples import int64, make_record, make_records


def test_every_field_of_a_record_has_its_column() -> None:
    named = {*codec.CHAINED, *codec.FROM_SENT, *codec.PLAIN, *codec.TEXTS, codec.FLOAT, codec.SERVER, "frames"}
    assert named == set(Record.__struct_fields__)
    assert set(codec.FLAGS) <= set(codec.PLAIN)


def test_records_come_back() -> None:
    held = list(make_records(50))
    name, blob = codec.encode(held)
    assert name == codec.COLUMNS
    assert codec.decode(name, blob) == held


def test_none_and_values_stay_apart_in_every_field() -> None:
    bare = Record(id="a", seq=0, phase="warmup", outcome="cancelled")
    full = make_record(
        1,
        due_ns=-5,
        connect_ns=0,
        tls_ns=12,
        first_answer_ns=77,
        error="http_429",
        error_detail="",
        retry_after_s=0.1,
        native_finish_reason="MAX",
        cached_tokens=0,
        reasoning_tokens=2,
        choices=2,
        hidden_tokens=True,
        asked_input=512,
        asked_output=3,
        scenario="s",
        conversation="c",
        turn=0,
        target=1,
        worker=2,
        refill_ns=400_000,
        server_request_id="chatcmpl-1",
        server={"predicted_ms": 12.0, "n": 3, "cache": None, "stopped": True, "text": "✓"},
        text="首",
        reasoning="",
        tool_arguments="{}",
    )
    for held in ([bare, full], [full, bare], [bare], [full]):
        found = codec.decode(*codec.encode(held))
        assert found == held
        assert [type(record.new_connection) for record in found] == [bool] * len(held)
    assert {type(value) for value in (full.server or {}).values()} == {float, int, type(None), bool, str}


def test_a_field_that_no_record_sets_takes_no_column() -> None:
    _, blob = codec.encode([Record(id="a", seq=0, phase="measured", outcome="ok")])
    assert set(unpack(blob)) == {
        "records",
        "seq",
        "id.sizes",
        "id.utf8",
        "phase.sizes",
        "phase.utf8",
        "outcome.sizes",
        "outcome.utf8",
    }


@pytest.mark.parametrize(
    "odd",
    [
        make_record(0, prompt_tokens=10**30),
        make_record(0, frames=Frames(user=int64(1, 2), kernel=int64(1))),
    ],
)
def test_what_columns_cannot_hold_goes_as_json(odd: Record) -> None:
    held = [make_record(1), odd]
    name, blob = codec.encode(held)
    assert name == codec.JSON
    assert codec.decode(name, blob) == held


def test_segments_are_cut_by_weight_and_keep_the_order() -> None:
    heavy = make_record(0, frames=Frames(user=bytes(codec.SEGMENT_WEIGHT_BYTES // 2)))
    held = [heavy, make_record(1), heavy, make_record(2), heavy]
    assert [len(batch) for batch in codec.batches(held)] == [3, 2]
    assert [record for batch in codec.batches(held) for record in batch] == held


def test_texts_weigh_too() -> None:
    wordy = make_record(0, text="x" * codec.SEGMENT_WEIGHT_BYTES)
    assert [len(batch) for batch in codec.batches([wordy, wordy, make_record(1)])] == [1, 1, 1]


def test_no_records_make_no_segment() -> None:
    assert list(codec.batches([])) == []


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(DamagedError, match="unknown codec columns-9"):
        codec.decode("columns-9", b"")


def test_an_unknown_column_is_refused_not_dropped() -> None:
    columns = unpack(codec.encode([make_record(0)])[1]) | {"zeal": fold(ints([1]))}
    with pytest.raises(DamagedError, match="zeal"):
        codec.decode(codec.COLUMNS, pack(columns))


def test_columns_of_unlike_length_are_refused() -> None:
    columns = unpack(codec.encode([make_record(0), make_record(1)])[1]) | {"status": fold(ints([200]))}
    with pytest.raises(DamagedError, match="status"):
        codec.decode(codec.COLUMNS, pack(columns))


def test_words_outside_the_lists_are_refused() -> None:
    record = msgspec.structs.replace(make_record(0), outcome="maybe")
    with pytest.raises(DamagedError, match="outcome"):
        codec.decode(*codec.encode([record]))


def test_a_giant_number_of_records_is_refused() -> None:
    with pytest.raises(DamagedError, match="records in one segment"):
        codec.decode(codec.COLUMNS, pack({"records": ints([10**15])}))


def test_a_cut_segment_is_refused() -> None:
    name, blob = codec.encode(list(make_records(5)))
    with pytest.raises(DamagedError):
        codec.decode(name, blob[:-1])
