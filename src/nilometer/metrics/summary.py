"""From the records of a run to its Summary, by the contract's words. One pass over the records, no I/O.

Putting together only: each figure is made in the module that defines it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from nilometer.core.clock import NS_PER_S
from nilometer.core.record import Record
from nilometer.core.run import Draw, Health, Phases
from nilometer.core.spec import Spec
from nilometer.core.summary import (
    Counts,
    Distribution,
    LatencyFrom,
    Length,
    Lengths,
    Memory,
    ScenarioFigures,
    Summary,
    Window,
)

from . import slo, window
from .catalogue import METRICS
from .collect import Seen, collect
from .cost import cost
from .efficiency import efficiency
from .generator import generator
from .quantiles import Ints, distribution, percentile
from .quota import quota
from .recovery import Spike, recovery
from .table import ERRORS, NONE, SOURCES, Mask, Table
from .throughput import throughput
from .timeline import timeline
from .window import Span, Stretch

CENSORED_SHARE = 0.01
"""More requests cut at the drain limit than this, and p95 and above are too low."""
_TAIL = ("p95", "p99", "max")


def summarise(
    records: Iterable[Record],
    spec: Spec,
    phases: Phases,
    health: Health,
    memory: Memory | None = None,
    draw: Draw | None = None,
    spike: Spike | None = None,
) -> Summary:
    """All figures of one run. Records are taken once, in any order, and not kept. `spike` is that of the load.

    Raises SpecError `window_invalid` or `slo_invalid` where the spec says what cannot be read; a run in which nothing
    could be measured gives a Summary of None and n 0.
    """
    rule = window.rule_of(spec.load)
    bounds = [] if spec.slo is None else slo.parse(spec.slo)
    seen = collect(records)
    table = seen.table
    stretch = window.stretch_of(window.choose(rule, phases, table), table)
    counts = _counts(table, stretch.started, phases)
    made = throughput(seen, stretch, slo.good_requests(bounds, table, stretch.started))
    use = efficiency(draw or Draw(), stretch.span, made.output_tokens_per_s, spec.price.devices)
    return Summary(
        window=_window(stretch.span, rule.name, _steady(spec, table, stretch.measured), phases),
        requests=counts,
        run_requests=_counts(table, np.ones_like(stretch.started), phases),
        latency_from=_latency_from(table, stretch.measured, spec),
        latency_ms=_latencies(seen, stretch.measured, is_censored(counts)),
        throughput=made,
        lengths=_lengths(table, stretch.measured),
        generator=generator(seen, stretch, spec.load, phases, health),
        memory=memory or Memory(),
        cost=cost(table, made, spec.price, phases, use.devices),
        efficiency=use,
        quota=quota(table, made),
        server=_server(table, stretch.measured),
        timeline=timeline(seen, phases),
        scenarios=_scenarios(table, stretch),
        recovery=None if spike is None else recovery(table, spike, phases),
    )


def is_censored(counts: Counts) -> bool:
    """Whether so many requests were cut at the drain limit that the tail of every latency reads too low."""
    return (counts.censored or 0) > CENSORED_SHARE * (counts.started or 0)


def _window(span: Span, rule: str, steady: bool | None, phases: Phases) -> Window:
    return Window(
        start_s=(span.start_ns - phases.measured_ns) / NS_PER_S,
        end_s=(span.end_ns - phases.measured_ns) / NS_PER_S,
        warmup_cut_s=span.cut_ns / NS_PER_S,
        rule=rule,
        steady=steady,
    )


def _counts(table: Table, chosen: Mask, phases: Phases) -> Counts:
    error, cancelled = chosen & table.of("error"), chosen & table.of("cancelled")
    kinds = np.bincount(table.error[error & (table.error != NONE)], minlength=len(ERRORS))
    return Counts(
        started=int(chosen.sum()),
        ok=int((chosen & table.of("ok")).sum()),
        error=int(error.sum()),
        incomplete=int((chosen & table.of("incomplete")).sum()),
        cancelled=int(cancelled.sum()),
        censored=int(cancelled.sum()) if phases.cut_at_drain_limit else 0,
        errors={kind: int(n) for kind, n in zip(ERRORS, kinds, strict=True) if n},
    )


def _steady(spec: Spec, table: Table, measured: Mask) -> bool | None:
    """Whether the service was steady; None where that cannot be told, as under a load that changes by plan."""
    return None if spec.load.varies else window.is_steady(table, measured)


def _latency_from(table: Table, measured: Mask, spec: Spec) -> LatencyFrom:
    """From where the latencies count; what the load asks for where there are none."""
    due = table.due_ns[measured] != NONE
    if not len(due):
        return "due" if spec.load.is_open else "sent"
    return "due" if due.all() else "mixed" if due.any() else "sent"


def _latencies(seen: Seen, measured: Mask, censored: bool) -> dict[str, Distribution]:
    table = seen.table
    gap = distribution(seen.frames.gaps_ns(measured))
    pooled = {"frame_gap": gap, "itl": gap if _one_token_a_frame(table) else Distribution()}
    made = {m.name: pooled.get(m.name) or _latency(table, m.name, measured) for m in METRICS if m.scope == "latency_ms"}
    return {name: _with_tail_marked(one) if censored and one.n else one for name, one in made.items()}


def _scenarios(table: Table, stretch: Stretch) -> dict[str, ScenarioFigures]:
    """Each scenario's own figures, by the definitions of the whole."""
    return {
        name: ScenarioFigures(
            started=int((stretch.started & (table.scenario == place)).sum()),
            ok=int((stretch.measured & (table.scenario == place)).sum()),
            latency_ms={
                metric: _latency(table, metric, stretch.measured & (table.scenario == place))
                for metric in ("ttft", "tpot", "e2e")
            },
        )
        for place, name in enumerate(table.scenarios)
    }


