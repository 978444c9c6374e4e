"""Each trap by a command line that falls into it, its gain by hand or by two plans of memory; and good ones clean."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plan.shapes import DEEPSEEK_V2_LITE, GEMMA3_12B, LLAMA_8B, QWEN35_35B, SMOL

from nilometer.core.errors import NiloError
from nilometer.core.finding import Finding
from nilometer.plan.audit.case import Wanted, quantile
from nilometer.plan.audit.speed import slot_use
from nilometer.plan.audit.traps import TRAPS, audit
from nilometer.plan.devices import Device, device
from nilometer.plan.launch.command import read_command
from nilometer.plan.launch.flags_others import DIALECTS
from nilometer.plan.memory.budget import Ask, Memory, memory
from nilometer.plan.memory.startup import GIB, Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.shape import Shape
from nilometer.plan.model.weights import stage_weight_bytes
from nilometer.report import findings as told
from nilometer.text.i18n import Catalogue

H100, LAPTOP = device("h100"), device("ddr5")
SMALL = Device(
    name="small",
    kind="gpu",
    memory_bytes=24e9,
    visible_bytes=22 * GIB,
    bandwidth_bytes_per_s=3e11,
    flops={"fp16": 121e12, "fp8": 242e12},
    source="of this test",
)
PAIRS = tuple((float(200 + 7 * i), float(50 + i)) for i in range(200))
"""Inputs 200 to 1,593, outputs 50 to 249: the p99.9 of both together is 1,842 - 0.199 x 8 = 1,840.4."""
LLAMA_PER_TOKEN, SMOL_PER_TOKEN = 131_072, 23_040
"""2 x 32 layers x 8 heads x 128 x 2 bytes; 2 x 30 x 3 x 64 x 2 bytes (as llama.cpp logs it)."""


def found(command: str, **asked: object) -> Mapping[str, Finding]:
    """Slug -> finding."""
    given_to = {"shape": LLAMA_8B, "device": H100, "pairs": PAIRS, "concurrency": 32, **asked}
    return {one.slug: one for one in audit(read_command(command), Wanted(**given_to))}  # type: ignore[arg-type]


def gained(one: Finding, which: int = 0) -> float:
    gain = one.remedies[which].gain
    assert gain is not None
    mid = gain["mid"]
    assert isinstance(mid, int | float)
    return float(mid)


def planned(tensor: int = 1, where: Device = H100, version: str | None = None, **changed: object) -> Memory:
    """The plan, put together apart from the audit's own."""
    return memory(
        Ask(
            shape=LLAMA_8B,
            weights_bytes=stage_weight_bytes(LLAMA_8B, None, Parallel(tensor=tensor)),
            visible_bytes=where.visible_bytes or where.memory_bytes,
            device=where.name,
            version=version,
            parallel=Parallel(tensor=tensor),
            settings=Settings(**changed),  # type: ignore[arg-type]
            context=1_841,
        )
    )


GOOD = [
    ("vllm serve m --max-model-len 4096 --max-num-seqs 64", {}),
    ("vllm serve m --max-model-len 2048 --gpu-memory-utilization 0.95 --max-num-seqs 32", {"prefix_tokens": 500}),
    ("vllm serve m --max-model-len 3072 --max-num-batched-tokens 4096 --max-num-seqs 32 -tp 2", {}),
    ("python -m sglang.launch_server --model-path m --context-length 4096", {}),
    ("text-generation-launcher --model-id m --max-total-tokens 2048 --max-batch-prefill-tokens 4096", {}),
    ("llama-server -m m-Q4_K_M.gguf -c 65536 -np 32 -fa on -t 8", {"cores": 8}),
    (
        "OLLAMA_CONTEXT_LENGTH=2048 OLLAMA_NUM_PARALLEL=4 OLLAMA_FLASH_ATTENTION=1 ollama serve",
        {"concurrency": 4, "device": SMALL},
    ),
    ("llama-server -m m-Q8_0.gguf -c 8192 -np 4 -t 2", {"shape": SMOL, "device": LAPTOP, "concurrency": 4, "cores": 2}),
]


@pytest.mark.parametrize(("command", "asked"), GOOD, ids=[command[:40] for command, _ in GOOD])
def test_a_good_command_line_yields_nothing(command: str, asked: dict[str, object]) -> None:
    assert found(command, **asked) == {}


