"""A metrics page of a machine, in the names that vLLM uses now: one engine label for each replica. No clock, no file.

What the page counts begins where a request reaches the server. `vllm:time_to_first_token_seconds` and
`vllm:e2e_request_latency_seconds` count from its arrival at the API process, so that what the front end takes is in
them; `vllm:request_queue_time_seconds` counts within the engine alone, from its queue to its first slot, prefill from
there to the first token, decode from there to the last. What passes in a proxy, a rate limiter, a gateway or a client
is on no page, and neither is a request that never got in. Prompt tokens count on
admission, after a preemption again. KV use is that of the tokens held where memory is set aside
for more than there is. Names, buckets and moments: `vllm/v1/metrics/loggers.py` and `stats.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from .event import Answer, Event, Gauges
from .machine import Machine, Plan
from .setting import Setting

FAST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0,
        2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
GAPS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
SLOW = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
        40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_TTFT, _GAP, _STEP = "time_to_first_token_seconds", "inter_token_latency_seconds", "iteration_tokens_total"
_E2E, _TPOT = "e2e_request_latency_seconds", "request_time_per_output_token_seconds"
_QUEUE, _PREFILL, _DECODE = (f"request_{name}_time_seconds" for name in ("queue", "prefill", "decode"))
_BUCKETS = {_TTFT: FAST, _GAP: GAPS, _TPOT: GAPS, _E2E: SLOW, _QUEUE: SLOW, _PREFILL: SLOW, _DECODE: SLOW}

Type = Literal["gauge", "counter", "histogram"]


class Row(NamedTuple):
    """One series of the page. `name` is that of the family, without what the text format puts behind it."""

    type: Type
    name: str
    part: str
    labels: Mapping[str, str]
    value: float

    @property
    def series(self) -> str:
        """Its name on the page."""
        return self.name + ("_total" if self.type == "counter" else self.part)


class Shown(NamedTuple):
    """What one engine shows at a moment."""

    gauges: Gauges
    running_adapters: tuple[int, ...] = ()
    waiting_adapters: tuple[int, ...] = ()


class _Tally:
    """A histogram: how many in each bucket, the last up to infinity, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = np.array(bounds), np.zeros(len(bounds) + 1, np.int64), 0.0

    def add(self, values: Sequence[float]) -> None:
        """A value on a bound is within it."""
        self.counts += np.bincount(np.searchsorted(self.bounds, values), minlength=len(self.counts))
        self.total += float(np.sum(values))


class _Engine:
    """What one engine has counted since its start."""

    def __init__(self) -> None:
        self.tallies = {name: _Tally(bounds) for name, bounds in _BUCKETS.items()}
        self.finished = {"stop": 0, "length": 0}
        self.drafts = self.accepted = 0


