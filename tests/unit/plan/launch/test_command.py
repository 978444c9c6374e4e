"""Command lines of public documentation to what they set, and nothing but our own errors for any text at all."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plan.shapes import GEMMA3_12B, LLAMA_8B

from nilometer.core.errors import NiloError, SpecError
from nilometer.plan.launch.command import Launch, nearest, read_command, spoken
from nilometer.plan.launch.flags import NONE, UNCOUNTED
from nilometer.plan.launch.flags_others import DIALECTS
from nilometer.plan.launch.settled import ollama_context, settled
from nilometer.plan.memory.startup import GIB, Settings
from nilometer.plan.model.parallel import Parallel

VLLM_DOCKER = """docker run --runtime nvidia --gpus all \\
    -v ~/.cache/huggingface:/root/.cache/huggingface \\
    --env "HUGGING_FACE_HUB_TOKEN=<secret>" \\
    -p 8000:8000 \\
    --ipc=host \\
    vllm/vllm-openai:v0.8.5 \\
    --model mistralai/Mistral-7B-v0.1"""
"""vLLM, docs/deployment/docker.md, with a release in the place of `latest`."""
SGLANG_NODE = """# Node 0
python -m sglang.launch_server \\
  --model-path meta-llama/Meta-Llama-3-8B-Instruct \\
  --tp 4 \\
  --dist-init-addr sgl-dev-0:50000 \\
  --nnodes 2 \\
  --node-rank 0
"""
"""SGLang, docs/advanced_features/server_arguments.md."""
TGI_DOCKER = """model=teknium/OpenHermes-2.5-Mistral-7B
volume=$PWD/data # share a volume with the Docker container to avoid downloading weights every run

docker run --gpus all --shm-size 1g -p 8080:80 -v $volume:/data \\
    ghcr.io/huggingface/text-generation-inference:3.3.5 \\
    --model-id $model"""
"""text-generation-inference, docs/source/quicktour.md."""
LLAMACPP_DOCKER = (
    "docker run -p 8080:8080 -v /path/to/models:/models ghcr.io/ggml-org/llama.cpp:server "
    "-m models/7B/ggml-model.gguf -c 512 --host 0.0.0.0 --port 8080"
)
"""llama.cpp, tools/server/README.md."""
VLLM_ISSUE = """vllm serve deepseek-ai/DeepSeek-V4.1-Flash \\
--tensor-parallel-size 8 --kv-cache-dtype fp8 --block-size 128 \\
--gpu-memory-utilization 0.85 --max-num-seqs 16 --max-model-len 524288 \\
--enforce-eager --language-model-only"""
"""vllm#56892."""


def test_vllm_as_its_documentation_starts_it() -> None:
    """vLLM, docs/serving/openai_compatible_server.md."""
    found = read_command("vllm serve NousResearch/Meta-Llama-3-8B-Instruct --dtype auto --api-key token-abc123")
    assert (found.engine, found.version, found.model) == ("vllm", None, "NousResearch/Meta-Llama-3-8B-Instruct")
    assert (found.settings, found.parallel, found.weights) == (Settings(), Parallel(), None)
    assert found.ignored == ("--api-key",)
    assert (found.unknown, found.uncounted) == ((), ())
    assert [one.value for one in found.given if one.name == "--api-key"] == ["***"]


def test_vllm_in_a_container_says_its_release() -> None:
    found = read_command(VLLM_DOCKER)
    assert (found.engine, found.version, found.model) == ("vllm", "0.8.5", "mistralai/Mistral-7B-v0.1")
    assert found.unknown == ()


def test_vllm_with_everything_set() -> None:
    found = read_command(VLLM_ISSUE)
    assert found.settings == Settings(utilisation=0.85, context=524_288, max_seqs=16, block=128, eager=True)
    assert (found.parallel, found.key_precision, found.value_precision) == (Parallel(tensor=8), "fp8", None)
    assert found.uncounted == ("--language-model-only",)
    assert found.unknown == ()


