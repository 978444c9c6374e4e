"""A question in the forms that the rooms behind want, by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT

from nilometer.plan.devices import device
from nilometer.plan.latency.work import weights_read
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.question import ask, model_bytes, rank_bytes, setup

H100 = device("h100")


def test_the_true_bytes_of_files_are_held_and_read() -> None:
    """Files half as large as the shape says: half on each rank, half for each step."""
    half = replace(CHAT, file_bytes=round(model_bytes(CHAT) / 2))
    assert rank_bytes(half)[0] == pytest.approx(rank_bytes(CHAT)[0] / 2)
    assert weights_read(setup(half, H100), 1) == pytest.approx(weights_read(setup(CHAT, H100), 1) / 2)


def test_what_stands_beside_the_model_is_held_and_not_read() -> None:
    beside = replace(CHAT, beside_bytes=1e9, parallel=Parallel(tensor=2))
    assert rank_bytes(beside)[0] == pytest.approx(
        rank_bytes(replace(CHAT, parallel=Parallel(tensor=2)))[0] + 0.5e9, rel=1e-4
    )
    assert setup(beside, H100).weight_scale == 1
    assert model_bytes(beside) == model_bytes(CHAT)


@pytest.mark.parametrize(("load", "copies", "each"), [(32, 1, 32), (32, 2, 16), (33, 2, 17), (1, 4, 1)])
def test_memory_is_asked_for_the_fullest_copy(load: int, copies: int, each: int) -> None:
    asked = ask(replace(CHAT, concurrency=load, parallel=Parallel(data=copies)), H100)
    assert asked.concurrency == each
