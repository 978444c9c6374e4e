"""The whole plan of a question: what each engine lets in, and laws that hold whatever is asked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plan.questions import CHAT
from tests.unit.plan.shapes import GEMMA3_12B, LLAMA_8B, QWEN35_35B

from nilometer.plan.answer import answer
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "tgi"])
def test_no_more_run_than_the_engine_lets_in(engine: str) -> None:
    found = answer(replace(CHAT, engine=engine, version=None, settings=Settings(context=8192, max_seqs=16)))
    assert found.slots == 16
    assert found.full is not None
    assert found.full.running == 16
    queued = found.at(32)
    assert queued is not None
    assert (queued.running, queued.bound) == (16, "capacity")


@settings(max_examples=25, deadline=None)
@given(
    shape=st.sampled_from([LLAMA_8B, GEMMA3_12B, QWEN35_35B]),
    engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm", "tgi"]),
    split=st.sampled_from([Parallel(), Parallel(tensor=2), Parallel(pipeline=2), Parallel(data=3)]),
    lengths=st.tuples(st.integers(1, 7000), st.integers(1, 1000)),
    load=st.integers(1, 400),
)
def test_requests_in_flight_are_rate_times_their_time(
    shape: object, engine: str, split: Parallel, lengths: tuple[int, int], load: int
) -> None:
    """N = X R over the loop at every load that fills all copies, queue or none; and the full engine is no slower."""
    given_, out = lengths
    found = answer(
        replace(
            CHAT,
            shape=shape,
            engine=engine,
            version=None,
            parallel=split,
            lengths=Lengths(given_, out),
            concurrency=load,
            context=given_ + out,
        )
    )
    for row in found.latency:
        if row.concurrency < split.data:
            continue
        whole = row.ttft_s.mid + (out - 1) * row.tpot_s.mid
        assert row.output_tokens_per_s.mid * whole / out == pytest.approx(row.concurrency, rel=1e-9)
        assert row.running <= found.slots * split.data  # type: ignore[operator]
