"""A sample keeps the proportions of its source, and says where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nilometer.workload.entry import UNKNOWN, Batch
from nilometer.workload.sample import Gatherer, Pool, chains, choose, distances, representative, shared_again
from nilometer.workload.shape import Measure


def source(rows: int, seed: int = 0) -> Batch:
    """A mix of short and long requests, correlated, some in turns, some behind one of ten prefixes."""
    random = np.random.default_rng(seed)
    kind = random.random(rows) < 0.3
    asked = np.where(kind, random.lognormal(8, 0.5, rows), random.lognormal(5, 1, rows)).astype(np.int64) + 1
    answered = np.where(kind, random.lognormal(3, 0.5, rows), random.lognormal(5, 0.7, rows)).astype(np.int64) + 1
    shares = random.random(rows) < 0.6
    return Batch(
        line=np.arange(rows),
        at_ns=np.cumsum(random.integers(1, 10**9, rows)),
        input_tokens=asked,
        output_tokens=answered,
        turns=np.where(kind, random.integers(1, 5, rows), 1),
        shared_tokens=np.where(shares, np.minimum(asked, 256), 0),
        root=np.where(shares, random.integers(0, 10, rows), np.arange(rows) + 100),
    )


def gathered(batch: Batch, most: int = 10**6) -> tuple[Pool, Measure]:
    gatherer, measure = Gatherer(most), Measure()
    for start in range(0, batch.size, 999):
        columns = [column[start : start + 999] for column in batch[:7]]
        piece = Batch._make([*columns, ()])
        gatherer.add(piece)
        measure.add(piece)
    return gatherer.pool(), measure


@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_of_twenty_thousand_are_representative(seed: int) -> None:
    pool, measure = gathered(source(20_000))
    rows = choose(pool, 200, seed)
    found = distances(pool, measure.margins(), rows, chains(rows, 64), 64)
    assert len(rows.line) == 200
    assert set(found) == {"input", "output", "turns", "prefix"}
    assert representative(found), found


def test_the_joint_shape_stays() -> None:
    pool, _ = gathered(source(20_000))
    rows = choose(pool, 400, 0)
    ranks = [np.corrcoef(np.log(each.input_tokens), np.log(each.output_tokens))[0, 1] for each in (pool, rows)]
    assert ranks[1] == pytest.approx(ranks[0], abs=0.1)


def test_the_same_seed_takes_the_same_rows() -> None:
    pool, _ = gathered(source(5_000))
    one, same, other = (choose(pool, 100, seed).line.tolist() for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) == 100


def test_a_handful_is_not_called_representative() -> None:
    pool, measure = gathered(source(5_000))
    rows = choose(pool, 5, 0)
    assert not representative(distances(pool, measure.margins(), rows, chains(rows, 64), 64))


def test_more_rows_than_there_are_is_all_of_them() -> None:
    pool, measure = gathered(source(50))
    assert choose(pool, 60, 0) is pool
    found = distances(pool, measure.margins(), pool, chains(pool, 64), 64)
    assert (found["input"], found["output"], found["turns"]) == (0, 0, 0)


def test_a_long_source_is_thinned_evenly() -> None:
    pool, _ = gathered(source(10_000), most=3_000)
    assert 1_500 <= len(pool.line) <= 3_000
    assert set(np.diff(pool.line).tolist()) == {4}


def test_requests_of_one_line_are_numbered_over_batches() -> None:
    gatherer = Gatherer()
    for lines in ([1, 1, 2], [2, 2, 3]):
        empty = np.zeros(3, np.int64)
        gatherer.add(Batch(np.array(lines), empty, empty, empty, empty, empty, empty))
    assert gatherer.pool().nth.tolist() == [0, 1, 0, 1, 2, 0]


def _rows(asked: list[int], shared: list[int], root: list[int]) -> Pool:
    empty = np.zeros(len(asked), np.int64)
    return Pool(empty, empty, empty, np.array(asked), empty, empty + 1, np.array(shared), np.array(root))


def test_rows_share_again_what_they_shared() -> None:
    rows = _rows([1000, 512, 1537], [0, 512, 1024], [0, 0, 0])
    ids = chains(rows, 512)
    assert [len(each or ()) for each in ids] == [2, 1, 4]
    assert shared_again([1000, 512, 1537], ids, 512) == [0, 100, round(102_400 / 1537)]


def test_rows_of_rare_prefixes_share_one() -> None:
    rows = _rows([640] * 6, [64, 128, 64, 128, 0, 0], [1, 2, 3, 4, 5, 6])
    ids = [each or () for each in chains(rows, 64)]
    assert shared_again([640] * 6, ids, 64) == [0, 20, 10, 20, 0, 0]
    assert len({each[0] for each in ids[:4]}) == 1


def test_what_has_no_prefix_gets_none() -> None:
    assert chains(_rows([10], [UNKNOWN], [UNKNOWN]), 64) == [None]