def test_the_tail_is_the_type_7_quantile() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([7.0], 0.999) == 7.0
    assert quantile([sum(pair) for pair in PAIRS], 0.999) == pytest.approx(1_840.4, abs=0.01)


def test_llama_cpp_reserves_the_whole_length() -> None:
    """65,536 tokens against 8 slots of ceil(1,841 / 256) x 256 = 2,048: (65,536 - 16,384) x 23,040 bytes."""
    one = found("llama-server -m m-F16.gguf -c 65536 -np 8", shape=SMOL, concurrency=8)["audit_context_reserved"]
    assert gained(one) == (65_536 - 16_384) * SMOL_PER_TOKEN
    assert one.remedies[0].flags == ["-c 16384"]
    assert one.params["context"] == 8_192
    assert (one.kind, one.severity) == ("remedy", "medium")


@pytest.mark.parametrize("where", [None, LAPTOP])
def test_what_is_reserved_hangs_on_no_device(where: Device | None) -> None:
    """Nor does it say what fits on one that is not known."""
    text = "llama-server -m m-F16.gguf -c 65536 -np 8 -t 8"
    met = found(text, shape=SMOL, device=where, concurrency=100, cores=8)
    assert set(met) == {"audit_context_reserved"}
    assert gained(met["audit_context_reserved"]) == (65_536 - 16_384) * SMOL_PER_TOKEN


def test_a_length_left_to_the_model_is_reserved_too() -> None:
    """4 slots share what the model was trained for, 131,072 tokens: 4 x 2,048 would do."""
    one = found("llama-server -m m-Q4_K_M.gguf", device=SMALL, concurrency=4)["audit_context_reserved"]
    assert gained(one) == (131_072 - 4 * 2_048) * LLAMA_PER_TOKEN
    assert one.severity == "high"


def test_in_pages_a_great_length_costs_nothing_and_that_is_said() -> None:
    one = found("vllm serve m --max-model-len 131072 --max-num-seqs 64")["audit_context_paged"]
    assert (one.kind, one.severity, gained(one)) == ("note", "low", 0.0)
    assert one.params["share"] == pytest.approx(131_072 * LLAMA_PER_TOKEN / planned(max_seqs=64).kv_bytes.mid)
    assert "audit_context_paged" not in found("vllm serve m --max-num-seqs 64")


def test_the_first_vllm_ran_a_prompt_of_the_greatest_length_at_start() -> None:
    """0.6.4 without chunks: one step holds 32,768 tokens, then 2,048 (its least)."""
    start = "docker run vllm/vllm-openai:v0.6.4 --model m --max-num-seqs 32"
    one = found(f"{start} --max-model-len 32768 --enable-prefix-caching")["audit_context_costs"]
    more = planned(version="0.6.4", context=2_048, max_seqs=32).kv_bytes.mid
    less = planned(version="0.6.4", context=32_768, max_seqs=32).kv_bytes.mid
    assert gained(one) == pytest.approx(more - less)
    assert gained(one) > GIB


def test_a_length_that_has_no_room_keeps_vllm_from_starting() -> None:
    """What is offered starts, 256 tokens more do not."""
    one = found("vllm serve m --max-model-len 131072", device=SMALL)["audit_not_starting"]
    greatest = int(gained(one))
    assert planned(where=SMALL, context=greatest).starts
    assert not planned(where=SMALL, context=greatest + 256).starts
    assert one.remedies[0].flags == [f"--max-model-len {greatest}"]


def test_weights_without_room_want_more_devices() -> None:
    tiny = msgspec.structs.replace(SMALL, visible_bytes=12 * GIB)
    one = found("vllm serve m --max-model-len 4096", device=tiny)["audit_no_room"]
    assert one.remedies[0].flags == ["--tensor-parallel-size 2"]
    missing = one.params["missing"]
    assert isinstance(missing, float)
    assert missing == pytest.approx(planned(where=tiny, context=4_096).stages[0].missing_bytes)
    after = planned(2, tiny, context=4_096)
    assert gained(one) == pytest.approx(after.kv_bytes.mid)


