"""The store of calls: how much it reads ahead, when it tells that there is more, what it says at its end."""

from __future__ import annotations

from tests.unit.load.fakes import FakeLoop, FakePipe

from nilometer.core.record import Call
from nilometer.load.order import pack
from nilometer.load.supply import Supply

LOW = 4


class Bench:
    """A supply on a pipe of given reads, and how often it told of more."""

    def __init__(self, low: int = LOW) -> None:
        self.loop = FakeLoop()
        self.pipe = FakePipe()
        self.supply = Supply(self.loop.as_loop, self.pipe.as_socket, low)
        self.told = 0
        self.supply.on_more = self.tell

    def tell(self) -> None:
        self.told += 1

    @property
    def reading(self) -> bool:
        return 7 in self.loop.readers

    def come(self, *reads: bytes | OSError) -> None:
        """These reads arrive, each in a turn of its own, as long as the pipe is listened to."""
        for read in reads:
            self.pipe.reads.append(read)
            self.loop.readers[7]()


def batch(first: int, n: int) -> bytes:
    return pack([Call(seq=seq, request=b"R") for seq in range(first, first + n)])


def taken(supply: Supply) -> list[int]:
    seqs = []
    while (call := supply.take()) is not None:
        seqs.append(call.seq)
    return seqs


def test_calls_come_out_in_order_whatever_the_reads() -> None:
    bench = Bench(low=50)
    data = batch(0, 3) + batch(3, 1) + batch(4, 5)
    bench.come(*(data[at : at + 5] for at in range(0, len(data), 5)))
    assert taken(bench.supply) == list(range(9))


def test_it_stops_reading_at_twice_its_low_mark_and_goes_on_below_it() -> None:
    bench = Bench()
    bench.come(batch(0, 2 * LOW - 1))
    assert bench.reading
    bench.come(batch(7, 1))
    assert not bench.reading
    for _ in range(LOW):
        bench.supply.take()
    assert not bench.reading  # LOW are left
    bench.supply.take()
    assert not bench.reading  # the wave that takes them is not disturbed
    bench.loop.run_until(50_000_000)
    assert bench.reading


def test_a_store_that_runs_out_faster_than_a_wave_would_is_filled_at_once() -> None:
    bench = Bench()
    bench.come(batch(0, 2 * LOW))
    for _ in range(2 * LOW - LOW // 2):
        bench.supply.take()
    assert not bench.reading
    bench.supply.take()
    assert bench.reading
    bench.loop.run_until(50_000_000)  # the calm moment comes later, and changes nothing
    assert bench.reading
    bench.come(batch(8, 1))
    assert taken(bench.supply) == [7, 8]


def test_it_tells_when_calls_come_into_an_empty_store() -> None:
    bench = Bench()
    bench.come(batch(0, 1))
    assert bench.told == 1
    bench.come(batch(1, 1))
    assert bench.told == 1
    taken(bench.supply)
    bench.come(batch(2, 1))
    assert bench.told == 2


def test_it_tells_when_it_is_filled_though_calls_trickle_in() -> None:
    bench = Bench()
    filled = []
    bench.supply.on_more = lambda: filled.append(bench.supply.filled)
    for seq in range(LOW + 1):
        bench.come(batch(seq, 1))
    assert filled == [False, True]


def test_it_tells_of_the_end_and_is_then_filled() -> None:
    bench = Bench()
    bench.come(batch(0, 1), b"")
    assert bench.told == 2
    assert (bench.supply.ended, bench.supply.filled, bench.supply.exhausted) == (True, True, False)
    assert not bench.reading
    assert taken(bench.supply) == [0]
    assert bench.supply.exhausted


def test_a_broken_pipe_is_the_end() -> None:
    bench = Bench()
    bench.come(ConnectionResetError())
    assert bench.supply.exhausted


def test_an_empty_wake_changes_nothing() -> None:
    bench = Bench()
    bench.loop.readers[7]()
    assert (bench.told, bench.supply.ended, bench.reading) == (0, False, True)


def test_asking_in_vain_is_counted_until_the_end() -> None:
    bench = Bench()
    assert bench.supply.take() is None
    assert bench.supply.take() is None
    assert bench.supply.starved == 2
    bench.come(b"")
    assert bench.supply.take() is None
    assert bench.supply.starved == 2  # nothing more will come: nobody is kept waiting


def test_peek_leaves_the_call_where_it_is() -> None:
    bench = Bench()
    assert bench.supply.peek() is None
    bench.come(batch(5, 2))
    first = bench.supply.peek()
    assert first is not None
    assert first.seq == 5
    assert taken(bench.supply) == [5, 6]


def test_close_forgets_what_was_left_and_closes_the_pipe() -> None:
    bench = Bench()
    bench.come(batch(0, 3))
    bench.supply.close()
    assert bench.supply.take() is None
    assert bench.supply.exhausted
    assert bench.pipe.closed
    assert not bench.reading
