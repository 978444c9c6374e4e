"""Files of settings, as the engines' documentation has them, to launches; what is no such file, by line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nilometer.core.errors import DataError, NiloError, SpecError
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.sources.engine_configs import MOST_BYTES, read_config
from nilometer.sources.launches import read_launch

SGLANG = """model-path: meta-llama/Meta-Llama-3-8B-Instruct
host: 0.0.0.0
port: 30000
tensor-parallel-size: 2
enable-metrics: true
log-requests: true
"""
"""SGLang, docs/advanced_features/server_arguments.md."""
VLLM = """# serve_config.yaml
model: meta-llama/Llama-3.1-8B-Instruct
host: "0.0.0.0"
port: 8000
tensor_parallel_size: 2   # of 8
gpu_memory_utilization: 0.90
max_model_len: 8192
enable_prefix_caching: false
quantization: null
api_key:
  - my-secret-key
lora_modules:
  - name: sql-lora
    path: /path/to/sql-lora
"""
"""vLLM, docs/configuration/serve_args.md: keys are flags, with dashes or underscores."""
MODELFILE = '''FROM llama3.2:3b-instruct-q8_0
# sets the context window size to 4096
PARAMETER num_ctx 4096
PARAMETER num_thread 6
PARAMETER temperature 1
PARAMETER stop "AI assistant:"
SYSTEM """You are Mario.
PARAMETER num_ctx 1
"""
'''
"""Ollama, docs/modelfile.md."""
UNIT = """[Unit]
Description=Ollama Service

