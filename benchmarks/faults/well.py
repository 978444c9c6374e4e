"""Services that are well, of many sorts."""

from __future__ import annotations

from nilometer.sim.setting import Speculation

from .service import Draft, Draw


def idle(d: Draft, draw: Draw, size: float) -> None:
    """Asked for next to nothing."""
    d.top, d.growth, d.rho, d.usage = 4, 1.05, 0.03, 0.05


def comfortable(d: Draft, draw: Draw, size: float) -> None:
    d.top, d.growth, d.rho = 16, 1.2, 0.1


def near_the_knee(d: Draft, draw: Draw, size: float) -> None:
    """All slots are taken at the top, and nobody waits for one."""
    d.slots, d.growth, d.rho, d.usage = d.top, 1.6, 0.3, 0.5


def large(d: Draft, draw: Draw, size: float) -> None:
    """Like a large device: fast, many at once."""
    d.tpot, d.top, d.growth, d.output = draw.between(0.005, 0.02), 64, 1.6, draw.between(60, 250)


def small(d: Draft, draw: Draw, size: float) -> None:
    """Like a processor: slow, few at once, prompts take their time."""
    d.tpot, d.top, d.rho, d.output = draw.between(0.03, 0.06), 4, 0.25, draw.between(16, 80)
    d.prompt = draw.between(100, 600)


def replicas(d: Draft, draw: Draw, size: float) -> None:
    """Several that are alike."""
    d.replicas, d.router = draw.pick((2, 2, 3, 4)), draw.random.choice(("least", "turns"))
    d.targets = d.router == "turns" and draw.chance(0.5)
    d.top = max(d.top, 8)


def good_drafts(d: Draft, draw: Draw, size: float) -> None:
    """Guesses that are mostly right and cost little."""
    d.top, d.sparse, d.output = min(d.top, 16), True, min(d.output, 200)
    d.speculation = Speculation(
        drafts=draw.random.choice((2, 3, 4)), acceptance=draw.between(0.7, 0.92), draft_share=0.04
    )
    d.also_client = d.also_server = ("grouped_tokens",)


def short_by_design(d: Draft, draw: Draw, size: float) -> None:
    """Answers of a few tokens, as asked."""
    d.output, d.output_cv = draw.between(6, 20), 0.3
    d.tpot = max(d.tpot, 0.3 / d.output)
    d.rho = 0.15


def long_prompts(d: Draft, draw: Draw, size: float) -> None:
    d.prompt, d.rho, d.top = draw.between(2500, 6000), 0.3, 8
