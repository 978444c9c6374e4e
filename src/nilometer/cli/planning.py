"""From the options of `nilo plan` to its question: the model and the device are read here, and the lengths."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nilometer.core.errors import Param, SpecError
from nilometer.core.finding import Finding
from nilometer.plan.devices import Device, device, device_of
from nilometer.plan.latency.roofline import Lengths
from nilometer.plan.launch.fields import Launch
from nilometer.plan.launch.settled import settled
from nilometer.plan.memory.flight import SHARE, Pairs
from nilometer.plan.memory.mix import in_tokens
from nilometer.plan.memory.startup import Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.precision import precision_of
from nilometer.plan.model.shape import Attention, Block, Dense, Shape
from nilometer.plan.question import Question, setup
from nilometer.sources.models.read import Read, read_model, read_started

if TYPE_CHECKING:
    from nilometer.archive.protocol import Archive
    from nilometer.core.run import Run

Given = Mapping[str, Any]
"""The options by name; None = not given."""

INPUT, OUTPUT = 512, 128
"""As `nilo measure` asks by default."""
_OUTPUT_SHARE, _OUTPUT_MOST = 8, 1024
"""Of a context that is all there is to go by, an eighth is output, at most so many tokens."""
_DRAWN, _SEED = 2_000, 0
_RAW = ("layers", "kv_heads", "head_dim")
_WHOLE = ("heads", "hidden", "intermediate", "vocab")


class Asked(NamedTuple):
    """The question, and what was read for it. `notes` are of the runs that calibrate it."""

    question: Question
    read: Read | None
    """None of a shape by numbers."""
    lengths_from: str
    """given, context, workload or default."""
    notes: tuple[Finding, ...] = ()


def asked(model: str | None, given: Given, launch: Launch | None = None) -> Asked:
    """All options of a plan as its question; what an engine was started with stands in place of its options.

    Refuses with SpecError `plan_model_missing`, `plan_shape_incomplete`, `plan_shape_twice`, `plan_device_incomplete`
    and the slugs of the readers and tables.
    """
    read = None if model is None else read_model(model)
    if model is None and launch is not None and launch.model is not None:
        read = read_started(launch.model)
    raw = {name: given[name] for name in (*_RAW, *_WHOLE) if given[name] is not None}
    if read is not None and raw:
        raise SpecError("plan_shape_twice", model=str(model), options=_options(raw))
    place = _device(given)
    shape = _raw_shape(raw, on_device=place is not None) if read is None else known_shape(read)
    precision = precision_of(given["precision"] or (read.precision if read and read.precision else shape.dtype))
    limit = given["max_context"] or (launch.settings.context if launch else None) or shape.max_context
    lengths, pairs, lengths_from = _lengths(given)
    kept = _within(pairs, limit)
    copies = (launch.parallel.data if launch else given["data"]) or 1
    key, value = _kv_precision(given["kv_precision"])
    question = Question(
        shape=shape,
        precision=precision,
        device=place,
        engine=(given["engine"] or "").strip().lower() or ("vllm" if precision.mix is None else "llama.cpp"),
        version=given["engine_version"],
        parallel=Parallel(**{name: given[name] or 1 for name in ("tensor", "pipeline", "data", "expert")}),
        settings=_settings(given),
        key_precision=key,
        value_precision=value,
        file_bytes=_loaded_bytes(read) if read is not None and given["precision"] is None else None,
        lengths=_mean(kept) if kept != pairs else lengths,
        context=given["context"] or _context(kept, lengths, -(-(given["concurrency"] or 1) // copies)),
        pairs=kept,
        concurrency=given["concurrency"] or 1,
    )
    if launch is not None:
        question = as_started(question, launch)
    cut = sum(old != new for old, new in zip(pairs, kept, strict=True))
    params: dict[str, Param] = {"share": cut / len(pairs) if pairs else 0.0, "limit": limit}
    notes = [Finding(slug=slug, kind="note", severity="medium") for slug in shape.left_out]
    if cut:
        notes.append(Finding(slug="plan_lengths_cut", kind="note", severity="medium", params=params))
    if limit is not None and question.context > limit:
        over: dict[str, Param] = {"context": question.context, "limit": limit}
        notes.append(Finding(slug="plan_context_over", kind="note", severity="medium", params=over))
    return Asked(question, read, lengths_from, tuple(notes))


def _within(pairs: Pairs, limit: int | None) -> Pairs:
    """No engine takes a request longer than its limit: the input is cut to it, the output to what that leaves.

    SpecError `plan_number_too_small` for a limit without room for one token of each.
    """
    if limit is None or not pairs:
        return pairs
    if limit < 2:
        raise SpecError("plan_number_too_small", key="max context", value=limit, least=2)
    cut = ((min(given, limit - 1.0), out) for given, out in pairs)
    return tuple((given, min(out, limit - given)) for given, out in cut)


def as_started(question: Question, launch: Launch) -> Question:
    """The question of an engine that was started so."""
    place = question.device
    visible = None if place is None else place.shown_bytes.bytes
    weights = question.precision if launch.weights is None else precision_of(launch.weights)
    key, value = launch.plan_cache
    return msgspec.structs.replace(
        question,
        engine=launch.plan_engine,
        version=launch.plan_version,
        parallel=launch.parallel,
        precision=weights,
        file_bytes=question.file_bytes if weights is question.precision else None,
        settings=settled(launch, question.shape, visible, weights.name),
        key_precision=key,
        value_precision=value,
    )


def calibrated(found: Asked, refs: Sequence[str], archive_url: str | None) -> Asked:
    """The question scaled by own runs out of the archive.

    Refuses as `evidence_of` and `calibrate` do, and without a device: `plan_calibration_without_device`.
    """
    from nilometer.archive.store import open_archive
    from nilometer.plan.answer import answer
    from nilometer.plan.latency import from_run
    from nilometer.plan.latency.calibrate import calibrate

    question = found.question
    if question.device is None:
        raise SpecError("plan_calibration_without_device")
    with open_archive(archive_url, must_exist=True) as archive:
        runs = [run for ref in refs for run in _runs(archive, ref)]
    known = from_run.Asked(
        model=question.shape.name or None,
        parameters=parameters(question.shape),
        precision=question.precision.name,
        engine=question.engine,
    )
    evidence = from_run.evidence_of(runs, known)
    each = setup(question, question.device, answer(question).slots)
    tuning = calibrate(each, evidence.measured)
    notes = (*found.notes, *evidence.findings)
    return found._replace(question=msgspec.structs.replace(question, tuning=tuning), notes=notes)


def _runs(archive: Archive, ref: str) -> list[Run]:
    """Those of a run or a group."""
    place = archive.resolve_either(ref)
    return [archive.get(place.id)] if place.kind == "run" else archive.find(place.id)


def _loaded_bytes(read: Read) -> int | None:
    """What an engine keeps of the files: not the draft layers that lie in them, which are their share by parameters."""
    if read.weight_bytes is None or read.shape is None or read.origin != "safetensors":
        return read.weight_bytes
    idle = sum(extra.parameters or 0 for extra in read.shape.extras if not extra.loaded)
    whole = parameters(read.shape) + idle
    return round(read.weight_bytes * (whole - idle) / whole)


def known_shape(read: Read) -> Shape:
    """What was read; SpecError `plan_model_of_server_unknown` where a server's model is not known."""
    if read.shape is None:
        served = read.served.id if read.served else None
        raise SpecError("plan_model_of_server_unknown", url=read.source, model=served)
    return read.shape


