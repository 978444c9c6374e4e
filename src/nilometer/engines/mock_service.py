"""The service that a mock plays, as a user writes it down: a TOML file, or one that is ready under a name.

Pure but for the reading of the file. What it says becomes a `Plan` of the step machine.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import structs

from nilometer.core.errors import DataError, SpecError
from nilometer.core.toml import located, parsed, refusal, typed
from nilometer.sim.cost import Linear
from nilometer.sim.faults import Faults
from nilometer.sim.machine import Plan, Router
from nilometer.sim.setting import Policy, Reserve, Setting, Speculation

Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
READY = "services.toml"
"""In this package: services by name, each a table as a file of its own would be."""


class CostTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one step takes: fixed + what each prompt token, decoded token and cached token that is read adds."""

    fixed_ms: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    prefill_ms_per_token: Amount = 0.0
    decode_ms_per_token: Amount = 0.0
    cached_ms_per_token: Amount = 0.0


class SettingTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One replica, as `sim.setting.Setting` has it."""

    policy: Policy = "chunked"
    slots: Count = 256
    max_batched_tokens: Count = 2048
    kv_blocks: Count | None = None
    block_tokens: Count = 16
    reserve: Reserve = "growing"
    context_tokens: Count = 8192
    prefix_cache: bool = False
    adapter_slots: Count = 1
    adapter_swap_s: Amount = 0.0


class SpeculationTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Drafts of each round, the chance that one is accepted, and what making one costs."""

    drafts: Count
    acceptance: Share
    draft_share: Amount = 0.0


class FaultTable(Faults, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`sim.faults.Faults`, nothing else."""


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a file. `adapters`: names of LoRA adapters, each served as a model of its own."""

    cost: CostTable
    setting: SettingTable = SettingTable()
    speculation: SpeculationTable | None = None
    faults: FaultTable = FaultTable()
    replicas: Count = 1
    router: Router = "least"
    adapters: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """The same for the machine, in seconds."""
        cost, guess = self.cost, self.speculation
        return Plan(
            setting=Setting(
                cost=Linear(
                    fixed_s=cost.fixed_ms / 1e3,
                    prefill_token_s=cost.prefill_ms_per_token / 1e3,
                    decode_token_s=cost.decode_ms_per_token / 1e3,
                    cached_token_s=cost.cached_ms_per_token / 1e3,
                ),
                speculation=None if guess is None else Speculation(**structs.asdict(guess)),
                **structs.asdict(self.setting),
            ),
            replicas=self.replicas,
            router=self.router,
            faults=self.faults,
        )


class _Number(NamedTuple):
    """Its bounds, both within."""

    low: float
    high: float
    expected: str


_SHARE = _Number(0, 1, "Expected a share from 0 to 1")
_SHARE_NOT_0 = _Number(1e-9, 1, "Expected a share above 0, at most 1")
_COUNT = _Number(1, 2e9, "Expected a count from 1 to 2e9")
_NOT_0 = _Number(1e-9, 2e9, "Expected a number above 0, at most 2e9")
_MOMENT = _Number(0, float("inf"), "Expected seconds of at least 0, or inf")
_ANY = _Number(0, 2e9, "Expected a number from 0 to 2e9")
_FAULTS = {
    "rate_per_s": _NOT_0,
    "rate_burst": _COUNT,
    "refuse_s": _NOT_0,
    "drop_share": _SHARE,
    "early_eos_share": _SHARE,
    "early_eos_at": _SHARE_NOT_0,
    "frame_tokens": _COUNT,
    "replica_slowness": _NOT_0,
    "spell_slowness": _NOT_0,
    "throttle_slowness": _NOT_0,
    "duty_share": _SHARE_NOT_0,
    "cold_again_s": _MOMENT,
    "throttle_after_s": _MOMENT,
}
"""What a number must be; `_ANY` where it stands not here."""


def service(name_or_file: str) -> Service:
    """The one of this name, or that a `.toml` file describes.

    Refuses `mock_service` an unknown name, `file_unreadable`, `toml_invalid` and `toml_key` with file, key and line.
    """
    if not name_or_file.endswith(".toml"):
        found = ready().get(name_or_file)
        if found is None:
            raise SpecError("mock_service", name=name_or_file, known=", ".join(ready()))
        return found
    try:
        text = Path(name_or_file).read_text("utf-8")
    except UnicodeDecodeError:
        raise SpecError("toml_invalid", file=name_or_file, detail="not UTF-8") from None
    except OSError as fault:
        raise DataError("file_unreadable", file=name_or_file, detail=fault.strerror or str(fault)) from None
    try:
        return from_tree(parsed(text, name_or_file), name_or_file)
    except SpecError as fault:
        raise located(fault, text) if fault.slug == "toml_key" else fault from None


@cache
def ready() -> dict[str, Service]:
    """Those that nilometer brings along, by name."""
    text = files(__package__).joinpath(READY).read_text("utf-8")
    return {name: from_tree(tree, f"{READY}:{name}") for name, tree in parsed(text, READY).items()}


def from_tree(tree: dict[str, Any], source: str) -> Service:
    """A service from plain values; slug `toml_key` with the key's path."""
    made = typed(tree, Service, source)
    for name, value in structs.asdict(made.faults).items():
        _check_fault(name, value, source)
    names = made.adapters
    if len(set(names)) < len(names) or not all(names):
        raise refusal(source, "Expected names, each once", "adapters")
    if made.faults.duty_period_s == 0 and made.faults.duty_share < 1:
        raise refusal(source, "Expected a number above 0, as duty_share is below 1", "faults.duty_period_s")
    if made.faults.retries and made.faults.timeout_s is None:
        raise refusal(source, "Expected no retries without timeout_s", "faults.retries")
    return made


def _check_fault(name: str, value: float | tuple[float, ...] | None, source: str) -> None:
    """NaN fits nowhere."""
    kind = _FAULTS.get(name, _ANY)
    numbers = value if isinstance(value, tuple) else () if value is None else (value,)
    if not all(kind.low <= number <= kind.high for number in numbers):
        raise refusal(source, kind.expected, f"faults.{name}")
