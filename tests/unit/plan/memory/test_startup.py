from __future__ import annotations

import pytest
from tests.unit.plan.shapes import CODELLAMA_7B, DEEPSEEK_V2_LITE, LLAMA_8B

from nilometer.plan.memory.startup import (
    EPOCHS,
    GIB,
    Batch,
    Rank,
    Settings,
    Term,
    epoch_of,
    vllm_batch,
    vllm_terms,
)
from nilometer.plan.model.shape import Extra

BATCH = Batch(seqs=1024, tokens=8192)
V019 = (0, 19, 0)


def terms(rank: Rank, batch: Batch = BATCH, version: tuple[int, ...] = V019, *, eager: bool = False) -> dict[str, Term]:
    return {term.name: term for term in vllm_terms(rank, batch, version, eager=eager)}


def activation_gib(rank: Rank, batch: Batch = BATCH, version: tuple[int, ...] = V019) -> float:
    return terms(rank, batch, version)["activation"].bytes.mid / GIB


LLAMA = Rank(shape=LLAMA_8B, weights_bytes=14.99 * GIB)


def test_by_hand_the_sampler_is_what_most_models_peak_at() -> None:
    """(12.53 + 2) x 1,024 x 128,256 + 8,192 x 4,096 x 2 + 0.04 GiB = 1.88 GiB; the log says 1.89."""
    by_hand = (14.53 * 1024 * 128_256 + 8192 * 4096 * 2) / GIB + 0.04
    assert activation_gib(LLAMA) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(1.89, abs=0.02)
    assert terms(LLAMA)["activation"].formula == "activation_sampler"


def test_by_hand_a_small_vocabulary_leaves_the_forward_run() -> None:
    """2 x 8,192 x (3 x 11,008 + 4 x 4,096) = 0.754 GiB, and 0.015; the log of CodeLlama-7B says 0.77."""
    rank = Rank(shape=CODELLAMA_7B, weights_bytes=0)
    assert activation_gib(rank) == pytest.approx(2 * 8192 * (3 * 11_008 + 4 * 4096) / GIB + 0.015)
    assert activation_gib(rank) == pytest.approx(0.77, abs=0.005)
    assert terms(rank)["activation"].formula == "activation_forward"


def test_fewer_sequences_give_memory_until_the_forward_run_takes_over() -> None:
    few = activation_gib(LLAMA, Batch(seqs=256, tokens=8192))
    assert few == pytest.approx(2 * 8192 * (3 * 14_336 + 4 * 4096) / GIB + 0.015)
    assert activation_gib(LLAMA) - few == pytest.approx(0.96, abs=0.02)
    assert activation_gib(LLAMA, Batch(seqs=1, tokens=8192)) == few


def test_a_release_that_sorts_takes_more() -> None:
    """0.11 logs of Llama-3.1-8B: 4.76 GiB."""
    assert activation_gib(LLAMA, version=(0, 11, 0)) == pytest.approx(4.76, abs=0.01)


def test_the_first_engine_peaks_at_the_whole_context() -> None:
    """vllm#10517, RTX 3090: peak 2.07 GiB over the weights at 20,000 tokens and 2.99 at 29,000; 0.06 in chunks."""
    for context, peak in ((20_000, 2.07), (29_000, 2.99)):
        batch = vllm_batch(Settings(), context, visible_bytes=23.58 * GIB, device="RTX-3090", version=(0, 6, 4))
        assert (batch.seqs, batch.tokens, batch.chunked) == (256, context, False)
        assert activation_gib(LLAMA, batch, (0, 6, 4)) == pytest.approx(peak, abs=0.03)
    chunked = vllm_batch(Settings(), 35_000, visible_bytes=23.58 * GIB, device="RTX-3090", version=(0, 6, 4))
    assert chunked == Batch(seqs=256, tokens=512, chunked=True)
    assert activation_gib(LLAMA, chunked, (0, 6, 4)) == pytest.approx(0.06, abs=0.02)


def test_experts_hold_a_copy_of_each_token_for_each_asked() -> None:
    """DeepSeek-V2-Lite, two ranks: 2 x 8,192 x 6 x (the wider of 2 x 704 and 2,048, + 704); none in MXFP4."""
    rank = Rank(shape=DEEPSEEK_V2_LITE, weights_bytes=0, tensor=2)
    values = terms(rank)["activation"].values
    assert values["experts_bytes"] == 2 * 8192 * 6 * (2048 + 704)
    whole = Rank(shape=DEEPSEEK_V2_LITE, weights_bytes=0, tensor=2, expert=2)
    assert terms(whole)["activation"].values["experts_bytes"] == 2 * 8192 * 6 * (2 * 1408 + 1408)
    packed = Rank(shape=DEEPSEEK_V2_LITE, weights_bytes=0, precision="mxfp4")
    assert terms(packed)["activation"].values["experts_bytes"] == 0