def test_vllm_by_its_module_and_in_a_shell() -> None:
    """A recipe that sets variables, changes the folder and writes a log."""
    text = (
        "cd /srv && VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0 python3 -m vllm.entrypoints.openai.api_server "
        "--model meta-llama/Llama-3.2-1B-Instruct --enable-prefix-caching > /tmp/vllm.log 2>&1 &"
    )
    found = read_command(text)
    assert (found.engine, found.model) == ("vllm", "meta-llama/Llama-3.2-1B-Instruct")
    assert (found.unknown, found.told) == ((), frozenset({"model", "prefix_caching"}))
    assert read_command(f"bash -lc '{text}'") == found
    assert read_command(f"sudo nohup {text.partition('&& ')[2]}").settings == found.settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--max-model-len 32768", Settings(context=32_768)),
        ("--max-model-len=32k", Settings(context=32_000)),
        ("--max_model_len 32K", Settings(context=32_768)),
        ("--max-model-len 25.6k", Settings(context=25_600)),
        ("--max-model-len auto", Settings()),
        ("--max-model-len -1", Settings()),
        ("--gpu-memory-util 0.5", Settings(utilisation=0.5)),
        ("--kv-cache-memory-bytes 8G", Settings(kv_bytes=8 * GIB)),
        ("--no-enable-prefix-caching", Settings(prefix_caching=False)),
        ("--enable-prefix-caching=False", Settings(prefix_caching=False)),
        ("--enable-chunked-prefill False", Settings(chunked=False)),
        ("--enforce-eager --no-enforce-eager", Settings()),
        ("--max-num-batched-tokens 2048 --max-num-batched-tokens 4096", Settings(batched_tokens=4_096)),
        ("-O3 --compilation-config.level 3", Settings()),
        ('--speculative-config \'{"method": "ngram"}\'', Settings()),
        ("--served-model-name a b c --max-num-seqs 4", Settings(max_seqs=4)),
        ("--disable-log-stats false --max-num-seqs 4", Settings(max_seqs=4)),
    ],
)
def test_ways_to_write_a_flag_of_vllm(text: str, expected: Settings) -> None:
    found = read_command(f"vllm serve m {text}")
    assert (found.settings, found.model, found.unknown) == (expected, "m", ())


def test_what_vllm_is_spread_over() -> None:
    found = read_command("vllm serve m -tp=2 -pp 3 -dp 4 --enable-expert-parallel -q awq_marlin")
    assert found.parallel == Parallel(tensor=2, pipeline=3, data=4, expert=8)
    assert found.weights == "int4"
    assert read_command("vllm serve m --quantization compressed-tensors").weights is None
    assert read_command("vllm serve m --dtype float32").weights == "fp32"


def test_an_older_vllm_caches_no_prefixes_unless_told() -> None:
    start = "docker run vllm/vllm-openai:v0.6.4 --model m"
    assert not read_command(start).settings.prefix_caching
    assert read_command(f"{start} --enable-prefix-caching").settings.prefix_caching


def test_sglang_on_two_nodes() -> None:
    found = read_command(SGLANG_NODE)
    assert (found.engine, found.model) == ("sglang", "meta-llama/Meta-Llama-3-8B-Instruct")
    assert (found.parallel, found.settings, found.unknown) == (Parallel(tensor=4), Settings(), ())


def test_sglang_behind_its_router_and_with_its_memory_set() -> None:
    """SGLang, docs/advanced_features/server_arguments.md and hyperparameter_tuning.md."""
    routed = read_command(
        "python -m sglang_router.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --dp 2 --tp 2"
    )
    assert routed.parallel == Parallel(tensor=2, data=2)
    tuned = read_command(
        "python -m sglang.launch_server --model-path m --mem-fraction-static 0.7 --chunked-prefill-size 4096 "
        "--max-running-requests 128 --disable-radix-cache --disable-cuda-graph --kv-cache-dtype fp8_e5m2 --page-size 16"
    )
    assert tuned.settings == Settings(
        utilisation=0.7, batched_tokens=4_096, max_seqs=128, prefix_caching=False, eager=True, block=16
    )
    assert tuned.key_precision == "fp8_e5m2"
    uncut = read_command("sglang serve --model-path m --chunked-prefill-size -1 --max-total-tokens 100000")
    assert (uncut.settings.batched_tokens, uncut.settings.chunked, uncut.kv_tokens) == (None, False, 100_000)


