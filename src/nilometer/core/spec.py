"""What a load test asks for. One TOML file <-> one `Spec`; unknown keys are refused by their path.

The resolved Spec is stored in the Run. Values of secrets never enter it: headers hold `***`, the key is named by its
variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import tomli_w

from .errors import SpecError
from .secrets import SHOWN, in_header, in_target, in_tree, in_url, mask_target, mask_tree, mask_url
from .toml import located, parsed, refusal, typed

Limit = float | Literal["none"]


SHAPES = ("ramp", "steps", "spike")
"""Arrivals whose rate changes by plan, and that therefore hold their rates themselves."""


RECORDED = "recorded"
"""Arrivals as the workload has them."""


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are started and when the test stops.

    Exactly one of `concurrency`, `rate_per_s`, and `arrivals` of a shape.
    """

    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: str = "poisson"
    speed: float = 1.0
    """How many times as fast as they were recorded."""
    ramp_s: float | None = None
    """Spread of the opening wave; None = auto, one mean E2E."""
    warmup_s: float = 60.0
    duration_s: float = 180.0
    requests: int | None = None
    window: str = "auto"
    """`auto`, `count`, `guide` or `A..B` in seconds from the end of the asked warm-up."""
    drain_s: float = 60.0
    max_total_tokens: int | None = None
    max_error_rate: float = 0.01
    workers: int | None = None
    """None = as many as the load needs and this machine has processors for."""

    @property
    def varies(self) -> bool:
        """Whether the rate changes by plan."""
        return self.arrivals.partition(":")[0].strip() in (*SHAPES, RECORDED)

    @property
    def is_open(self) -> bool:
        """Whether requests start when they are due, and not when a slot is free."""
        return self.rate_per_s is not None or self.varies


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of request among several. What is None is as `Prompts` has it."""

    name: str
    weight: float = 1.0
    """Its share of the conversations, over the sum of all weights."""
    input_tokens: str | None = None
    output_tokens: str | None = None
    turns: str | None = None
    think_s: str | None = None
    shared_prefix_tokens: int | None = None
    shared_prefix_share: float | None = None


class Prompts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked and how long the answers shall be. Lengths are tokens as the server counts them."""

    input_tokens: str = "512"
    output_tokens: str = "128"
    workload: str | None = None
    """What is asked in place of made-up prompts: a workload file (`.toml`), or any file that holds its texts."""
    workload_sha256: str | None = None
    """The hash of its rows when it was measured: a part of the condition."""
    text: Literal["en", "zh"] = "en"
    """The running text that prompts are made of."""
    shared_prefix_tokens: int = 0
    shared_prefix_share: float = 1.0
    """The share of conversations (of requests, where each is one turn) that begin with the common prefix."""
    turns: str = "1"
    """Turns of a conversation, a distribution as for lengths; each turn sends all that was said before it."""
    think_s: str = "0"
    """Seconds between an answer and the next turn: 5, uniform:A,B, exponential:MEAN, lognormal:MEDIAN,P95."""
    scenarios: tuple[Scenario, ...] = ()
    """A mix of kinds of requests, by weight."""
    seed: int = 0
    unique: bool = True
    ignore_eos: bool = True

    @property
    def one_by_one(self) -> bool:
        """Whether every request stands alone: no conversation, no mix."""
        return self.turns.strip() == "1" and not self.scenarios

    @property
    def converses(self) -> bool:
        """Whether a conversation may have more than one turn: a rate is then one of conversations."""
        kinds = [one.turns or self.turns for one in self.scenarios] or [self.turns]
        return any(turns.strip() != "1" for turns in kinds)


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent besides the prompt."""

    temperature: float | Literal["none"] = 0.0
    top_p: float | None = None
    seed: int | None = None
    extra_body: dict[str, Any] = {}


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in seconds, or "none"."""

    connect_s: Limit = 10.0
    first_s: Limit = "none"
    idle_s: Limit = 120.0
    total_s: Limit = 600.0


