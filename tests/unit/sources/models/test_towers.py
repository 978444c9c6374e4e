"""Vision towers by hand: what a checkpoint holds less its language model."""

from __future__ import annotations

import pytest

from nilometer.sources.models.known import look_up, shape_of_row


@pytest.mark.parametrize(
    ("name", "tower"),
    [
        ("gemma-3-4b", 4_300_079_472 - 3_880_263_168),
        ("Mistral-Small-3.2-24B", 24_011_361_280 - 23_572_403_200),
        ("llama-4-scout", 108_641_793_536 - 107_769_861_120),
        ("Qwen3-VL-8B", 8_767_123_696 - 8_190_735_360),
        ("Qwen3-VL-32B", 33_357_390_064 - 32_762_123_264),
    ],
)
def test_a_tower(name: str, tower: int) -> None:
    extras = {extra.name: extra for extra in shape_of_row(look_up(name).row).extras}
    assert extras["vision_tower"].parameters == tower
    assert extras["vision_tower"].loaded