def test_a_context_split_over_slots_is_too_short() -> None:
    """8,192 / 8 = 1,024 tokens a slot: 200 + 7 i + 50 + i > 1,024 for i > 96.75, 103 of 200."""
    one = found("llama-server -m m-F16.gguf -c 8192 -np 8", shape=SMOL, concurrency=8)["audit_slot_short"]
    assert gained(one) == 103 / 200
    assert [remedy.flags for remedy in one.remedies] == [["-c 16384"], ["-np 4", "-c 8192"]]
    assert (one.params["context"], one.params["longest"], one.params["slots"]) == (1_024, 1_841, 8)


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("vllm serve m --max-model-len 1024 --max-num-seqs 64", "--max-model-len 2048"),
        ("sglang serve --model-path m --context-length 1024", "--context-length 2048"),
        ("text-generation-launcher --model-id m --max-total-tokens 1024", "--max-total-tokens 2048"),
    ],
)
def test_engines_refuse_what_is_longer(command: str, flag: str) -> None:
    one = found(command)["audit_context_short"]
    assert (gained(one), one.remedies[0].flags) == (103 / 200, [flag])
    alone = found(command, pairs=(), longest=5_000, device=None)["audit_context_short"]
    assert alone.remedies[0].gain == {"low": 0.001, "mid": None, "high": None, "unit": "share"}


def test_ollama_cuts_prompts_where_nobody_set_its_context() -> None:
    one = found("ollama serve", device=SMALL, pairs=(), longest=9_000, concurrency=1)["audit_prompts_cut"]
    assert one.params["context"] == 4_096
    assert one.remedies[0].flags == ["OLLAMA_CONTEXT_LENGTH=9216"]
    assert "audit_prompts_cut" not in found("ollama serve", device=H100, pairs=(), longest=9_000, concurrency=1)


def test_more_than_the_model_was_trained_for() -> None:
    """SmolLM2 knows 8,192 tokens; two slots of 16,384 keep twice that for nothing."""
    one = found("llama-server -m m.gguf -c 32768 -np 2", shape=SMOL, concurrency=2)["audit_context_over_trained"]
    assert gained(one) == (32_768 - 16_384) * SMOL_PER_TOKEN
    assert one.remedies[0].flags == ["-c 16384"]
    wide = found("vllm serve m --max-model-len 262144")["audit_context_over_trained"]
    assert (wide.severity, wide.remedies[0].flags) == ("high", ["--max-model-len 131072"])
    stretched = found("llama-server -m m.gguf -c 32768 -np 2 --rope-scaling yarn", shape=SMOL, concurrency=2)
    assert "audit_context_over_trained" not in stretched


@pytest.mark.parametrize(("shape", "tensor", "fits"), [(LLAMA_8B, 3, [2, 4]), (SMOL, 2, [1, 3]), (LLAMA_8B, 64, [32])])
def test_ranks_that_do_not_divide_the_heads(shape: Shape, tensor: int, fits: list[int]) -> None:
    one = found(f"vllm serve m -tp {tensor} --max-model-len 4096", shape=shape)["audit_tensor_heads"]
    assert [remedy.flags for remedy in one.remedies] == [[f"--tensor-parallel-size {ranks}"] for ranks in fits]
    assert gained(one) == fits[0] - tensor


def test_a_low_share_of_memory_leaves_the_cache_small() -> None:
    """The engine takes the same at 0.5 as at 0.9: what is missing is 0.4 of the device."""
    asked = {"concurrency": 1_000}
    one = found("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.5 --max-num-seqs 64", **asked)[
        "audit_share_low"
    ]
    assert gained(one) == pytest.approx(0.4 * 79.19 * GIB)
    assert one.remedies[0].flags == ["--gpu-memory-utilization 0.9"]
    roomy = found("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.5 --max-num-seqs 64")
    assert "audit_share_low" not in roomy


def test_a_high_share_of_memory_leaves_no_room_for_graphs() -> None:
    """0.19 captures graphs beside its share: 1.25 x (0.32 + 0.0185 x 32) GiB are wanted, 0.8 are left."""
    one = found("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.99")["audit_share_high"]
    assert one.params["needed"] == pytest.approx(1.25 * (0.32 + 0.0185 * 32) * GIB)
    assert one.params["left"] == pytest.approx(0.01 * 79.19 * GIB)
    assert one.remedies[0].flags == ["--gpu-memory-utilization 0.98"]
    assert gained(one) == pytest.approx(0.01 * 79.19 * GIB)
    eager = found("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.99 --enforce-eager")
    assert "audit_share_high" not in eager