def _latency(table: Table, name: str, measured: Mask) -> Distribution:
    values = table.latency(name)[measured]
    return distribution(values[~np.isnan(values)])


def _with_tail_marked(one: Distribution) -> Distribution:
    marked = [*(name for name in one.marked if name not in _TAIL), *_TAIL]
    return msgspec.structs.replace(one, marked=marked)


def _one_token_a_frame(table: Table) -> bool:
    """Whether every frame of the run's ok requests is known to carry one token."""
    streamed = table.of("ok") & (table.frames > 0)
    return bool(streamed.any() and (table.one_token_a_frame[streamed] == 1).all())


def _asked(tokens: Ints) -> Length:
    """What was asked, if it is known of every request: else it is of others than those that got."""
    return Length() if (tokens == NONE).any() else _length(tokens)


def _lengths(table: Table, measured: Mask) -> Lengths:
    sources = np.bincount(table.token_source[measured], minlength=len(SOURCES))
    streamed = measured & (table.frames > 0) & (table.streamed_count == 1)
    frames = int(table.frames[streamed].sum())
    return Lengths(
        input=_length(table.prompt_tokens[measured]),
        output=_length(table.output_tokens[measured]),
        asked_input=_asked(table.asked_input[measured]),
        asked_output=_asked(table.asked_output[measured]),
        tokens_per_frame=int(table.output_tokens[streamed].sum()) / frames if frames else None,
        token_source={source: int(n) for source, n in zip(SOURCES, sources, strict=True) if n},
    )


def _length(tokens: Ints) -> Length:
    known = np.sort(tokens[tokens != NONE])
    if not len(known):
        return Length()
    return Length(mean=float(known.mean()), p50=percentile(known, 50), p95=percentile(known, 95), max=int(known[-1]))


def _server(table: Table, measured: Mask) -> dict[str, float | None]:
    """What the server told in its answers: the share of the prompt tokens that it took from its prefix cache."""
    told = measured & (table.cached_tokens != NONE) & (table.prompt_tokens > 0)
    if not told.any():
        return {}
    return {"prefix_hit_ratio": float(table.cached_tokens[told].sum() / table.prompt_tokens[told].sum())}
