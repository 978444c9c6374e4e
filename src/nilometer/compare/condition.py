"""What must agree between two runs before their figures may be compared, and what of it the user may change on purpose.

THE table has a row for each field: how it is read from a Run, how two values agree, and which words of `--change`
name it as the change under test. What differs and is not declared makes the comparison refuse.

Left out on purpose, as they move no figure: seeds (other draws of the same lengths and texts), ramp and drain (outside
the window), limits on errors, tokens and time, price, headers, the target's address (two versions live at two), paths
of files, labels of the user's own. A longer measured stretch makes a figure surer without moving it, so durations agree
up to a factor of two; the asked warm-up must be the same, since what a cache has seen before the window differs.

A field that neither side knows agrees. One that a single side knows is listed as `unknown` and refuses nothing: most
services do not tell their build or their precision, and a run from another tool knows little of its machine; whoever
reads the list sees what the verdict takes on trust.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from nilometer.core.environment import Machine
from nilometer.core.errors import ConditionError, SpecError
from nilometer.core.run import Run
from nilometer.core.spec import Spec

Value = str | int | float | bool
Agree = Callable[[Any, Any], bool]
Change = Literal[
    "service", "service-version", "model", "quantisation", "engine", "flags", "load", "lengths", "prompts", "sampling",
    "api", "slo", "client", "host",
]  # fmt: skip
State = Literal["differs", "unknown", "mixed"]

NOT_ASKED = "none"
"""An option that was not given is a value, not an unknown one."""
LENGTH_SHARE = 0.10
LENGTH_TOKENS = 2
"""Lengths agree within a tenth or two tokens, the more of both: so far apart are samples of one mix of lengths, and two
ways to count one text. TTFT moves about as its prompts do, within its margin."""
KS_LEAST = 0.10
KS_CHANCE = 1.95
"""Where single lengths are at hand: a distance below KS_LEAST moves no figure by its margin, and one below KS_CHANCE *
sqrt(1/n + 1/m) comes by chance of one mix of lengths in 999 of 1,000 cases."""
HIT_POINTS = 0.05
NO_SETTING = frozenset({"-m", "--model", "-a", "--alias", "--served-model-name", "--host", "--port"})
"""Flags that say where and under which name; the weights have a row of their own, by their hash instead of a path."""
DURATION_FACTOR = 2.0


class Field(NamedTuple):
    """One row. `changes` are the words that declare it; `asked` reads what the test asks of the service, which is known
    before anything is sent and is a part of the condition's hash."""

    name: str
    changes: tuple[Change, ...]
    read: Callable[[Run], Value | None]
    agree: Agree = lambda a, b: bool(a == b)
    asked: Callable[[Spec], Value] | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A field in which the sides are not known to agree, with the values that each side has (none: unknown).

    `mixed`: the runs of one side do not agree among themselves, so it is no side; no declared change excuses that.
    """

    field: str
    state: State
    a: tuple[Value, ...]
    b: tuple[Value, ...]
    changes: tuple[Change, ...]


def _close_lengths(a: float, b: float) -> bool:
    return abs(a - b) <= max(LENGTH_SHARE * max(a, b), LENGTH_TOKENS)


def _close_hits(a: float, b: float) -> bool:
    return abs(a - b) <= HIT_POINTS + 1e-9


def _close_durations(a: float, b: float) -> bool:
    return max(a, b) <= DURATION_FACTOR * min(a, b)


def _spec(path: str, *changes: Change) -> Field:
    """A row for what the Spec asks, by its path there."""

    def read(spec: Spec) -> Value:
        value: Any = spec
        for name in path.split("."):
            value = getattr(value, name)
        return _plain(value)

    return Field(path, changes, lambda run: read(run.spec), asked=read)


def _plain(value: object) -> Value:
    """None as NOT_ASKED, a whole number as such, tables as text in the order of their keys."""
    if value is None:
        return NOT_ASKED
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, Value) else msgspec.json.encode(value, order="sorted").decode()


def _limit(machine: Machine, value: float | None) -> Value | None:
    """A limit that a machine which could be read does not have is none; of any other it is unknown."""
    return NOT_ASKED if value is None and machine.cpu_count is not None else value


def _flags(run: Run) -> Value | None:
    """The flags as one text, without those of NO_SETTING and their values."""
    flags = run.environment.engine.flags
    if flags is None:
        return None
    kept = [
        flag
        for before, flag in zip(["", *flags], flags, strict=False)
        if before not in NO_SETTING and flag.partition("=")[0] not in NO_SETTING
    ]
    return " ".join(kept)


def _devices(run: Run) -> Value | None:
    machine = run.environment.machine
    return ", ".join(sorted(machine.devices)) or _limit(machine, None)


def _client(run: Run) -> Value | None:
    client = run.environment.client
    return None if client is None else client.nilometer


def _generator(run: Run) -> Value | None:
    verdict = run.summary.generator.verdict
    return None if verdict == "unknown" else verdict


_BUILD: tuple[Change, ...] = ("service-version", "engine")
_SET_UP: tuple[Change, ...] = ("flags", "engine")
_WEIGHTS: tuple[Change, ...] = ("model", "quantisation")
_CACHED: tuple[Change, ...] = ("prompts", "flags", "engine", "service-version")

FIELDS: tuple[Field, ...] = (
    Field("service", ("service",), lambda run: run.spec.labels.service),
    Field("service_version", ("service-version",), lambda run: run.spec.labels.service_version),
    Field("model.id", _WEIGHTS, lambda run: run.environment.model.id or run.spec.model),
    Field("model.file_sha256", _WEIGHTS, lambda run: run.environment.model.file_sha256),
    Field("model.parameters", ("model",), lambda run: run.environment.model.parameters),
    Field("model_version", ("model",), lambda run: run.spec.labels.model_version),
    Field("quantisation", ("quantisation",), lambda run: run.spec.labels.quantisation),
    Field("model.precision", ("quantisation",), lambda run: run.environment.model.precision),
    Field("engine.name", ("engine",), lambda run: run.environment.engine.name),
    Field("engine.version", _BUILD, lambda run: run.environment.engine.version),
    Field("engine.build", _BUILD, lambda run: run.environment.engine.build),
    Field("engine.flags", _SET_UP, _flags),
    Field("engine.slots", _SET_UP, lambda run: run.environment.engine.slots),
    Field("engine.context_tokens", _SET_UP, lambda run: run.environment.engine.context_tokens),
    _spec("load.concurrency", "load"),
    _spec("load.rate_per_s", "load"),
    _spec("load.arrivals", "load"),
    _spec("load.speed", "load"),
    _spec("load.warmup_s", "load"),
    _spec("load.requests", "load"),
    _spec("load.window", "load"),
    Field("load.duration_s", ("load",), lambda run: run.spec.load.duration_s, _close_durations),
    _spec("prompts.input_tokens", "lengths"),
    _spec("prompts.output_tokens", "lengths"),
    _spec("prompts.ignore_eos", "lengths"),
    Field("lengths.input.p50", ("lengths",), lambda run: run.summary.lengths.input.p50, _close_lengths),
    Field("lengths.input.p95", ("lengths",), lambda run: run.summary.lengths.input.p95, _close_lengths),
    Field("lengths.output.p50", ("lengths",), lambda run: run.summary.lengths.output.p50, _close_lengths),
    Field("lengths.output.p95", ("lengths",), lambda run: run.summary.lengths.output.p95, _close_lengths),
    _spec("prompts.workload_sha256", "prompts"),
    _spec("prompts.text", "prompts"),
    _spec("prompts.shared_prefix_tokens", "prompts"),
    _spec("prompts.shared_prefix_share", "prompts"),
    _spec("prompts.turns", "prompts"),
    _spec("prompts.think_s", "prompts"),
    _spec("prompts.scenarios", "prompts"),
    _spec("prompts.unique", "prompts"),
    Field("prefix_hit_ratio", _CACHED, lambda run: run.summary.server.get("prefix_hit_ratio"), _close_hits),
    _spec("sampling.temperature", "sampling"),
    _spec("sampling.top_p", "sampling"),
    _spec("sampling.extra_body", "sampling"),
    _spec("api", "api"),
    _spec("protocol", "api"),
    _spec("stream", "api"),
    Field("slo", ("slo",), lambda run: _plain(run.spec.slo)),
    Field("client.nilometer", ("client",), _client),
    Field("client.tool", ("client",), lambda run: run.tool),
    Field("definitions", (), lambda run: run.definitions),
    Field("client.origin", ("client",), lambda run: run.origin),
    Field("generator.verdict", ("client",), _generator),
    Field("host.cpu_model", ("host",), lambda run: run.environment.machine.cpu_model),
    Field("host.cpu_count", ("host",), lambda run: run.environment.machine.cpu_count),
    Field("host.cpu_governor", ("host",), lambda run: run.environment.machine.cpu_governor),
    Field(
        "host.container_cpu_limit",
        ("host",),
        lambda run: _limit(run.environment.machine, run.environment.machine.container_cpu_limit),
    ),
    Field(
        "host.container_memory_limit_bytes",
        ("host",),
        lambda run: _limit(run.environment.machine, run.environment.machine.container_memory_limit_bytes),
    ),
    Field("host.devices", ("host",), _devices),
)

CHANGES = tuple(dict.fromkeys(change for row in FIELDS for change in row.changes))
"""The words of `--change`. `service-version` is a new build of the same engine; `engine` another engine, with flags of
its own; `quantisation` other weights of the same model."""


def differences(
    a: Sequence[Run],
    b: Sequence[Run],
    lengths: Mapping[str, tuple[Sequence[int], Sequence[int]]] | None = None,
) -> list[Difference]:
    """Where two sides of runs are not known to agree, in the order of the table; of no runs nothing is told.

    `lengths` holds the single lengths of both sides where they are at hand, under `input` and `output`: they are then
    held against each other whole (KS), beside the percentiles that the Summaries have.
    """
    if not a or not b:
        return []
    found = [difference for row in FIELDS if (difference := _difference(row, a, b)) is not None]
    return [*found, *_apart(lengths or {})]


def refusing(found: Sequence[Difference], declared: Collection[str] = ()) -> list[Difference]:
    """Those that forbid a comparison: a side that is mixed, and what differs without being declared."""
    return [
        one
        for one in found
        if one.state == "mixed" or (one.state == "differs" and not set(one.changes) & set(declared))
    ]


def require_alike(found: Sequence[Difference], declared: Collection[str] = ()) -> None:
    """Refuse unlike conditions: slug `conditions_differ`, with the fields and the words that would declare them.

    Figures of different definitions are no more alike than metres and feet: slug `definitions_differ`."""
    refused = refusing(found, declared)
    if any(one.field == "definitions" for one in refused):
        raise ConditionError("definitions_differ")
    if refused:
        raise ConditionError("conditions_differ", **_listed(refused))


def require_alike_asked(a: Spec, b: Spec, declared: Collection[str] = ()) -> None:
    """The same before anything is sent, of what the two sides are to ask: slug `sides_ask_differently`.

    A protocol that is still to be found out agrees with any.
    """
    found = [
        Difference(field=row.name, state="differs", a=(of_a,), b=(of_b,), changes=row.changes)
        for row in FIELDS
        if row.asked is not None
        and not row.agree(of_a := row.asked(a), of_b := row.asked(b))
        and not (row.name == "api" and "auto" in {of_a, of_b})
    ]
    if refused := refusing(found, declared):
        raise SpecError("sides_ask_differently", **_listed(refused))


def _listed(refused: Sequence[Difference]) -> dict[str, str]:
    """For a sentence: the fields with their values, and the words that would declare them."""
    return {
        "fields": "; ".join(f"{one.field}: {_told(one.a)} | {_told(one.b)}" for one in refused),
        "changes": ",".join(dict.fromkeys(one.changes[0] for one in refused)),
    }


def parse_changes(text: str) -> frozenset[str]:
    """The words of `--change model,quantisation`; slug `change_unknown` with the one that is none."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in CHANGES:
            raise SpecError("change_unknown", word=word, words=", ".join(CHANGES))
    return frozenset(words)


