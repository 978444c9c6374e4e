"""What changes while the load stays: cold starts, neighbours, growth, throttling."""

from __future__ import annotations

from ..case import Case
from ..sign import Opinion, Sign, both, either, strongest, weigh


def cold_start(case: Case) -> Opinion:
    """The first requests are slow, or the first after an idle spell."""
    return strongest(
        weigh(
            [case.low("head_ratio").above(2, 3)],
            against=[_two_kinds(case), case.low("prefix_hit_ratio").above(0.4, 0.7)],
        ),
        weigh([case.most("after_idle_ratio").above(2, 3)]),
    )


def _two_kinds(case: Case) -> Sign:
    """Slow requests come all through the level, not only at its head."""
    return both(
        case.low("ttft_mode_separation").above(0.8, 0.9),
        case.low("ttft_mode_ratio").above(1.5, 2),
        case.low("ttft_mode_share").above(0.1, 0.16),
    )


def noisy_neighbour(case: Case) -> Opinion:
    """Spells in which everything is slow, at every load, and not tied to the load's own prompts."""
    supports = [case.high("host_other_cpu_peak_cores").above(0.1, 0.5), case.low("slow_prefill_r").below(0.6, 0.3)]
    against = [_one_step(case), by_a_clock(case)]
    spells = case.low("slow_time_share").within(0.04, 0.7, 0.3)
    throughout = weigh(
        [
            _two_paces(case, low=True),
            _two_paces(case, low=False),
            either(case.low("slow_spell").above(0.3, 0.5), case.high("slow_spell").above(0.3, 0.5)),
            spells,
        ],
        supports=supports,
        against=against,
    )
    alone = weigh(
        [
            slow_spells(case),
            case.low("slow_spell").above(0.4, 0.7),
            spells,
        ],
        supports=supports,
        against=[*against, by_replica(case)],
    )
    return strongest(throughout, alone)


def slow_spells(case: Case) -> Sign:
    """At the lowest load some stretches of time are clearly slower than the others."""
    return both(case.low("slow_ratio").above(1.3, 1.6), case.low("slow_separation").above(0.8, 0.9))


def by_replica(case: Case) -> Sign:
    """Streams are slow or fast from beginning to end, whenever they are: it is a matter of who answers."""
    beside = both(case.low("tpot_mode_separation").above(0.92, 0.97), case.low("tpot_mode_in_time").below(0.3, 0.15))
    return either(beside, *(case.low(f"{way}_tpot_share").above(0.3, 0.6) for way in ("replica", "target")))


def by_a_clock(case: Case) -> Sign:
    """It stands still by a clock."""
    return case.made("stopped", stopped(case).score, "share").above(0.5, 0.9)


def _two_paces(case: Case, *, low: bool) -> Sign:
    of = case.low if low else case.high
    return both(of("slow_ratio").above(1.2, 1.45), of("slow_separation").above(0.72, 0.82))


def _one_step(case: Case) -> Sign:
    """From one moment on it was slower."""
    return both(case.most("step_ratio").above(1.12, 1.25), case.most("step_separation").above(0.85, 0.93))


def growing_state(case: Case) -> Opinion:
    """Streams get slower and slower at the same load, at every load: a machine's pace comes and goes by itself."""
    long_s = sum(level.facts.length_s or 0.0 for level in case.group.levels)
    return weigh(
        [
            _grown(case),
            case.least("tpot_drift").above(-0.08, 0.02),
            case.made("measured_for", long_s, "s").above(20, 40),
        ],
        against=[
            _one_step(case),
            case.most("prompt_drift").above(0.4, 0.8),
            both(case.high("tpot_mode_separation").above(0.93, 0.97), case.high("tpot_mode_in_time").below(0.3, 0.15)),
        ],
    )


def _grown(case: Case) -> Sign:
    return both(case.most("tpot_drift").above(0.05, 0.1), case.least("tpot_drift_p").below(0.05, 0.01))


def throttling(case: Case) -> Opinion:
    """Slower from one moment on, or stopped again and again by a clock: a power cap, or a quota of processor time."""
    dropped = weigh([case.most("cut_ratio").above(1.25, 1.5)], against=[_grown(case)])
    step = weigh([_one_step(case)], supports=[case.high("host_gpu_clock_drop").below(0.95, 0.85)])
    return strongest(step, dropped, stopped(case))


def stopped(case: Case) -> Opinion:
    """Everything stands still again and again, by a clock, and goes on as fast as before."""
    return strongest(*(_stopped(case, low=low) for low in (True, False)), _by_quota(case))


def _by_quota(case: Case) -> Opinion:
    """Tokens come in one part of the quota's period alone: every step holds stops, and none of them stands out."""
    quiet = either(*(of("quota_quiet_share").above(0.12, 0.25) for of in (case.low, case.high)))
    return weigh([quiet], supports=[_told_to_stop(case)])


def _told_to_stop(case: Case) -> Sign:
    return either(case.high("host_throttled_share").above(0.05, 0.2), case.high("host_stopped_share").above(0.05, 0.2))


def _stopped(case: Case, *, low: bool) -> Opinion:
    of = case.low if low else case.high
    length, period = of("pause_length").value, of("pause_period").value
    part = case.made("pause_over_period", length / period if length is not None and period else None, "share")
    return weigh(
        [
            either(of("pause_unevenness").below(0.6, 0.3), of("pause_clock").above(0.5, 0.75)),
            of("pause_time_share").above(0.05, 0.15),
            part.below(0.97, 0.88),
            *([] if low else [case.high("gap_first_token_share").below(0.9, 0.7)]),
        ],
        supports=[_told_to_stop(case)],
    )