class Ledger:
    """Counts what a machine of this plan tells. Use: `arrived` and `take` as things happen, `text` when asked for."""

    def __init__(self, plan: Plan, model: str = "model") -> None:
        self._plan, self._model = plan, model
        self._engines = [_Engine() for _ in range(plan.replicas)]
        self._arrived_s: dict[int, float] = {}

    def arrived(self, key: int, at_s: float) -> None:
        """The request reached the service. One that is not told of arrived when it entered the engine."""
        self._arrived_s[key] = at_s

    def take(self, events: Iterable[Event]) -> None:
        """An answer counts when it is whole; what was refused, not at all."""
        for event in events:
            if event.answer is not None:
                self.begins(event.key, event.answer)
                self.ends(event.key, event.answer)
            elif event.kind == "rejected":
                self._arrived_s.pop(event.key, None)

    def begins(self, key: int, answer: Answer) -> None:
        """Its first token; `take` does this too. Who knows when it came can tell it then, as an engine does."""
        engine = self._engines[answer.replica]
        engine.tallies[_TTFT].add([answer.engine_stamps[0] - self._api_s(key, answer)])

    def ends(self, key: int, answer: Answer) -> None:
        """Its last token; `take` does this too."""
        engine, stamps = self._engines[answer.replica], answer.engine_stamps
        first_s, last_s, arrived_s = stamps[0], stamps[-1], self._api_s(key, answer)
        self._arrived_s.pop(key, None)
        engine.tallies[_GAP].add(np.diff(np.frombuffer(stamps, np.float64)))
        each = {
            _E2E: last_s - arrived_s,
            _QUEUE: answer.admitted_s - answer.entered_s,
            _PREFILL: first_s - answer.admitted_s,
            _DECODE: last_s - first_s,
            _TPOT: (last_s - first_s) / max(answer.tokens - 1, 1),
        }
        for name, seconds in each.items():
            engine.tallies[name].add([seconds])
        engine.finished["length" if answer.at_limit else "stop"] += 1
        if self._plan.setting.speculation is not None:
            engine.drafts += len(stamps) - 1
            engine.accepted += answer.tokens - len(stamps)

    def _api_s(self, key: int, answer: Answer) -> float:
        """When its last try reached the server: a gateway in front of it asks again after each of its timeouts."""
        arrived_s, limit_s = self._arrived_s.get(key, answer.entered_s), self._plan.faults.timeout_s
        if limit_s is None:
            return arrived_s
        return arrived_s + limit_s * ((answer.entered_s - arrived_s) // limit_s)

    def text(self, shown: Sequence[Shown]) -> str:
        """The page in Prometheus' text format."""
        lines: list[str] = []
        declared = ""
        for row in sorted(self.rows(shown), key=lambda row: row.name):
            if row.name != declared:
                declared = row.name
                lines.append(f"# TYPE {declared}{'_total' if row.type == 'counter' else ''} {row.type}")
            labels = ",".join(f'{name}="{value}"' for name, value in row.labels.items())
            lines.append(f"{row.series}{{{labels}}} {float(row.value)!r}")
        return "\n".join(lines) + "\n"

    def rows(self, shown: Sequence[Shown], *, histograms: bool = True) -> Iterator[Row]:
        """The series of the page."""
        for at, (engine, one) in enumerate(zip(self._engines, shown, strict=True)):
            labels = {"engine": str(at), "model_name": self._model}
            yield from _gauges(self._plan.setting, one, labels)
            yield from _counters(self._plan.setting, engine, one.gauges, labels)
            if histograms:
                for name, tally in engine.tallies.items():
                    yield from _histogram(name, tally, labels)
                yield from _steps(one.gauges, labels)


def shown(machine: Machine) -> list[Shown]:
    """What each engine of the machine shows now."""
    return [
        Shown(
            engine.gauges,
            _adapters(one.ask.adapter for one in engine.running_by_key.values()),
            _adapters(one.ask.adapter for one in engine.waiting),
        )
        for engine in machine.engines
    ]


def _adapters(found: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({one for one in found if one is not None}))


def kv_usage(setting: Setting, gauges: Gauges) -> float:
    """Share of the KV cache in use; 0 of a pool that never fills."""
    if setting.kv_blocks is None:
        return 0.0
    if setting.reserve == "growing":
        return gauges.blocks_held / setting.kv_blocks
    return min(1.0, gauges.tokens_held / (setting.kv_blocks * setting.block_tokens))


def _gauges(setting: Setting, one: Shown, labels: Mapping[str, str]) -> Iterator[Row]:
    yield Row("gauge", "vllm:num_requests_running", "", labels, one.gauges.running)
    yield Row("gauge", "vllm:num_requests_waiting", "", labels, one.gauges.waiting)
    yield Row("gauge", "vllm:kv_cache_usage_perc", "", labels, kv_usage(setting, one.gauges))
    if setting.kv_blocks is not None:
        told = {"block_size": setting.block_tokens, "num_gpu_blocks": setting.kv_blocks}
        config = {"engine": labels["engine"], **{name: str(value) for name, value in told.items()}}
        yield Row("gauge", "vllm:cache_config_info", "", config, 1.0)
    if one.running_adapters or one.waiting_adapters:
        lora = {
            "max_lora": str(setting.adapter_slots),
            "running_lora_adapters": ",".join(f"adapter-{i}" for i in one.running_adapters),
            "waiting_lora_adapters": ",".join(f"adapter-{i}" for i in one.waiting_adapters),
        }
        yield Row("gauge", "vllm:lora_requests_info", "", {"engine": labels["engine"], **lora}, 1.0)


def _counters(setting: Setting, engine: _Engine, gauges: Gauges, labels: Mapping[str, str]) -> Iterator[Row]:
    counted = {
        "num_preemptions": gauges.preemptions,
        "prompt_tokens": gauges.prompts_asked,
        "generation_tokens": gauges.written,
        "prefix_cache_queries": gauges.prompts_asked,
        "prefix_cache_hits": gauges.prompts_found,
    }
    if setting.speculation is not None:
        counted["spec_decode_num_drafts"] = engine.drafts
        counted["spec_decode_num_draft_tokens"] = engine.drafts * setting.speculation.drafts
        counted["spec_decode_num_accepted_tokens"] = engine.accepted
    for name, value in counted.items():
        yield Row("counter", f"vllm:{name}", "", labels, value)
    for reason, n in engine.finished.items():
        yield Row("counter", "vllm:request_success", "", {**labels, "finished_reason": reason}, n)


def _histogram(name: str, tally: _Tally, labels: Mapping[str, str]) -> Iterator[Row]:
    family, cumulative = f"vllm:{name}", tally.counts.cumsum()
    for bound, upto in zip([*tally.bounds.tolist(), inf], cumulative.tolist(), strict=True):
        yield Row("histogram", family, "_bucket", {**labels, "le": "+Inf" if bound == inf else repr(bound)}, upto)
    yield Row("histogram", family, "_count", labels, int(cumulative[-1]))
    yield Row("histogram", family, "_sum", labels, tally.total)


def _steps(gauges: Gauges, labels: Mapping[str, str]) -> Iterator[Row]:
    """Tokens of a step: how many in all, in how many steps. Of which size each was, the machine does not tell."""
    family = f"vllm:{_STEP}"
    yield Row("histogram", family, "_bucket", {**labels, "le": "+Inf"}, gauges.steps)
    yield Row("histogram", family, "_count", labels, gauges.steps)
    yield Row("histogram", family, "_sum", labels, gauges.prefilled + gauges.written)
