"""Whatever a description of a model holds: a shape whose numbers can be, or one refusal of ours, soon."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.test_sources_fuzz import mutated
from tests.unit.sources.models.configs import CONFIGS
from tests.unit.sources.models.ggufs import ATTENTION, DENSE, EXPERTS, HEADS, write

from nilometer.core.errors import NiloError
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.weights import weight_bytes
from nilometer.sources.models.known import table
from nilometer.sources.models.read import read_model
from nilometer.text.i18n import Catalogue

WORDS = Catalogue("en")
quickly = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.sampled_from([0, 1, -1, 2**31, 2**63]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.lists(st.integers(-2, 5), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


def judged(way: Path | str) -> None:
    """Read it within a second; what is refused has its sentence, what is not has numbers that can be."""
    started = time.monotonic()
    try:
        found = read_model(str(way))
    except NiloError as fault:
        assert WORDS.say(f"error.{fault.slug}.what", **fault.params)
    else:
        assert found.shape is not None
        assert 0 < parameters(found.shape) < 10**40
        assert weight_bytes(found.shape) > 0
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("what", CONFIGS)
@quickly
@given(data=st.data())
def test_configs_with_other_values(what: str, data: st.DataObject, tmp_path: Path) -> None:
    config: dict[str, Any] = dict(CONFIGS[what][1])
    inner = config.get("text_config")
    target = config if inner is None or data.draw(st.booleans()) else dict(inner)
    for _ in range(data.draw(st.integers(1, 3))):
        target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JUNK)
    if target is not config:
        config["text_config"] = target
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    judged(path)


@quickly
@given(data=st.data())
def test_configs_with_broken_bytes(data: st.DataObject, tmp_path: Path) -> None:
    _, config = data.draw(st.sampled_from(sorted(CONFIGS.values(), key=lambda row: row[0])))
    path = tmp_path / "config.json"
    path.write_bytes(data.draw(mutated(json.dumps(config).encode())))
    judged(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    layers = [{**ATTENTION, **DENSE}, {**ATTENTION, **EXPERTS}]
    return write(path, layers, facts={**HEADS, "expert_used_count": 2}).read_bytes()


@settings(quickly, max_examples=400)
@given(data=st.data())
def test_gguf_with_other_bytes(data: st.DataObject, small: bytes, tmp_path: Path) -> None:
    raw = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 3000))
        value = data.draw(st.one_of(st.binary(min_size=1, max_size=4), st.integers(0, 2**64 - 1).map(_eight)))
        raw[at : at + len(value)] = value
    path = tmp_path / "m.gguf"
    path.write_bytes(raw[: data.draw(st.sampled_from([len(raw), 2000, 500]))])
    judged(path)


def _eight(number: int) -> bytes:
    return struct.pack("<Q", number)


@settings(quickly, max_examples=200)
@given(data=st.data())
def test_safetensors_with_other_bytes(data: st.DataObject, tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]},
        "b": {"dtype": "F32", "shape": [4], "data_offsets": [64, 80]},
    }
    text = data.draw(mutated(json.dumps(header).encode()))
    length = data.draw(st.one_of(st.just(len(text)), st.integers(0, 2**64 - 1)))
    path = tmp_path / "model.safetensors"
    path.write_bytes(_eight(length) + text + bytes(80))
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"][1]))
    judged(path)


def near(name: str) -> st.SearchStrategy[str]:
    return st.tuples(st.integers(0, len(name)), st.text(max_size=3)).map(
        lambda at: name[: at[0]] + at[1] + name[at[0] :]
    )


@settings(quickly, max_examples=300)
@given(name=st.one_of(st.text(max_size=40), st.sampled_from([row.name for row in table()]).flatmap(near)))
def test_any_name(name: str) -> None:
    if "://" not in name and not Path(name.replace("\0", "")).exists():
        judged(name)