def condition_hash(run: Run) -> str:
    """What a run asked of its service, as 64 hex digits: runs of one condition make one history.

    Of the asked fields that must be equal, by name and in order; neither versions, engine nor weights, which are what a
    history is about, nor the machine.
    """
    asked = {row.name: row.asked(run.spec) for row in FIELDS if row.asked is not None}
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def length_distance(a: Sequence[int], b: Sequence[int]) -> float:
    """How far two distributions of lengths are apart, 0 to 1, lengths that agree taken for the same.

    The greatest distance of the distribution functions (Kolmogorov and Smirnov), where each is given the slack in which
    two lengths agree: of fixed lengths the plain distance is 1 as soon as one tokeniser counts one token more.
    """
    of_a, of_b = sorted(a), sorted(b)
    return max(0.0, *(_beyond(*sides, value) for sides in ((of_a, of_b), (of_b, of_a)) for value in sides[0]))


def _beyond(ordered: Sequence[int], others: Sequence[int], value: int) -> float:
    """By how much more of the one lies up to `value` than of the other up to where it still agrees with it."""
    slack = max(LENGTH_SHARE * value, LENGTH_TOKENS)
    return bisect_right(ordered, value) / len(ordered) - bisect_right(others, value + slack) / len(others)


def _difference(row: Field, a: Sequence[Run], b: Sequence[Run]) -> Difference | None:
    of_a, of_b = _values(row, a), _values(row, b)
    mixed = len(of_a) > 1 or len(of_b) > 1
    if not mixed and (of_a == of_b or (of_a and of_b and row.agree(of_a[0], of_b[0]))):
        return None
    state: State = "mixed" if mixed else "differs" if of_a and of_b else "unknown"
    return Difference(field=row.name, state=state, a=of_a, b=of_b, changes=row.changes)


def _values(row: Field, runs: Sequence[Run]) -> tuple[Value, ...]:
    """The known values of a side that do not agree with one before them: one where the side is of one kind."""
    values: list[Value] = []
    for run in runs:
        value = row.read(run)
        if value is not None and not any(row.agree(value, known) for known in values):
            values.append(value)
    return tuple(values)


def _apart(lengths: Mapping[str, tuple[Sequence[int], Sequence[int]]]) -> Iterator[Difference]:
    for name, (a, b) in lengths.items():
        if not a or not b:
            continue
        distance = length_distance(a, b)
        if distance > max(KS_LEAST, KS_CHANCE * (1 / len(a) + 1 / len(b)) ** 0.5):
            yield Difference(field=f"lengths.{name}.ks", state="differs", a=(0.0,), b=(distance,), changes=("lengths",))


def _told(values: tuple[Value, ...]) -> str:
    return ", ".join(map(str, values)) or "?"
