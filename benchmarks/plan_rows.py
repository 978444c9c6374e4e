"""The logged start-ups that a plan of memory is held to, and the shapes of their models. Pure but for two files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nilometer.plan.memory import kv
from nilometer.plan.memory.budget import Ask, Memory, memory
from nilometer.plan.memory.pool import Pool, stage_layout, vllm_layout, vllm_pool
from nilometer.plan.memory.startup import GIB, Settings
from nilometer.plan.model.parallel import Parallel
from nilometer.plan.model.shape import Attention, Block, Dense, Experts, Extra, Latent, Recurrent, Shape
from nilometer.plan.versions import parse_version

DATA = Path(__file__).parent / "data"
KV_NAMES = {"auto": "auto", "": "auto", "fp8": "fp8", "fp8_e4m3": "fp8"}
NO_KV_GIB = {"flags_unknown", "remainder", "approximate"}
NO_TOKENS = {"flags_unknown", "remainder", "approximate", "other_rank"}


class Logged(NamedTuple):
    """One start-up: what was asked, and what the engine said."""

    id: str
    planned_as: str
    model: str
    shape: Shape | None
    device: str
    visible_gib: float | None
    tensor: int
    pipeline: int
    precision: str
    kv: str
    settings: Settings
    weight_gib: float | None
    kv_gib: float | None
    kv_tokens: int | None
    concurrency: float | None
    doubt: str
    source: str

    @property
    def recent(self) -> bool:
        """Of the releases whose constants are known best."""
        return (parse_version(self.planned_as) or ()) >= (0, 17)


def _number(text: str) -> float | None:
    return float(text) if text else None


def _whole(text: str) -> int | None:
    return int(text) if text else None


@cache
def shapes() -> Mapping[str, Shape]:
    """By name."""
    with (DATA / "plan_memory_shapes.csv").open(newline="", encoding="utf-8") as lines:
        return {row["name"]: _shape(row) for row in csv.DictReader(lines)}


def _shape(row: Mapping[str, str]) -> Shape:
    """Layers in blocks of a kind, not in their true order, which memory does not depend on."""
    number = {key: int(text) for key, text in row.items() if text.isdigit()}
    layers = number["layers"]
    mixer = _latent(number) if "kv_rank" in number else _attention(number, None)
    dense = Dense(intermediate=number.get("intermediate", 0))
    wide = _experts(number) if "experts" in number else dense
    kinds = [Block(mixer=mixer, feed_forward=wide)]
    order = [0] * layers
    if local := number.get("local_layers", 0):
        kinds.append(Block(mixer=_attention(number, number["window"]), feed_forward=wide))
        order[:local] = [1] * local
    if recurrent := number.get("recurrent_layers", 0):
        state = Recurrent(
            kind="linear",
            parameters=0,
            state_elements=number["state_elements"],
            convolution_elements=number["convolution_elements"],
            state_bytes=4.0,  # all of these say mamba_ssm_dtype float32
        )
        kinds.append(Block(mixer=state, feed_forward=wide))
        order[:recurrent] = [1] * recurrent
    if first := number.get("first_dense", 0):
        kinds.append(Block(mixer=mixer, feed_forward=dense))
        order[:first] = [len(kinds) - 1] * first
    return Shape(
        name=row["name"],
        hidden=number["hidden"],
        vocab=number["vocab"],
        kinds=tuple(kinds),
        order=tuple(order),
        tied=False,
        max_context=number.get("max_context"),
        extras=(Extra(name="vision", parameters=None, loaded=True),) if "vision" in number else (),
        source=row["source"],
    )


def _attention(number: Mapping[str, int], window: int | None) -> Attention:
    return Attention(heads=number["heads"], kv_heads=number["kv_heads"], head_dim=number["head_dim"], window=window)


def _latent(number: Mapping[str, int]) -> Latent:
    return Latent(
        heads=number["heads"],
        kv_rank=number["kv_rank"],
        rope_dim=number["rope_dim"],
        nope_dim=number["nope_dim"],
        value_dim=number["value_dim"],
    )


def _experts(number: Mapping[str, int]) -> Experts:
    return Experts(
        experts=number["experts"],
        per_token=number["per_token"],
        intermediate=number["moe_intermediate"],
        shared_intermediate=number.get("shared_intermediate", 0),
    )


@cache
def logged() -> tuple[Logged, ...]:
    """All rows, the doubtful ones too."""
    with (DATA / "plan_memory.csv").open(newline="", encoding="utf-8") as lines:
        return tuple(_logged(row) for row in csv.DictReader(lines))


def _logged(row: Mapping[str, str]) -> Logged:
    settings = Settings(
        utilisation=_number(row["utilisation"]),
        context=_whole(row["max_model_len"]),
        max_seqs=_whole(row["max_num_seqs"]),
        batched_tokens=_whole(row["max_num_batched_tokens"]),
        chunked=None if not row["chunked"] else row["chunked"] == "1",
    )
    return Logged(
        id=row["id"],
        planned_as=row["planned_as"],
        model=row["model"],
        shape=shapes().get(row["shape"]),
        device=row["hw"],
        visible_gib=_number(row["visible_gib"]),
        tensor=int(row["tp"]),
        pipeline=int(row["pp"]),
        precision="mxfp4" if row["shape"].startswith("gpt-oss") else row["weights_dtype"].split("/")[0] or "bf16",
        kv=KV_NAMES[row["kv_dtype"]],
        settings=settings,
        weight_gib=_number(row["weight_gib"]),
        kv_gib=_number(row["kv_gib"]),
        kv_tokens=_whole(row["kv_tokens"]),
        concurrency=_number(row["max_concurrency"]),
        doubt=row["doubt"],
        source=row["source"],
    )


def planned(row: Logged) -> Memory | None:
    """The plan of a row from its flags and its logged weights; None where the log gives too little for one."""
    if row.shape is None or row.visible_gib is None or row.weight_gib is None:
        return None
    ask = Ask(
        shape=row.shape,
        weights_bytes=_stage_weights(row, row.shape),
        visible_bytes=row.visible_gib * GIB,
        device=row.device,
        version=row.planned_as,
        parallel=Parallel(tensor=row.tensor, pipeline=row.pipeline),
        settings=row.settings,
        key_precision=row.kv,
        weight_precision=row.precision,
    )
    return memory(ask)


def _stage_weights(row: Logged, shape: Shape) -> tuple[float, ...]:
    """The logged ones; of three stages or more a middle one prints them, and the two ends hold a table each besides."""
    logged_bytes = (row.weight_gib or 0.0) * GIB
    if row.pipeline < 3:
        return (logged_bytes,)
    end = logged_bytes + 2.0 * shape.vocab * shape.hidden
    return (end, *[logged_bytes] * (row.pipeline - 2), end)


def planned_kv_gib(row: Logged) -> tuple[float, float, float] | None:
    """Low, mid, high of the pool of the first stage, which prints it."""
    plan = planned(row)
    if plan is None:
        return None
    left = plan.stages[0].kv_bytes
    return left.low / GIB, left.mid / GIB, left.high / GIB


def pool_given_kv(row: Logged) -> Pool | None:
    """What the logged pool holds, by the rules of blocks and groups alone."""
    if row.shape is None or row.kv_gib is None or row.settings.context is None:
        return None
    version = parse_version(row.planned_as) or ()
    precision = kv.cache_precision(row.kv, dtype=row.precision)
    layout = vllm_layout(kv.cache(row.shape), precision, row.tensor, version=version)
    if row.pipeline > 1:
        layout = stage_layout(layout, 1 / row.pipeline)
    batched = row.settings.batched_tokens or 8192
    return vllm_pool([layout], [row.kv_gib * GIB], row.settings.context, batched_tokens=batched, version=version)


class Made(NamedTuple):
    """One start of llama.cpp: what its log says, and what is planned of it."""

    id: str
    name: str
    cells: tuple[int, int]
    slot_context: tuple[int, int]
    kv_mib: tuple[float, float]
    compute_mib: tuple[float, float]
    """Logged, planned."""


def made() -> tuple[Made, ...]:
    """All of them."""
    with (DATA / "plan_memory_llamacpp.csv").open(newline="", encoding="utf-8") as lines:
        return tuple(_made(row) for row in csv.DictReader(lines))


def _made(row: Mapping[str, str]) -> Made:
    settings = Settings(
        context=_whole(row["context"]) or None,
        slots=_whole(row["slots"]),
        unified=True if row["unified"] else None,
        ubatch=int(row["ubatch"]),
        flash=row["flash"] == "1",
    )
    ask = Ask(
        shape=shapes()[row["model"]],
        weights_bytes=(0.0,),
        visible_bytes=8.0 * GIB,
        device="CPU",
        engine="llama.cpp",
        version=row["build"],
        settings=settings,
        key_precision=row["key"],
        value_precision=row["value"],
    )
    plan = memory(ask)
    assert plan.slots is not None
    buffer = next(term.bytes.mid for term in plan.stages[0].terms if term.name == "compute_buffer")
    flags = " ".join(f"-{flag} {row[key]}" for flag, key in (("c", "context"), ("np", "slots")) if row[key])
    return Made(
        id=row["id"],
        name=f"{row['model']} {flags}, build {row['build']}",
        cells=(int(row["cells"]), plan.slots.cells),
        slot_context=(int(row["slot_context"]), plan.slots.slot_context),
        kv_mib=(float(row["kv_mib"]), plan.need_bytes / 2**20),
        compute_mib=(float(row["compute_mib"]), buffer / 2**20),
    )