def test_shares_of_sglang_are_held_against_what_it_would_set_aside() -> None:
    """On 79.19 GiB it sets 512 + 1.5 x 8,192 + 2 x 256 + 1,024 / 8 = 13,440 MiB aside: 0.834."""
    low = found("sglang serve --model-path m --context-length 4096 --mem-fraction-static 0.5", concurrency=2_000)
    assert low["audit_share_low"].params["usual"] == pytest.approx(1 - 13_440 / (79.19 * 1_024), abs=1e-3)
    high = found("sglang serve --model-path m --context-length 4096 --mem-fraction-static 0.96")["audit_share_high"]
    assert high.params["needed"] == pytest.approx((1 - 0.834 - 0.03) * 79.19 * GIB, rel=0.01)


def test_more_requests_than_the_cache_holds_are_preempted() -> None:
    many = found("vllm serve m --max-model-len 4096 --max-num-seqs 512", device=SMALL, concurrency=400)
    one = many["audit_seqs_over_kv"]
    held = one.params["held"]
    assert isinstance(held, int)
    assert 20 < held < 60  # some 4 GiB of 131,072 bytes a token, 1,000 tokens a request
    assert gained(one) == 400 - held
    assert one.remedies[0].flags == [f"--max-num-seqs {held}"]
    assert many["audit_kv_precision"].remedies[0].flags == ["--kv-cache-dtype fp8"]
    assert gained(many["audit_kv_precision"]) == pytest.approx(held, rel=0.25)


def test_requests_wait_while_memory_has_room() -> None:
    one = found("vllm serve m --max-model-len 4096 --max-num-seqs 8")["audit_seqs_queue"]
    assert (gained(one), one.remedies[0].flags) == (24, ["--max-num-seqs 32"])
    slots = found("llama-server -m m-F16.gguf -c 8192 -np 4", shape=SMOL)["audit_seqs_queue"]
    assert (gained(slots), slots.remedies[0].flags) == (28, ["-np 32", "-c 65536"])


def test_tgi_sends_away_whom_it_does_not_let_in() -> None:
    """--max-concurrent-requests, 128 by default."""
    text = "text-generation-launcher --model-id m --max-total-tokens 2048"
    one = found(text, concurrency=200)["audit_requests_refused"]
    assert (gained(one), one.remedies[0].flags) == (72, ["--max-concurrent-requests 200"])
    assert "audit_requests_refused" not in found(f"{text} --max-concurrent-requests 200", concurrency=200)


def test_the_sampler_eats_the_cache() -> None:
    """Llama-3.1-8B on 80 GB, 1,024 sequences by default: 256 give about 1.0 GiB back (published start-ups)."""
    one = found("vllm serve m --max-model-len 8192", concurrency=256)["audit_seqs_sampler"]
    assert gained(one) / GIB == pytest.approx(1.0, abs=0.1)
    less, more = planned(context=8_192), planned(context=8_192, max_seqs=256)
    assert gained(one) == pytest.approx(more.kv_bytes.mid - less.kv_bytes.mid)
    assert one.remedies[0].flags == ["--max-num-seqs 256"]


def test_a_cache_of_llama_cpp_in_fewer_bits() -> None:
    """q8_0 takes 34 bytes for 32 elements, f16 64."""
    one = found("llama-server -m m-F16.gguf -c 32768 -np 4 -fa on", device=SMALL, concurrency=64)["audit_kv_precision"]
    assert one.remedies[0].flags == ["-ctk q8_0 -ctv q8_0"]
    assert gained(one) == 32_768 * LLAMA_PER_TOKEN * (1 - 34 / 64)


def test_a_long_chunk_stalls_who_runs() -> None:
    """16,384 tokens: (2 x 6.98e9 x 16,384 + 4 x 32 x 4,096 x 16,384^2 / 2) / (0.48 x 989e12) s, and a decode step."""
    one = found("vllm serve m --max-model-len 4096 --max-num-seqs 64 --max-num-batched-tokens 16384")[
        "audit_chunk_stall"
    ]
    stall = one.params["stall_ms"]
    assert isinstance(stall, float)
    assert stall == pytest.approx(630, rel=0.05)
    assert one.remedies[0].flags == ["--max-num-batched-tokens 2048"]
    assert gained(one) == pytest.approx(stall * 14 / 16, rel=0.1)
    assert one.confidence == "likely"


