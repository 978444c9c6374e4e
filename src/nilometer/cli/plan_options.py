"""The options of `nilo plan` as one table, in the order its help shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .plan_values import BANDWIDTH, FLOPS, MEMORY, TOKENS
from .values import PRICE, SHARE

Command = TypeVar("Command", bound=Callable[..., Any])

_COUNT = click.IntRange(1, 1_000_000)
_LAYERS = click.IntRange(1, 10_000)
_RATE = click.FloatRange(0, 1e6, min_open=True)
_DEVICES = click.IntRange(1, 4096)

_OPTIONS = (
    click.option("--device", metavar="NAME", help="A device of the table (h100, l40s, 4090, ...), or `this` machine."),
    click.option("--memory", type=MEMORY, help="Memory of the device that a program sees: 80GiB, 24GB."),
    click.option(
        "--bandwidth", type=BANDWIDTH, help="How fast it reads its memory: 3350GB/s; with --flops any device."
    ),
    click.option("--flops", type=FLOPS, help="How fast it multiplies dense matrices in 16 bits: 989TFLOPS."),
    click.option("--tensor", type=_DEVICES, help="Devices that each layer is cut over.  [default: 1]"),
    click.option("--pipeline", type=_DEVICES, help="Stages that the layers are dealt to.  [default: 1]"),
    click.option("--data", type=_DEVICES, help="Copies of the model side by side.  [default: 1]"),
    click.option("--expert", type=_DEVICES, help="Devices that whole experts are dealt to.  [default: 1]"),
    click.option(
        "--engine",
        metavar="NAME",
        help="vllm, sglang, tensorrt-llm, tgi, llama.cpp.  [default: vllm; of GGUF llama.cpp]",
    ),
    click.option("--engine-version", metavar="V", help="Its release, which its constants belong to."),
    click.option("--precision", metavar="P", help="Of the weights: bf16, fp8, int8, int4, q4_k_m, ..."),
    click.option("--kv-precision", metavar="P", help="Of the KV cache: fp16, fp8, q8_0; two as KEY,VALUE."),
    click.option("-c", "--concurrency", type=_COUNT, help="Requests in flight at once.  [default: 1]"),
    click.option("--context", type=TOKENS, help="Tokens of a request, input and output: 8192, 8k."),
    click.option("--input-tokens", metavar="D", help="128 | uniform:64,256 | lognormal:MEDIAN,P95 | empirical:FILE."),
    click.option("--output-tokens", metavar="D", help="The same of the output.  [defaults: 512 and 128]"),
    click.option("--workload", metavar="FILE", help="Lengths of your own traffic, by `nilo workload sample`."),
    click.option("--max-context", type=TOKENS, help="The engine's greatest length (--max-model-len, -c, ...)."),
    click.option("--max-seqs", type=_COUNT, help="Requests that the engine lets run at once (--max-num-seqs)."),
    click.option("--batched-tokens", type=TOKENS, help="Tokens of one step (--max-num-batched-tokens, a chunk)."),
    click.option("--memory-share", type=SHARE, help="Of the device's memory, what the engine takes: 0.95."),
    click.option("--slots", type=_COUNT, help="Slots of llama.cpp (-np)."),
    click.option("--slo", metavar="BOUNDS", help="tpot_p95<=30ms,ttft_p95<=500ms, or a preset: chat, batch."),
    click.option("--price", type=PRICE, help="What a device costs: hour=2.50,currency=CNY."),
    click.option("--devices", type=_DEVICES, help="Devices there may be, all together.  [default: 8]"),
    click.option("--rate", type=_RATE, help="Requests per second to be served: how many copies that takes."),
    click.option("--users", type=_COUNT, help="Users instead, each waiting for one answer at a time."),
    click.option("--spare", type=click.IntRange(0, 1000), help="Copies that stand by.  [default: 0]"),
    click.option("--acceptance", type=SHARE, help="Drafted tokens that your traffic keeps, for speculation: 60%."),
    click.option("--draft", metavar="MODEL", help="A small model to draft with."),
    click.option(
        "--against",
        metavar="NAME[=PRICE],...",
        help="Devices to be held against this one, each with its price an hour.",
    ),
    click.option("--advice", is_flag=True, help="Every move with what it buys, what it costs, when it is wrong."),
    click.option(
        "--calibrate", metavar="RUN", multiple=True, help="Scale the forecast by own runs: RUN or GROUP, repeatable."
    ),
    click.option(
        "--audit",
        metavar="COMMAND|FILE|URL",
        help='What is wrong with how an engine is started: "vllm serve ...", its config file, or a running server.',
    ),
    click.option("--shared-prefix", type=TOKENS, help="Tokens that prompts begin with alike, for the audit."),
    click.option("--explain", is_flag=True, help="Each formula with its numbers filled in."),
    click.option("--layers", type=_LAYERS, help="A shape by numbers, without a model: its layers."),
    click.option("--kv-heads", type=_COUNT, help="Its KV heads."),
    click.option("--head-dim", type=_COUNT, help="The width of a head."),
    click.option("--heads", type=_COUNT, help="Its query heads; with the next three its weights are known too."),
    click.option("--hidden", type=_COUNT, help="Its hidden width."),
    click.option("--intermediate", type=_COUNT, help="The width of its feed-forward layer."),
    click.option("--vocab", type=_COUNT, help="Its vocabulary."),
)


def plan_options(command: Command) -> Command:
    """Add them all."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
