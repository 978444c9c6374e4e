"""Pages and their examples: each command that a page shows runs, shortened, on a server that can answer it.

A page is a row of `PAGES`. Its files are those that it shows, or that the row lays; a `nilo mock` that it starts, or
the row's server, stands for the address that it shows. Of an output that it shows the fixed parts are held: headings
and the names of rows. Twins show the same commands (`tests/structure/test_pages.py`), so the English page is the one
that runs.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from tests.loopback import speaking
from tests.loopback.replay import Replay
from tests.loopback.scripted import Scripted
from tests.loopback.speaking import Speak, speaker
from tests.structure.test_pages import commands_in
from tests.unit.sources.models.ggufs import ATTENTION, DENSE, HEADS
from tests.unit.sources.models.ggufs import write as write_gguf
from tests.unit.sources.test_engine_servers import answers

from nilometer.cli.root import nilo
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.sources.formats import NAMES as FORMATS
from nilometer.wire.dialects import DIALECTS

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = Path(__file__).parents[1] / "captures" / "results"
Told = dict[str, Any]
Check = Callable[[Told], bool]

_ADDRESS = re.compile(r"https?://[\w.-]+(?::\d+)?")
_SHOWN_FILE = re.compile(r"`([\w.-]+\.\w+)`[^`\n]*[:：]\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LISTED_FILE = re.compile(r"^\| `([\w-]+)` \|.*\| `([\w-]+\.\w+)` \| (.*) \|$", re.MULTILINE)
_OUTPUT = re.compile(r"^```\n((?:nilo [^\n]*\n)+)```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HASH = re.compile(r"[0-9a-f]{12,}")
_FIGURE = re.compile(r"(?<![A-Za-z\d])\d")

LOAD = ("--warmup", "0s", "--drain", "1s", "--workers", "1")
SHORT = {
    "measure": (*LOAD, "--duration", "0.2s", "--no-archive"),
    "sweep": (*LOAD, "--duration", "0.2s"),
}
"""What makes a command short; a later option counts."""
UNPROBED = ("--no-probe", "--model", "m")
SMALL = ("--input-tokens", "40", "--output-tokens", "4")
ENDS = {"measure": {0, 1, 4}, "sweep": {0, 1, 4, 5}, "workload": {0, 4}, "runs": {0}, "plan": {0, 1}}
"""Few requests are neither steady nor representative, and the servers are not held to an SLO."""


class Page(NamedTuple):
    """`server` stands for every address that is not the page's own mock. `checks`: by a part of the command, what must
    be so of its machine form. `instead`: texts of commands and files that would take long or lie elsewhere, and what
    stands for them. `given`: words of a load that the page's own follow; `more`: words that follow them. `mock`: the
    same for its own mock."""

    server: Callable[[], AbstractContextManager[str]]
    checks: Mapping[str, Check] = {}
    instead: Mapping[str, str] = {}
    given: Sequence[str] = (*UNPROBED, *SMALL)
    more: Sequence[str] = ()
    mock: Sequence[str] = ("--ttft", "5ms", "--gap", "1ms", "--any-model")
    lay: Callable[[Path], object] = lambda folder: None


@contextmanager
def fast_mock() -> Iterator[str]:
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        yield server.url


@contextmanager
def named_mock() -> Iterator[str]:
    """One whose model is a known one."""
    with launched(Script(models=("llama-3.1-8b",), ttft_ms=5, gap_ms=1)) as server:
        yield server.url


@contextmanager
def running_vllm() -> Iterator[str]:
    """A vLLM that tells how it was started."""
    labels = 'block_size="16",enable_prefix_caching="False",gpu_memory_utilization="0.82",num_gpu_blocks="12418"'
    model = {"id": "m", "root": "meta-llama/Llama-3.1-8B-Instruct", "owned_by": "vllm", "max_model_len": 131_072}
    pages = {
        "/metrics": f"vllm:cache_config_info{{{labels}}} 1.0\n".encode(),
        "/v1/models": {"data": [model]},
        "/version": {"version": "0.19.0"},
    }
    with Scripted(answers(pages)) as server:
        yield server.url


def speaks(*ways: Speak) -> Callable[[], AbstractContextManager[str]]:
    """A server that answers in whichever of these ways knows the path."""

    @contextmanager
    def serving() -> Iterator[str]:
        def speak(path: str, body: dict[str, Any]) -> Any:
            return next((reply for way in ways if (reply := way(path, body)) is not None), None)

        with Replay(speaker(speak)) as server:
            yield server.url

    return serving


def a_log(folder: Path) -> None:
    """The trace that the pages replay: ten requests within half a second."""
    rows = [{"timestamp": i * 50, "input_length": 40, "output_length": 3, "hash_ids": [i]} for i in range(10)]
    (folder / "conversation_trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def spend(folder: Path) -> None:
    """The log that the page inspects, thirty calls of it, and the trace."""
    said = [{"role": "user", "content": "What feeds a weir?"}]
    call = {"call_type": "acompletion", "status": "success", "messages": said}
    rows = [
        {"startTime": 1.7e9 + i, "prompt_tokens": 9 + i * i, "completion_tokens": 3 + i % 4, **call} for i in range(30)
    ]
    (folder / "spend.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "questions.txt").write_text("What feeds a weir?\nWho reads the nilometer at Roda, and when?\n")
    a_log(folder)


def plannable(folder: Path) -> None:
    """A log for lengths, the config of a model and a GGUF file of a small one."""
    spend(folder)
    config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False}
    config |= {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    write_gguf(folder / "model.gguf", [ATTENTION | DENSE] * 2, facts={**HEADS, "context_length": 8192})


def made(folder: Path) -> None:
    """The workload of the trace, as the page before has made it."""
    a_log(folder)
    done = CliRunner().invoke(
        nilo, ["workload", "make", str(folder / "conversation_trace.jsonl"), "-o", str(folder / "mooncake.toml")]
    )
    assert done.exit_code == 0, done.output


WRITTEN = {
    "bench.json": ("vllm bench serve", "vllm-0.32.0-completions/detailed.json"),
    "sglang.jsonl": ("sglang bench_serving", "sglang-0.5.23/details.jsonl"),
    "profile_export_genai_perf.json": ("genai-perf", "genai-perf-0.0.16/profile_export_genai_perf.json"),
    "profile_export.jsonl": ("aiperf", "aiperf-0.13.0/profile_export.jsonl"),
    "benchmarks.json": ("guidellm", "guidellm-0.8.1/benchmarks.json"),
    "per_request_lifecycle_metrics.json": (
        "inference-perf",
        "inference-perf-0.7.0/per_request_lifecycle_metrics.json",
    ),
    "benchmark_data.db": ("evalscope", "evalscope-1.14.1/benchmark_data.db"),
    "llama.json": ("llama-bench", "llama-bench-b11434/out.json"),
}
"""By what the page calls a file that another tool wrote: (tool, capture)."""


def results(folder: Path) -> None:
    for shown, (_, capture) in WRITTEN.items():
        shutil.copyfile(RESULTS / capture, folder / shown)


def imports(tool: str) -> Check:
    return lambda told: {run["tool"] for run in told["runs"]} == {tool}


def ok(run: Told) -> int:
    return int(run["run_requests"]["ok"])


def asked(api: str) -> Check:
    return lambda run: run["spec"]["api"] == api and ok(run) > 0


def arrived(arrivals: str, least: int = 1) -> Check:
    """An open loop of this shape whose latencies count from due."""

    def check(run: Told) -> bool:
        return bool(run["spec"]["load"]["arrivals"] == arrivals and run["latency_from"] == "due" and ok(run) >= least)

    return check


def levels(group: Told) -> list[str]:
    return [run["level"] for run in group["runs"]]


def swept(group: Told) -> bool:
    """How many levels are kept is the machine's affair, busy as it may be; that each was loaded is not."""
    return all(ok(run) > 0 for run in group["runs"])


