"""THE table of metrics: name, place in the Summary, unit, which way is better, what makes it.

A new latency is a row here and a function of a Record in `request`: Summary, SLO and archive then have it. Names in
words are in the locale files under `metric.NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from nilometer.core.record import Record

from . import request

Scope = Literal["latency_ms", "throughput", "lengths", "generator", "memory", "cost", "efficiency", "quota"]
Better = Literal["lower", "higher"]
PerRequest = Callable[[Record], float | None]


class Metric(NamedTuple):
    """`scope.name` is its path in the Summary's JSON. `of` gives the value of one request in ns; None where the figure
    is made from all frames or all requests at once."""

    name: str
    scope: Scope
    unit: str
    better: Better | None
    of: PerRequest | None = None

    @property
    def path(self) -> str:
        return f"{self.scope}.{self.name}"


METRICS: tuple[Metric, ...] = (
    Metric("ttft", "latency_ms", "ms", "lower", request.ttft_ns),
    Metric("ttfa", "latency_ms", "ms", "lower", request.ttfa_ns),
    Metric("tpot", "latency_ms", "ms", "lower", request.tpot_ns),
    Metric("itl", "latency_ms", "ms", "lower"),
    Metric("frame_gap", "latency_ms", "ms", "lower"),
    Metric("e2e", "latency_ms", "ms", "lower", request.e2e_ns),
    Metric("start_lag", "latency_ms", "ms", "lower", request.start_lag_ns),
    Metric("connect", "latency_ms", "ms", "lower", request.connect_ns),
    Metric("refill", "latency_ms", "ms", "lower", request.refill_ns),
    Metric("ttft_from_sent", "latency_ms", "ms", "lower", request.ttft_from_sent_ns),
    Metric("e2e_from_sent", "latency_ms", "ms", "lower", request.e2e_from_sent_ns),
    Metric("output_tokens_per_s", "throughput", "tokens/s", "higher"),
    Metric("input_tokens_per_s", "throughput", "tokens/s", "higher"),
    Metric("requests_per_s", "throughput", "requests/s", "higher"),
    Metric("goodput_requests_per_s", "throughput", "requests/s", "higher"),
    Metric("tokens_lost", "throughput", "tokens", "lower"),
    Metric("input", "lengths", "tokens", None),
    Metric("output", "lengths", "tokens", None),
    Metric("asked_input", "lengths", "tokens", None),
    Metric("asked_output", "lengths", "tokens", None),
    Metric("tokens_per_frame", "lengths", "tokens", None),
    Metric("cpu_share", "generator", "share", "lower"),
    Metric("loop_lag_ms", "generator", "ms", "lower"),
    Metric("shared_reads_share", "generator", "share", "lower"),
    Metric("late_reads_share", "generator", "share", "lower"),
    Metric("achieved_over_asked", "generator", "share", "higher"),
    Metric("server_rss_peak_bytes", "memory", "bytes", "lower"),
    Metric("device_used_peak_bytes", "memory", "bytes", "lower"),
    Metric("kv_used_peak_ratio", "memory", "share", None),
    Metric("prompt_tokens", "cost", "tokens", None),
    Metric("output_tokens", "cost", "tokens", None),
    Metric("uncounted", "cost", "requests", "lower"),
    Metric("spent", "cost", "currency", "lower"),
    Metric("tokens_per_currency", "cost", "tokens/currency", "higher"),
    Metric("devices", "efficiency", "devices", None),
    Metric("tokens_per_device_s", "efficiency", "tokens/s", "higher"),
    Metric("tokens_per_core_s", "efficiency", "tokens/s", "higher"),
    Metric("energy_kwh", "efficiency", "kWh", "lower"),
    Metric("tokens_per_kwh", "efficiency", "tokens/kWh", "higher"),
    Metric("refused", "quota", "requests", "lower"),
    Metric("retry_after_s_p50", "quota", "s", "lower"),
    Metric("retry_after_s_max", "quota", "s", "lower"),
    Metric("tokens_per_min", "quota", "tokens/min", None),
)

BY_NAME = {metric.name: metric for metric in METRICS}

PER_REQUEST: tuple[tuple[str, PerRequest], ...] = tuple((m.name, m.of) for m in METRICS if m.of is not None)
"""The latencies that each request has by itself, in the order of the columns of `table.Table.latency_ns`."""
