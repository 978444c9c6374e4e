"""The framing of both pipes and the journal: any split of the bytes gives the same values."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.record import Call
from nilometer.load.order import Cancel, Control, Drain, Go, Unpacker, as_calls, as_control, pack

_SMALL = st.integers(min_value=0, max_value=2**63 - 1)
_CALLS = st.lists(
    st.builds(
        Call,
        seq=_SMALL,
        request=st.binary(max_size=200),
        due_ns=st.none() | _SMALL,
        asked_input=st.none() | _SMALL,
        scenario=st.none() | st.text(max_size=5),
        turn=st.none() | st.integers(0, 9),
    ),
    max_size=4,
)
_CONTROL: st.SearchStrategy[Control] = st.one_of(
    st.builds(Go, start_ns=_SMALL, started_wall_ns=_SMALL),
    st.builds(Drain, why=st.sampled_from(["interrupted", "budget", "target_lost"])),
    st.just(Cancel()),
)


@st.composite
def _split(draw: st.DrawFn, data: bytes) -> list[bytes]:
    places = draw(st.lists(st.integers(0, len(data)), max_size=12))
    return [data[a:b] for a, b in pairwise([0, *sorted(places), len(data)])]


@given(st.data(), st.lists(_CALLS, max_size=5))
def test_calls_come_through_any_split(data: st.DataObject, batches: list[list[Call]]) -> None:
    unpacker = Unpacker()
    reads = data.draw(_split(b"".join(pack(batch) for batch in batches)))
    assert [as_calls(body) for read in reads for body in unpacker.feed(read)] == batches


@given(st.data(), st.lists(_CONTROL, max_size=8))
def test_control_comes_through_any_split_and_each_as_soon_as_it_is_whole(
    data: st.DataObject, messages: list[Control]
) -> None:
    packed = [pack(message) for message in messages]
    unpacker, came, got = Unpacker(), 0, 0
    for read in data.draw(_split(b"".join(packed))):
        came += len(read)
        for body in unpacker.feed(read):
            assert as_control(body) == messages[got]
            got += 1
        assert got == sum(sum(map(len, packed[: i + 1])) <= came for i in range(len(packed)))
