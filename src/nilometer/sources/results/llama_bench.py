"""`llama-bench -o json`, `jsonl` or `csv`: one run for each row.

Written by `tools/llama-bench/llama-bench.cpp` of ggml-org/llama.cpp, read at b11434. It drives the engine alone: no
server, no queue, no tokenizing, no sampling, one sequence. `pp` (n_gen 0) is prefill, `tg` (n_prompt 0) decoding: time
over n_gen is TPOT; with both set neither can be told apart. A sample is one repetition.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

import numpy as np

from nilometer.core.environment import EngineFacts, Environment, Machine, ModelFacts
from nilometer.core.spec import Load
from nilometer.core.summary import Distribution, Throughput
from nilometer.metrics.quantiles import distribution

from .fields import Fields, of_table
from .opened import Opened
from .stamps import local_ns
from .told import Notes, Told

_NEEDED = frozenset(("model_filename", "model_type", "n_prompt", "n_gen", "avg_ns", "avg_ts"))
_QUANT = re.compile(r"\s(?:[\d.x]+[MBKT]|\?B)\s(?:mostly )?(.+)$")
_FLAGS = {"type_k": "-ctk", "type_v": "-ctv", "n_batch": "-b", "n_ubatch": "-ub", "n_threads": "-t"}
_FLAGS |= {"n_gpu_layers": "-ngl", "flash_attn": "-fa"}


def claims(opened: Opened) -> bool:
    """Its own names for a test, as members or as columns."""
    if opened.shape == "text":
        head = opened.data[:65536].split(b"\n", 1)[0].decode("utf-8", "replace")
        return set(head.replace('"', "").strip().split(",")) >= _NEEDED
    return opened.names >= _NEEDED


def read(opened: Opened) -> Iterator[Told]:
    """One run for each test."""
    if opened.shape != "text":
        for place, (line, members) in enumerate(opened.objects()):
            notes = Notes()
            path = "" if line is not None else f"[{place}]"
            yield _run(Fields(opened.path, members, notes, path=path, line=line), notes)
        return
    try:
        rows = list(csv.reader(opened.text_lines(), strict=True))
    except csv.Error as fault:
        raise opened.broken(str(fault)) from None
    for line, row in enumerate(rows[1:], 2):
        if row:
            if len(row) != len(rows[0]):
                raise opened.broken(f"{len(row)} != {len(rows[0])}", line)
            notes = Notes()
            yield _run(of_table(opened.path, dict(zip(rows[0], row, strict=True)), notes, line), notes)


def _run(fields: Fields, notes: Notes) -> Told:
    prompt, made, depth = (fields.whole(name) or 0 for name in ("n_prompt", "n_gen", "n_depth"))
    samples = [one for one in fields.numbers("samples_ns") or [] if one is not None]
    speed = fields.number("avg_ts")
    average = fields.number("avg_ns")
    notes.add("import_engine_only", severity="medium")
    if prompt and made:
        notes.add("import_not_mapped", fields="avg_ts, avg_ns")
    return Told(
        notes=notes,
        version=_version(fields),
        started_ns=local_ns(fields, "test_time", notes),
        model=fields.text("model_type"),
        stream=False,
        load=Load(concurrency=1, requests=len(samples) or None),
        level=_kind(prompt, made, depth),
        duration_s=sum(samples) / 1e9 if samples else None if average is None else average / 1e9,
        latency_ms={"tpot": _tpot(samples, average, made)} if made and not prompt else {},
        throughput=Throughput(
            output_tokens_per_s=speed if made and not prompt else None,
            input_tokens_per_s=speed if prompt and not made else None,
        ),
        environment=_environment(fields),
    )


def _kind(prompt: int, made: int, depth: int) -> str:
    """The name that the tool itself shows: `pp512`, `tg128 @ d512`, `pp512+tg128`."""
    parts = [f"pp{prompt}" if prompt else "", f"tg{made}" if made else ""]
    return "+".join(part for part in parts if part) + (f" @ d{depth}" if depth else "")


def _tpot(samples: Sequence[float], average_ns: float | None, made: int) -> Distribution:
    """Time of a repetition over its tokens. Without samples only the mean is known."""
    if samples:
        return distribution(np.array(samples) / made)
    return Distribution() if average_ns is None else Distribution(n=None, mean=average_ns / made / 1e6)


def _version(fields: Fields) -> str:
    number, commit = fields.whole("build_number"), fields.text("build_commit")
    known = [f"b{number}" if number else "", commit if commit != "unknown" else ""]
    return " ".join(part for part in known if part)


def _environment(fields: Fields) -> Environment:
    """Model, engine and machine as its rows name them; a setting that is not there has no flag."""
    kind, file = fields.text("model_type"), fields.text("model_filename")
    quant = _QUANT.search(kind or "")
    flags = [word for name, flag in _FLAGS.items() if (value := fields.text(name)) for word in (flag, value)]
    return Environment(
        machine=Machine(cpu_model=fields.text("cpu_info"), devices=[one] if (one := fields.text("gpu_info")) else []),
        engine=EngineFacts(name="llama.cpp", version=_version(fields) or None, flags=flags),
        model=ModelFacts(
            id=kind,
            file=None if file is None else file.replace("\\", "/").rpartition("/")[2],
            file_bytes=fields.whole("model_size"),
            parameters=fields.whole("model_n_params"),
            precision=None if quant is None else quant[1],
        ),
    )
