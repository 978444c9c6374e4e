"""Laws of the nouns: a Spec and its TOML say the same, frames keep what they were packed from."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.record import SHARED, Frame, Frames
from nilometer.core.spec import (
    Http,
    Labels,
    Load,
    Prompts,
    Sampling,
    Spec,
    Timeouts,
    from_toml,
    from_tree,
    to_toml,
    to_tree,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
SECONDS = st.floats(0, 1e9)
LIMIT = st.one_of(SECONDS, st.just("none"))
PLAIN = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


LOADS = st.builds(
    Load,
    concurrency=some(st.integers(1, 100_000)),
    rate_per_s=some(st.floats(1e-6, 1e6)),
    arrivals=TEXT,
    ramp_s=some(SECONDS),
    warmup_s=SECONDS,
    duration_s=SECONDS,
    requests=some(st.integers(1, 10**12)),
    window=TEXT,
    drain_s=SECONDS,
    max_total_tokens=some(st.integers(1, 10**15)),
    max_error_rate=st.floats(0, 1),
    workers=st.integers(1, 64),
)
SPECS = st.builds(
    Spec,
    target=TEXT,
    model=some(TEXT),
    api=TEXT,
    stream=st.booleans(),
    probe=st.booleans(),
    slo=some(TEXT),
    load=LOADS,
    prompts=st.builds(
        Prompts,
        input_tokens=TEXT,
        seed=st.integers(-(2**63), 2**63 - 1),
        unique=st.booleans(),
        text=st.sampled_from(["en", "zh"]),
    ),
    sampling=st.builds(
        Sampling,
        temperature=st.one_of(st.floats(0, 2), st.just("none")),
        top_p=some(st.floats(0, 1)),
        extra_body=st.dictionaries(TEXT, PLAIN, max_size=4),
    ),
    timeouts=st.builds(Timeouts, connect_s=LIMIT, first_s=LIMIT, idle_s=LIMIT, total_s=LIMIT),
    http=st.builds(Http, headers=st.dictionaries(TEXT, TEXT, max_size=3), proxy=some(TEXT)),
    labels=st.builds(Labels, service=some(TEXT), extra=st.dictionaries(TEXT, TEXT, max_size=3)),
)


@given(SPECS)
def test_a_spec_comes_back_from_its_toml_and_from_its_tree(spec: Spec) -> None:
    assert from_toml(to_toml(spec)) == spec
    assert from_tree(to_tree(spec)) == spec


STAMP = st.integers(0, 2**63 - 1)
ROWS = st.lists(st.tuples(some(STAMP), STAMP, some(st.integers(0, 2**31 - 1)), st.booleans()), max_size=20)


@given(ROWS)
def test_frames_keep_what_they_were_packed_from(rows: list[tuple[int | None, int, int | None, bool]]) -> None:
    frames = Frames(
        user=array("q", [user for _, user, _, _ in rows]).tobytes(),
        kernel=array("q", [-1 if kernel is None else kernel for kernel, _, _, _ in rows]).tobytes(),
        tokens=array("i", [-1 if tokens is None else tokens for _, _, tokens, _ in rows]).tobytes(),
        flags=bytes(SHARED if shared else 0 for _, _, _, shared in rows),
    )
    assert len(frames) == len(rows)
    assert list(frames) == [Frame(*row) for row in rows]
    assert [frame.at_ns for frame in frames] == [row[1] if row[0] is None else row[0] for row in rows]