def test_tgi_in_a_container() -> None:
    found = read_command(TGI_DOCKER)
    assert (found.engine, found.version, found.model) == ("tgi", "3.3.5", "$model")
    assert found.settings.prefix_caching
    older = read_command("docker run -e MAX_TOTAL_TOKENS=4096 ghcr.io/huggingface/text-generation-inference:2.4.1")
    assert (older.settings.context, older.settings.prefix_caching) == (4_096, False)


def test_tgi_by_flags_and_by_variables() -> None:
    """text-generation-inference, docs/source/reference/launcher.md: each flag has its variable, and goes before it."""
    found = read_command(
        "MODEL_ID=a MAX_BATCH_PREFILL_TOKENS=2048 CUDA_GRAPHS=0 text-generation-launcher --model-id b --num-shard 2 "
        "--quantize bitsandbytes --max-batch-total-tokens 32000 --max-concurrent-requests 64 --trust-remote-code"
    )
    assert (found.model, found.parallel, found.weights, found.kv_tokens) == ("b", Parallel(tensor=2), "int8", 32_000)
    assert found.settings == Settings(batched_tokens=2_048, eager=True)
    assert found.admitted == 64
    assert read_command("text-generation-launcher --sharded false --num-shard 4").parallel == Parallel()
    misspelt = read_command("text-generation-launcher --model-id b --num_shard 2")
    assert [(one.name, one.nearest) for one in misspelt.unknown] == [("--num_shard", "--num-shard")]


def test_llama_cpp_as_its_readme_starts_it() -> None:
    for text in ("./llama-server -m models/7B/ggml-model.gguf -c 512", LLAMACPP_DOCKER):
        found = read_command(text)
        assert (found.engine, found.model) == ("llama.cpp", "models/7B/ggml-model.gguf")
        assert (found.settings, found.weights, found.unknown) == (Settings(context=512), None, ())
    assert read_command("llama-server.exe -m m.gguf -c 2048").settings.context == 2_048


def test_llama_cpp_with_short_and_long_flags() -> None:
    short = read_command(
        "llama-server -hf ggml-org/m-GGUF:Q4_K_M -c 65536 -np 8 -ub 1024 -b 4096 -ctk q8_0 -fa off -t 6"
    )
    long = read_command(
        "llama-server --hf-repo ggml-org/m-GGUF:Q4_K_M --ctx-size 65536 --parallel 8 --ubatch-size 1024 "
        "--batch-size 4096 --cache-type-k q8_0 --flash-attn off --threads 6"
    )
    assert short.settings == long.settings
    assert short.settings == Settings(context=65_536, slots=8, ubatch=1_024, batched_tokens=4_096, flash=False)
    assert (short.threads, short.weights, short.continuous) == (6, "q4_k_m", True)
    assert (short.key_precision, short.value_precision) == ("q8_0", "auto")


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("-fa", "flash", True),
        ("-fa auto", "flash", True),
        ("-fa 0", "flash", False),
        ("-kvu", "unified", True),
        ("-no-kvu", "unified", False),
        ("-np -1", "slots", None),
        ("-c 0", "context", 0),
        ("--swa-full", "full_windows", True),
        ("--no-cache-prompt", "prefix_caching", False),
    ],
)
def test_switches_of_llama_cpp(text: str, field: str, value: object) -> None:
    assert getattr(read_command(f"llama-server -m m.gguf {text}").settings, field) == value