class Http(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the target is reached."""

    headers: dict[str, str] = {}
    api_key_env: str | None = None
    proxy: str | None = None
    insecure: bool = False


class Labels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the run is filed under."""

    service: str | None = None
    service_version: str | None = None
    model_version: str | None = None
    quantisation: str | None = None
    extra: dict[str, str] = {}


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the service costs, in one currency. No part of the condition: the same run may be priced anew."""

    input_per_million: float | None = None
    """A million prompt tokens."""
    output_per_million: float | None = None
    """A million output tokens."""
    device_hour: float | None = None
    """An hour of one device."""
    devices: int | None = None
    """Devices that serve; None = those that are seen to hold the server, else unknown."""
    currency: str = "USD"


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One load test, whole."""

    target: str
    model: str | None = None
    api: str = "auto"
    protocol: dict[str, Any] = {}
    """What the file says that `api` names, where it names one: the run keeps it, the file may change."""
    stream: bool = True
    probe: bool = True
    slo: str | None = None
    load: Load = Load()
    prompts: Prompts = Prompts()
    sampling: Sampling = Sampling()
    timeouts: Timeouts = Timeouts()
    http: Http = Http()
    labels: Labels = Labels()
    price: Price = Price()


_BOUNDS: dict[str, tuple[float, float]] = {
    "load.concurrency": (1, 100_000),
    "load.rate_per_s": (1e-6, 1e6),
    "load.speed": (1e-6, 1e6),
    "load.ramp_s": (0, 1e9),
    "load.warmup_s": (0, 1e9),
    "load.duration_s": (0, 1e9),
    "load.requests": (1, 1e12),
    "load.drain_s": (0, 1e9),
    "load.max_total_tokens": (1, 1e15),
    "load.max_error_rate": (0, 1),
    "load.workers": (1, 64),
    "prompts.shared_prefix_tokens": (0, 1e9),
    "prompts.shared_prefix_share": (0, 1),
    "sampling.temperature": (0, 100),
    "sampling.top_p": (0, 1),
    "timeouts.connect_s": (0, 1e9),
    "timeouts.first_s": (0, 1e9),
    "timeouts.idle_s": (0, 1e9),
    "timeouts.total_s": (0, 1e9),
    "price.input_per_million": (0, 1e12),
    "price.output_per_million": (0, 1e12),
    "price.device_hour": (0, 1e12),
    "price.devices": (1, 1e6),
}
_SCENARIO_BOUNDS: dict[str, tuple[float, float]] = {
    "weight": (1e-6, 1e6),
    "shared_prefix_tokens": (0, 1e9),
    "shared_prefix_share": (0, 1),
}
"""Least and greatest value that makes sense, where a number is given: beyond any use, within what can be reckoned."""


def from_toml(text: str, source: str = "spec") -> Spec:
    """Read a Spec. Refuses with file, line and key path: slugs `toml_invalid` and `toml_key`."""
    tree = parsed(text, source)
    try:
        return from_tree(tree, source)
    except SpecError as fault:
        raise located(fault, text) from None


def from_tree(tree: dict[str, Any], source: str = "spec") -> Spec:
    """The same from an already parsed tree: refuses with the key's path, slug `toml_key`."""
    spec = typed(tree, Spec, source)
    _refuse_nul(tree, source, "")
    for path, (least, greatest) in _BOUNDS.items():
        section, _, name = path.partition(".")
        _bound(source, path, getattr(getattr(spec, section), name), least, greatest)
    for place, scenario in enumerate(spec.prompts.scenarios):
        for name, (least, greatest) in _SCENARIO_BOUNDS.items():
            _bound(source, f"prompts.scenarios[{place}].{name}", getattr(scenario, name), least, greatest)
    return spec


def _refuse_nul(value: Any, source: str, path: str) -> None:
    """No archive of a team can hold a NUL in a text; it is refused before anything is sent."""
    if isinstance(value, str) and "\0" in value:
        raise refusal(source, "Expected text without a NUL", path)
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(key, source, path)
            _refuse_nul(item, source, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            _refuse_nul(item, source, f"{path}[{place}]")


def _bound(source: str, path: str, value: object, least: float, greatest: float) -> None:
    if isinstance(value, int | float) and not least <= value <= greatest:
        raise refusal(source, f"Expected {least:g} to {greatest:g}, got {value}", path)


def to_tree(spec: Spec) -> dict[str, Any]:
    """The Spec as plain values that `from_tree` reads back; None left out, save where it is sent: in the extra body."""
    tree: dict[str, Any] = _without_none(msgspec.to_builtins(spec))
    tree["sampling"]["extra_body"] = msgspec.to_builtins(spec.sampling.extra_body)
    return tree


def to_toml(spec: Spec) -> str:
    """The Spec as a TOML file that `from_toml` reads back to an equal Spec.

    TOML has no null: a field that may be None has the default None, so that leaving it out says the same. A null in
    the extra body is refused: slug `toml_key`.
    """
    _refuse_null(spec.sampling.extra_body, "$.sampling.extra_body")
    return tomli_w.dumps(to_tree(spec))


def without_secrets(spec: Spec) -> Spec:
    """The Spec as it may be stored, every secret as `***`; one that holds none is returned equal.

    Header values, the secrets of addresses and of an engine's flags, what stands under secret names in the extra body,
    a protocol of the user's and the labels.
    """
    replace = msgspec.structs.replace
    http = replace(
        spec.http,
        headers=dict.fromkeys(spec.http.headers, SHOWN),
        proxy=None if spec.http.proxy is None else mask_url(spec.http.proxy),
    )
    return replace(
        spec,
        target=mask_target(spec.target),
        http=http,
        sampling=replace(spec.sampling, extra_body=mask_tree(spec.sampling.extra_body)),
        protocol=mask_tree(spec.protocol),
        labels=replace(spec.labels, extra=mask_tree(spec.labels.extra)),
    )


def secrets_of(spec: Spec, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What must not be told of a run: the secrets of its Spec, as given, and of the headers really sent."""
    found = [secret for name, value in headers for secret in in_header(name, value)]
    found += [*in_target(spec.target), *in_url(spec.http.proxy or "")]
    found += in_tree([spec.sampling.extra_body, spec.protocol, spec.labels.extra])
    return tuple(sorted(set(found)))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def _refuse_null(value: Any, path: str) -> None:
    if value is None:
        raise SpecError("toml_key", file="TOML", detail=f"Expected a value, got null - at `{path}`")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_null(item, f"{path}.{key}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            _refuse_null(item, f"{path}[{i}]")
