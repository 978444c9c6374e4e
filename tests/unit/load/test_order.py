"""What crosses the seam comes out as it went in, and is refused when it is not what it should be."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.record import Call
from nilometer.load.order import (
    Cancel,
    Control,
    Drain,
    Go,
    Limits,
    Order,
    Unpacker,
    as_calls,
    as_control,
    as_order,
    pack,
)

ORDER = Order(
    target="http://h:1", dialect="chat", journal="/j", counters="/c", worker=3, lanes=8, ramp_ns=1, warmup_ns=2,
    duration_ns=3, requests=4, drain_ns=5, limits=Limits(connect_ns=1, idle_ns=2**40), insecure=True,
    proxy="http://p:1", keep_text=True,
)  # fmt: skip


def test_an_order_and_what_it_leaves_open() -> None:
    (body,) = Unpacker().feed(pack(ORDER))
    assert as_order(body) == ORDER
    bare = Order(target="t", dialect="d", journal="j", counters="c")
    assert as_order(Unpacker().feed(pack(bare))[0]) == bare
    assert (bare.lanes, bare.duration_ns, bare.requests, bare.limits) == (None, None, None, Limits())


@pytest.mark.parametrize(
    "message", [Go(5, 2**62), Drain("interrupted"), Drain("budget"), Drain("target_lost"), Cancel()]
)
def test_each_control_message(message: Control) -> None:
    (body,) = Unpacker().feed(pack(message))
    assert as_control(body) == message


def test_calls_with_every_field() -> None:
    calls = [Call(0, b""), Call(1, bytes(range(256)), 7, 8, 9, "s", "c", 2, 1)]
    (body,) = Unpacker().feed(pack(calls))
    assert as_calls(body) == calls


def test_what_is_something_else_is_refused() -> None:
    (calls,) = Unpacker().feed(pack([Call(0, b"")]))
    (go,) = Unpacker().feed(pack(Go(1, 2)))
    for read, body in ((as_control, calls), (as_order, go), (as_calls, go)):
        with pytest.raises(msgspec.DecodeError):
            read(body)


def test_an_unpacker_keeps_what_is_not_whole() -> None:
    unpacker = Unpacker()
    data = pack(Go(1, 2))
    assert unpacker.feed(data[:3]) == []
    assert unpacker.feed(data[3:-1]) == []
    assert [as_control(body) for body in unpacker.feed(data[-1:] + data + data[:2])] == [Go(1, 2), Go(1, 2)]
    assert [as_control(body) for body in unpacker.feed(data[2:])] == [Go(1, 2)]
    assert unpacker.feed(b"") == []