def test_prompts_that_are_not_cut_stall_by_their_length() -> None:
    long = tuple((30_000.0, 100.0) for _ in range(10))
    slug = "audit_chunk_stall"
    one = found("sglang serve --model-path m --chunked-prefill-size -1", pairs=long, concurrency=4)[slug]
    assert (one.params["chunk"], one.remedies[0].flags) == (30_000, ["--chunked-prefill-size 2048"])


def test_small_chunks_read_the_weights_again_and_again() -> None:
    pairs = tuple((4_000.0, 100.0) for _ in range(10))
    one = found("vllm serve m --max-model-len 8192 --max-num-seqs 64 --max-num-batched-tokens 64", pairs=pairs)[
        "audit_chunk_small"
    ]
    assert one.params["steps"] == 63
    launches = 32 * 23e-6
    now = 63 * (15.01e9 / (0.795 * 3350e9) + launches)  # reads the weights 63 times
    then = (2 * 6.98e9 * 4_000 + 4 * 32 * 4_096 * 4_000**2 / 2) / (0.48 * 989e12) + 2 * launches
    assert gained(one) == pytest.approx(1e3 * (now - then), rel=0.05)


def test_a_prefix_that_is_computed_each_time() -> None:
    """500 tokens are 31 whole blocks of 16; four in five prompts have them: 396.8."""
    asked = {"prefix_tokens": 500, "prefix_share": 0.8}
    off = found("vllm serve m --max-model-len 4096 --max-num-seqs 64 --no-enable-prefix-caching", **asked)
    assert gained(off["audit_prefix_off"]) == pytest.approx(396.8)
    assert off["audit_prefix_off"].params["flag"] == "--no-enable-prefix-caching"
    older = found("docker run vllm/vllm-openai:v0.6.4 --model m --max-model-len 2048 --max-num-seqs 64", **asked)
    assert older["audit_prefix_unset"].remedies[0].flags == ["--enable-prefix-caching"]
    radix = found("sglang serve --model-path m --context-length 4096 --disable-radix-cache", **asked)
    assert gained(radix["audit_prefix_off"]) == pytest.approx(400.0)
    assert "audit_prefix_off" not in found("vllm serve m --max-num-seqs 64 --no-enable-prefix-caching")


def test_eager_mode_costs_launches() -> None:
    """32 layers x 0.8 ms less a step of about 7 ms at worst; at best it hides."""
    one = found("vllm serve m --max-model-len 4096 --max-num-seqs 64 --enforce-eager", concurrency=1)["audit_eager"]
    gain = one.remedies[0].gain
    assert gain is not None
    step = one.params["step_ms"]
    assert isinstance(step, float)
    assert gain["high"] == pytest.approx(25.6 - step)
    assert gain["mid"] == pytest.approx(9.6 - step)
    assert (gain["low"], gain["unit"], one.confidence) == (0.0, "ms", "possible")
    counted = found(
        "docker run vllm/vllm-openai:v0.21.0 --model m --enforce-eager --max-num-seqs 64 --max-model-len 4096"
    )
    assert any(figure.name == "audit_freed" and figure.value < 0 for figure in counted["audit_eager"].evidence)  # type: ignore[operator]


@pytest.mark.parametrize(("told_to", "cores", "ratio"), [(16, 8, 1.0), (5, 4, 1.6), (9, 8, 16 / 9)])
def test_more_threads_than_cores(told_to: int, cores: int, ratio: float) -> None:
    """A step ends with the core that has ceil(threads / cores) of the threads' equal parts."""
    start = f"llama-server -m m.gguf -c 8192 -np 4 -t {told_to}"
    one = found(start, shape=SMOL, device=LAPTOP, concurrency=4, cores=cores)["audit_threads_over"]
    assert one.remedies[0].gain == {"low": pytest.approx(ratio), "mid": None, "high": None, "unit": "x"}
    unset = found("llama-server -m m.gguf -c 8192 -np 4", shape=SMOL, device=LAPTOP, concurrency=4, cores=cores)
    assert unset["audit_threads_unset"].kind == "note"


