"""All evidence of one load: each feature by its name, with value, n, window, level and source; and its time budgets.

A new feature is a function in `features` and a row here. What was not measured is None, and a rule that needs it must
say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from nilometer.core.finding import Evidence
from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.metrics import curve
from nilometer.metrics.curve import Rung

from .base import Base, base_of
from .budget import Budget, e2e_budget, ttft_budget
from .evidence import Level, level_of
from .facts import Facts, facts_of
from .features import answers, both_sides, delivery, joining, late, modes, over_time, pauses, plateau, stalls
from .figure import Figure
from .streams import Streams, streams_of

_NUMBER = re.compile(r"\d+(\.\d+)?")

Source = Literal["client", "server", "both"]


class Feature(NamedTuple):
    """`of` gives its figure, or None where it cannot be had."""

    name: str
    unit: str | None
    of: Callable[[Streams], Figure | None]
    source: Source = "client"


FEATURES: tuple[Feature, ...] = (
    Feature("requests_per_s", "requests/s", delivery.requests_per_s),
    Feature("output_tokens_per_s", "tokens/s", delivery.output_tokens_per_s),
    Feature("stream_share", "share", delivery.stream_share),
    Feature("burst_share", "share", delivery.burst_share),
    Feature("tokens_per_frame", "tokens", delivery.tokens_per_frame),
    Feature("token_gap", "ms", delivery.token_gap_ms),
    Feature("gap_tail_ratio", None, delivery.gap_tail_ratio),
    Feature("first_token_tail_ratio", None, delivery.first_token_tail_ratio),
    Feature("join_share", "share", joining.join_share),
    Feature("refill_share", "share", joining.refill_share),
    Feature("first_token_spacing", "ms", joining.first_token_spacing_ms),
    Feature("first_token_spacing_p10", "ms", joining.first_token_spacing_p10_ms),
    Feature("spacing_evenness", None, joining.spacing_evenness),
    Feature("turn_gap", "ms", joining.turn_gap_ms),
    Feature("long_gaps_per_request", None, stalls.long_gaps_per_request),
    Feature("gap_simultaneity", "share", stalls.gap_simultaneity),
    Feature("gap_prefill_share", "share", stalls.gap_prefill_share),
    Feature("gap_first_token_share", "share", stalls.gap_first_token_share),
    Feature("prefill_time_share", "share", stalls.prefill_time_share),
    Feature("in_flight", "requests", plateau.in_flight),
    Feature("waiting", "requests", plateau.waiting),
    Feature("decoding", "requests", plateau.decoding),
    Feature("decoding_most", "requests", plateau.decoding_most),
    Feature("decoding_share", "share", plateau.decoding_share),
    Feature("decoding_cv", None, plateau.decoding_cv),
    Feature("held_tokens", "tokens", plateau.held_tokens),
    Feature("held_tokens_cv", None, plateau.held_tokens_cv),
    Feature("full_decoding", "requests", plateau.full_decoding),
    Feature("full_decoding_cv", None, plateau.full_decoding_cv),
    Feature("full_held_tokens", "tokens", plateau.full_held_tokens),
    Feature("full_held_tokens_cv", None, plateau.full_held_tokens_cv),
    Feature("little", "share", plateau.little),
    Feature("little_asked", "share", plateau.little_asked),
    Feature("little_decoding", "share", plateau.little_decoding),
    Feature("little_waiting", "share", plateau.little_waiting),
    Feature("head_ratio", None, over_time.head_ratio),
    Feature("after_idle_ratio", None, over_time.after_idle_ratio),
    Feature("ttft_drift", "share", partial(over_time.drift_share, latency="ttft")),
    Feature("ttft_drift_p", None, partial(over_time.drift_p, latency="ttft")),
    Feature("tpot_drift", "share", partial(over_time.drift_share, latency="tpot")),
    Feature("tpot_drift_p", None, partial(over_time.drift_p, latency="tpot")),
    Feature("prompt_drift", "share", partial(over_time.tokens_drift_share, column="prompt_tokens")),
    Feature("output_drift", "share", partial(over_time.tokens_drift_share, column="output_tokens")),
    Feature("in_flight_drift", "share", over_time.in_flight_drift_share),
    Feature("slow_ratio", None, over_time.slow_ratio),
    Feature("slow_separation", "share", over_time.slow_separation),
    Feature("slow_time_share", "share", over_time.slow_time_share),
    Feature("slow_spell", "s", over_time.slow_spell_s),
    Feature("slow_prefill_r", None, over_time.slow_prefill_r),
    Feature("step_ratio", None, over_time.step_ratio),
    Feature("step_separation", "share", over_time.step_separation),
    Feature("step_at", "s", over_time.step_at_s),
    Feature("cut_ratio", None, over_time.cut_ratio),
    Feature("refused_share", "share", answers.refused_share),
    Feature("unavailable_share", "share", answers.unavailable_share),
    Feature("failed_share", "share", answers.failed_share),
    Feature("unconnected_share", "share", answers.unconnected_share),
    Feature("cut_share", "share", answers.cut_share),
    Feature("stopped_share", "share", answers.stopped_share),
    Feature("output_over_asked", None, answers.output_over_asked),
    Feature("prompt_tokens", "tokens", answers.prompt_tokens),
    Feature("prompt_cv", None, answers.prompt_cv),
    Feature("output_tokens", "tokens", answers.output_tokens),
    Feature("ttft_mode_ratio", None, partial(modes.mode_ratio, latency="ttft_from_sent")),
    Feature("ttft_mode_separation", "share", partial(modes.mode_separation, latency="ttft_from_sent")),
    Feature("ttft_mode_share", "share", partial(modes.mode_share, latency="ttft_from_sent")),
    Feature("ttft_mode_in_time", "share", partial(modes.mode_in_time, latency="ttft_from_sent")),
    Feature("ttft_mode_spread", None, partial(modes.slow_mode_spread, latency="ttft_from_sent")),
    Feature("late_share", "share", late.late_share),
    Feature("late_by", "ms", late.late_by_ms),
    Feature("late_spread", None, late.late_spread),
    Feature("tpot_mode_ratio", None, partial(modes.mode_ratio, latency="tpot")),
    Feature("tpot_mode_separation", "share", partial(modes.mode_separation, latency="tpot")),
    Feature("tpot_mode_share", "share", partial(modes.mode_share, latency="tpot")),
    Feature("tpot_mode_in_time", "share", partial(modes.mode_in_time, latency="tpot")),
    Feature("replica_ttft_share", "share", partial(modes.replica_share, latency="ttft_from_sent")),
    Feature("replica_tpot_share", "share", partial(modes.replica_share, latency="tpot")),
    Feature("pauses_per_s", "1/s", pauses.pauses_per_s),
    Feature("pause_period", "s", pauses.pause_period_s),
    Feature("pause_length", "s", pauses.pause_length_s),
    Feature("pause_unevenness", None, pauses.pause_unevenness),
    Feature("pause_clock", None, pauses.pause_clock),
    Feature("pause_time_share", "share", pauses.pause_time_share),
    Feature("quota_quiet_share", "share", pauses.quota_quiet_share),
    Feature("target_ttft_share", "share", partial(answers.target_share, latency="ttft_from_sent")),
    Feature("target_tpot_share", "share", partial(answers.target_share, latency="tpot")),
    Feature("ttft_mean", "ms", partial(both_sides.client_mean_ms, latency="ttft_from_sent")),
    Feature("e2e_mean", "ms", partial(both_sides.client_mean_ms, latency="e2e_from_sent")),
    Feature("server_ttft_mean", "ms", partial(both_sides.told_ms, name=both_sides.SERVER_TTFT_S), "server"),
    Feature("server_e2e_mean", "ms", partial(both_sides.told_ms, name=both_sides.SERVER_E2E_S), "server"),
    Feature("server_queue_mean", "ms", partial(both_sides.told_ms, name=both_sides.SERVER_QUEUE_S), "server"),
    Feature("server_prefill_mean", "ms", partial(both_sides.told_ms, name=both_sides.SERVER_PREFILL_S), "server"),
    *(
        Feature(name, unit, partial(both_sides.told, name=name), "server")
        for name, unit in (
            ("prefix_hit_ratio", "share"),
            ("running_mean", "requests"),
            ("running_max", "requests"),
            ("waiting_mean", "requests"),
            ("waiting_above_zero", "share"),
            ("kv_usage_mean", "share"),
            ("kv_usage_max", "share"),
            ("kv_capacity_tokens", "tokens"),
            ("waiting_with_room", "share"),
            ("acceptance_ratio", "share"),
            ("acceptance_length", "tokens"),
            ("tokens_per_decode", "tokens"),
            ("running_spread", None),
            ("adapters_waiting", "share"),
            ("slots", "requests"),
            ("context_tokens", "tokens"),
        )
    ),
    *(
        Feature(f"host_{name}", unit, partial(both_sides.host, name=name), "server")
        for name, unit in (
            ("other_cpu_peak_cores", "cores"),
            ("other_cpu_cores", "cores"),
            ("server_cpu_cores", "cores"),
            ("busiest_thread_share", "share"),
            ("steal_share", "share"),
            ("throttled_share", "share"),
            ("stopped_share", "share"),
            ("gpu_clock_drop", None),
            ("gpu_throttled_share", "share"),
        )
    ),
    Feature("preemptions_per_100", "requests", both_sides.preemptions_per_100, "both"),
    Feature(
        "ttft_beyond_server",
        "ms",
        partial(both_sides.beyond_server_ms, latency="ttft_from_sent", name=both_sides.SERVER_TTFT_S),
        "both",
    ),
    Feature(
        "e2e_beyond_server",
        "ms",
        partial(both_sides.beyond_server_ms, latency="e2e_from_sent", name=both_sides.SERVER_E2E_S),
        "both",
    ),
    Feature("unprocessed_prompt_share", "share", both_sides.unprocessed_prompt_share, "both"),
    Feature("loop_lag_p99", "ms", both_sides.loop_lag_p99_ms),
    Feature("start_lag_p99", "ms", both_sides.start_lag_p99_ms),
    Feature("lag_over_gap", None, both_sides.lag_over_gap),
    Feature("generator_cpu_share", "share", both_sides.generator_cpu_share),
    Feature("achieved_over_asked", "share", both_sides.achieved_over_asked),
)


class LevelEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What one load shows. `level` is its requests in flight, or a second in an open loop."""

    run: str
    level: float | None
    is_open: bool
    window: str
    """Seconds from the end of the asked warm-up, as A..B."""
    figures: dict[str, Evidence | None]
    """By the names of FEATURES, all of them, and `line_slope` and `line_r` of its own line of TTFT over the prompt."""
    base: Base
    """What this level itself would be a base of; that of the lowest one is the group's."""
    ttft: Budget | None
    e2e: Budget | None
    facts: Facts
    """What is known beside the figures."""
    means: Level | None
    """The Summary's means, as the rules on levels take them; None of an open loop."""
    rung: Rung | None

    def value(self, name: str) -> float | None:
        """The value of a feature; KeyError of a name that is none, None where it was not measured."""
        found = self.figures[name]
        return None if found is None or not isinstance(found.value, int | float) else float(found.value)

    def measured(self) -> Iterator[Evidence]:
        """All that was measured."""
        return (found for found in self.figures.values() if found is not None)


