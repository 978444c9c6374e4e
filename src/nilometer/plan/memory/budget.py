"""Where the memory of a device goes under an engine, what KV pool that leaves, and what the pool holds.

Puts `startup`, `kv` and `pool` together. Figures that no log of that release backs say so by a note.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nilometer.core.errors import Param, SpecError
from nilometer.core.finding import Finding

from ..interval import Interval
from ..model.parallel import Parallel, stage_bounds
from ..model.shape import Attention, Latent, Recurrent, Shape
from ..versions import Version, parse_version
from .kv import Cache, CachePrecision, bytes_per_token, cache, cache_precision, need_bytes
from .pool import Layout, Pool, flat_pool, stage_layout, vllm_layout, vllm_pool
from .slots import Slots, llamacpp_cache_bytes, llamacpp_slots
from .startup import (
    CPU_POOL_BYTES,
    MEASURED,
    NEWEST,
    Batch,
    Rank,
    Settings,
    Term,
    epoch_of,
    sure,
    vllm_batch,
    vllm_terms,
)
from .startup_others import llamacpp_build, llamacpp_terms, sglang_terms, tensorrt_terms, tgi_terms


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One row: the release it is planned by, what it subtracts of a device, and its block of tokens."""

    name: str
    newest: Version
    """The release planned for where none is named."""
    terms: Callable[[Rank, float, Settings, Version], tuple[Term, ...]]
    block: int = 1
    measured: bool = False
    """Whether start-up logs stand behind its constants."""


