"""The tree of errors: exit codes of the contract, a slug and its parameters, no sentence."""

from __future__ import annotations

import pytest

from nilometer.core.errors import (
    ArchiveError,
    ConditionError,
    DataError,
    EngineError,
    NiloError,
    SpecError,
    TargetError,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(SpecError, 2), (DataError, 2), (TargetError, 3), (EngineError, 3), (ArchiveError, 3), (ConditionError, 4)],
)
def test_exit_codes_are_those_of_the_contract(kind: type[NiloError], code: int) -> None:
    fault = kind("some_slug", file="x", line=3)
    assert isinstance(fault, NiloError)
    assert (fault.exit_code, fault.slug, fault.params) == (code, "some_slug", {"file": "x", "line": 3})


def test_its_text_is_for_logs() -> None:
    assert str(NiloError("timeout", url="http://h", seconds=2.5)) == "timeout(url='http://h', seconds=2.5)"
