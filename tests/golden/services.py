"""Services of the step machine whose diagnosis is kept as a screen."""

from __future__ import annotations

import msgspec
from tests.unit.diagnose.played import COST

from nilometer.sim.faults import HEALTHY, Faults
from nilometer.sim.setting import Setting

SERVICES: dict[str, tuple[Setting, Faults]] = {
    "healthy": (Setting(cost=COST, slots=64), HEALTHY),
    "queue": (Setting(cost=COST, slots=3), HEALTHY),
    "static_batching": (Setting(cost=COST, slots=8, policy="static"), HEALTHY),
    "prefill_stalls": (
        Setting(cost=msgspec.structs.replace(COST, prefill_token_s=0.001), slots=64, policy="blocking"),
        HEALTHY,
    ),
    "buffered_stream": (Setting(cost=COST, slots=64), Faults(buffer_frames=1 << 30)),
    "front_end": (Setting(cost=COST, slots=64), Faults(front_s=0.3)),
    "noisy_neighbour": (Setting(cost=COST, slots=64), Faults(spell_s=1.5, quiet_s=3.0, spell_slowness=4.0)),
    "rate_limit": (Setting(cost=COST, slots=64), Faults(rate_per_s=2.0, refuse_s=0.2)),
}
"""Each answer's slug, and a service of which it is true."""