def audited(plan: Told) -> set[str]:
    return {finding["slug"] for finding in plan["audit"]}


def tpot(plan: Told, load: int) -> float:
    return next(float(row["tpot_ms"]["mid"]) for row in plan["latency"] if row["concurrency"] == load)


def calibrated(plan: Told) -> bool:
    """By runs of about 1 ms a token, under a prior of 6.4 and more."""
    return "your" in plan["latency"][0]["basis"] and tpot(plan, 1) < 3


PLANNED = "steps:20@0.2s,40@0.2s,20@0.2s"
PAGES = {
    "how-to/load-shapes": Page(
        fast_mock,
        instead={
            "--rate 4": "--rate 40",
            "ramp:1,20,120s": "ramp:20,60,0.4s",
            "steps:2@60s,8@60s,4@60s": PLANNED,
            "spike:2,20,30s": "spike:20,60,0.2s",
            "--speed 2": "--speed 4",
        },
        lay=made,
        more=("--duration", "0.4s"),
        checks={
            "constant": arrived("constant", 15),
            "poisson": arrived("poisson"),
            "gamma": arrived("gamma:3"),
            "ramp:": arrived("ramp:20,60,0.4s"),
            "steps:": arrived(PLANNED),
            "spike:": arrived("spike:20,60,0.2s"),
            "--replay": arrived("recorded", 10),
        },
    ),
    "how-to/replay-your-traffic": Page(
        fast_mock,
        instead={"--speed 2": "--speed 4"},
        lay=a_log,
        given=UNPROBED,
        checks={
            "--workload mooncake.toml -c": lambda run: run["lengths"]["asked_output"]["max"] == 3,
            "--replay": arrived("recorded", 10),
            "sweep": lambda group: swept(group) and all(run["spec"]["prompts"]["workload"] for run in group["runs"]),
        },
    ),
    "how-to/conversations-and-mixes": Page(
        fast_mock,
        instead={"exponential:2": "exponential:0.1", "5,40,20s": "20,60,0.5s"},
        given=SMALL,
        more=("--duration", "1.5s"),
        checks={
            "--turns": lambda run: (
                run["latency_from"] == "mixed"
                and run["lengths"]["input"]["max"] > 3 * 40
                and run["lengths"]["asked_input"]["mean"] is None
            ),
            "mix.toml": lambda run: (
                set(run["scenarios"]) <= {"chat", "summarise", "code"}
                and run["scenarios"]["chat"]["latency_ms"]["ttft"]["n"] > 0
            ),
            "spike": lambda run: (
                run["recovery"]["metric"] == "ttft" and run["recovery"]["watched_s"] == pytest.approx(0.5, abs=0.01)
            ),
        },
    ),
    "how-to/use-your-own-traffic": Page(
        fast_mock,
        instead={"-n 200": "-n 20"},
        lay=spend,
        given=UNPROBED,
        more=("--output-tokens", "3"),
        checks={
            "inspect": lambda told: told["usable"] == 30,
            "sample": lambda told: told["written"]["rows"] == 20,
            "make": lambda told: told["usable"] == 10,
            "--prompts": lambda run: run["lengths"]["output"]["max"] == 3 and ok(run) > 0,
        },
    ),
    "how-to/traffic-formats": Page(fast_mock, checks={"workload": lambda told: told["usable"] >= 1}),
    "how-to/other-protocols": Page(
        speaks(
            speaking.chat,
            speaking.completions,
            speaking.responses,
            speaking.ollama,
            speaking.tgi,
            speaking.llamacpp,
            speaking.anthropic,
            speaking.gemini,
            speaking.encoder,
            speaking.azure,
            speaking.reed,
        ),
        instead={
            "--api anthropic": "--api anthropic --probe",
            "llama3.2": "reed:latest",
            "MODEL": "reed",
            "NAME.": "",
            "DEPLOYMENT": "reed",
        },
        given=("--no-probe", "--model", "reed", "--input-tokens", "40", "--output-tokens", "16"),
        more=("--requests", "4"),
        checks={
            **{f"--api {name} ": asked(name) for name in DIALECTS},
            "--api reed.toml": asked("reed.toml"),
            "azure": asked("chat"),
        },
    ),
    "how-to/find-the-greatest-load": Page(
        fast_mock,
        checks={
            '--slo "ttft': lambda group: swept(group) and levels(group)[0] == "1",
            "--rate": lambda group: all(run["spec"]["load"]["rate_per_s"] for run in group["runs"]),
            "--levels": lambda group: swept(group) and levels(group) == ["1", "4"],
        },
        instead={"1,2,4,8": "1,4"},
    ),
    "how-to/costs-and-quotas": Page(
        fast_mock,
        instead={
            "MODEL": "m",
            "--levels 4,8,16": "--levels 1,2",
            "http_429:20%": "http_429:50%",
            "--rate 2": "--rate 30",
        },
        checks={
            "in=0.15": lambda run: run["spec"]["price"]["currency"] == "CNY" and run["cost"]["spent"] > 0,
            "-c 16": lambda run: run["efficiency"]["devices"] == 2 and run["cost"]["spent"] > 0,
            "--levels": lambda group: all(run["cost"]["spent"] > 0 for run in group["runs"]),
            "--max-error-rate": lambda run: run["quota"]["refused"] > 0 and "quota_reached" in slugs(run),
        },
    ),
    "how-to/import-results": Page(
        fast_mock,
        lay=results,
        checks={
            **{f"import {file}": imports(tool) for file, (tool, _) in WRITTEN.items()},
            "list": imports("vllm bench serve"),
        },
    ),
    "how-to/plan-before-you-buy": Page(
        named_mock,
        lay=plannable,
        instead={"-n 200": "-n 20", "--levels 1,16": "--levels 1,4", "--device this": "--device Apple-M4"},
        given=("--no-probe", "--model", "llama-3.1-8b", *SMALL),
        checks={
            "-c 32": lambda plan: plan["kv"]["bytes_per_token"] == 131_072 and tpot(plan, 32) > tpot(plan, 1),
            "config.json": lambda plan: plan["model"]["parameters"] == 8_030_261_248,
            "model.gguf": lambda plan: plan["model"]["origin"] == "gguf" and plan["engine"]["name"] == "llama.cpp",
            "plan http": lambda plan: plan["model"]["name"] == "meta-llama/Llama-3.1-8B",
            "--memory": lambda plan: plan["device"]["bandwidth_bytes_per_s"] == 1008e9,
            "smollm2": lambda plan: plan["model"]["name"] == "HuggingFaceTB/SmolLM2-135M",
            "--workload": lambda plan: plan["requests"]["lengths_from"] == "workload",
            "lognormal": lambda plan: plan["kv"]["fits_of_these_lengths"] > 3 * plan["kv"]["max_concurrency"],
            "--calibrate": calibrated,
        },
    ),
    "how-to/choose-by-a-plan": Page(
        fast_mock,
        checks={
            "llama-3.1-70b": lambda plan: plan["fits"] is False,
            "4090 --engine-version": lambda plan: plan["fits"] is False and plan["kv"]["max_concurrency"] > 1,
            "--slo": lambda plan: plan["fits"] and plan["options"],
        },
    ),
    "how-to/audit-an-engine": Page(
        running_vllm,
        checks={
            "--gpu-memory-utilization": lambda plan: audited(plan) >= {"audit_share_low", "audit_prefix_off"},
            "--max-num-seqs 256": lambda plan: plan["fits"] and not plan["audit"],
            "vllm.yaml": lambda plan: audited(plan) == {"audit_chunk_stall", "audit_flag_misspelt"},
            "--audit http": lambda plan: audited(plan) >= {"audit_seqs_over_kv", "audit_prefix_unset"},
            "llama-server": lambda plan: audited(plan) == {"audit_slot_short"},
            "ollama": lambda plan: audited(plan) == {"audit_prompts_cut"},
        },
    ),
    "explanation/where-the-memory-goes": Page(
        fast_mock,
        checks={
            "--layers": lambda plan: plan["kv"]["bytes_per_token"] == 131_072 and plan["kv"]["bytes"] == 4 * 2**30,
            "h100": lambda plan: plan["kv"]["tokens"] == 443_872,
            "lognormal": lambda plan: plan["kv"]["fits_of_these_lengths"] > 10 * (plan["kv"]["tokens"] // 16_384),
        },
    ),
    "explanation/why-decode-is-slow": Page(
        fast_mock,
        instead={"--levels 1,16": "--levels 1,4"},
        given=("--no-probe", "--model", "llama-3.1-8b", *SMALL),
        checks={
            "--explain": lambda plan: plan["crossover_batch"] == 179,
            "--calibrate": calibrated,
        },
    ),
    "explanation/three-axes": Page(fast_mock, checks={"--tensor 2": lambda plan: plan["fits"]}),
    "explanation/which-numbers-for-which-product": Page(
        speaks(speaking.chat, speaking.completions, speaking.encoder),
        instead={
            "measure embedded": "measure http://127.0.0.1:8000",
            "--rate 6": "--rate 60",
            "--rate 4": "--rate 40",
        },
        mock=("--ttft", "20ms", "--gap", "2ms", "--any-model"),
        checks={
            "--slo chat": lambda run: [bound["met"] for bound in run["slo"]] == [True] * 3,
            "--output-tokens 24": lambda run: len(run["slo"]) == 2,
            "--slo batch": swept,
            "--api embeddings": lambda run: asked("embeddings")(run) and run["latency_ms"]["ttft"] is None,
            "lognormal": lambda run: run["latency_ms"]["ttft"]["mean"] > 0,
            "-c 4": lambda run: run["latency_ms"]["ttft"]["p50"] < 40,
            "--rate 6": lambda run: run["latency_from"] == "due",
        },
    ),
}


def slugs(run: Told) -> set[str]:
    return {finding["slug"] for finding in run["findings"]}


def text_of(name: str) -> str:
    return (DOCS / f"{name}.md").read_text("utf-8")


def swapped(text: str, instead: Mapping[str, str]) -> str:
    for shown, real in instead.items():
        text = text.replace(shown, real)
    return text


def lay_files(page: Page, text: str, folder: Path) -> None:
    """The files that a page shows, in blocks or as rows of a table."""
    for name, block in _SHOWN_FILE.findall(text):
        (folder / name).write_text(swapped(block, page.instead))
    for _, name, lines in _LISTED_FILE.findall(text):
        (folder / name).write_text("".join(f"{line}\n" for line in re.findall(r"`([^`]+)`", lines)))
    page.lay(folder)


@contextmanager
def mock_of(words: Sequence[str]) -> Iterator[str]:
    """The server that a page's `nilo mock` starts, on a port that is free; its address."""
    command = [sys.executable, "-m", "nilometer", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def fixed(shown: str) -> list[str]:
    """What does not change from run to run: lines without a figure, and of the others the name in front."""
    parts: list[str] = []
    for line in shown.splitlines():
        cells = [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]
        parts += [cell for cell in (cells[:1] if _FIGURE.search(line) else cells) if not re.search(r"[\d≤]", cell[:1])]
    return [part for part in parts if not (part == "..." or _FIGURE.search(part) or _HASH.fullmatch(part))]


def run_command(page: Page, words: list[str], folder: Path) -> tuple[Told, str]:
    """(machine form, all that is printed) of one command."""
    told = folder / "told.json"
    command, *own = words
    if command in SHORT:
        searched = ["--most", "2"] if command == "sweep" and "--levels" not in own else []
        given = UNPROBED if "--replay" in own else page.given  # a recording has lengths of its own
        own = [*given, *own, *SHORT[command], *searched, *page.more]
    done = CliRunner().invoke(nilo, [command, *own, "--json-file", str(told)])
    assert done.exit_code in ENDS[command], done.output
    machine: Told = json.loads(told.read_text())
    return machine, " ".join(done.output.split())


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_shows_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable, value in (("XDG_DATA_HOME", str(tmp_path / "data")), ("NILO_LANG", "en"), ("COLUMNS", "120")):
        monkeypatch.setenv(variable, value)
    for key in ("API_KEY", "ANTHROPIC_KEY", "GEMINI_KEY", "AZURE_KEY"):
        monkeypatch.setenv(key, "s3cret")
    page, text = PAGES[name], text_of(name)
    outputs = {block.splitlines()[-1]: shown for block, shown in _OUTPUT.findall(text)}
    with ExitStack() as stack:
        url = stack.enter_context(page.server())
        lay_files(page, _ADDRESS.sub(url, text), tmp_path)
        unmet = dict(page.checks)
        for command in commands_in(text):
            words = shlex.split(_ADDRESS.sub(url, swapped(command, page.instead)))[1:]
            if words[0] == "mock":
                url = stack.enter_context(mock_of([*words, *page.mock]))
                continue
            told, printed = run_command(page, words, tmp_path)
            for part in [part for part in page.checks if part in command]:
                assert page.checks[part](told), (command, part)
                unmet.pop(part, None)
            assert [part for part in fixed(outputs.get(command, "")) if " ".join(part.split()) not in printed] == []
    assert unmet == {}, "no command of the page has this"


def test_every_format_is_shown_with_a_file_that_is_read_as_such(tmp_path: Path) -> None:
    page = "how-to/traffic-formats"
    rows = _LISTED_FILE.findall(text_of(page))
    assert rows == _LISTED_FILE.findall(text_of(f"{page}.zh-CN"))
    assert sorted(name for name, _, _ in rows) == sorted(FORMATS)
    lay_files(PAGES[page], text_of(page), tmp_path)
    for name, file, _ in rows:
        for words in ((), ("--format", name)):
            done = CliRunner().invoke(nilo, ["workload", "inspect", str(tmp_path / file), *words, "--json"])
            assert (done.exit_code, json.loads(done.stdout)["format"]) == (0, name)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("how-to/other-protocols", {f"--api {name}" for name in DIALECTS}),
        ("how-to/load-shapes", {"constant", "poisson", "gamma:", "ramp:", "steps:", "spike:", "--replay"}),
    ],
)
def test_every_dialect_and_every_shape_has_its_command(name: str, wanted: set[str]) -> None:
    commands = list(commands_in(text_of(name)))
    assert {part for part in wanted if not any(part in command for command in commands)} == set()


def test_the_fixed_parts_of_an_output() -> None:
    shown = "4 users wait 200 ms\n\n          n   p50\nTTFT ms  12   0.3*\ninput    mean 8, p50 6\na minute   p95 7\n"
    assert fixed(shown) == ["n", "p50", "TTFT ms", "input", "a minute"]
