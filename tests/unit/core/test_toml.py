"""Strict reading of a TOML file: what is refused names the file, the key and its line."""

from __future__ import annotations

import msgspec
import pytest

from nilometer.core.errors import SpecError
from nilometer.core.toml import located, parsed, refusal, typed


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    x: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    inner: Inner = Inner()


def test_a_file_becomes_a_struct() -> None:
    assert typed(parsed('name = "a"\n[inner]\nx = 3\n', "f"), Outer, "f") == Outer("a", Inner(3))


def test_no_toml_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        parsed("name =", "f.toml")
    assert (caught.value.slug, caught.value.params["file"]) == ("toml_invalid", "f.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "a"\n\n[inner]\nx = "b"\n', "at `$.inner.x` (at line 4)"),
        ('name = "a"\ninner.x = "b"\n', "at `$.inner.x` (at line 2)"),
        ('name = "a"\n[inner]\ny = 1\n', "unknown field `y` - at `$.inner` (at line 3)"),
        ("[inner]\nx = 1\n", "missing required field `name`"),
    ],
)
def test_a_wrong_key_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        typed(parsed(text, "f.toml"), Outer, "f.toml")
    fault = located(caught.value, text)
    assert (fault.slug, fault.params["file"]) == ("toml_key", "f.toml")
    assert said in str(fault.params["detail"])


def test_a_refusal_of_ones_own_is_located_as_well() -> None:
    fault = located(refusal("f", "Expected more", "inner.x"), 'name = "a"\n[inner]\nx = 1\n')
    assert fault.params["detail"] == "Expected more - at `$.inner.x` (at line 3)"
