"""Layers with a state against the sum over their tensors, as the checkpoints list them."""

from __future__ import annotations

from nilometer.plan.model.recurrent import gated_delta_net, mamba1, mamba2, short_convolution


def test_gated_delta_net_of_qwen3_next_80b() -> None:
    layer = gated_delta_net(2048, key_heads=16, value_heads=32, key_dim=128, value_dim=128, kernel=4)
    tensors = {
        "in_proj_qkvz": 12_288 * 2048,
        "in_proj_ba": 64 * 2048,
        "conv1d": 8192 * 1 * 4,
        "A_log": 32,
        "dt_bias": 32,
        "norm": 128,
        "out_proj": 2048 * 4096,
    }
    assert layer.parameters == sum(tensors.values())
    assert layer.convolution_elements == 8192 * 3
    assert layer.state_elements == 32 * 128 * 128 + 8192 * 3


def test_mamba2_of_nemotron_h_8b() -> None:
    layer = mamba2(4096, heads=128, head_dim=64, groups=8, state=128, kernel=4)
    tensors = {
        "in_proj": 18_560 * 4096,
        "conv1d.weight": 10_240 * 4,
        "conv1d.bias": 10_240,
        "A_log": 128,
        "D": 128,
        "dt_bias": 128,
        "norm": 8192,
        "out_proj": 4096 * 8192,
    }
    assert layer.parameters == sum(tensors.values())
    assert layer.state_elements == 128 * 64 * 128 + 10_240 * 3
    biased = mamba2(4096, heads=128, head_dim=64, groups=8, state=128, kernel=4, bias=True, convolution_bias=False)
    assert biased.parameters == layer.parameters - 10_240 + 18_560 + 4096


def test_mamba1_of_jamba_mini() -> None:
    layer = mamba1(4096, inner=8192, state=16, kernel=4, rank=256, norms=True)
    tensors = {
        "in_proj": 16_384 * 4096,
        "conv1d": 8192 * 4 + 8192,
        "x_proj": 288 * 8192,
        "dt_proj": 8192 * 256 + 8192,
        "A_log": 8192 * 16,
        "D": 8192,
        "out_proj": 4096 * 8192,
        "dt, b, c layernorm": 256 + 16 + 16,
    }
    assert layer.parameters == sum(tensors.values())
    assert layer.state_elements == 8192 * 16 + 8192 * 3
    plain = mamba1(4096, inner=8192, state=16, kernel=4, rank=256, bias=True, convolution_bias=False)
    assert plain.parameters == layer.parameters - 288 - 8192 + 16_384 + 4096


def test_short_convolution_of_lfm2() -> None:
    layer = short_convolution(2048, kernel=3)
    assert layer.parameters == 3 * 2048 * 2048 + 2048 * 3 + 2048 * 2048
    assert layer.state_elements == layer.convolution_elements == 2048 * 2
    assert short_convolution(2048, kernel=3, bias=True).parameters == layer.parameters + 5 * 2048