def evidence_of(
    run: Run, records: Iterable[Record], *, base: Base | None = None, lowest: bool = False
) -> LevelEvidence:
    """The evidence of one run, from its records in any order.

    `base` is that of the group's lowest level; `lowest` says that this run is it. With neither, the parts of the
    budgets that need one are None.
    """
    return evidence_of_streams(streams_of(run, records), base=base, lowest=lowest)


def evidence_of_streams(streams: Streams, *, base: Base | None = None, lowest: bool = False) -> LevelEvidence:
    """The same from its streams."""
    run, own = streams.run, base_of(streams)
    against = own if lowest else base
    level, window = level_number(run), window_of(run)
    name = None if level is None else f"{level:g}"
    open_loop = run.spec.load.is_open
    return LevelEvidence(
        run=run.id,
        level=level,
        is_open=open_loop,
        window=window,
        figures={
            **{feature.name: _evidence(feature, streams, window, name) for feature in FEATURES},
            **_of_line(own, window, name),
        },
        base=own,
        ttft=ttft_budget(streams, against),
        e2e=e2e_budget(streams, against),
        facts=facts_of(run),
        means=None if open_loop or level is None else level_of(int(level), run.summary),
        rung=_rung(run, level),
    )


def level_number(run: Run) -> float | None:
    """The load of a run: the level it was filed under, else what its spec asked for.

    None where that varies, and of another tool's run whose level is a word or whose load is not told.
    """
    load = run.spec.load
    if run.level is not None:
        return float(run.level) if _NUMBER.fullmatch(run.level) else None
    asked = load.rate_per_s if load.is_open else load.concurrency
    return None if asked is None or not run.load_known else float(asked)