def _raw_shape(raw: Mapping[str, int], *, on_device: bool) -> Shape:
    """Of numbers alone: with three of them its cache is known, with all of them it is a Llama-like decoder."""
    if not raw:
        raise SpecError("plan_model_missing")
    wanted = (*_RAW, *_WHOLE) if on_device or any(name in raw for name in _WHOLE) else _RAW
    missing = [name for name in wanted if name not in raw]
    if missing:
        raise SpecError("plan_shape_incomplete", missing=_options(missing))
    heads = raw.get("heads", raw["kv_heads"])
    attention = Attention(heads=heads, kv_heads=raw["kv_heads"], head_dim=raw["head_dim"])
    if heads % raw["kv_heads"]:
        raise SpecError("plan_heads_uneven", heads=heads, kv_heads=raw["kv_heads"])
    dense = Dense(intermediate=raw["intermediate"]) if "intermediate" in raw else None
    return Shape(
        name="",
        hidden=raw.get("hidden", 0),
        vocab=raw.get("vocab", 0),
        kinds=(Block(mixer=attention, feed_forward=dense),),
        order=(0,) * raw["layers"],
        tied=False,
    )


def _options(names: Any) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


def _kv_precision(text: str | None) -> tuple[str, str | None]:
    key, _, value = (text or "auto").partition(",")
    return key.strip(), value.strip() or None


