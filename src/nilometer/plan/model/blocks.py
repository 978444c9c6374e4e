"""What GGUF's block formats take, and how its mixed file types deal them out over the tensors of a model.

A `Q4_K_M` file is no file of one format: it keeps half of two sorts of tensors in 6 bits, the head too, norms and
routers in 32. Source of every row: llama.cpp, ggml-common.h (blocks) and src/llama-quant.cpp (mixtures), with an
importance matrix for the i-quants, at least four query heads a KV head, and other than eight experts; checked against
the bits per weight that its tools/quantize/README.md gives for Llama-3.1-8B.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

BLOCKS: Mapping[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q8_1": (32, 40),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "Q8_K": (256, 292),
    "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74),
    "IQ3_XXS": (256, 98),
    "IQ1_S": (256, 50),
    "IQ4_NL": (32, 18),
    "IQ3_S": (256, 110),
    "IQ2_S": (256, 82),
    "IQ4_XS": (256, 136),
    "I8": (1, 1),
    "I16": (1, 2),
    "I32": (1, 4),
    "I64": (1, 8),
    "F64": (1, 8),
    "IQ1_M": (256, 56),
    "TQ1_0": (256, 54),
    "TQ2_0": (256, 66),
    "MXFP4": (32, 17),
    "NVFP4": (64, 36),
    "Q1_0": (128, 18),
}
"""THE table of ggml's formats: weights in a block, and its bytes with scales and minima."""

