"""What an audit looks at: an engine as it was started, what it is to serve, its memory before and after a change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from nilometer.core.errors import Param, SpecError
from nilometer.core.finding import Confidence, Evidence, Finding, Remedy, Severity

from ..devices import Device
from ..interval import Interval
from ..latency.roofline import Lengths
from ..latency.step import rate
from ..latency.work import Setup
from ..launch.command import Launch
from ..launch.settled import settled
from ..memory.budget import Memory, memory
from ..memory.flight import Pairs
from ..memory.mix import mix_fit
from ..memory.startup import Settings
from ..model.parallel import Parallel
from ..model.precision import Precision, precision_of
from ..model.shape import Shape
from ..question import Question, ask, setup

TAIL = 0.999
"""The length that nearly all requests stay within: one in a thousand is longer."""
UNSIZED = Device(
    name="cpu",
    kind="cpu",
    memory_bytes=2.0**50,
    visible_bytes=2.0**50,
    bandwidth_bytes_per_s=None,
    flops={},
    source="as much as was built in",
)
"""What llama.cpp reserves is the same on any device: where none is named it is planned on one that holds anything."""
PLAN, WORKLOAD, COMMAND = "plan", "workload", "command"
"""Where a figure of evidence is from."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is to serve, and on what. None = not known: what hangs on it is then not looked at."""

    shape: Shape
    device: Device | None = None
    precision: Precision | None = None
    """Of the weights; None = as the launch says, else as published."""
    file_bytes: int | None = None
    """What the weights' files hold."""
    pairs: Pairs = ()
    """(input, output) tokens of requests."""
    longest: int | None = None
    """The p99.9 of a request's input and output together; None = of `pairs`."""
    prefix_tokens: int | None = None
    """The beginning that prompts share, and the share of them that do."""
    prefix_share: float | None = None
    concurrency: int | None = None
    """Requests at once, of all copies of the model together."""
    cores: int | None = None
    """Physical ones of the machine it runs on."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One launch under audit."""

    launch: Launch
    asked: Wanted
    question: Question
    planned_on: Device | None
    before: Memory | None
    """None without a device that a plan needs, or where the launch cannot be planned."""

    @property
    def engine(self) -> str:
        """As it was started."""
        return self.launch.engine

    @property
    def contiguous(self) -> bool:
        """Whether each request's whole length is reserved from the start."""
        return self.launch.plan_engine == "llama.cpp"

    @property
    def longest(self) -> int | None:
        """The p99.9 of a request's tokens, no longer than the model was trained for."""
        return longest_of(self.asked)

    @property
    def visible_bytes(self) -> float:
        """The device's memory as its driver shows it; 0 where it is not known: then nothing may hang on what fits."""
        return 0.0 if self.asked.device is None else self.asked.device.shown_bytes.bytes

    @property
    def load(self) -> int | None:
        """Requests at once that one copy is to serve."""
        asked = self.asked.concurrency
        return None if asked is None else -(-asked // self.launch.parallel.data)

    def plan(
        self,
        *,
        parallel: Parallel | None = None,
        key: str | None = None,
        value: str | None = None,
        **changed: object,
    ) -> Memory | None:
        """The memory plan with some settings changed, `context` and `slots` in the words of `memory`.

        None without a device or where that cannot be planned.
        """
        if self.planned_on is None:
            return None
        settings = msgspec.structs.replace(self.question.settings, **changed)
        question = msgspec.structs.replace(
            self.question,
            settings=settings,
            parallel=parallel or self.question.parallel,
            key_precision=key or self.question.key_precision,
            value_precision=value or self.question.value_precision,
        )
        return _memory(question, self.planned_on)

    def held(self, plan: Memory) -> int:
        """Requests of the workload that a plan has room for at once, the engine's own limit left out."""
        if plan.slots is None and self.asked.pairs:
            return mix_fit(plan, self.asked.pairs).paged.by_quantile
        return int(plan.concurrency.mid)

    def limit(self, plan: Memory) -> int | None:
        """Requests at once that the engine allows by its flags; None = no limit that is known."""
        if plan.slots is not None:
            return plan.slots.slots
        return self.question.settings.max_seqs if plan.batch is None else plan.batch.seqs

    @property
    def short(self) -> bool:
        """Whether the load asked for is more than memory holds, or no load is known."""
        if self.before is None or self.load is None:
            return True
        return self.held(self.before) < self.load

    @property
    def setup(self) -> Setup | None:
        """For latency; None where a rate of the device is not known."""
        device = self.asked.device
        if device is None or device.bandwidth_bytes_per_s is None:
            return None
        made = setup(self.question, device)
        return made if rate(device, made.precision.arithmetic) else None


def case_of(launch: Launch, asked: Wanted) -> Case:
    """A launch put to what it is to serve. SpecErrors of `kv` for a precision that is not known."""
    precision = asked.precision or precision_of(launch.weights or asked.shape.dtype)
    device = asked.device
    visible = None if device is None else device.shown_bytes.bytes
    longest = longest_of(asked) or launch.settings.context or asked.shape.max_context or 1
    key, value = launch.plan_cache
    question = Question(
        shape=asked.shape,
        precision=precision,
        device=device,
        engine=launch.plan_engine,
        version=launch.plan_version,
        parallel=launch.parallel,
        settings=settled(launch, asked.shape, visible, precision.name),
        key_precision=key,
        value_precision=value,
        file_bytes=asked.file_bytes,
        lengths=_mean(asked.pairs, longest),
        context=longest,
        pairs=asked.pairs,
        concurrency=asked.concurrency or 1,
    )
    planned_on = device if visible else UNSIZED if launch.plan_engine == "llama.cpp" else None
    before = None if planned_on is None else _memory(question, planned_on)
    return Case(launch=launch, asked=asked, question=question, planned_on=planned_on, before=before)


def _memory(question: Question, device: Device) -> Memory | None:
    try:
        return memory(ask(question, device))
    except SpecError:
        return None


def _mean(pairs: Pairs, longest: int) -> Lengths:
    if not pairs:
        return Lengths(longest / 2, longest / 2)
    inputs, outputs = zip(*pairs, strict=True)
    return Lengths(max(1.0, sum(inputs) / len(pairs)), max(1.0, sum(outputs) / len(pairs)))


def longest_of(asked: Wanted) -> int | None:
    """The p99.9 as told or of the pairs; never above what the model was trained for."""
    found = asked.longest
    if found is None and asked.pairs:
        found = math.ceil(quantile([sum(pair) for pair in asked.pairs], TAIL))
    return None if found is None else max(1, min(found, asked.shape.max_context or found))


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between order statistics (type 7)."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def room_for(longest: int, step: int = 1_024) -> int:
    """A context that holds it, rounded up."""
    return -(-longest // step) * step


Gain = dict[str, float | str | None]


def gain(unit: str, mid: float | None, low: float | None = None, high: float | None = None) -> Gain:
    """What a remedy brings; without ends it is as sure as the plan."""
    return {"low": mid if low is None else low, "mid": mid, "high": mid if high is None else high, "unit": unit}


def difference(before: Interval, after: Interval, unit: str = "bytes") -> Gain:
    """How much more there is after, end against end: what is uncertain in one plan is so in the other."""
    ends = [getattr(after, end) - getattr(before, end) for end in ("low", "mid", "high")]
    return {"low": min(ends), "mid": ends[1], "high": max(ends), "unit": unit}


def middle(one: Gain) -> float:
    """Its middle figure; 0 where there is none."""
    mid = one["mid"]
    return float(mid) if isinstance(mid, float | int) else 0.0


def finding(
    slug: str,
    severity: Severity,
    params: Mapping[str, Param],
    *,
    evidence: Sequence[Evidence] = (),
    remedies: Sequence[Remedy] = (),
    note: bool = False,
    confidence: Confidence | None = None,
) -> Finding:
    """One trap that was met."""
    return Finding(
        slug=slug,
        kind="note" if note else "remedy",
        severity=severity,
        confidence=confidence,
        params=dict(params),
        evidence=list(evidence),
        remedies=list(remedies),
    )


def figure(name: str, value: float | int | str | None, unit: str | None = None, source: str = PLAN) -> Evidence:
    """A figure of evidence."""
    return Evidence(name=name, value=value, unit=unit, source=source)


def figure_of(name: str, one: Interval, unit: str | None = None) -> Evidence:
    """The same with its interval."""
    return Evidence(name=name, value=one.mid, lo=one.low, hi=one.high, unit=unit, source=PLAN)


_FLAGS: Mapping[str, Mapping[str, str]] = {
    "context": {
        "vllm": "--max-model-len {}",
        "sglang": "--context-length {}",
        "tgi": "--max-total-tokens {}",
        "llama.cpp": "-c {}",
        "ollama": "OLLAMA_CONTEXT_LENGTH={}",
    },
    "utilisation": {
        "vllm": "--gpu-memory-utilization {}",
        "sglang": "--mem-fraction-static {}",
        "tgi": "--cuda-memory-fraction {}",
    },
    "max_seqs": {
        "vllm": "--max-num-seqs {}",
        "sglang": "--max-running-requests {}",
        "tgi": "--max-batch-size {}",
        "llama.cpp": "-np {}",
        "ollama": "OLLAMA_NUM_PARALLEL={}",
    },
    "batched_tokens": {
        "vllm": "--max-num-batched-tokens {}",
        "sglang": "--chunked-prefill-size {}",
        "tgi": "--max-batch-prefill-tokens {}",
    },
    "admitted": {"tgi": "--max-concurrent-requests {}"},
    "tensor": {"vllm": "--tensor-parallel-size {}", "sglang": "--tp-size {}", "tgi": "--num-shard {}"},
    "prefix_caching": {
        "vllm": "--enable-prefix-caching",
        "tgi": "PREFIX_CACHING=1",
        "llama.cpp": "--cache-prompt",
    },
    "graphs": {"vllm": "--no-enforce-eager", "tgi": "--cuda-graphs 1,2,4,8,16,32"},
    "flash": {"llama.cpp": "-fa on", "ollama": "OLLAMA_FLASH_ATTENTION=1"},
    "continuous": {"llama.cpp": "--cont-batching"},
    "threads": {"llama.cpp": "-t {}", "ollama": "num_thread {}"},
    "cache8": {
        "vllm": "--kv-cache-dtype fp8",
        "sglang": "--kv-cache-dtype fp8_e4m3",
        "tgi": "--kv-cache-dtype fp8_e4m3fn",
        "llama.cpp": "-ctk q8_0 -ctv q8_0",
        "ollama": "OLLAMA_KV_CACHE_TYPE=q8_0",
    },
}
"""What sets a thing in each engine's own words. Where an engine is missing, its default is the cure."""


def flags(engine: str, **wanted: int | float | None) -> list[str]:
    """The engine's own flags for fields and their values (None = a flag that takes none)."""
    words = [(_FLAGS[field].get(engine), value) for field, value in wanted.items()]
    return [word.format(f"{value:g}" if isinstance(value, float) else value) for word, value in words if word]


def settings_of(case: Case) -> Settings:
    """As `memory` takes them."""
    return case.question.settings
