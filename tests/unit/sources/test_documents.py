"""A JSON array comes apart into its elements, in blocks of any size, with the line each begins on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.sources import documents
from nilometer.sources.documents import Elements
from nilometer.sources.reading import Reading

values = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
containers = st.lists(st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4), max_size=6)


def _blocks(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(containers, st.sampled_from([None, 0, 2]), st.integers(1, 30))
def test_elements_are_those_of_the_array(array: list[Any], indent: int | None, size: int) -> None:
    text = json.dumps(array, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    elements = Elements()
    found = list(elements.split(_blocks(b" \n" + text, size)))
    assert [json.loads(piece or b"") for _, piece in found] == array
    assert elements.whole
    lines = (b" \n" + text).split(b"\n")
    for line, piece in found:
        assert (piece or b"").split(b"\n")[0] in lines[line - 1]


def test_what_is_over_the_bound_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LINE_LIMIT_BYTES", 20)
    found = list(Elements().split(_blocks(b'[{"a":1},{"b":"' + b"x" * 99, 5)))
    assert found == [(1, b'{"a":1}'), (1, None)]


@given(containers, st.sampled_from(["x", "]", "[1]", "\n\n{}"]), st.integers(1, 30))
def test_what_stands_behind_the_array_is_told(array: list[Any], behind: str, size: int) -> None:
    text = json.dumps(array).encode("utf-8", "surrogatepass")
    for more, whole in ((True, text + b"\n" + behind.encode()), (False, text + b" \n")):
        elements = Elements()
        assert len(list(elements.split(_blocks(whole, size)))) == len(array)
        assert (elements.whole, elements.more) == (True, more)
        assert not more or elements.line == whole.rstrip().count(b"\n") + 1


def test_a_long_string_is_looked_at_once() -> None:
    whole = b'[{"a":"' + b'\\"' * (4 << 20) + b'"}]'
    started = time.monotonic()
    assert [len(piece or b"") for _, piece in Elements().split(_blocks(whole, 1 << 14))] == [len(whole) - 2]
    assert time.monotonic() - started < 8


def test_one_large_value_takes_no_longer_than_many_small_ones(tmp_path: Path) -> None:
    span = {
        "startTimeUnixNano": "1700000000000000000",
        "attributes": [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9"}}],
    }
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span] * 60_000}]}]}))
    started = time.monotonic()
    reading = Reading(path, now_ns=1_790_000_000_000_000_000)
    assert sum(batch.size for batch in reading.batches()) == 60_000
    assert time.monotonic() - started < 20