def test_before_0_17_what_experts_work_in_is_gone_when_the_sampler_runs() -> None:
    rank = Rank(shape=DEEPSEEK_V2_LITE, weights_bytes=0)
    sampler = (36.08 + 2) * 1024 * 102_400 + 8192 * 2048 * 2
    assert activation_gib(rank, version=(0, 11)) == pytest.approx(sampler / GIB + 0.04)
    kept = (12.53 + 2) * 1024 * 102_400 + 8192 * 2048 * 2 + 2 * 8192 * 6 * 3 * 1408
    assert activation_gib(rank) == pytest.approx(kept / GIB + 0.04)


def test_only_the_last_stage_samples_and_later_ones_keep_what_is_handed_over() -> None:
    forward = 2 * 8192 * (3 * 14_336 + 4 * 4096) / GIB + 0.015
    handed = 2 * 8192 * 4096 * 2 / GIB
    first, middle, last = (
        Rank(shape=LLAMA_8B, weights_bytes=0, start=start, stop=start + 8, pipeline=4) for start in (0, 8, 24)
    )
    assert activation_gib(first) == pytest.approx(forward)
    assert activation_gib(middle) == pytest.approx(forward + handed)
    assert activation_gib(last) == pytest.approx(activation_gib(LLAMA) + handed)
    assert terms(first)["non_torch"].bytes.mid == 0.07 * GIB


def test_a_vision_tower_is_profiled_too() -> None:
    import msgspec

    seeing = msgspec.structs.replace(LLAMA_8B, extras=(Extra(name="vision", parameters=None, loaded=True),))
    assert activation_gib(Rank(shape=seeing, weights_bytes=0)) - activation_gib(LLAMA) == pytest.approx(0.17)


@pytest.mark.parametrize(
    ("device", "visible_gib", "settings", "version", "expected"),
    [
        ("H100-SXM-80G", 79.2, Settings(), (0, 19), (1024, 8192)),
        ("H100-SXM-80G", 79.2, Settings(served=False), (0, 19), (1024, 16_384)),
        ("A100-SXM-80G", 79.2, Settings(), (0, 19), (256, 2048)),
        ("RTX-4090", 23.5, Settings(served=False), (0, 19), (256, 8192)),
        ("CPU", 256.0, Settings(), (0, 19), (128, 2048)),
        ("H100-SXM-80G", 79.2, Settings(max_seqs=16), (0, 19), (16, 8192)),
        ("H100-SXM-80G", 79.2, Settings(batched_tokens=512), (0, 19), (512, 512)),
        ("H100-SXM-80G", 79.2, Settings(chunked=False), (0, 19), (1024, 16_000)),
        ("A100-SXM-40G", 39.4, Settings(), (0, 7, 3), (256, 16_000)),
    ],
)
def test_the_limits_of_a_step_as_vllm_chooses_them(
    device: str, visible_gib: float, settings: Settings, version: tuple[int, ...], expected: tuple[int, int]
) -> None:
    batch = vllm_batch(settings, 16_000, visible_bytes=visible_gib * GIB, device=device, version=version)
    assert (batch.seqs, batch.tokens) == expected


def test_a_short_context_bounds_the_tokens_of_a_step() -> None:
    batch = vllm_batch(Settings(max_seqs=2), 1024, visible_bytes=80 * GIB, device="H100", version=V019)
    assert batch.tokens == 2048


def test_graphs_are_counted_from_0_21_on_unless_eager() -> None:
    """32 layers, 51 batch sizes: 0.32 + 0.0185 x 32 = 0.91 GiB, what 0.19 really used for Llama-3.1-8B."""
    assert "graphs" not in terms(LLAMA)
    graphs = terms(LLAMA, version=(0, 21))["graphs"]
    assert graphs.values["sizes"] == 51
    assert graphs.bytes.mid / GIB == pytest.approx(0.91, abs=0.005)
    assert "graphs" not in terms(LLAMA, version=(0, 21), eager=True)
    few = terms(LLAMA, Batch(seqs=1, tokens=8192), (0, 21))["graphs"]
    assert few.bytes.mid < graphs.bytes.mid


def test_every_release_has_one_row_and_every_term_its_release_and_source() -> None:
    for version in ((0, 2), (0, 6, 5), (0, 8), (0, 16, 9), (0, 17), (0, 20, 2), (0, 21), (1, 0)):
        assert sum(row.span.holds(version) for row in EPOCHS) == 1
        for term in vllm_terms(LLAMA, BATCH, version):
            assert term.bytes.low <= term.bytes.mid <= term.bytes.high
            assert term.name == "weights" or (term.span and term.source)
    assert epoch_of((0, 20)).utilisation == 0.9
    assert epoch_of((0, 21)).utilisation == 0.92


def test_what_0_6_5_counted_is_its_own() -> None:
    assert terms(LLAMA, version=(0, 6, 5))["non_torch"].bytes.mid == 1.79 * GIB
    assert terms(LLAMA, version=(0, 6, 6))["non_torch"].bytes.mid == 0.3 * GIB