def test_llama_cpp_by_variables_which_flags_go_before() -> None:
    """llama.cpp, tools/server/README.md."""
    text = "LLAMA_ARG_CTX_SIZE=4096 LLAMA_ARG_N_PARALLEL=2 LLAMA_ARG_PARALLEL=3 llama-server -m m.gguf -c 8192 -nocb"
    found = read_command(text)
    assert (found.settings.context, found.settings.slots, found.continuous) == (8_192, 2, False)
    assert [(one.name, one.nearest) for one in found.unknown] == [("LLAMA_ARG_PARALLEL", "LLAMA_ARG_N_PARALLEL")]


def test_an_older_llama_cpp_needs_flash_attention_to_be_asked_for() -> None:
    image = "ghcr.io/ggml-org/llama.cpp:server-cuda-"
    assert not read_command(f"docker run {image}b4719 -m m.gguf").settings.flash
    assert read_command(f"docker run {image}b7000 -m m.gguf").settings.flash


def test_ollama_by_variables() -> None:
    """Ollama, docs/context-length.mdx and docs/faq.mdx."""
    found = read_command("OLLAMA_CONTEXT_LENGTH=64000 ollama serve")
    assert (found.engine, found.plan_engine, found.settings.context) == ("ollama", "llama.cpp", 64_000)
    text = (
        "export OLLAMA_NUM_PARALLEL=4\nexport OLLAMA_KV_CACHE_TYPE=q8_0\nexport OLLAMA_FLASH_ATTENTION=1\nollama serve"
    )
    found = read_command(text)
    assert (found.settings.slots, found.key_precision, found.value_precision) == (4, "q8_0", None)
    assert found.settings.flash
    assert read_command("docker run -d -e OLLAMA_NUM_PARALLEL=2 ollama/ollama:0.12.3").settings.slots == 2
    assert read_command("ollama run llama3.1:8b-instruct-q8_0").weights == "q8_0"
    assert read_command("ollama run llama3.1").weights == "q4_k_m"
    assert read_command("OLLAMA_NUM_PARALEL=4 ollama serve").unknown[0].nearest == "OLLAMA_NUM_PARALLEL"


def test_what_ollama_keeps_of_a_request_is_up_to_its_release_and_the_device() -> None:
    """Ollama, docs/context-length.mdx: 4k below 24 GiB, 32k below 48 GiB, 256k from there on, since 0.15.5."""
    assert [ollama_context(None, gib * GIB) for gib in (12, 24, 47, 48)] == [4_096, 32_768, 32_768, 262_144]
    assert [ollama_context(version, 80 * GIB) for version in ("0.5.1", "0.12.0", "0.15.5")] == [2_048, 4_096, 262_144]


def test_ollamas_context_is_of_one_request_and_llama_cpps_of_all() -> None:
    found = read_command("OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_NUM_PARALLEL=4 ollama serve")
    made = settled(found, LLAMA_8B)
    assert (made.context, made.slots, made.unified) == (4 * 8_192, 4, False)
    alone = settled(read_command("ollama serve"), LLAMA_8B, 80 * GIB)
    assert (alone.context, alone.slots) == (131_072, 1)


