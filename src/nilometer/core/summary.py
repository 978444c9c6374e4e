"""What was computed from the records of a run: the figures of the contract, by its names. None = not measured."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["admissible", "marked", "inadmissible"]
GeneratorVerdict = Literal["fit", "limited", "unknown"]
LatencyFrom = Literal["sent", "due", "mixed"]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The stretch the figures are of; seconds from the end of the asked warm-up.

    `rule`: auto, guide, asked, count, plan. `end_s` is None where an imported run does not tell how long it was.
    """

    start_s: float
    end_s: float | None
    warmup_cut_s: float = 0.0
    rule: str
    steady: bool | None = None

    @property
    def length_s(self) -> float:
        """How long it is; 0 where that is not told."""
        return 0.0 if self.end_s is None else self.end_s - self.start_s


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """started = ok + error + incomplete + cancelled; `censored` are those cancelled at the drain limit.

    None is what the file of an imported run does not tell.
    """

    started: int | None = 0
    ok: int | None = 0
    error: int | None = 0
    incomplete: int | None = 0
    cancelled: int | None = 0
    censored: int | None = 0
    errors: dict[str, int] = {}

    @property
    def failed(self) -> int:
        """Errors and incomplete ones, as far as they are known."""
        return (self.error or 0) + (self.incomplete or 0)

    @property
    def by_us(self) -> int:
        """Cancelled, but not for the drain limit."""
        return (self.cancelled or 0) - (self.censored or 0)


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A latency in ms. `marked` names the percentiles with fewer than 10 samples above them.

    `n` is None where figures were imported without it.
    """

    n: int | None = 0
    mean: float | None = None
    sd: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None
    marked: list[str] = []


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Rates over the window."""

    output_tokens_per_s: float | None = None
    input_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    goodput_requests_per_s: float | None = None
    tokens_lost: int | None = None


class Length(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one side over the ok requests of the window."""

    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    max: int | None = None


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Asked against got. `token_source` counts ok requests by where their token count came from."""

    input: Length = Length()
    output: Length = Length()
    asked_input: Length = Length()
    asked_output: Length = Length()
    tokens_per_frame: float | None = None
    token_source: dict[str, int] = {}


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """What the load generator says of itself. `limited` stands before all else."""

    verdict: GeneratorVerdict = "unknown"
    cpu_share: float | None = None
    loop_lag_ms: Distribution = Distribution()
    shared_reads_share: float | None = None
    late_reads_share: float | None = None
    achieved_over_asked: float | None = None
    stamp_source: str | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Peak memory over the run; None where it cannot be seen."""

    server_rss_peak_bytes: int | None = None
    device_used_peak_bytes: int | None = None
    kv_used_peak_ratio: float | None = None
    source: str | None = None


class ScenarioFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of a mix: its requests that start in the window, and what TTFT, TPOT and E2E the ok ones had."""

    started: int = 0
    ok: int = 0
    latency_ms: dict[str, Distribution] = {}


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """After a spike of load: seconds from its end until `metric` was as before it, to `grain_s`.

    None where it was not within the `watched_s` that the run went on.
    """

    metric: str
    base_p95_ms: float
    peak_p95_ms: float | None
    grain_s: float
    recovered_after_s: float | None
    watched_s: float


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What the server refused for its quota (HTTP 429) over the whole run. Nothing of it was sent again."""

    refused: int | None = None
    retry_after_s_p50: float | None = None
    """Of the waits that it asked for."""
    retry_after_s_max: float | None = None
    tokens_per_min: float | None = None
    """Prompt and output tokens of the window a minute, where it refused anything: near what the quota allows."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole run used, warm-up and drain included, and by the spec's price cost; the probe's are left out."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """Of every request whose tokens are known, however it ended."""
    uncounted: int | None = None
    """Requests that the server took and whose prompt tokens it did not tell, as of those that were cut."""
    spent: float | None = None
    tokens_per_currency: float | None = None
    """Output tokens of the window for each unit of the currency that the window cost."""


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """Output tokens of the window for what served them."""

    devices: int | None = None
    tokens_per_device_s: float | None = None
    tokens_per_core_s: float | None = None
    """For each second of processor time of the server's processes, where no device serves."""
    energy_kwh: float | None = None
    """That of the devices over the window; the rest of the machine is not in it."""
    tokens_per_kwh: float | None = None


class Second(msgspec.Struct, frozen=True, kw_only=True):
    """One second of the timeline, from the end of the asked warm-up (warm-up seconds are negative)."""

    at_s: int
    in_flight: float
    output_tokens: float
    arrivals: int
    errors: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one run."""

    window: Window
    requests: Counts
    run_requests: Counts
    latency_from: LatencyFrom
    latency_ms: dict[str, Distribution]
    throughput: Throughput
    lengths: Lengths
    generator: Generator
    memory: Memory = Memory()
    cost: Cost = Cost()
    efficiency: Efficiency = Efficiency()
    quota: Quota = Quota()
    server: dict[str, float | None] = {}
    """What the server itself told of the window, by common names."""
    host: dict[str, float | None] = {}
    """What its machine did in the window, where it is this one."""
    timeline: list[Second] = []
    scenarios: dict[str, ScenarioFigures] = {}
    recovery: Recovery | None = None
