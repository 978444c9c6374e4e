"""A GGUF file to the shape of its tensors and their true bytes, whatever the architecture is called.

Layers are made from the tensors that are there, head counts and windows from the metadata. A shape that does not count
what the file holds is refused: its architecture has parts that are not known here. Source: llama.cpp,
src/llama-arch.cpp (names of tensors and keys) and src/models/ (which layers look at a window).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from nilometer.core.errors import DataError
from nilometer.plan.model.parameters import parameters
from nilometer.plan.model.shape import Block, Extra, Shape

from .fields import LAYERS_MOST, Fields
from .gguf_header import Header, Tensor, read_header
from .gguf_layers import EVERY, layer

FILE_TYPES = {
    0: "fp32", 1: "fp16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 11: "q3_k_s",
    12: "q3_k_m", 13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m", 18: "q6_k", 19: "iq2_xxs",
    20: "iq2_xs", 21: "q2_k_s", 22: "iq3_xs", 23: "iq3_xxs", 24: "iq1_s", 25: "iq4_nl", 26: "iq3_s", 27: "iq3_m",
    28: "iq2_s", 29: "iq2_m", 30: "iq4_xs", 31: "iq1_m", 32: "bf16", 38: "mxfp4_moe", 39: "nvfp4",
}  # fmt: skip
"""Source: llama.h, `enum llama_ftype`."""
SPLITS_MOST = 1_000
TOLERANCE = 1e-3
"""Of the parameters, what a shape may count otherwise than the file."""
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_ASIDE = re.compile(r"^(rope_freqs|rope_factors_\w+|blk\.\d+\.(rope_freqs|attn_rot_embd|rope_factors_\w+))\.weight$")
"""Tables that are derived, no parameters."""
_SHOWN = ("block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv")


class Gguf(msgspec.Struct, frozen=True, kw_only=True):
    """What a file (or all parts of a split one) says."""

    shape: Shape
    formats: Mapping[str, int]
    """Bytes of the tensors by their format."""
    precision: str | None
    parameters: int


def read_gguf(path: Path) -> Gguf:
    """The model in a file, with all its parts where it is split.

    DataError: those of `gguf_header.read_header`, `model_shard_missing`, `architecture_unknown`,
    `model_field_missing`, `model_field_bad`, `model_fields_differ`.
    """
    first = read_header(path)
    tensors = dict(first.tensors)
    for part in _other_parts(path, first):
        tensors.update(read_header(part).tensors)
    counted = {name: tensor for name, tensor in tensors.items() if not _ASIDE.match(name)}
    formats: Counter[str] = Counter()
    for tensor in tensors.values():
        formats[tensor.form] += tensor.bytes
    total = sum(tensor.elements for tensor in counted.values())
    kind = first.values.get("general.file_type")
    precision = FILE_TYPES.get(kind) if isinstance(kind, int) else None
    shape = _shape(first, counted, total, precision)
    return Gguf(shape=shape, formats=dict(formats), precision=precision, parameters=total)


def _other_parts(path: Path, header: Header) -> Sequence[Path]:
    count = header.values.get("split.count", 0)
    if not isinstance(count, int) or not 0 <= count <= SPLITS_MOST:
        raise DataError(
            "model_header_too_large", file=str(path), field="split.count", value=str(count)[:80], most=SPLITS_MOST
        )
    if count <= 1:
        return ()
    found = _SPLIT.search(path.name)
    if found is None:
        raise DataError("model_shard_missing", file=str(path), shard=f"*-of-{count:05}.gguf", n=count - 1)
    parts = [path.with_name(f"{path.name[: found.start()]}-{i:05}-of-{count:05}.gguf") for i in range(1, count + 1)]
    missing = [part.name for part in parts if not part.exists()]
    if missing:
        raise DataError("model_shard_missing", file=str(path), shard=missing[0], n=len(missing))
    if found[1] != "00001":
        raise DataError("model_shard_first", file=str(path), first=parts[0].name)
    return parts[1:]


def _shape(header: Header, tensors: Mapping[str, Tensor], total: int, precision: str | None) -> Shape:
    kind = header.values.get("general.architecture")
    arch = kind if isinstance(kind, str) else "?"
    prefix = f"{arch}."
    values = {key.removeprefix(prefix): value for key, value in header.values.items() if key.startswith(prefix)}
    fields = Fields(values, header.file)
    table = tensors.get("token_embd.weight")
    if table is None or len(table.dims) != 2:
        raise _unknown(header, arch, values)
    hidden = table.dims[0]
    layers = fields.whole("block_count", most=LAYERS_MOST)
    drafts = fields.whole("nextn_predict_layers", default=0, least=0, most=layers - 1)
    windows = _windows(fields, arch, layers)
    split = _by_layer(tensors)
    blocks = [layer(fields, split.get(i, {}), hidden, i, windows[i]) for i in range(layers - drafts)]
    if not all(blocks):
        raise _unknown(header, arch, values)
    shape = _assembled(fields, [block for block in blocks if block], tensors, precision)
    extra = sum(one.elements for i in range(layers - drafts, layers) for one in split.get(i, {}).values())
    if extra:
        draft = Extra(name="draft_layers", parameters=extra, loaded=False)
        shape = msgspec.structs.replace(shape, extras=(*shape.extras, draft))
    if abs(parameters(shape) + extra - total) > TOLERANCE * total:
        raise _unknown(header, arch, values)
    name = header.values.get("general.name")
    return msgspec.structs.replace(shape, name=name if isinstance(name, str) and name else Path(header.file).stem)


def _by_layer(tensors: Mapping[str, Tensor]) -> Mapping[int, Mapping[str, Tensor]]:
    split: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        found = re.match(r"blk\.(\d{1,5})\.(.+)$", name)
        if found:
            split.setdefault(int(found[1]), {})[found[2]] = tensor
    return split


def _assembled(fields: Fields, blocks: Sequence[Block], tensors: Mapping[str, Tensor], precision: str | None) -> Shape:
    kinds = tuple(dict.fromkeys(blocks))
    positions = tensors.get("position_embd.weight")
    beside = () if positions is None else (Extra(name="positions", parameters=positions.elements, loaded=True),)
    hidden, vocab = tensors["token_embd.weight"].dims
    return Shape(
        name="",
        hidden=hidden,
        vocab=vocab,
        kinds=kinds,
        order=tuple(map(kinds.index, blocks)),
        tied="output.weight" not in tensors,
        head_bias="output.bias" in tensors,
        final_norm_bias="output_norm.bias" in tensors,
        max_context=fields.maybe("context_length", most=1 << 40),
        dtype=precision or "fp16",
        extras=beside,
        source=fields.file,
    )


def _windows(fields: Fields, arch: str, layers: int) -> Sequence[int | None]:
    wide = fields.maybe("attention.sliding_window", least=0) or (8192 if arch == "llama4" else None)
    pattern = fields.get("attention.sliding_window_pattern")
    if isinstance(pattern, list) and len(pattern) == layers:
        return [wide if flag else None for flag in pattern]
    every = pattern if isinstance(pattern, int) and not isinstance(pattern, bool) else EVERY.get(arch)
    if every is None or every < 0:
        return [None] * layers
    return [wide if not every or (i + 1) % every else None for i in range(layers)]


def _unknown(header: Header, arch: str, values: Mapping[str, object]) -> DataError:
    read = ", ".join(f"{key}={values[key]}" for key in _SHOWN if isinstance(values.get(key), int))
    return DataError("architecture_unknown", file=header.file, name=arch[:80], read=read or "-")
