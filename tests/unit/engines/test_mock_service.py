"""What a user may write of a service, and what is refused with file, key and line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nilometer.core.errors import DataError, SpecError
from nilometer.engines.mock_machine import hashes
from nilometer.engines.mock_service import FaultTable, Service, from_tree, ready, service
from nilometer.sim.cost import Linear
from nilometer.sim.faults import HEALTHY
from nilometer.text.i18n import Catalogue

COST = "[cost]\nfixed_ms = 8\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "service.toml"
    path.write_text(text, "utf-8")
    return str(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(SpecError) as told:
        service(written(tmp_path, text))
    assert told.value.slug == "toml_key"
    assert str(told.value.params["file"]).endswith("service.toml")
    return str(told.value.params["detail"])


def test_a_file_becomes_the_plan_of_a_machine_in_seconds(tmp_path: Path) -> None:
    text = """replicas = 2
router = "turns"
adapters = ["blue"]
[cost]
fixed_ms = 8
prefill_ms_per_token = 0.5
decode_ms_per_token = 0.25
cached_ms_per_token = 0.001
[setting]
policy = "static"
slots = 4
kv_blocks = 100
adapter_swap_s = 0.2
[speculation]
drafts = 3
acceptance = 0.5
[faults]
front_s = 0.06
replica_slowness = [1, 2]
throttle_after_s = 5
"""
    plan = service(written(tmp_path, text)).plan()
    assert plan.setting.cost == Linear(
        fixed_s=0.008, prefill_token_s=0.0005, decode_token_s=0.00025, cached_token_s=0.000001
    )
    assert (plan.replicas, plan.router, plan.setting.policy, plan.setting.slots) == (2, "turns", "static", 4)
    assert (plan.setting.kv_blocks, plan.setting.adapter_swap_s) == (100, 0.2)
    assert plan.setting.speculation is not None
    assert (plan.setting.speculation.drafts, plan.setting.speculation.acceptance) == (3, 0.5)
    assert (plan.faults.front_s, plan.faults.replica_slowness, plan.faults.throttle_after_s) == (0.06, (1.0, 2.0), 5.0)


def test_what_is_left_out_is_as_the_machine_has_it(tmp_path: Path) -> None:
    plan = service(written(tmp_path, COST)).plan()
    assert plan.faults == FaultTable()
    assert msgspec.structs.asdict(plan.faults) == msgspec.structs.asdict(HEALTHY)
    assert (plan.replicas, plan.setting.policy, plan.setting.slots, plan.setting.kv_blocks) == (1, "chunked", 256, None)


BAD = {
    "[setting]\nslots = 2\n": ("cost", None),
    COST + "[setting]\nslots = 0\n": ("$.setting.slots", 4),
    COST + "[setting]\nslot = 2\n": ("slot", 4),
    COST + '[setting]\npolicy = "magic"\n': ("$.setting.policy", 4),
    "[cost]\nfixed_ms = 0\n": ("$.cost.fixed_ms", 2),
    "[cost]\nfixed_ms = nan\n": ("$.cost.fixed_ms", 2),
    "[cost]\nfixed_ms = inf\n": ("$.cost.fixed_ms", 2),
    COST + "[speculation]\ndrafts = 2\nacceptance = 1.5\n": ("$.speculation.acceptance", 5),
    COST + "[faults]\ndrop_share = 3\n": ("$.faults.drop_share", 4),
    COST + "[faults]\nfront_s = nan\n": ("$.faults.front_s", 4),
    COST + "[faults]\nleak_per_s = inf\n": ("$.faults.leak_per_s", 4),
    COST + "[faults]\nrate_per_s = 0\n": ("$.faults.rate_per_s", 4),
    COST + "[faults]\nframe_tokens = 0\n": ("$.faults.frame_tokens", 4),
    COST + "[faults]\nduty_share = 0\n": ("$.faults.duty_share", 4),
    COST + "[faults]\nduty_share = 0.5\n": ("$.faults.duty_period_s", 3),
    COST + "[faults]\nretries = 2\n": ("$.faults.retries", 4),
    COST + "[faults]\nreplica_slowness = [1, 0]\n": ("$.faults.replica_slowness", 4),
    'adapters = ["a", "a"]\n' + COST: ("$.adapters", 1),
    'router = "best"\n' + COST: ("$.router", 1),
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_value_is_refused_with_its_key_and_line(tmp_path: Path, text: str) -> None:
    key, line = BAD[text]
    detail = refused(tmp_path, text)
    assert key in detail
    assert line is None or f"(at line {line})" in detail


def test_what_is_no_file_or_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as unknown:
        service("que")
    assert unknown.value.slug == "mock_service"
    assert "queue" in str(unknown.value.params["known"])
    with pytest.raises(DataError) as absent:
        service(str(tmp_path / "none.toml"))
    assert absent.value.slug == "file_unreadable"
    (tmp_path / "latin.toml").write_bytes(b"# \xff\n")
    with pytest.raises(SpecError) as strange:
        service(str(tmp_path / "latin.toml"))
    assert strange.value.slug == "toml_invalid"


def test_each_ready_one_is_a_plan_and_has_its_words() -> None:
    assert next(iter(ready())) == "healthy"
    for name, one in ready().items():
        assert one.plan().setting.cost.seconds(0, 1, 0) > 0
        for lang in ("en", "zh"):
            assert Catalogue(lang).say(f"screen.mock_service_{name.replace('-', '_')}")
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Service) == one


def test_infinite_times_survive_the_way_to_a_child() -> None:
    one = from_tree({"cost": {"fixed_ms": 1}, "faults": {"cold_again_s": float("inf")}}, "x")
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Service)
    assert again.faults.cold_again_s == float("inf")


def test_equal_heads_of_prompts_have_equal_hashes_and_only_these() -> None:
    words = [f"w{i}" for i in range(10)]
    one = hashes([" ".join(words)], 2, 4, None)
    assert len(one) == 3  # 12 tokens
    same_head = hashes([" ".join([*words[:7], "other", *words[8:]])], 2, 4, None)
    assert same_head[:2] == one[:2]
    assert same_head[2] != one[2]
    assert hashes([" ".join(words[:6]), " ".join(words[6:])], 2, 4, None) == one
    assert set(hashes([" ".join(words)], 2, 4, 0)).isdisjoint(one)
    assert hashes(["a b"], 0, 4, None) == ()
