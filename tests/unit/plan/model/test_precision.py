"""The table of precisions: bits with their scales, names in any spelling, what stays as it is."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.errors import SpecError
from nilometer.plan.model.parameters import Part
from nilometer.plan.model.precision import ALIASES, PRECISIONS, part_bits, precision_of


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("bf16", 16),
        ("fp8_block", 8 + 32 / 16_384),
        ("int4", 4.15625),
        ("w4a16", 4.125),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        ("nf4", 4.126953125),
        ("q4_0", 4.5),
        ("q6_k", 6.5625),
        ("q8_0", 8.5),
    ],
)
def test_bits_of_a_matrix(name: str, bits: float) -> None:
    assert precision_of(name).linear_bits == bits


@pytest.mark.parametrize(
    ("word", "name"),
    [("BF16", "bf16"), ("W8A8", "int8"), (" Q4_K_M ", "q4_k_m"), ("fp8-dynamic", "fp8"), ("awq", "int4")],
)
def test_names_in_any_spelling(word: str, name: str) -> None:
    assert precision_of(word).name == name


def test_every_alias_names_a_row_and_hides_none() -> None:
    assert set(ALIASES.values()) <= set(PRECISIONS)
    assert not set(ALIASES) & set(PRECISIONS)
    assert all(name == row.name and row.source for name, row in PRECISIONS.items())


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SpecError, match="precision_unknown"):
        precision_of("fp3")


def bits(what: str, name: str) -> float:
    part = Part(name=what, parameters=1, what=what, width=256)  # type: ignore[arg-type]
    return part_bits(part, precision_of(name))


def test_what_stays_unquantised() -> None:
    assert [bits(what, "int4") for what in ("norm", "router", "bias", "embedding", "head", "extra")] == [16.0] * 6
    assert bits("norm", "q4_0") == bits("router", "q8_0") == bits("norm", "fp32") == 32
    assert bits("extra", "q4_0") == 16
    assert bits("extra", "fp32") == 32


def test_experts_alone() -> None:
    assert bits("experts", "mxfp4_experts") == 4.25
    assert bits("linear", "mxfp4_experts") == bits("shared", "mxfp4_experts") == 16
    assert bits("experts", "int8") == 8


def test_every_precision_can_be_kept_by() -> None:
    """What is asked of it again and again is kept under it: equal ones share a place, and no two rows do."""
    rows = list(PRECISIONS.values())
    assert len(set(rows)) == len(rows)
    for row in rows:
        twin = msgspec.structs.replace(row)
        assert (twin == row, hash(twin) == hash(row)) == (True, True)
        assert msgspec.structs.replace(row, linear_bits=1.0) != row