def _settings(given: Given) -> Settings:
    return Settings(
        utilisation=given["memory_share"],
        context=given["max_context"],
        max_seqs=given["max_seqs"],
        batched_tokens=given["batched_tokens"],
        slots=given["slots"],
    )


def _device(given: Given) -> Device | None:
    """Of the table, of this machine, or of two numbers; a number beside a name goes before the table's."""
    name, memory, bandwidth, flops = (given[key] for key in ("device", "memory", "bandwidth", "flops"))
    if name is None:
        if memory is None and bandwidth is None and flops is None:
            return None
        if memory is None or bandwidth is None or flops is None:
            raise SpecError("plan_device_incomplete")
        return device_of(bandwidth, flops, memory)
    found = _this() if is_this(name) else device(name)
    changes: dict[str, Any] = {}
    if memory is not None:
        changes |= {"memory_bytes": memory, "visible_bytes": memory}
    if bandwidth is not None:
        changes["bandwidth_bytes_per_s"] = bandwidth
    if flops is not None:
        changes["flops"] = {"fp16": flops}
    found = msgspec.structs.replace(found, **changes)
    if not found.memory_bytes:
        raise SpecError("plan_device_memory_unknown", device=found.name)
    return found


def is_this(name: str | None) -> bool:
    """Whether `--device` means this machine."""
    return (name or "").strip().lower() == "this"


def _this() -> Device:
    from nilometer.telemetry.bandwidth import this_device

    return this_device()


def _lengths(given: Given) -> tuple[Lengths, Pairs, str]:
    """(mean request, single requests, where they are from)."""
    texts = given["input_tokens"], given["output_tokens"]
    if given["workload"] is not None:
        if any(texts):
            raise SpecError("plan_lengths_twice", workload=given["workload"])
        found = _of_workload(given["workload"])
        return _mean(found), found, "workload"
    if not any(texts):
        context = given["context"]
        if context is None:
            return Lengths(INPUT, OUTPUT), (), "default"
        output = max(1, min(context // _OUTPUT_SHARE, _OUTPUT_MOST))
        return Lengths(max(1, context - output), output), (), "context"
    pairs = _drawn(texts[0] or str(INPUT), texts[1] or str(OUTPUT))
    return _mean(pairs), pairs if len(set(pairs)) > 1 else (), "given"


def _drawn(inputs: str, outputs: str) -> Pairs:
    if all(re.fullmatch(r"[1-9][0-9]{0,6}", text.strip()) for text in (inputs, outputs)):
        return ((float(inputs), float(outputs)),)
    from nilometer.experiment.approach import length_mix

    of_input, of_output, random = length_mix(inputs), length_mix(outputs), Random(_SEED)  # noqa: S311 - draws lengths
    return tuple((float(of_input.sample(random)), float(of_output.sample(random))) for _ in range(_DRAWN))


def _of_workload(file: str) -> Pairs:
    from pathlib import Path

    from nilometer.sources.workload_file import read_workload

    rows = read_workload(Path(file)).rows
    pairs = tuple(
        (float(row.input_tokens), float(row.output_tokens))
        for row in rows
        if row.input_tokens is not None and row.output_tokens is not None
    )
    if not pairs:
        raise SpecError("plan_workload_without_lengths", file=file)
    return pairs


def _mean(pairs: Pairs) -> Lengths:
    inputs, outputs = zip(*pairs, strict=True)
    return Lengths(sum(inputs) / len(pairs), sum(outputs) / len(pairs))


def _context(pairs: Pairs, lengths: Lengths, at_once: int) -> int:
    """Of a request as a whole; of unlike ones the length at which so many at once hold as much as these do.

    That is the quantile of what they hold together, not the longest of them: see `flight`.
    """
    if not pairs:
        return round(lengths.input + lengths.output)
    one = in_tokens(pairs)
    return ceil(min(one.largest, one.quantile_of_sum(at_once, SHARE) / at_once))
