"""llama-server's flags on xllamacpp's parameters; with stand-in parameters, so that the wheel is not needed."""

import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace

import pytest

from nilometer.engines import flags, xllamacpp_server
from nilometer.engines.xllamacpp_server import SWITCHES, WITH_VALUE, configure


class Flash(IntEnum):
    LLAMA_FLASH_ATTN_TYPE_AUTO = -1
    LLAMA_FLASH_ATTN_TYPE_DISABLED = 0
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1


class Kind(IntEnum):
    GGML_TYPE_F16 = 1
    GGML_TYPE_Q8_0 = 8


class Pooling(IntEnum):
    LLAMA_POOLING_TYPE_UNSPECIFIED = -1
    LLAMA_POOLING_TYPE_MEAN = 1


@pytest.fixture
def params() -> SimpleNamespace:
    return SimpleNamespace(
        model=SimpleNamespace(path=""),
        cpuparams=SimpleNamespace(n_threads=-1),
        cpuparams_batch=SimpleNamespace(n_threads=-1),
        flash_attn_type=Flash.LLAMA_FLASH_ATTN_TYPE_AUTO,
        cache_type_k=Kind.GGML_TYPE_F16,
        cache_type_v=Kind.GGML_TYPE_F16,
        pooling_type=Pooling.LLAMA_POOLING_TYPE_UNSPECIFIED,
    )


def test_the_default_flags_of_an_engine_are_all_taken(params: SimpleNamespace) -> None:
    known = frozenset([*WITH_VALUE, *SWITCHES])
    defaults = flags.defaults(slots=8, context_tokens_per_slot=2048, threads=1)
    words = flags.merged(defaults, ["-m", "m.gguf", "--host", "127.0.0.1", "--port", "81", "-a", "smol"], known)
    assert configure(params, words) is None
    assert (params.n_parallel, params.n_ctx, params.n_threads_http) == (8, 16_384, 256)
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 1
    assert (params.cache_prompt, params.cache_ram_mib, params.endpoint_metrics, params.ui) == (False, 0, True, False)
    assert (params.model.path, params.hostnames, params.port, params.model_alias) == (
        "m.gguf",
        ["127.0.0.1"],
        81,
        {"smol"},
    )


def test_what_tuning_needs_is_taken(params: SimpleNamespace) -> None:
    words = [
        "-nocb",
        "-fa",
        "on",
        "-ctk",
        "q8_0",
        "-ctv",
        "q8_0",
        "-b",
        "64",
        "-ub",
        "32",
        "-tb",
        "3",
        "-to",
        "9",
        "--api-key",
        "k1,k2",
    ]
    assert configure(params, words) is None
    assert params.cont_batching is False
    assert params.flash_attn_type == Flash.LLAMA_FLASH_ATTN_TYPE_ENABLED
    assert params.cache_type_k == params.cache_type_v == Kind.GGML_TYPE_Q8_0
    assert (params.n_batch, params.n_ubatch, params.cpuparams_batch.n_threads) == (64, 32, 3)
    assert (params.timeout_read, params.timeout_write, params.api_keys) == (9, 9, ["k1", "k2"])


def test_an_encoder_can_be_served(params: SimpleNamespace) -> None:
    assert configure(params, ["--embeddings", "--pooling", "mean"]) is None
    assert (params.embedding, params.pooling_type) == (True, Pooling.LLAMA_POOLING_TYPE_MEAN)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--mlock"], "unknown flag: --mlock"),
        (["-np"], "-np needs a value"),
        (["-np", "many"], "bad value for -np"),
        (["-fa", "maybe"], "bad value for -fa"),
        (["--pooling", "deep"], "bad value for --pooling"),
        (["-ctk", "q9_9"], "bad value for -ctk"),
    ],
)
def test_what_cannot_be_set_is_refused(params: SimpleNamespace, words: list[str], fault: str) -> None:
    assert configure(params, words) == fault


def test_help_lists_every_flag_and_needs_no_wheel() -> None:
    file = str(Path(xllamacpp_server.__file__))
    told = subprocess.run([sys.executable, "-P", "-S", file, "--help"], capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) == {*WITH_VALUE, *SWITCHES}
