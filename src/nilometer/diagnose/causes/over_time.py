"""What changes while the load stays: cold starts, neighbours, growth, throttling."""

from __future__ import annotations

from ..case import Case
from ..sign import Opinion, Sign, both, either, strongest, weigh


def cold_start(case: Case) -> Opinion:
    """The first requests are slow, or the first after an idle spell."""
    return strongest(
        weigh([case.low("head_ratio").above(2, 3)]),
        weigh([case.most("after_idle_ratio").above(2, 3)]),
    )


def noisy_neighbour(case: Case) -> Opinion:
    """Spells in which everything is slow, at every load, and not tied to the load's own prompts."""
    return weigh(
        [
            _two_paces(case, low=True),
            _two_paces(case, low=False),
            either(case.low("slow_spell").above(0.3, 0.5), case.high("slow_spell").above(0.3, 0.5)),
            case.low("slow_time_share").within(0.04, 0.7, 0.3),
        ],
        supports=[case.high("host_other_cpu_peak_cores").above(0.2, 0.8), case.low("slow_prefill_r").below(0.6, 0.3)],
        against=[_one_step(case)],
    )


def _two_paces(case: Case, *, low: bool) -> Sign:
    of = case.low if low else case.high
    return both(of("slow_ratio").above(1.2, 1.45), of("slow_separation").above(0.72, 0.82))


def _one_step(case: Case) -> Sign:
    """From one moment on it was slower."""
    return both(case.most("step_ratio").above(1.12, 1.25), case.most("step_separation").above(0.85, 0.93))


def growing_state(case: Case) -> Opinion:
    """Streams get slower and slower at the same load."""
    drift = both(case.most("tpot_drift").above(0.05, 0.12), case.least("tpot_drift_p").below(0.05, 0.01))
    return weigh(
        [drift],
        against=[
            _one_step(case),
            case.most("prompt_drift").above(0.1, 0.3),
            case.most("output_drift").above(0.1, 0.3),
        ],
    )


def throttling(case: Case) -> Opinion:
    """Slower from one moment on, or stopped again and again by a clock: a power cap, or a quota of processor time."""
    step = weigh([_one_step(case)], supports=[case.high("host_gpu_clock_drop").below(0.95, 0.85)])
    clock = weigh(
        [
            either(case.low("pause_unevenness").below(0.6, 0.3), case.high("pause_unevenness").below(0.6, 0.3)),
            case.low("pause_time_share").above(0.05, 0.15),
            case.high("pause_time_share").above(0.05, 0.15),
            case.high("gap_first_token_share").below(0.8, 0.5)
            if case.high("gap_first_token_share").value is not None
            else case.high("pause_time_share").above(0.05, 0.15),
        ],
        supports=[
            either(case.high("host_throttled_share").above(0.05, 0.2), case.high("host_stopped_share").above(0.05, 0.2))
        ],
    )
    return strongest(step, clock)
