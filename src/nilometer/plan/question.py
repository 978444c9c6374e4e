"""What a plan is asked: a model in a precision on a device under an engine, and the requests it is to serve.

Values, and the two forms in which the rooms behind want them: `Ask` for memory, `Setup` for latency. Nothing is
computed here but the weights' bytes on each rank.
"""

from __future__ import annotations

import msgspec

from .devices import Device
from .latency.roofline import PRIOR, Lengths, Tuning
from .latency.work import Setup
from .memory.budget import Ask
from .memory.flight import Pairs
from .memory.kv import CachePrecision, cache_precision
from .memory.startup import Settings
from .model.parallel import Parallel
from .model.precision import Precision
from .model.shape import Shape
from .model.weights import stage_weight_bytes, weight_bytes


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """All that a plan depends on. `concurrency` counts requests of all copies of the model together."""

    shape: Shape
    precision: Precision
    device: Device | None = None
    """None = only what the model itself needs is told."""
    engine: str = "vllm"
    version: str | None = None
    parallel: Parallel = Parallel()
    settings: Settings = Settings()
    key_precision: str = "auto"
    value_precision: str | None = None
    file_bytes: int | None = None
    """What the weights' files hold; None = by the shape and the precision."""
    beside_bytes: float = 0.0
    """Weights that stand in memory beside the model's and that its steps do not read: a drafter's."""
    lengths: Lengths
    """Of the mean request."""
    context: int
    """Tokens of the request, input and output, that memory is planned for."""
    pairs: Pairs = ()
    """Lengths of single requests, where they are known."""
    concurrency: int = 1
    tuning: Tuning = PRIOR

    @property
    def cached(self) -> CachePrecision:
        """Bytes of a cached element; SpecError `kv_precision_unknown`."""
        dtype = self.precision.name
        return cache_precision(self.key_precision, self.value_precision, dtype=dtype, engine=self.engine)

    @property
    def mix(self) -> Pairs:
        """The lengths of single requests, or the mean as if all were alike."""
        return self.pairs or ((self.lengths.input, self.lengths.output),)


def model_bytes(question: Question) -> float:
    """Bytes of the weights of one copy, nothing held twice."""
    return float(question.file_bytes or weight_bytes(question.shape, question.precision))


def rank_bytes(question: Question) -> tuple[float, ...]:
    """Bytes of weights on one rank of each pipeline stage; true ones of files are dealt as the computed ones are."""
    scale = _over_computed(question, question.beside_bytes)
    return tuple(scale * one for one in stage_weight_bytes(question.shape, question.precision, question.parallel))


def _over_computed(question: Question, beside_bytes: float) -> float:
    """True bytes of the weights, and what stands beside them, over those by shape and precision."""
    if question.file_bytes is None and not beside_bytes:
        return 1.0
    return (model_bytes(question) + beside_bytes) / weight_bytes(question.shape, question.precision)


def ask(question: Question, device: Device) -> Ask:
    """For `memory`: one copy of the model, and its share of the requests."""
    shown = device.shown_bytes
    return Ask(
        shape=question.shape,
        weights_bytes=rank_bytes(question),
        visible_bytes=shown.bytes,
        visible_known=shown.known,
        device=device.name if device.kind != "cpu" else f"cpu {device.name}",
        engine=question.engine,
        version=question.version,
        parallel=question.parallel,
        settings=question.settings,
        key_precision=question.key_precision,
        value_precision=question.value_precision,
        weight_precision=question.precision.name,
        context=question.context,
        concurrency=-(-question.concurrency // question.parallel.data),
    )


def setup(question: Question, device: Device, slots: int | None = None) -> Setup:
    """For `roofline`; `slots`: requests that one copy serves at once."""
    return Setup(
        shape=question.shape,
        device=device,
        precision=question.precision,
        cached=question.cached,
        parallel=question.parallel,
        engine=question.engine,
        version=question.version,
        slots=slots,
        weight_scale=_over_computed(question, 0.0),
    )
