"""From the layers of a model, one by one, to its shape: equal ones become one kind."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.plan.model.parameters import block_parts
from nilometer.plan.model.shape import Attention, Block, Experts, Extra, Shape

from .fields import Fields
from .quantisation import published_precision
from .towers import UNCOUNTED, towers

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16"}


def assemble(
    fields: Fields,
    blocks: Sequence[Block],
    *,
    name: str,
    tied: bool = False,
    head_bias: bool = False,
    final_norm_bias: bool = False,
    extras: Sequence[Extra] = (),
) -> Shape:
    """The shape of a model with these layers; `tied` where the description does not say."""
    kinds = {block: i for i, block in reversed([*enumerate(dict.fromkeys(blocks))])}
    unique = tuple(sorted(kinds, key=kinds.__getitem__))
    found = (*extras, *towers(fields))
    return Shape(
        name=name,
        hidden=fields.whole("hidden_size"),
        vocab=fields.whole("vocab_size"),
        kinds=unique,
        order=tuple(kinds[block] for block in blocks),
        tied=fields.flag("tie_word_embeddings", default=tied),
        head_bias=head_bias,
        final_norm_bias=final_norm_bias,
        max_context=fields.maybe("max_position_embeddings"),
        dtype=published_precision(fields) or DTYPES.get(fields.word("dtype", "torch_dtype") or "", "bf16"),
        extras=found,
        source=fields.file,
        left_out=tuple(UNCOUNTED[extra.name] for extra in found if extra.parameters is None),
    )


def block_parameters(block: Block, hidden: int) -> int:
    """Of one layer."""
    return sum(part.parameters for part in block_parts(block, hidden))


def draft_layers(fields: Fields, count: int, block: Block, *, tables: int) -> tuple[Extra, ...]:
    """Layers that foretell more tokens (MTP): each a layer of the model behind a projection of two hidden vectors.

    `tables`: how many copies of the embedding the files hold with each. Not in memory unless speculation is on.
    """
    if not count:
        return ()
    hidden, vocab = fields.whole("hidden_size"), fields.whole("vocab_size")
    tables = fields.whole("draft_tables", default=tables, least=0, most=tables)
    each = block_parameters(block, hidden) + 2 * hidden * hidden + 3 * hidden + tables * vocab * hidden
    return (Extra(name="draft_layers", parameters=count * each, loaded=False),)


def head_dim(fields: Fields, heads: int) -> int:
    """As stated, else hidden / heads, which then must be whole."""
    found = fields.maybe("head_dim", "attention_head_dim")
    if found is not None:
        return found
    hidden = fields.whole("hidden_size")
    if hidden % heads:
        raise fields.differ("hidden_size", hidden, "num_attention_heads", heads)
    return hidden // heads


def kv_heads(fields: Fields, heads: int) -> int:
    """As stated, else as many as heads; heads must be a multiple."""
    found = fields.whole("num_key_value_heads", default=heads)
    if heads % found:
        raise fields.differ("num_attention_heads", heads, "num_key_value_heads", found)
    return found


def check_experts(fields: Fields, experts: Experts) -> Experts:
    """Refuses more experts a token than there are."""
    if experts.per_token > experts.experts:
        raise fields.differ("num_experts_per_tok", experts.per_token, "num_experts", experts.experts)
    return experts


def plain_attention(fields: Fields, *, window: int | None = None, qk_norm: bool = False) -> Attention:
    """Attention as most families name it."""
    heads = fields.whole("num_attention_heads")
    biased = fields.flag("attention_bias")
    return Attention(
        heads=heads,
        kv_heads=kv_heads(fields, heads),
        head_dim=head_dim(fields, heads),
        window=window,
        qkv_bias=biased,
        out_bias=biased,
        qk_norm=qk_norm,
    )