def test_scores_that_are_made_whole() -> None:
    """Scores of 33 rows for 512 tokens and 131,072 cached ones, against a layer of the feed-forward and the mask."""
    start = "llama-server -m m-F16.gguf -c 131072 -np 1 -fa off"
    one = found(start, pairs=(), longest=100_000, concurrency=1)["audit_flash_off"]
    scores = 4 * 512 * (4 * 4_096 + 33 * 131_072)
    layer = 4 * 512 * (3 * 14_336 + 4 * 4_096) + 2 * 512 * 131_072
    assert gained(one) == pytest.approx(scores - layer)
    assert one.remedies[0].flags == ["-fa on"]


def test_batching_that_waits_for_the_longest() -> None:
    one = found("llama-server -m m-F16.gguf -c 65536 -np 32 -nocb", shape=SMOL)["audit_batching_off"]
    gain = one.remedies[0].gain
    assert gain is not None
    assert (gain["low"], gain["mid"]) == (1.0, None)
    assert one.params["flag"] == "-nocb"


def test_slots_in_use_by_the_mean_of_the_longest() -> None:
    """Of 8 drawn from 8, 8, 8, 96 the longest is 8 with 0.75^8: mean 30 over 96 - 88 x 0.75^8."""
    assert slot_use([8, 96, 8, 8], 8) == pytest.approx(30 / (96 - 88 * 0.75**8))
    assert slot_use([5.0, 5.0], 4) == pytest.approx(1.0)
    assert slot_use([1.0, 9.0], 1) == pytest.approx(1.0)
    assert slot_use([], 4) is None


def test_a_cache_type_that_wants_flash_attention() -> None:
    start = "llama-server -m m-F16.gguf -c 65536 -np 32 -fa off -ctk q8_0 -ctv q8_0"
    one = found(start, shape=SMOL)["audit_kv_needs_flash"]
    assert (one.severity, one.remedies[0].flags) == ("high", ["-fa on"])
    assert gained(one) == 65_536 * SMOL_PER_TOKEN * (1 - 34 / 64)
    text = "OLLAMA_FLASH_ATTENTION=0 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_CONTEXT_LENGTH=2048 ollama serve"
    ollama = found(text, device=SMALL, concurrency=1)["audit_kv_not_quantised"]
    assert gained(ollama) == 2_048 * LLAMA_PER_TOKEN * (1 - 34 / 64)


def test_flags_that_are_not_known_or_not_counted() -> None:
    text = "vllm serve m --max-model-len 4096 --max-num-seqs 64 --gpu-memory-utilisation 0.9 --frobnicate "
    text += "--cpu-offload-gb 4"
    notes = found(text)
    assert notes["audit_flag_misspelt"].params["nearest"] == "--gpu-memory-utilization"
    assert notes["audit_flag_unknown"].params["flag"] == "--frobnicate"
    assert notes["audit_flags_uncounted"].params["flags"] == "--cpu-offload-gb"
    assert {one.kind for one in notes.values()} == {"note"}


def test_without_device_and_workload_nothing_is_made_up() -> None:
    text = "vllm serve m --max-model-len 131072 --gpu-memory-utilization 0.3 --enforce-eager --max-num-seqs 4"
    assert audit(read_command(text), Wanted(shape=LLAMA_8B)) == ()


FALLS: list[tuple[str, dict[str, object]]] = [
    ("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.99", {}),
    ("llama-server -m m-F16.gguf -c 65536 -np 8 -fa off -ctv q8_0 -nocb -t 9", {"shape": SMOL, "cores": 4}),
    ("llama-server -m m.gguf -c 32768 -np 2 -fa off", {"shape": SMOL, "device": LAPTOP, "cores": 4}),
    ("llama-server -m m.gguf -c 131072 -np 1 -fa off", {"device": SMALL, "longest": 100_000, "pairs": ()}),
    ("llama-server -m m.gguf -c 8192 -np 8", {"shape": SMOL}),
    ("llama-server -m m-F16.gguf -c 32768 -np 4", {"device": SMALL, "concurrency": 64}),
    ("vllm serve m --max-model-len 131072", {"device": SMALL, "concurrency": 400}),
    ("vllm serve m --max-model-len 131072 --max-num-seqs 8 --enforce-eager --max-num-batched-tokens 32768", {}),
    ("docker run vllm/vllm-openai:v0.6.4 --model m --max-model-len 32768", {"prefix_tokens": 99, "prefix_share": 0.5}),
    ("vllm serve m --max-model-len 1024 --max-num-batched-tokens 64 --gpu-memory-utilization 0.99", {}),
    ("vllm serve m --max-model-len 4096 --gpu-memory-utilization 0.4", {"concurrency": 900}),
    ("vllm serve m --max-model-len 4096 --max-num-seqs 512", {"device": SMALL, "concurrency": 400}),
    ("text-generation-launcher --model-id m --max-total-tokens 2048", {"concurrency": 200}),
    ("vllm serve m -tp 3 --frob --max-modellen 3 --cpu-offload-gb 1", {}),
    ("vllm serve m --max-model-len 4096", {"device": msgspec.structs.replace(SMALL, visible_bytes=12 * GIB)}),
    ("sglang serve --model-path m --disable-radix-cache", {"prefix_tokens": 99, "prefix_share": 0.5}),
    (
        "OLLAMA_FLASH_ATTENTION=0 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve",
        {"device": SMALL, "longest": 9_000, "pairs": ()},
    ),
]