[Service]
ExecStart=/usr/bin/ollama serve
User=ollama
Environment="OLLAMA_NUM_PARALLEL=4" OLLAMA_CONTEXT_LENGTH=8192
Environment="OLLAMA_FLASH_ATTENTION=1"
"""
"""Ollama, docs/faq.md: variables in a unit of systemd."""
COMPOSE = "LLAMA_ARG_MODEL=/models/my_model-Q5_K_M.gguf\nLLAMA_ARG_CTX_SIZE=4096\nLLAMA_ARG_N_PARALLEL=2\nOTHER=1\n"
"""llama.cpp, tools/server/README.md (docker compose)."""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_yaml_of_sglang(tmp_path: Path) -> None:
    found = read_config(write(tmp_path, "c.yaml", SGLANG))
    assert (found.engine, found.model) == ("sglang", "meta-llama/Meta-Llama-3-8B-Instruct")
    assert (found.parallel, found.settings, found.unknown) == (Parallel(tensor=2), Settings(), ())


def test_a_yaml_of_vllm(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", VLLM)
    found = read_config(path)
    assert (found.engine, found.model, found.weights) == ("vllm", "meta-llama/Llama-3.1-8B-Instruct", None)
    assert found.settings == Settings(utilisation=0.9, context=8_192, prefix_caching=False)
    assert (found.parallel, found.unknown) == (Parallel(tensor=2), ())
    assert [one.place for one in found.given if one.name == "--max-model-len"] == [f"{path}:7"]
    assert "my-secret-key" not in repr(found)


def test_an_unknown_key_says_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yml", "model: m\nmax-model-length: 8192\n")
    assert [(one.name, one.nearest, one.place) for one in read_config(path).unknown] == [
        ("--max-model-length", "--max-model-len", f"{path}:2")
    ]


def test_a_modelfile(tmp_path: Path) -> None:
    for name in ("Modelfile", "mario.txt"):
        found = read_config(write(tmp_path, name, MODELFILE))
        assert (found.engine, found.model, found.weights) == ("ollama", "llama3.2:3b-instruct-q8_0", "q8_0")
        assert (found.settings.context, found.threads, found.unknown) == (4_096, 6, ())
    found = read_config(write(tmp_path, "Modelfile", "from m\nparameter num_ctxt 8192\n"))
    assert [(one.name, one.nearest) for one in found.unknown] == [("num_ctxt", "num_ctx")]


def test_a_unit_and_a_file_of_variables(tmp_path: Path) -> None:
    unit = read_config(write(tmp_path, "ollama.service", UNIT))
    assert (unit.engine, unit.settings.slots, unit.settings.context) == ("ollama", 4, 8_192)
    server = read_config(write(tmp_path, ".env", COMPOSE))
    assert (server.engine, server.weights, server.unknown) == ("llama.cpp", "q5_k_m", ())
    assert (server.settings.context, server.settings.slots) == (4_096, 2)
    tgi = read_config(write(tmp_path, "tgi.env", "export MODEL_ID=m\nMAX_TOTAL_TOKENS=2048\nMAX_BATCH_SIZE=8\n"))
    assert (tgi.engine, tgi.settings.context, tgi.settings.max_seqs) == ("tgi", 2_048, 8)


def test_a_script_and_the_file_that_it_names(tmp_path: Path) -> None:
    """What the command says goes before the file (vLLM, SGLang)."""
    write(tmp_path, "c.yaml", VLLM)
    script = "#!/bin/bash\nset -e\nvllm serve --config c.yaml --max-model-len 4096 \\\n  --max-num-seqs 8\n"
    found = read_config(write(tmp_path, "run.sh", script))
    assert found.settings == Settings(utilisation=0.9, context=4_096, max_seqs=8, prefix_caching=False)
    assert found.model == "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("name", "text", "slug", "line"),
    [
        ("c.yaml", "model: m\nmax-model-len:\n  a: 1\n", "engine_config_nested", 3),
        ("c.yaml", "model: m\nmax-num-seqs: [1, 2]\n", "engine_config_nested", 2),
        ("c.yaml", "model: m\nmax-num-seqs: &x 3\n", "engine_config_nested", 2),
        ("c.yaml", "model: m\n  - stray\nnonsense\n", "engine_config_nested", 2),
        ("c.yaml", "max-model-len: 1\nnonsense here\n", "engine_config_line", 2),
        ("c.yaml", "services:\n  vllm:\n    image: x\n", "engine_config_unknown", None),
        ("c.yaml", "colour: blue\n", "engine_config_unknown", None),
        (".env", "COLOUR=blue\n", "engine_config_unknown", None),
        ("Modelfile", "FROM m\nDANCE now\n", "engine_config_line", 2),
        ("Modelfile", "FROM m\n1234\n", "engine_config_line", 2),
        ("c.yaml", b"\xff\xfe\x00model", "file_no_text", None),
        ("c.yaml", b"#" * (MOST_BYTES + 1), "engine_config_large", None),
    ],
)
def test_what_is_no_file_of_settings(tmp_path: Path, name: str, text: str | bytes, slug: str, line: int | None) -> None:
    with pytest.raises(DataError) as caught:
        read_config(write(tmp_path, name, text))
    assert (caught.value.slug, caught.value.params.get("line")) == (slug, line)


def test_a_bad_value_says_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", "model: m\nmax-model-len: many\n")
    with pytest.raises(SpecError) as caught:
        read_config(path)
    assert (caught.value.slug, caught.value.params["place"]) == ("launch_value_bad_at", f"{path}:2")


def test_one_way_in(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", SGLANG)
    assert read_launch(str(path)) == read_config(path)
    assert read_launch("vllm serve m -tp 2\n").parallel == Parallel(tensor=2)
    for text, slug in (
        (str(tmp_path / "no.yaml"), "file_unreadable"),
        ("no.yaml", "file_unreadable"),
        (str(tmp_path), "file_unreadable"),
    ):
        with pytest.raises(DataError, match=slug):
            read_launch(text)
    for text in ("", "hello", "a\0b c", "x" * 5_000):
        with pytest.raises(SpecError, match="launch_engine_unknown"):
            read_launch(text)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["c.yaml", "Modelfile", "x.env", "a.service", "run.sh"]),
    text=st.lists(
        st.one_of(
            st.sampled_from([*VLLM.splitlines(), *MODELFILE.splitlines(), *UNIT.splitlines(), *COMPOSE.splitlines()]),
            st.text(max_size=30),
        ),
        max_size=8,
    ).map("\n".join),
)
def test_any_file_is_read_or_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8", errors="replace")
    with suppress(NiloError):
        read_config(path)
