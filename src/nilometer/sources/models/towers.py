"""Parts beside the language model that the description names: vision towers, counted where their family is known.

Sources: transformers, `modeling_siglip.py` with `Gemma3MultiModalProjector`, `modeling_pixtral.py` with
`Mistral3MultiModalProjector`, `modeling_qwen3_vl.py`, `modeling_llama4.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nilometer.plan.model.shape import Extra

from .fields import Fields

UNCOUNTED = {"vision_tower": "vision_tower_uncounted", "audio_tower": "audio_tower_uncounted"}
"""What is to be said of a part whose size is not known."""

Counter = Callable[[Fields, Fields], int]


def towers(fields: Fields) -> tuple[Extra, ...]:
    """One for each that is described; its size None where its family is not known."""
    found = []
    for name, field in (("vision_tower", "vision_config"), ("audio_tower", "audio_config")):
        tower = fields.inner(field)
        if tower is not None:
            count = _COUNTERS.get(tower.word("model_type") or "")
            found.append(Extra(name=name, parameters=count(tower, fields) if count else None, loaded=True))
    return tuple(found)


def siglip(tower: Fields, fields: Fields) -> int:
    """With the projector of Gemma 3: a norm and one matrix."""
    hidden, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    patch, image = tower.whole("patch_size"), tower.whole("image_size", default=896)
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    patches = 3 * patch * patch * hidden + hidden + (image // patch) ** 2 * hidden
    projector = hidden * fields.whole("hidden_size") + hidden
    return patches + tower.layers() * layer + 2 * hidden + projector


def pixtral(tower: Fields, fields: Fields) -> int:
    """With the projector of Mistral 3: a norm, the merging of 2 x 2 patches, two matrices."""
    hidden, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    patch, merged = tower.whole("patch_size"), fields.whole("spatial_merge_size", default=2)
    layer = 4 * hidden * hidden + 3 * hidden * inner + 2 * hidden
    out = fields.whole("hidden_size")
    projector = hidden + merged * merged * hidden * hidden + hidden * out + out * out
    return 3 * patch * patch * hidden + hidden + tower.layers() * layer + projector


def qwen_vision(tower: Fields, fields: Fields) -> int:
    """Of Qwen3-VL and Qwen3.5, with its merger; Qwen3-VL has one more merger for each layer it looks deeper into."""
    hidden, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    patch, times = tower.whole("patch_size"), tower.whole("temporal_patch_size", default=2)
    merged = hidden * tower.whole("spatial_merge_size", default=2) ** 2
    out = tower.whole("out_hidden_size", default=fields.whole("hidden_size"))
    layer = 4 * hidden * hidden + 4 * hidden + 2 * hidden * inner + inner + hidden + 4 * hidden
    mergers = merged * merged + merged + merged * out + out
    deeper = len(tower.numbers("deepstack_visual_indexes") or ())
    patches = 3 * times * patch * patch * hidden + hidden
    positions = tower.whole("num_position_embeddings", default=2304) * hidden
    count = patches + positions + tower.whole("depth", most=1_000) * layer + mergers + 2 * hidden
    return count + deeper * (mergers + 2 * merged)


def llama4_vision(tower: Fields, fields: Fields) -> int:
    """Of Llama 4, with the adapter behind it: two matrices, and one to the width of the language model."""
    hidden, inner = tower.whole("hidden_size"), tower.whole("intermediate_size")
    patch, image = tower.whole("patch_size"), tower.whole("image_size", default=336)
    between, out = tower.whole("projector_input_dim", default=4096), tower.whole("vision_output_dim", default=4096)
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    patches = 3 * patch * patch * hidden + hidden + ((image // patch) ** 2 + 1) * hidden + 4 * hidden
    adapter = inner * between + between * out + out * fields.whole("hidden_size")
    return patches + tower.layers() * layer + adapter


_COUNTERS: Mapping[str, Counter] = {
    "siglip_vision_model": siglip,
    "pixtral": pixtral,
    "llama4_vision_model": llama4_vision,
    **dict.fromkeys(
        ("qwen3_5", "qwen3_5_moe", "qwen3_5_vision", "qwen3_5_moe_vision", "qwen3_vl", "qwen3_vl_moe"), qwen_vision
    ),
}
