"""Starts the embedded engine, or an engine the user names, with flags that leave a core to the client.

It joins what the other files know: catalogue (which program), prepare (which model), flags, process. A program that
the processor cannot execute gives way to the next one of the catalogue, and that is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from nilometer.core.environment import ModelFacts
from nilometer.core.errors import EngineError
from nilometer.core.secrets import mask_flags

from . import catalogue, flags, model_cache
from .catalogue import EMBEDDED, Program
from .flags import Flag
from .prepare import DEFAULT_PRECISION, prepare
from .prepare import is_prepared as model_is_prepared
from .process import READY_BUDGET_S, Launch, LaunchedEngine, begin, free_port, port_is_free
from .tell import Tell, quiet

SLOTS = 8
CONTEXT_TOKENS_PER_SLOT = 2_048
THREADS_MOST = 4
"""A model this small gains nothing from more threads: they only wait for each other."""

_PORT_TRIES = 3
_LLAMA_CPP = "llama-server"
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


class Model(NamedTuple):
    """A model file to serve and the name it is served under."""

    path: Path
    facts: ModelFacts

    @property
    def alias(self) -> str:
        return self.path.name.removesuffix(".gguf")


class Setting(NamedTuple):
    """What every program that is tried gets."""

    model: Model | None
    defaults: Sequence[Flag]
    users_flags: Sequence[str]
    ready_budget_s: float


@contextmanager
def start(
    *,
    spec: str = EMBEDDED,
    precision: str | None = None,
    slots: int = SLOTS,
    model_file: str | None = None,
    context_tokens_per_slot: int = CONTEXT_TOKENS_PER_SLOT,
    port: int | None = None,
    ready_budget_s: float = READY_BUDGET_S,
    tell: Tell = quiet,
) -> Iterator[LaunchedEngine]:
    """The embedded engine, or the one `spec` names, ready; ended on leaving.

    Flags in `spec` replace defaults of the same name, the model among them. `model_file` is served as it is unless
    `precision` asks for another one. Refuses as `prepare` and `process.begin` do, and: `engine_missing`,
    `engine_unknown`, `engine_spec_bad`, `engine_flag_bad`, `engine_host_bad`.
    """
    programs, users_flags = _understood(spec, port)
    if spec.partition(":")[0] == _LLAMA_CPP and programs and programs[0].engine != _LLAMA_CPP:
        tell("engine_stands_in", engine=_LLAMA_CPP, next_engine=programs[0].engine)
    defaults = flags.defaults(
        slots=flags.number_of(flags.SLOTS, users_flags) or slots,
        context_tokens_per_slot=context_tokens_per_slot,
        threads=threads(),
    )
    model = _model(precision, model_file, users_flags, tell)
    engine = _begin_first_that_runs(programs, Setting(model, defaults, users_flags, ready_budget_s), tell)
    try:
        yield engine
    finally:
        engine.stop()


def launch_spec(spec: str, *, tell: Tell = quiet) -> AbstractContextManager[LaunchedEngine]:
    """The engine that a spec such as `llama-server:-np 4` names, with the embedded model unless it names one."""
    return start(spec=spec, tell=tell)


def is_prepared(spec: str) -> bool:
    """Whether the engine can start without a model being fetched: it names its own, or the embedded one lies ready."""
    users_flags = flags.split(spec.partition(":")[2])
    return any(word in flags.MODEL_SOURCES for word in users_flags) or model_is_prepared(DEFAULT_PRECISION)


def names_engine(target: str) -> bool:
    """Whether TARGET is an engine spec: before its colon `embedded`, a name of the catalogue, or a program's path."""
    name = target.partition(":")[0]
    return name == EMBEDDED or name in catalogue.ENGINES or (os.sep in name and os.access(name, os.X_OK))


def threads() -> int:
    """Decode threads: all usable processors but one, which is the client's; at least 1, at most THREADS_MOST."""
    return max(1, min(THREADS_MOST, usable_processors() - 1))