def test_every_finding_is_met_and_can_be_said_in_both_languages() -> None:
    """And each remedy says its gain in the four words of the machine form, or none."""
    words = [Catalogue("en"), Catalogue("zh")]
    keys = list(words[0].keys())
    slugs = {key.split(".")[1] for key in keys if key.startswith("finding.audit_")}
    met = [one for command, asked in FALLS for one in found(command, **asked).values()]
    assert {one.slug for one in met} == slugs
    for one in met:
        assert msgspec.to_builtins(one)["class"] in {"remedy", "note"}
        for catalogue in words:
            said = [told.cause(one, catalogue), told.step(one, catalogue), told.all_evidence(one, catalogue)]
            assert "audit_" not in " ".join(filter(None, said))
        gains = [remedy.gain for remedy in one.remedies if remedy.gain is not None]
        assert all(gain.keys() == {"low", "mid", "high", "unit"} for gain in gains)
        assert all(remedy.slug == one.slug for remedy in one.remedies)


def test_the_table_of_traps_names_each_once() -> None:
    assert len(TRAPS) == 21


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.35, 0.86), seqs=st.integers(16, 2_048), load=st.integers(1, 4_000))
def test_gains_are_differences_of_plans(share: float, seqs: int, load: int) -> None:
    share = round(share, 3)
    text = f"vllm serve m --max-model-len 8192 --gpu-memory-utilization {share} --max-num-seqs {seqs}"
    met = found(text, concurrency=load)
    before = planned(context=8_192, utilisation=share, max_seqs=seqs)
    if "audit_share_low" in met:
        after = planned(context=8_192, utilisation=0.9, max_seqs=seqs)
        assert gained(met["audit_share_low"]) == pytest.approx(after.kv_bytes.mid - before.kv_bytes.mid)
    if "audit_seqs_sampler" in met:
        fewer = int(met["audit_seqs_sampler"].remedies[0].flags[0].split()[1])
        assert load <= fewer < seqs
        after = planned(context=8_192, utilisation=share, max_seqs=fewer)
        assert gained(met["audit_seqs_sampler"]) == pytest.approx(after.kv_bytes.mid - before.kv_bytes.mid)


STARTS = ("vllm serve m ", "sglang serve --model-path m ", "text-generation-launcher ", "llama-server -m m.gguf ")
FLAGS = sorted(
    {name for one in DIALECTS.values() for name, flag in one.flags.items() if flag.field and name.startswith("-")}
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.lists(
        st.tuples(
            st.sampled_from(FLAGS), st.sampled_from(["1", "3", "64", "8192", "9999999", "0.9", "fp8", "q8_0", ""])
        ),
        max_size=6,
    ),
    st.sampled_from([LLAMA_8B, SMOL, GEMMA3_12B, QWEN35_35B, DEEPSEEK_V2_LITE]),
    st.sampled_from([H100, SMALL, LAPTOP, None]),
    st.one_of(st.none(), st.integers(1, 100_000)),
)
def test_any_launch_is_audited_or_refused(
    start: str, words: list[tuple[str, str]], shape: Shape, where: Device | None, load: int | None
) -> None:
    try:
        met = found(
            start + " ".join(f"{name} {value}" for name, value in words), shape=shape, device=where, concurrency=load
        )
    except NiloError:
        return
    assert all(one.slug.startswith("audit_") for one in met.values())