ENGINES: Mapping[str, Engine] = {
    row.name: row
    for row in (
        Engine(name="vllm", newest=NEWEST, terms=lambda *_: (), block=16, measured=True),
        Engine(name="sglang", newest=(0, 5), terms=sglang_terms),
        Engine(name="tensorrt-llm", newest=(1, 0), terms=tensorrt_terms, block=32),
        Engine(name="tgi", newest=(3, 0), terms=tgi_terms),
        Engine(name="llama.cpp", newest=(10_434,), terms=llamacpp_terms, measured=True),
    )
}
"""THE table of engines whose memory is known."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One pipeline stage's device: what it may use, what is taken, what is left for the cache."""

    usable_bytes: float
    terms: tuple[Term, ...]
    kv_bytes: Interval

    @property
    def missing_bytes(self) -> float:
        """By how much the terms alone are more than it may use; 0 where they are not."""
        return max(0.0, sum(term.bytes.mid for term in self.terms) - self.usable_bytes)


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `kv_bytes`, `tokens` and `concurrency` are what one copy of the model holds; per rank in bytes."""

    engine: str
    version: str
    batch: Batch | None
    context: int
    """The longest request that the engine would take."""
    asked: int
    """Requests at once that were asked about."""
    starts: bool
    """Whether the engine's own condition to start is met: one request of the longest length has room."""
    stages: tuple[Stage, ...]
    bytes_per_token: float
    """On one rank of the fullest stage."""
    need_bytes: float
    """Of the asked number of requests of the asked length, on one rank of the fullest stage."""
    longest_bytes: float
    """Of one request of the longest length: what it is given from the start where there are no pages."""
    kv_bytes: Interval
    pool: Pool
    tokens: Interval
    concurrency: Interval
    slots: Slots | None = None
    notes: tuple[Finding, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the asked number of requests of the asked length stays in memory."""
        return self.concurrency.mid >= self.asked and self.need_bytes <= self.kv_bytes.mid

    @property
    def short_bytes(self) -> float:
        """What is missing on one device for the asked, blocks counted whole; 0 where it fits, or only slots lack."""
        if self.fits:
            return 0.0
        if self.slots is not None:
            wanted = self.need_bytes * max(1.0, self.asked / self.slots.slots)
            return max(0.0, wanted - self.kv_bytes.mid) + self.stages[0].missing_bytes
        blocks = self.asked / self.concurrency.mid * self.kv_bytes.mid if self.concurrency.mid else 0.0
        missing = max(stage.missing_bytes for stage in self.stages)
        return max(self.need_bytes, blocks) - self.kv_bytes.mid + missing


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan of memory is asked for."""

    shape: Shape
    weights_bytes: tuple[float, ...]
    """Per rank, one for each pipeline stage (or one that holds for all)."""
    visible_bytes: float
    visible_known: bool = True
    """Whether that is what the driver shows, not an estimate by the label."""
    device: str = ""
    engine: str = "vllm"
    version: str | None = None
    parallel: Parallel = Parallel()
    settings: Settings = Settings()
    key_precision: str = "auto"
    value_precision: str | None = None
    weight_precision: str | None = None
    context: int | None = None
    """The length asked about; None = the engine's greatest."""
    concurrency: int = 1


def memory(ask: Ask) -> Memory:
    """The memory plan of one copy of a model.

    SpecError for an unknown engine, ranks that do not divide the heads, more stages than layers, a bad length.
    """
    engine = ENGINES.get(ask.engine)
    if engine is None:
        raise SpecError("plan_engine_unknown", engine=ask.engine, known=", ".join(ENGINES))
    _check(ask)
    version = _release(ask, engine) or engine.newest
    precision = cache_precision(ask.key_precision, ask.value_precision, dtype=ask.weight_precision or ask.shape.dtype)
    if engine.name == "llama.cpp":
        return _llamacpp(ask, engine, version, precision)
    longest = ask.settings.context or ask.shape.max_context or ask.context or 0
    context = ask.context or longest
    if longest <= 0:
        raise SpecError("plan_number_too_small", key="context", value=longest, least=1)
    bounds = stage_bounds(ask.shape.layers, ask.parallel.pipeline)
    batch = _batch(ask, longest, version) if engine.name == "vllm" else None
    stages = tuple(_stage(ask, engine, version, batch, i, span) for i, span in enumerate(bounds))
    caches = [cache(ask.shape, *span) for span in bounds]
    hold = _holder(ask, engine, version, precision, batch, caches)
    tensor = ask.parallel.tensor
    fullest = max(caches, key=lambda part: need_bytes(part, precision, context, 1, tensor))
    middle, low, high = (hold([getattr(stage.kv_bytes, end) for stage in stages], context) for end in ENDS)
    return Memory(
        engine=engine.name,
        version=".".join(map(str, version)),
        batch=batch,
        context=longest,
        asked=ask.concurrency,
        starts=hold([stage.kv_bytes.mid for stage in stages], longest).concurrency >= 1,
        stages=stages,
        bytes_per_token=bytes_per_token(fullest, precision, tensor),
        need_bytes=need_bytes(fullest, precision, context, ask.concurrency, tensor),
        longest_bytes=need_bytes(fullest, precision, longest, 1, tensor),
        kv_bytes=min((stage.kv_bytes for stage in stages), key=lambda one: one.mid),
        pool=middle,
        tokens=Interval(low.tokens, middle.tokens, high.tokens),
        concurrency=Interval(low.concurrency, middle.concurrency, high.concurrency),
        notes=_notes(ask, engine, version),
    )


ENDS = ("mid", "low", "high")


def _release(ask: Ask, engine: Engine) -> Version | None:
    """What was named, as numbers; None where there are none."""
    found = parse_version(ask.version)
    return llamacpp_build(found) if engine.name == "llama.cpp" else found


def _check(ask: Ask) -> None:
    tensor = ask.parallel.tensor
    given = {"concurrency": ask.concurrency, "tensor": tensor, "context": 1 if ask.context is None else ask.context}
    given["max context"] = 1 if ask.settings.context is None else ask.settings.context
    for key, value in given.items():
        if value < (0 if key == "max context" else 1):
            raise SpecError("plan_number_too_small", key=key, value=value, least=1)
    for block in ask.shape.kinds:
        if isinstance(block.mixer, Attention | Latent) and block.mixer.heads % tensor:
            raise SpecError("tensor_not_dividing", tensor=tensor, heads=block.mixer.heads)


def _batch(ask: Ask, longest: int, version: Version) -> Batch:
    ranks = ask.parallel.tensor * ask.parallel.pipeline
    return vllm_batch(
        ask.settings,
        longest,
        visible_bytes=ask.visible_bytes,
        device=ask.device,
        version=version,
        ranks=ranks,
    )


def _rank(ask: Ask, index: int, bounds: tuple[int, int]) -> Rank:
    weights = ask.weights_bytes[index if len(ask.weights_bytes) > 1 else 0]
    return Rank(
        shape=ask.shape,
        weights_bytes=weights,
        start=bounds[0],
        stop=bounds[1],
        tensor=ask.parallel.tensor,
        expert=ask.parallel.expert,
        pipeline=ask.parallel.pipeline,
        precision=ask.weight_precision or ask.shape.dtype,
        on_cpu=_on_cpu(ask),
    )


def _stage(
    ask: Ask, engine: Engine, version: Version, batch: Batch | None, index: int, bounds: tuple[int, int]
) -> Stage:
    rank = _rank(ask, index, bounds)
    if batch is not None:
        given = ask.settings.utilisation
        share = epoch_of(version).utilisation if given is None else given
        terms = vllm_terms(rank, batch, version, eager=ask.settings.eager)
    else:
        share, terms = 1.0, engine.terms(rank, ask.visible_bytes, ask.settings, version)
    usable = share * ask.visible_bytes
    return Stage(usable_bytes=usable, terms=terms, kv_bytes=_left(ask, usable, terms))


LABEL_SPREAD = 0.02
"""How far what a driver shows is from the estimate by the label: at most 1.7 % on the devices where both are known."""


def _given_pool(ask: Ask) -> float | None:
    """The pool where a flag or a default names it, whatever else is in memory."""
    if ask.settings.kv_bytes is None and ask.engine == "vllm" and _on_cpu(ask):
        return CPU_POOL_BYTES
    return ask.settings.kv_bytes


def _on_cpu(ask: Ask) -> bool:
    return "cpu" in ask.device.lower()


def _left(ask: Ask, usable: float, terms: Sequence[Term]) -> Interval:
    """What the terms leave; their spreads are taken as independent."""
    if (given := _given_pool(ask)) is not None:
        return sure(given)
    mid = usable - sum(term.bytes.mid for term in terms)
    own = 0.0 if ask.visible_known else LABEL_SPREAD * usable
    less = math.hypot(own, *(term.bytes.high - term.bytes.mid for term in terms))
    more = math.hypot(own, *(term.bytes.mid - term.bytes.low for term in terms))
    return Interval(max(0.0, mid - less), max(0.0, mid), max(0.0, mid + more))


Holder = Callable[[Sequence[float], int], Pool]


def _holder(
    ask: Ask, engine: Engine, version: Version, precision: CachePrecision, batch: Batch | None, caches: Sequence[Cache]
) -> Holder:
    """What tells of pools (one per stage) what they hold at a length."""
    tensor = ask.parallel.tensor
    if batch is None:
        block = ask.settings.block or engine.block

        def flat(pools: Sequence[float], context: int) -> Pool:
            held = [
                flat_pool(part, precision, has, context, tensor, block) for part, has in zip(caches, pools, strict=True)
            ]
            return min(held, key=lambda pool: pool.concurrency)

        return flat
    tokens = batch.tokens
    layouts = _layouts(ask, version, precision, caches)

    def blocks(pools: Sequence[float], context: int) -> Pool:
        return vllm_pool(layouts, pools, context, batched_tokens=tokens, version=version)

    return blocks


def _layouts(ask: Ask, version: Version, precision: CachePrecision, caches: Sequence[Cache]) -> Sequence[Layout]:
    tensor, settings = ask.parallel.tensor, ask.settings
    whole = cache(ask.shape)
    layout = vllm_layout(
        whole,
        precision,
        tensor,
        version=version,
        block=settings.block or ENGINES["vllm"].block,
        prefix_caching=settings.prefix_caching,
    )
    if len(caches) == 1:
        return (layout,)
    if layout.kind == "states":  # pages of one size: a stage has them by its layers, also where none grows by the token
        return tuple(stage_layout(layout, _layers(part) / _layers(whole)) for part in caches)
    total = bytes_per_token(whole, precision, tensor)
    return tuple(stage_layout(layout, bytes_per_token(part, precision, tensor) / total) for part in caches)


def _layers(cached: Cache) -> int:
    return sum(part.count for part in cached)


def _llamacpp(ask: Ask, engine: Engine, version: Version, precision: CachePrecision) -> Memory:
    """The cache is made for -c at start; whether it fits is the question, and how long -c could be."""
    settings, devices = ask.settings, ask.parallel.tensor * ask.parallel.pipeline
    several = sum(ask.weights_bytes) if len(ask.weights_bytes) > 1 else ask.weights_bytes[0] * devices
    ask = msgspec.structs.replace(ask, visible_bytes=ask.visible_bytes * devices, weights_bytes=(several,))
    slots = llamacpp_slots(
        settings.context or 0,
        settings.slots,
        unified=settings.unified,
        trained=ask.shape.max_context or ask.context,
        version=version,
    )
    whole = cache(ask.shape)
    precision = msgspec.structs.replace(precision, convolution=precision.state)
    made = llamacpp_cache_bytes(
        whole, precision, slots, ubatch=settings.ubatch or 512, full_windows=settings.full_windows
    )
    streams = 1 if slots.unified else slots.slots
    resolved = msgspec.structs.replace(settings, context=slots.cells // streams, slots=slots.slots)
    resolved_ask = msgspec.structs.replace(ask, settings=resolved)
    stage = _stage(resolved_ask, engine, version, None, 0, (0, ask.shape.layers))
    context = ask.context or slots.slot_context
    at_once = min(slots.slots, slots.cells // context) if context <= slots.slot_context else 0
    pool = Pool(bytes=stage.kv_bytes.mid, tokens=slots.cells, concurrency=float(at_once))
    return Memory(
        engine=engine.name,
        version=ask.version or "",
        batch=None,
        context=slots.slot_context,
        asked=ask.concurrency,
        starts=made <= stage.kv_bytes.mid,
        stages=(stage,),
        bytes_per_token=bytes_per_token(whole, precision),
        need_bytes=made,
        longest_bytes=made / slots.slots,
        kv_bytes=stage.kv_bytes,
        pool=pool,
        tokens=Interval(slots.cells, slots.cells, slots.cells),
        concurrency=Interval(at_once, at_once, at_once),
        slots=slots,
        notes=_notes(ask, engine, version),
    )


def _uneven(mixer: Attention | Latent | Recurrent | None) -> bool:
    """Whether engines that keep such layers in a pool of their own split the memory by a share that is theirs."""
    return isinstance(mixer, Recurrent) or (isinstance(mixer, Attention) and mixer.window is not None)


def _notes(ask: Ask, engine: Engine, version: Version) -> tuple[Finding, ...]:
    """What must be said with the answer."""
    told, notes = ".".join(map(str, version)), []
    if ask.version is None:
        notes.append(_note("plan_version_assumed", engine=engine.name, version=told))
    elif _release(ask, engine) is None:
        notes.append(_note("plan_version_unreadable", version=ask.version, used=told))
    if engine.name == "vllm" and not epoch_of(version).measured.holds(version):
        notes.append(_note("plan_constants_unproven", version=told, measured=MEASURED))
    if engine.name == "vllm" and _on_cpu(ask) and ask.settings.kv_bytes is None:
        notes.append(_note("plan_cpu_pool", pool_bytes=CPU_POOL_BYTES))
    if not engine.measured:
        notes.append(_note("plan_constants_by_documentation", engine=engine.name))
    if not ask.visible_known:
        notes.append(_note("plan_memory_by_label", device=ask.device))
    if engine.name not in {"vllm", "llama.cpp"} and any(_uneven(block.mixer) for block in ask.shape.kinds):
        notes.append(_note("plan_uneven_pool", engine=engine.name))
    return tuple(notes)


def _note(slug: str, **params: Param) -> Finding:
    return Finding(slug=slug, kind="note", severity="low", params=params)
