"""Small GGUF files, made by the package of their makers, of each sort of layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

HIDDEN, VOCAB = 64, 96
F32 = GGMLQuantizationType.F32

Tensors = dict[str, tuple[int, ...]]

ATTENTION: Tensors = {
    "attn_norm.weight": (HIDDEN,),
    "attn_q.weight": (HIDDEN, 64),
    "attn_k.weight": (HIDDEN, 32),
    "attn_v.weight": (HIDDEN, 32),
    "attn_output.weight": (64, HIDDEN),
}
DENSE: Tensors = {
    "ffn_norm.weight": (HIDDEN,),
    "ffn_gate.weight": (HIDDEN, 128),
    "ffn_up.weight": (HIDDEN, 128),
    "ffn_down.weight": (128, HIDDEN),
}
EXPERTS: Tensors = {
    "ffn_norm.weight": (HIDDEN,),
    "ffn_gate_inp.weight": (HIDDEN, 8),
    "exp_probs_b.bias": (8,),
    "ffn_gate_exps.weight": (HIDDEN, 32, 8),
    "ffn_up_exps.weight": (HIDDEN, 32, 8),
    "ffn_down_exps.weight": (32, HIDDEN, 8),
    "ffn_gate_shexp.weight": (HIDDEN, 32),
    "ffn_up_shexp.weight": (HIDDEN, 32),
    "ffn_down_shexp.weight": (32, HIDDEN),
}
LATENT: Tensors = {
    "attn_norm.weight": (HIDDEN,),
    "attn_q_a.weight": (HIDDEN, 32),
    "attn_q_a_norm.weight": (32,),
    "attn_q_b.weight": (32, 4 * 24),
    "attn_kv_a_mqa.weight": (HIDDEN, 32 + 8),
    "attn_kv_a_norm.weight": (32,),
    "attn_k_b.weight": (16, 32, 4),
    "attn_v_b.weight": (32, 16, 4),
    "attn_output.weight": (64, HIDDEN),
}
MAMBA: Tensors = {
    "attn_norm.weight": (HIDDEN,),
    "ssm_in.weight": (HIDDEN, 128 + 160 + 8),
    "ssm_conv1d.weight": (4, 160),
    "ssm_conv1d.bias": (160,),
    "ssm_dt.bias": (8,),
    "ssm_a": (1, 8),
    "ssm_d": (1, 8),
    "ssm_norm.weight": (128,),
    "ssm_out.weight": (128, HIDDEN),
}
HEADS: Mapping[str, Any] = {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 16}


def write(
    path: Path,
    layers: list[Tensors],
    *,
    arch: str = "llama",
    facts: Mapping[str, Any] = HEADS,
    whole: Tensors | None = None,
    tied: bool = False,
    texts: int = 0,
    general: Mapping[str, Any] | None = None,
) -> Path:
    """A file with these layers, weights of zero in 32 bits."""
    writer = GGUFWriter(path, arch=arch)
    for key, value in {"block_count": len(layers), "context_length": 512, "embedding_length": HIDDEN, **facts}.items():
        _add(writer, f"{arch}.{key}", value)
    for key, value in {"general.file_type": 0, **(general or {})}.items():
        _add(writer, key, value)
    writer.add_array("tokenizer.ggml.tokens", [f"t{i}" for i in range(texts or VOCAB)])
    tensors: Tensors = {"token_embd.weight": (HIDDEN, VOCAB), "output_norm.weight": (HIDDEN,)}
    if not tied:
        tensors["output.weight"] = (HIDDEN, VOCAB)
    tensors |= whole or {}
    for i, layer in enumerate(layers):
        tensors |= {f"blk.{i}.{name}": dims for name, dims in layer.items()}
    for name, dims in tensors.items():
        writer.add_tensor(name, np.zeros(tuple(reversed(dims)), dtype=np.float32), raw_dtype=F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)
    else:
        writer.add_string(key, value)
