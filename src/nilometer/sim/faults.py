"""What is wrong with a service, as data. All fields at their defaults: nothing is.

Faults that lie in the engine's own settings (slots, pool, policy, reserve) are settings, not faults: see `setting.py`.
"""

from __future__ import annotations

import msgspec

WHOLE_ANSWER = 1 << 30
"""`buffer_frames` of a proxy that passes an answer on when it is whole."""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Around the engine, in the order in which a request meets them; seconds and shares."""

    rate_per_s: float | None = None
    """Requests let in per second, by a bucket of `rate_burst`; the rest get status 429."""
    rate_burst: int = 1
    refuse_s: float = 0.02
    """What a refusal takes, above 0: a client that asks again at once must not ask for ever at one moment."""
    drop_share: float = 0.0
    """Requests that get lost on the way and are never answered."""
    timeout_s: float | None = None
    """A gateway gives up on a request without a first token after so long, and asks again up to `retries` times."""
    retries: int = 0
    cold_requests: int = 0
    cold_s: float = 0.0
    """What each of the first `cold_requests` waits in addition."""
    cold_again_s: float = float("inf")
    """After so long without any work it is cold again: weights are loaded anew, clocks ramp up."""
    front_s: float = 0.0
    """What the one front end takes for each request, one at a time."""
    front_token_s: float = 0.0
    """The same for each token of its prompt."""
    early_eos_share: float = 0.0
    """Answers that end by themselves too early, at `early_eos_at` of their length."""
    early_eos_at: float = 0.3
    frame_tokens: int = 1
    """Tokens per frame of the stream."""
    buffer_frames: int = 0
    """A proxy passes frames on by so many at once; 0 = each as it comes."""

    replica_slowness: tuple[float, ...] = ()
    """A factor on the seconds of each replica's steps; those not named are as they should be."""
    jitter: float = 0.0
    """Each step takes a time of its own: the standard deviation of its logarithm, which is normal with mean 0."""
    spell_s: float = 0.0
    quiet_s: float = 0.0
    """Slow spells of this length after quiet ones whose lengths are exponential with this mean."""
    spell_slowness: float = 1.0
    leak_per_s: float = 0.0
    """Every second steps get slower by this share of what they took at first."""
    throttle_after_s: float = float("inf")
    throttle_slowness: float = 1.0
    """From then on."""
    duty_period_s: float = 0.0
    duty_share: float = 1.0
    """The engine runs for this share of every period and stands still for the rest."""

    @property
    def slows(self) -> bool:
        """Whether steps take other times than their cost."""
        return bool(
            any(factor != 1 for factor in self.replica_slowness)
            or self.jitter
            or (self.spell_s and self.spell_slowness != 1)
            or self.leak_per_s
            or self.throttle_slowness != 1
            or (self.duty_period_s and self.duty_share < 1)
        )


HEALTHY = Faults()
