"""Where a run was made: machine, engine, model, client. What could not be read is None."""

from __future__ import annotations

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine nilometer ran on."""

    os: str | None = None
    kernel: str | None = None
    cpu_model: str | None = None
    cpu_count: int | None = None
    cpu_governor: str | None = None
    memory_bytes: int | None = None
    container_cpu_limit: float | None = None
    container_memory_limit_bytes: int | None = None
    load_average_1m: float | None = None
    devices: list[str] = []


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The engine behind the target, as far as it could be read."""

    name: str | None = None
    version: str | None = None
    build: str | None = None
    flags: list[str] | None = None
    slots: int | None = None
    context_tokens: int | None = None
    load_time_s: float | None = None
    log_path: str | None = None
    launched_by_us: bool = False
    server_header: str | None = None


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answered."""

    id: str | None = None
    file: str | None = None
    file_sha256: str | None = None
    file_bytes: int | None = None
    precision: str | None = None
    requantised_from: str | None = None
    parameters: int | None = None
    template_tokens: int | None = None
    """Tokens that the chat template adds to every prompt; the same each time, so a prefix cache holds them."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """This program and what its figures depend on."""

    nilometer: str
    python: str
    event_loop: str | None = None
    http_parser: str | None = None
    workers: int | None = None
    """The processes that generated the load."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """All four."""

    machine: Machine = Machine()
    engine: EngineFacts = EngineFacts()
    model: ModelFacts = ModelFacts()
    client: Client | None = None
