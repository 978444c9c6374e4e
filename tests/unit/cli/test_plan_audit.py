"""`nilo plan --audit` from its command line: traps with their gain in numbers, a good start without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nilometer.cli.root import nilo

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
TRAFFIC = ("--input-tokens", "lognormal:500,2000", "--output-tokens", "lognormal:100,400", "-c", "64")


def plan(*words: str) -> Result:
    return CliRunner().invoke(nilo, ["plan", *words, "--lang", "en"])


def audit(command: str, *words: str) -> list[dict[str, Any]]:
    found = json.loads(plan("--audit", command, *words, "--json").stdout)
    traps: list[dict[str, Any]] = found["audit"]
    return traps


def test_the_plan_is_of_the_engine_as_it_is_started() -> None:
    command = f"vllm serve {MODEL} --tensor-parallel-size 2 --gpu-memory-utilization 0.8 --kv-cache-dtype fp8"
    started = json.loads(plan("--audit", command, "--device", "h100", "--json").stdout)
    words = ("--tensor", "2", "--memory-share", "0.8", "--kv-precision", "fp8", "--device", "h100", "--json")
    planned = json.loads(plan("llama-3.1-8b", *words).stdout)
    assert started["kv"] == planned["kv"]
    assert started["parallel"]["tensor"] == 2
    assert planned["audit"] is None


def test_traps_are_told_with_what_they_cost() -> None:
    command = f"vllm serve {MODEL} --enforce-eager --no-enable-prefix-caching --max-num-sqes 64"
    traps = {trap["slug"]: trap for trap in audit(command, "--device", "h100", *TRAFFIC, "--shared-prefix", "500")}
    assert {"audit_eager", "audit_prefix_off", "audit_flag_misspelt"} <= set(traps)
    (saved,) = traps["audit_prefix_off"]["remedies"]
    assert saved["gain"]["mid"] > 0
    assert traps["audit_flag_misspelt"]["remedies"][0]["flags"] == ["--max-num-seqs"]
    shown = plan("--audit", command, "--device", "h100", *TRAFFIC)
    assert "was `--max-num-seqs` meant?" in " ".join(shown.stdout.split())


def test_a_good_start_is_said_to_be_one() -> None:
    """A limit that the traffic needs, requests that memory holds: nothing is wrong."""
    command = f"vllm serve {MODEL} --max-model-len 16384 --max-num-seqs 64"
    assert audit(command, "--device", "h100", *TRAFFIC) == []
    assert "Nothing is wrong with it" in plan("--audit", command, "--device", "h100", *TRAFFIC).stdout


def test_slots_that_are_too_short_for_the_traffic() -> None:
    """-c 8192 over -np 8 is 1,024 tokens a slot."""
    command = "llama-server -m Llama-3.1-8B-Instruct-Q4_K_M.gguf -c 8192 -np 8"
    traps = audit(command, "--device", "4090", "--input-tokens", "1500", "--output-tokens", "200", "-c", "8")
    assert "audit_slot_short" in [trap["slug"] for trap in traps]


def test_a_config_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(f"model: {MODEL}\nenforce-eager: true\nmax-model-len: 16384\n")
    assert "audit_eager" in [trap["slug"] for trap in audit(str(file), "--device", "h100", *TRAFFIC)]


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("--audit", f"vllm serve {MODEL}", "--tensor", "2", "--max-seqs", "4"), "plan_audit_beside"),
        (("--audit", "fooserve x"), "launch_engine_unknown"),
        (("--audit", "vllm serve"), "plan_model_missing"),
        (("--audit", f"vllm serve {MODEL} --max-model-len many"), "launch_value_bad"),
        (("--audit", "no/such.yaml"), "file_unreadable"),
    ],
)
def test_what_cannot_be_audited(words: tuple[str, ...], slug: str) -> None:
    done = plan(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"({slug})" in done.stderr
