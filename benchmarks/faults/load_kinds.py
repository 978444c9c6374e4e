"""Kinds that lie in the load, or in who makes it."""

from __future__ import annotations

from .service import Draft, Draw


def short_answers(d: Draft, draw: Draw, size: float) -> None:
    """The model ends by itself long before what was asked for."""
    d.output = max(d.output, 60)
    at = 1 - 0.9 * size * draw.random.uniform(0.8, 1.0)
    d.change(early_eos_share=min(1.0, 0.55 + 0.45 * size), early_eos_at=max(at, 0.05))


def too_short(d: Draft, draw: Draw, size: float) -> None:
    """So few requests that nothing is steady."""
    d.requests = 1 / (1 + 16 * size * draw.random.uniform(0.8, 1.0))
    d.top = min(d.top, 16)
    d.sparse = True


def generator_limited(d: Draft, draw: Draw, size: float) -> None:
    """The loop that reads has no time to: its own work, or a processor that others take."""
    d.client.own_work = draw.chance(0.5)
    d.client.away_share = 0.85 * size * draw.random.uniform(0.6, 1.0)
    d.client.away_s = draw.between(0.012, 0.12)
    d.top = max(d.top, 16)


def client_pool(d: Draft, draw: Draw, size: float) -> None:
    """Fewer connections than users."""
    pool = draw.pick((2, 3, 4, 5, 8, 6, 12, 10))
    d.top = 1
    while d.top < pool * (1 + 2.5 * size):
        d.top *= 2
    d.slots = 4 * d.top
    d.growth = 1 + (d.growth - 1) * 0.6
    if draw.chance(0.5):
        d.client.path_pool = pool if size > 0 else None
        d.also_client = ("queue",)
    else:
        d.client.own_pool = pool if size > 0 else None
        d.also_client = d.also_server = ("generator_limited",)


def prefix_flattered(d: Draft, draw: Draw, size: float) -> None:
    """A few prompts again and again: all but their last tokens are in the cache."""
    d.prompts = draw.pick((1, 2, 4, 6, 8, 12)) if size > 0 else None
    d.prompt = max(d.prompt, 300)
    d.rho = max(d.rho, 0.15)
    d.tells_cached = draw.chance(0.5)
    d.also_client = () if d.tells_cached else ("healthy", "unreal_lengths")
    if d.prompts is not None and d.prompts < 3:
        d.also_client += ("unreal_lengths",)
        d.also_server += ("unreal_lengths",)


def unreal_lengths(d: Draft, draw: Draw, size: float) -> None:
    """All prompts are alike where the service's traffic is a mix."""
    d.prompt_cv *= max(0.0, 1 - 1.25 * size)
    if draw.chance(0.5):
        d.output_cv *= max(0.0, 1 - 1.25 * size)