def usable_processors(quota_path: str = _CPU_QUOTA) -> int:
    """Processors this process may use: its affinity, cut by the container's quota where there is one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path(quota_path).read_text("ascii").split()
        return max(1, min(count, int(quota) // int(period)))
    except (OSError, ValueError):
        return count


def default_flags(program: Program) -> list[str]:
    """The flags `program` would get, without host, port and model."""
    defaults = flags.defaults(slots=SLOTS, context_tokens_per_slot=CONTEXT_TOKENS_PER_SLOT, threads=threads())
    return flags.merged([*defaults, *program.flags], (), catalogue.known_flags(program))


def _understood(spec: str, port: int | None) -> tuple[list[Program], list[str]]:
    name, _, rest = spec.partition(":")
    users_flags = flags.split(rest)
    flags.refuse_other_hosts(users_flags)
    if port is not None:
        users_flags = [*users_flags, flags.PORT[0], str(port)]
    return catalogue.named(name), users_flags


def _model(precision: str | None, model_file: str | None, users_flags: Sequence[str], tell: Tell) -> Model | None:
    if any(word in flags.MODEL_SOURCES for word in users_flags):
        users = flags.value_of(flags.MODEL, users_flags)
        return _users_model(users) if users is not None else None
    if model_file is not None and precision is None and not model_file.endswith(".whl"):
        return _users_model(model_file)
    made = prepare(precision or DEFAULT_PRECISION, model_file=model_file, tell=tell, hashed=False)
    facts = ModelFacts(
        file=str(made.path),
        file_sha256=made.sha256,
        file_bytes=made.size_bytes,
        precision=made.precision,
        requantised_from=made.requantised_from,
    )
    return Model(made.path, facts)


def _users_model(file: str) -> Model:
    path = Path(file)
    digest = model_cache.hash_of_users_file(path, model_cache.folder())
    return Model(path, ModelFacts(file=str(path), file_sha256=digest, file_bytes=path.stat().st_size))


def _begin_first_that_runs(programs: Sequence[Program], setting: Setting, tell: Tell) -> LaunchedEngine:
    for program, next_program in zip(programs, [*programs[1:], None], strict=True):
        try:
            return _begin(program, setting)
        except EngineError as error:
            if error.params.get("ended") != "SIGILL" or next_program is None:
                raise
            tell("engine_gave_way", engine=program.engine, next_engine=next_program.engine)
    raise EngineError("engine_missing", engine="llama-server", command=catalogue.INSTALL_COMMAND)


def _begin(program: Program, setting: Setting) -> LaunchedEngine:
    users_port = flags.number_of(flags.PORT, setting.users_flags)
    version, build = catalogue.version(program)
    known = catalogue.known_flags(program)
    for tries_left in reversed(range(_PORT_TRIES)):
        port = users_port or free_port()
        words = _words(program, setting, port, known)
        wanted = Launch(
            name=program.engine,
            argv=[*program.argv, *words],
            port=port,
            environment=program.environment,
            headers=_headers(setting.users_flags),
            version=version,
            build=build,
            shown_flags=mask_flags(flags.without((*flags.HOST, *flags.PORT), words)),
            model=setting.model.facts if setting.model else ModelFacts(),
            ready_budget_s=setting.ready_budget_s,
        )
        try:
            return begin(wanted)
        except EngineError:
            if users_port is not None or not tries_left or port_is_free(port):
                raise
    raise AssertionError("the last try returns or raises")


def _words(program: Program, setting: Setting, port: int, known: frozenset[str]) -> list[str]:
    """The server's arguments: what is ours to fix, the defaults, the program's own, the user's."""
    fixed = [Flag(flags.HOST, flags.LOOPBACK, needed=True), Flag(flags.PORT, str(port), needed=True)]
    if setting.model is not None:
        path, alias = str(setting.model.path), setting.model.alias
        fixed = [Flag(flags.MODEL, path, needed=True), Flag(flags.ALIAS, alias, needed=True), *fixed]
    return flags.merged([*fixed, *setting.defaults, *program.flags], setting.users_flags, known)


def _headers(users_flags: Sequence[str]) -> dict[str, str]:
    key = flags.value_of(flags.API_KEY, users_flags)
    return {"Authorization": f"Bearer {key.split(',')[0]}"} if key else {}
