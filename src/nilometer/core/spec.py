"""What a load test asks for. One TOML file <-> one `Spec`; unknown keys are refused by their path.

The resolved Spec is stored in the Run. Values of secrets never enter it: headers hold `***`, the key is named by its
variable.
"""

from __future__ import annotations

import tomllib
from typing import Any, Literal

import msgspec
import tomli_w

from .errors import SpecError

Limit = float | Literal["none"]


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are started and when the test stops. Exactly one of `concurrency` and `rate_per_s`."""

    concurrency: int | None = None
    rate_per_s: float | None = None
    arrivals: str = "poisson"
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
    workers: int = 1


class Prompts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked and how long the answers shall be. Lengths are tokens as the server counts them."""

    input_tokens: str = "512"
    output_tokens: str = "128"
    shared_prefix_tokens: int = 0
    seed: int = 0
    unique: bool = True
    ignore_eos: bool = True


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


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One load test, whole."""

    target: str
    model: str | None = None
    api: str = "auto"
    stream: bool = True
    probe: bool = True
    slo: str | None = None
    load: Load = Load()
    prompts: Prompts = Prompts()
    sampling: Sampling = Sampling()
    timeouts: Timeouts = Timeouts()
    http: Http = Http()
    labels: Labels = Labels()


def from_toml(text: str, source: str = "spec") -> Spec:
    """Read a Spec. Refuses with file, line or key path: slugs `toml_invalid` and `toml_key`."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise SpecError("toml_invalid", file=source, detail=str(fault)) from None
    return from_tree(tree, source)


def from_tree(tree: dict[str, Any], source: str = "spec") -> Spec:
    """The same from an already parsed tree."""
    try:
        return msgspec.convert(tree, Spec)
    except msgspec.ValidationError as fault:
        raise SpecError("toml_key", file=source, detail=str(fault)) from None


def to_tree(spec: Spec) -> dict[str, Any]:
    """The Spec as plain values, None left out: the form TOML can hold and `from_tree` reads back."""
    tree: dict[str, Any] = _without_none(msgspec.to_builtins(spec))
    return tree


def to_toml(spec: Spec) -> str:
    """The Spec as a TOML file that `from_toml` reads back to an equal Spec.

    TOML has no null: a field that may be None has the default None, so that leaving it out says the same.
    """
    return tomli_w.dumps(to_tree(spec))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return value