_INSTEAD = {
    "IQ1_S": "IQ4_NL",
    "IQ1_M": "IQ4_NL",
    "IQ2_XXS": "IQ4_NL",
    "IQ2_XS": "IQ4_NL",
    "IQ2_S": "IQ4_NL",
    "IQ3_XXS": "IQ4_NL",
    "IQ3_S": "IQ4_NL",
    "IQ4_XS": "IQ4_NL",
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "TQ1_0": "Q4_0",
    "TQ2_0": "Q4_0",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
"""What a matrix is kept in whose rows are no whole blocks of the wanted format."""

Shares = tuple[tuple[str, float], ...]
"""Formats, each with its share of the tensors of a sort."""


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """A file type: the format of most tensors, and of the sorts that have another (`parameters.Part.name`)."""

    base: str
    head: str = "Q6_K"
    """Of the output head, and of an embedding that is the head as well."""
    embedding: str | None = None
    """Of an embedding that is not; None = the base."""
    others: Mapping[str, Shares] = {}


def _sorts(
    value: Shares = (), down: Shares = (), output: Shares = (), *, up: Shares = (), **more: Shares
) -> Mapping[str, Shares]:
    rows = {"attention.value": value, "attention.output": output, **{f"attention.{k}": v for k, v in more.items()}}
    for where in ("feed_forward", "experts", "shared"):
        rows |= {f"{where}.down": down, f"{where}.up": up}
    return {name: shares for name, shares in rows.items() if shares}


def _all(name: str) -> Shares:
    return ((name, 1.0),)


def _first(name: str, share: float, rest: str) -> Shares:
    return ((name, share), (rest, 1 - share))


_HALF = 0.5
"""`use_more_bits`: the first and the last eighth of the layers and every third between."""
_EIGHTH = 1 / 8

MIXES: Mapping[str, Mix] = {
    "q4_0": Mix(base="Q4_0"),
    "q4_1": Mix(base="Q4_1"),
    "q5_0": Mix(base="Q5_0"),
    "q5_1": Mix(base="Q5_1"),
    "q8_0": Mix(base="Q8_0", head="Q8_0"),
    "q6_k": Mix(base="Q6_K"),
    "q5_k_s": Mix(base="Q5_K"),
    "q5_k_m": Mix(base="Q5_K", others=_sorts(_first("Q6_K", _HALF, "Q5_K"), _first("Q6_K", _HALF, "Q5_K"))),
    "q4_k_s": Mix(base="Q4_K", others=_sorts(_first("Q5_K", _EIGHTH, "Q4_K"), _first("Q5_K", _EIGHTH, "Q4_K"))),
    "q4_k_m": Mix(base="Q4_K", others=_sorts(_first("Q6_K", _HALF, "Q4_K"), _first("Q6_K", _HALF, "Q4_K"))),
    "q3_k_s": Mix(base="Q3_K"),
    "q3_k_m": Mix(
        base="Q3_K",
        others=_sorts(_first("Q5_K", _EIGHTH / 2, "Q4_K"), _first("Q5_K", _EIGHTH / 2, "Q4_K"), _all("Q4_K")),
    ),
    "q3_k_l": Mix(base="Q3_K", others=_sorts(_all("Q5_K"), _all("Q5_K"), _all("Q5_K"))),
    "q2_k": Mix(base="Q2_K", others=_sorts(_all("Q4_K"), _all("Q3_K"), _all("Q3_K"))),
    "q2_k_s": Mix(base="Q2_K", others=_sorts(_all("Q4_K"), _first("Q4_K", _EIGHTH, "Q2_K"))),
    "iq4_xs": Mix(base="IQ4_XS", others=_sorts(_all("Q5_K"))),
    "iq4_nl": Mix(base="IQ4_NL", others=_sorts(_all("Q5_K"))),
    "iq3_m": Mix(base="IQ3_S", others=_sorts(_all("Q4_K"), _first("Q4_K", _EIGHTH, "IQ3_S"), _all("Q4_K"))),
    "iq3_s": Mix(base="IQ3_S", others=_sorts(_all("Q4_K"))),
    "iq3_xs": Mix(
        base="IQ3_S",
        others=_sorts(
            _all("Q4_K"), up=_first("IQ3_XXS", 6 * _EIGHTH, "IQ3_S"), query=_all("IQ3_XXS"), key=_all("IQ3_XXS")
        ),
    ),
    "iq3_xxs": Mix(
        base="IQ3_XXS",
        head="Q5_K",
        embedding="IQ3_S",
        others=_sorts(_all("Q4_K"), (), _all("IQ3_S"), query=_all("IQ2_S"), key=_all("IQ2_S")),
    ),
    "iq2_m": Mix(
        base="IQ2_S",
        head="Q5_K",
        embedding="IQ3_S",
        others=_sorts(_all("Q4_K"), _first("IQ3_S", _EIGHTH, "IQ2_S"), _all("IQ3_S")),
    ),
    "iq2_s": Mix(
        base="IQ2_XS",
        head="Q5_K",
        embedding="IQ3_S",
        others=_sorts(_all("Q4_K"), _first("IQ3_S", _EIGHTH, "IQ2_XS"), _all("IQ3_S")),
    ),
    "iq2_xs": Mix(
        base="IQ2_XS", head="Q5_K", embedding="Q2_K", others=_sorts(_all("Q4_K"), _first("Q2_K", _EIGHTH, "IQ2_XS"))
    ),
    "iq2_xxs": Mix(
        base="IQ2_XXS", head="Q5_K", embedding="Q2_K", others=_sorts(_all("Q4_K"), _first("Q2_K", _EIGHTH, "IQ2_XXS"))
    ),
    "iq1_m": Mix(
        base="IQ1_M",
        head="Q5_K",
        embedding="Q2_K",
        others=_sorts(_all("Q4_K"), _first("Q2_K", _EIGHTH, "IQ1_M"), _all("IQ2_XXS")),
    ),
    "iq1_s": Mix(
        base="IQ1_S",
        head="Q5_K",
        embedding="Q2_K",
        others=_sorts(_all("Q4_K"), _first("Q2_K", _EIGHTH, "IQ1_S"), _all("IQ2_XXS")),
    ),
    "mxfp4_moe": Mix(
        base="Q8_0", head="Q8_0", others={f"experts.{which}": (("MXFP4", 1.0),) for which in ("up", "down")}
    ),
}
"""THE table of GGUF's file types."""


def block_bits(name: str, width: int = 0) -> float:
    """Bits a weight of one format takes, in rows of `width`; of the format that stands in where rows do not fit."""
    weights, size = BLOCKS[name]
    if width % weights:
        return block_bits(_INSTEAD.get(name, "F16"), width)
    return size * 8 / weights


def mixed_bits(mix: Mix, name: str, width: int, *, tied: bool) -> float:
    """Bits a weight of the part `name` takes on average."""
    if name == "head" or (name == "embedding" and tied):
        fits = width % BLOCKS[mix.base][0] == 0
        return block_bits(mix.head if fits else "Q8_0", width)
    if name == "embedding":
        return block_bits(mix.embedding or mix.base, width)
    return sum(share * block_bits(kind, width) for kind, share in mix.others.get(name, ((mix.base, 1.0),)))
