"""Whatever a plan is asked for: an answer whose figures can be, that agrees with itself; or one refusal of ours."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.cli.root import nilo
from nilometer.plan.devices import DEVICES
from nilometer.plan.memory.budget import ENGINES
from nilometer.sources.models.known import table

MODELS = [row.name for row in table()]
COUNTS = st.sampled_from(["1", "2", "3", "8", "64", "4096"])
MANY = st.sampled_from(["1", "16", "257", "1000000"])
TOKENS = st.sampled_from(["1", "2", "300", "8k", "128k", "999999999k"])
LENGTHS = st.sampled_from(["1", "512", "9999999", "uniform:1,1", "uniform:64,256", "lognormal:300,9000"])
OPTIONS = {
    "--tensor": COUNTS,
    "--pipeline": COUNTS,
    "--data": COUNTS,
    "--expert": COUNTS,
    "--concurrency": MANY,
    "--max-seqs": MANY,
    "--slots": MANY,
    "--context": TOKENS,
    "--max-context": TOKENS,
    "--batched-tokens": TOKENS,
    "--input-tokens": LENGTHS,
    "--output-tokens": LENGTHS,
    "--memory-share": st.sampled_from(["0", "1e-9", "0.5", "100%"]),
    "--memory": st.sampled_from(["0.000001MiB", "1MiB", "17GiB", "999999999TiB"]),
    "--bandwidth": st.sampled_from(["0.000001", "1", "999999999TB/s"]),
    "--flops": st.sampled_from(["0.000001g", "1", "999999999P"]),
    "--precision": st.sampled_from(["fp32", "bf16", "fp8", "int4", "q4_k_m"]),
    "--kv-precision": st.sampled_from(["fp8", "fp16", "q8_0,q4_0"]),
    "--engine-version": st.sampled_from(["0", "0.9.2", "0.17", "99", "nightly"]),
    "--rate": st.sampled_from(["1e-9", "3", "1000000"]),
    "--spare": st.sampled_from(["0", "1000"]),
    "--devices": COUNTS,
    "--acceptance": st.sampled_from(["0", "60%", "1"]),
    "--slo": st.sampled_from(["chat", "batch", "tpot_p95<=0.001ms", "ttft_p95<=99999s"]),
    "--price": st.sampled_from(["hour=0", "hour=1e12,currency=CNY"]),
    "--against": st.sampled_from(["l40s=1.20,h200", "h100=0"]),
}
SIGNED = {"free_bytes"}
"""Below 0 where that much is lacking."""


def figures(found: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number, by where it stands."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from figures(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from figures(value, path)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield path, found


def intervals(found: Any) -> Iterator[dict[str, float]]:
    if isinstance(found, dict):
        if {"low", "mid", "high"} <= found.keys() and None not in found.values():
            yield found
        found = list(found.values())
    if isinstance(found, list):
        for value in found:
            yield from intervals(value)


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    device=st.sampled_from([None, *DEVICES]),
    engine=st.sampled_from([*ENGINES]),
    given=st.dictionaries(st.sampled_from([*OPTIONS]), st.integers(0, 1 << 16), max_size=8),
    data=st.data(),
)
def test_a_plan_is_sound_or_refused(
    model: str, device: str | None, engine: str, given: dict[str, int], data: st.DataObject
) -> None:
    words = ["plan", model, "--engine", engine, "--json", "--explain", *(["--device", device] if device else [])]
    words += [f"{option}={data.draw(OPTIONS[option])}" for option in given]
    begun = time.perf_counter()
    done = CliRunner().invoke(nilo, words)
    assert time.perf_counter() - begun < 10, "some tenths of a second where nothing else runs"
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    if done.exit_code == 2:
        assert done.stderr.startswith("nilo: ")
        assert len(done.stderr.splitlines()) == 1
        return
    found = json.loads(done.stdout)
    for name, value in figures(found):
        assert math.isfinite(value), name
        assert value >= 0 or name in SIGNED, name
    for one in intervals(found):
        assert one["low"] <= one["mid"] <= one["high"]
    missed = any(one["met"] in {"no", "unlikely"} for one in found["slo"])
    assert done.exit_code == (1 if found["fits"] is False or missed else 0)
