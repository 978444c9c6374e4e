"""Kinds that lie around the engine: in front of it, on the way back, and in the machine's speed over time."""

from __future__ import annotations

from nilometer.sim.faults import WHOLE_ANSWER

from .service import Draft, Draw


def cold_start(d: Draft, draw: Draw, size: float) -> None:
    """The first requests of all wait for weights, graphs or caches."""
    first_s = d.prompt * d.prefill_s + d.tpot
    d.change(cold_requests=draw.pick((3, 4, 5, 6)), cold_s=size * draw.between(6, 60) * first_s)
    d.first_level_only = True


def buffered_stream(d: Draft, draw: Draw, size: float) -> None:
    """A proxy holds frames back."""
    d.output = max(d.output, 32)
    some = max(2, int(d.output * (0.1 + 0.4 * size)))
    d.change(buffer_frames=WHOLE_ANSWER if size > 0.5 and draw.chance(0.6) else some if size > 0 else 0)


def front_end(d: Draft, draw: Draw, size: float) -> None:
    """One thread takes in all requests, one after another."""
    d.top = max(d.top, 16)
    asked = (0.25 + 2.5 * size) * draw.random.uniform(0.8, 1.2) / d.rate
    if draw.chance(0.5):
        d.change(front_s=asked)
    else:
        d.change(front_s=0.3 * asked, front_token_s=0.7 * asked / d.prompt)
    d.usage = min(d.usage, 0.4)


def rate_limit(d: Draft, draw: Draw, size: float) -> None:
    """A quota refuses what goes beyond it."""
    d.top = max(d.top, 16)
    d.change(
        rate_per_s=d.rate * (1.2 - 0.95 * size) * draw.random.uniform(0.9, 1.1) if size > 0 else None,
        rate_burst=draw.pick((1, 2, 5, 8)),
        refuse_s=draw.random.uniform(0.1, 0.4),
    )


def failures(d: Draft, draw: Draw, size: float) -> None:
    """Requests get lost: the client gives up on them, or a gateway asks again without a word."""
    share = size * draw.between(0.03, 0.25)
    longest = 3.5 * (d.prompt * d.prefill_s + d.answer_s)
    if draw.chance(0.5):
        d.change(drop_share=share)
        d.client_timeout_s = max(longest * (1.0 if d.slots is None else d.top / d.slots), 1.0)
    else:
        ttft = d.prompt * d.prefill_s * 4 + d.tpot * 4
        if d.slots is not None:
            ttft += d.answer_s * d.top / d.slots
        d.change(drop_share=share, timeout_s=max(3 * ttft, 0.5), retries=3)
        d.client_timeout_s = 4 * max(3 * ttft, 0.5) + longest


def noisy_neighbour(d: Draft, draw: Draw, size: float) -> None:
    """The machine is slow for a while, again and again, whatever it is asked for."""
    spell = max(draw.between(0.5, 4.0), 12 * d.tpot)
    quiet = spell * draw.random.uniform(1.5, 4.0)
    d.change(spell_s=spell, quiet_s=quiet, spell_slowness=1 + 5 * size * draw.random.uniform(0.5, 1.0))
    d.least_s = 10 * (spell + quiet)


def growing_state(d: Draft, draw: Draw, size: float) -> None:
    """Every second makes the next one slower."""
    d.least_s = 45.0
    length_s = max(60 * d.alone_s, d.least_s)
    d.change(leak_per_s=size * draw.between(0.15, 0.9) / length_s)


def throttling(d: Draft, draw: Draw, size: float) -> None:
    """Clocks drop from one moment on, or a quota stops the processes for a part of every period."""
    if draw.chance(0.5):
        d.throttles_at = (draw.random.random(), draw.random.uniform(0.3, 0.7))
        d.change(throttle_slowness=1 + 1.6 * size * draw.random.uniform(0.5, 1.0))
    else:
        period = draw.random.choice((0.1, 0.1, 0.5, 1.0))
        d.change(duty_period_s=period, duty_share=1 - 0.75 * size * draw.random.uniform(0.6, 1.0))


def grouped_tokens(d: Draft, draw: Draw, size: float) -> None:
    """The server writes several tokens at a time."""
    d.output = max(d.output, 32)
    d.change(frame_tokens=max(1, round(1 + (draw.pick((2, 3, 4, 5, 8, 7)) - 1) * size)))


def replica_imbalance(d: Draft, draw: Draw, size: float) -> None:
    """One of the replicas is slower, and gets as much or what is left."""
    n = draw.pick((2, 2, 3, 3, 4, 4))
    slow = 1 + 3.5 * size * draw.random.uniform(0.5, 1.0)
    d.replicas, d.router = n, draw.random.choice(("turns", "turns", "random", "least"))
    d.targets = d.router == "turns" and draw.chance(0.7)
    d.change(replica_slowness=(slow, *(1.0 for _ in range(n - 1))))
    d.top = max(d.top, 8)