def test_a_pool_of_tokens_is_one_of_bytes_where_all_layers_cache_alike() -> None:
    """Llama-3.1-8B: 2 x 32 layers x 8 heads x 128 x 2 bytes a token."""
    found = read_command("vllm serve m --num-gpu-blocks-override 1000 -tp 2")
    assert found.kv_tokens == 16_000
    assert settled(found, LLAMA_8B).kv_bytes == 16_000 * 131_072 / 2
    assert settled(found, GEMMA3_12B).kv_bytes is None


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "launch_engine_unknown"),
        ("echo hello", "launch_engine_unknown"),
        ("vllm bench serve", "launch_engine_unknown"),
        ("docker run alpine vllm", "launch_engine_unknown"),
        ("vllm serve 'm", "launch_unreadable"),
        ("vllm serve m" + " " * 70_000, "launch_unreadable"),
        ("vllm serve m --max-model-len", "launch_value_missing"),
        ("vllm serve m --max-model-len --enforce-eager", "launch_value_missing"),
        ("vllm serve m --max-model-len $N", "launch_value_bad"),
        ("vllm serve m --max-model-len 0.5", "launch_value_bad"),
        ("vllm serve m --max-num-seqs 0", "launch_value_bad"),
        ("vllm serve m --max-num-seqs 99999999999999999999", "launch_value_bad"),
        ("vllm serve m --gpu-memory-utilization 95", "launch_value_bad"),
        ("vllm serve m --gpu-memory-utilization nan", "launch_value_bad"),
        ("vllm serve m --enable-prefix-caching=maybe", "launch_value_bad"),
        ("llama-server -c 32k", "launch_value_bad"),
        ("OLLAMA_NUM_PARALLEL=four ollama serve", "launch_value_bad_at"),
    ],
)
def test_what_cannot_be_read(text: str, slug: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_command(text)
    assert caught.value.slug == slug


def test_no_secret_is_told() -> None:
    with pytest.raises(SpecError) as caught:
        read_command("serve --api-key sk-canary-123456 https://user:canary@host/")
    assert "canary" not in str(caught.value)
    found = read_command(
        "vllm serve m --hf-token hf_canary1 --api-key canary2 --otlp-traces-endpoint http://u:canary3@h"
    )
    assert "canary" not in repr(found)


def test_a_config_that_a_command_names() -> None:
    assert spoken("vllm serve --config c.yaml --max-num-seqs 4").config == "c.yaml"
    assert spoken("vllm serve m").config is None


def test_unknown_flags_are_named_with_the_nearest() -> None:
    found = read_command("vllm serve m --gpu-memory-utilisation 0.9 --frobnicate 1 2 --max-num-seqs 8")
    assert [(one.name, one.nearest) for one in found.unknown] == [
        ("--gpu-memory-utilisation", "--gpu-memory-utilization"),
        ("--frobnicate", None),
    ]
    assert found.settings.max_seqs == 8
    assert nearest("--max_num_seq", DIALECTS["vllm"]) == "--max-num-seqs"


@pytest.mark.parametrize("engine", DIALECTS)
def test_the_tables_hold_together(engine: str) -> None:
    """No flag sets two fields, and every field is one that a launch has a place for."""
    fields = {*Settings.__struct_fields__, *Launch.__struct_fields__, *Parallel.__struct_fields__, NONE, UNCOUNTED}
    fields |= {
        "quantisation",
        "dtype",
        "experts",
        "devices",
        "repository",
        "hf_file",
        "sharded",
        "admitted",
        "kv_blocks",
    }
    rows = [*DIALECTS[engine].flags.items(), *DIALECTS[engine].env.items()]
    assert {flag.field for _, flag in rows} - fields - {"config"} == set()
    assert all(name == name.strip() for name, _ in rows)


STARTS = (
    "vllm serve m ",
    "python -m sglang.launch_server ",
    "text-generation-launcher ",
    "llama-server ",
    "ollama run m ",
)
WORDS = sorted({name for one in DIALECTS.values() for name in [*one.flags, *one.env]})


@settings(max_examples=150)
@given(st.one_of(st.text(max_size=200), st.tuples(st.sampled_from(STARTS), st.text(max_size=100)).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(NiloError):
        read_command(text)


@settings(max_examples=100)
@given(
    st.sampled_from(STARTS),
    st.lists(
        st.one_of(
            st.sampled_from(WORDS),
            st.sampled_from(["0", "1", "-1", "4096", "32k", "0.9", "true", "off", "auto", "{}", "=", "--", "-", "a b"]),
            st.integers(-5, 1 << 70).map(str),
        ),
        max_size=12,
    ),
)
def test_any_flags_are_read_or_refused(start: str, words: list[str]) -> None:
    try:
        found = read_command(start + " ".join(words))
    except NiloError:
        return
    assert found.engine in DIALECTS
    assert found.parallel.devices >= 1
