"""Layers with a state instead of a cache: how many parameters one has and how large its state is."""

from __future__ import annotations

from .shape import Recurrent


def gated_delta_net(
    hidden: int, *, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int
) -> Recurrent:
    """Of Qwen3-Next and Qwen3.5: a matrix of key x value width per value head, behind a short convolution.

    Source: transformers, `Qwen3NextGatedDeltaNet`: projections to query, key, value and gate, to beta and alpha per
    value head, a depthwise convolution without bias, a decay and a step bias per value head, a norm, the way out.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolved = 2 * keys + values
    count = hidden * (convolved + values + 2 * value_heads) + convolved * kernel
    count += 2 * value_heads + value_dim + values * hidden
    window = convolved * (kernel - 1)
    return Recurrent(
        kind="gated_delta_net",
        parameters=count,
        state_elements=value_heads * key_dim * value_dim + window,
        convolution_elements=window,
    )


def mamba2(
    hidden: int,
    *,
    heads: int,
    head_dim: int,
    groups: int,
    state: int,
    kernel: int,
    bias: bool = False,
    convolution_bias: bool = True,
) -> Recurrent:
    """Of Nemotron-H, Granite 4, Bamba and Falcon-H1.

    Source: transformers, `NemotronHMamba2Mixer`: one projection to gate, inputs, B, C and a step per head, a depthwise
    convolution over inputs, B and C, decay, skip and step bias per head, a gated norm, the way out.
    """
    inner = heads * head_dim
    convolved = inner + 2 * groups * state
    wide = inner + convolved + heads
    count = hidden * wide + convolved * (kernel + convolution_bias) + 3 * heads + inner + inner * hidden
    window = convolved * (kernel - 1)
    return Recurrent(
        kind="mamba2",
        parameters=count + (wide + hidden if bias else 0),
        state_elements=inner * state + window,
        convolution_elements=window,
    )


def mamba1(
    hidden: int,
    *,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    bias: bool = False,
    convolution_bias: bool = True,
    norms: bool = False,
) -> Recurrent:
    """Of Jamba (with `norms` on step, B and C) and Falcon-Mamba. Source: transformers, `JambaMambaMixer`."""
    count = hidden * 2 * inner + inner * (kernel + convolution_bias) + inner * (rank + 2 * state)
    count += rank * inner + inner + inner * state + inner + inner * hidden
    window = inner * (kernel - 1)
    return Recurrent(
        kind="mamba1",
        parameters=count + (2 * inner + hidden if bias else 0) + (rank + 2 * state if norms else 0),
        state_elements=inner * state + window,
        convolution_elements=window,
    )


def short_convolution(hidden: int, *, kernel: int, bias: bool = False) -> Recurrent:
    """Of LFM2: a gated convolution over the last few tokens. Source: transformers, `Lfm2ShortConv`."""
    window = hidden * (kernel - 1)
    return Recurrent(
        kind="short_convolution",
        parameters=4 * hidden * hidden + hidden * kernel + (5 * hidden if bias else 0),
        state_elements=window,
        convolution_elements=window,
    )