def window_of(run: Run) -> str:
    """Its window as words of the contract have it: A..B, seconds; without a B where that is not told."""
    told = run.summary.window
    return f"{told.start_s:g}.." + ("" if told.end_s is None else f"{told.end_s:g}")


def _rung(run: Run, level: float | None) -> Rung | None:
    if level is None:
        return None
    (rung,) = curve.rungs_of([msgspec.structs.replace(run, level=repr(level))])
    return rung


def _of_line(base: Base, window: str, level: str | None) -> dict[str, Evidence | None]:
    """This level's own line of TTFT over the prompt, as figures: `line_slope` and `line_r`."""
    line = base.line
    slope, r = (line.slope_ms, line.r) if line else (None, None)
    told = (("line_slope", slope, "ms/token"), ("line_r", r, None))
    return {
        name: None
        if line is None or value is None
        else Evidence(name=name, value=value, unit=unit, n=line.n, window=window, level=level, source="client")
        for name, value, unit in told
    }


def _evidence(feature: Feature, streams: Streams, window: str, level: str | None) -> Evidence | None:
    figure = feature.of(streams)
    if figure is None:
        return None
    return Evidence(
        name=feature.name,
        value=figure.value,
        unit=feature.unit,
        n=figure.n,
        window=window,
        level=level,
        source=feature.source,
    )
