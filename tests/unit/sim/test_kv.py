from __future__ import annotations

from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nilometer.sim.kv import UNBOUNDED, Pool


def test_a_begun_block_is_a_block() -> None:
    pool = Pool(10, 16)
    assert [pool.blocks_of(n) for n in (0, 1, 16, 17, 32)] == [0, 1, 1, 2, 2]


def test_what_does_not_fit_is_not_taken() -> None:
    pool = Pool(10)
    assert pool.take(7)
    assert not pool.take(4)
    assert (pool.held, pool.free) == (7, 3)
    pool.give(5)
    assert pool.take(8)
    assert (pool.held, pool.free) == (10, 0)


def test_a_pool_without_bounds_never_fills() -> None:
    assert Pool().take(10**15)
    assert Pool().free == UNBOUNDED


def test_a_prompt_is_found_up_to_the_first_block_that_is_not_there() -> None:
    pool = Pool(10)
    assert pool.take(3)
    assert pool.publish([1, 2, 3]) == [1, 2, 3]
    assert pool.found([1, 2, 3, 4], 9) == 3
    assert pool.found([1, 2, 3, 4], 2) == 2
    assert pool.found([1, 9, 3], 9) == 1
    assert pool.found([2, 3], 9) == 2
    assert (pool.held, pool.private) == (3, 0)


def test_a_block_that_several_hold_counts_once() -> None:
    pool = Pool(4)
    assert pool.take(2)
    pool.publish([1, 2])
    assert pool.take_with([1, 2], 2)
    assert (pool.held, pool.free) == (4, 0)
    pool.let_go([1, 2])
    assert pool.held == 4
    pool.let_go([1, 2])
    assert (pool.held, pool.kept, pool.free) == (2, 2, 2)


def test_the_one_idle_for_longest_is_lost_first_and_the_tail_before_the_head() -> None:
    pool = Pool(4)
    for hashes in ([1, 2], [3, 4]):
        assert pool.take(2)
        pool.publish(hashes)
    pool.let_go([1, 2])
    pool.let_go([3, 4])
    assert pool.take(1)
    assert [pool.found([h], 1) for h in (1, 2, 3, 4)] == [1, 0, 1, 1]
    assert pool.take(2)
    assert [pool.found([h], 1) for h in (1, 3, 4)] == [0, 1, 0]


def test_idle_blocks_that_are_wanted_themselves_are_no_room() -> None:
    pool = Pool(4)
    assert pool.take(2)
    pool.publish([1, 2])
    pool.let_go([1, 2])
    assert not pool.take_with([1, 2], 3)
    assert (pool.held, pool.kept) == (0, 2)
    assert pool.take_with([1, 2], 2)


def test_what_two_computed_at_the_same_time_is_kept_once() -> None:
    pool = Pool(4)
    assert pool.take(1)
    assert pool.take(1)
    assert pool.publish([7]) == [7]
    assert pool.publish([7]) == []
    assert (pool.held, pool.private) == (2, 1)


class Holders(RuleBasedStateMachine):
    """Anything that sequences may do: the counts stay those of a plain list of who holds what."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(12, 1)
        self.holders: list[tuple[int, list[int]]] = []

    @rule(length=st.integers(1, 6), family=st.integers(0, 2), more=st.integers(0, 3))
    def come(self, length: int, family: int, more: int) -> None:
        hashes = [family * 10 + i for i in range(length)]
        found = self.pool.found(hashes, length)
        free = self.pool.free
        if self.pool.take_with(hashes[:found], length - found + more):
            new = self.pool.publish(hashes[found:])
            assert len(new) <= length - found
            self.holders.append((length - found + more - len(new), [*hashes[:found], *new]))
        else:
            assert self.pool.free == free

    @precondition(lambda self: bool(self.holders))
    @rule(which=st.integers(0, 50))
    def go(self, which: int) -> None:
        private, hashes = self.holders.pop(which % len(self.holders))
        self.pool.give(private)
        self.pool.let_go(hashes)

    @invariant()
    def counts(self) -> None:
        shared = {h for _, hashes in self.holders for h in hashes}
        assert self.pool.held == sum(private for private, _ in self.holders) + len(shared)
        assert 0 <= self.pool.held + self.pool.kept <= self.pool.blocks
        assert self.pool.free == self.pool.blocks - self.pool.held


TestHolders = Holders.TestCase
TestHolders.settings = effort(max_examples=60, stateful_step_count=30, deadline=None)
