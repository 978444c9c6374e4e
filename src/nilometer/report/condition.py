"""The condition of a run: all that its figures depend on, as names and values; of several runs side by side.

What was not set and could not be read is left out. Values of secrets never were in a Spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nilometer.core.run import Run
from nilometer.core.spec import Prompts
from nilometer.text import load as loads
from nilometer.text import units
from nilometer.text.i18n import Catalogue

from .document import Cell, Column, Fact, Facts, Table

DIFFERS = "Δ"
_UNKNOWN = "-"
_NO_CONDITION = "started"


def facts(run: Run, words: Catalogue) -> Facts:
    """The condition of one run."""
    return Facts(rows=[Fact(words.say(f"screen.condition.{name}"), value) for name, value in _told(run, words)])


def side_by_side(runs: Sequence[Run], names: Sequence[str], words: Catalogue) -> Table:
    """The conditions of several runs, a column each; a row that is not the same in all of them is marked."""
    told = [dict(_told(run, words)) for run in runs]
    order = dict.fromkeys(name for one in told for name in one)
    rows = []
    for name in sorted(order, key=list(_all(runs[0], words)).index):
        values = [one.get(name, _UNKNOWN) for one in told]
        differs = len(set(values)) > 1 and name != _NO_CONDITION
        rows.append([Cell(words.say(f"screen.condition.{name}"), DIFFERS if differs else ""), *map(Cell, values)])
    return Table(
        columns=[Column("", "left"), *(Column(name, "left") for name in names)],
        rows=rows,
        legend=[f"{DIFFERS} {words.say('screen.condition.differs')}"] if any(row[0].mark for row in rows) else [],
    )


def _told(run: Run, words: Catalogue) -> Iterator[tuple[str, str]]:
    yield from ((name, value) for name, value in _all(run, words).items() if value)


def _all(run: Run, words: Catalogue) -> dict[str, str | None]:
    """Every row there can be, in its order."""
    return {**_served(run, words), **_asked(run, words), **_where(run, words), **_filed(run, words)}


def _served(run: Run, words: Catalogue) -> dict[str, str | None]:
    spec, model, engine = run.spec, run.environment.model, run.environment.engine
    return {
        "target": spec.target,
        "api": spec.api,
        "model": model.id or spec.model,
        "model_file": _joined(_name(model.file), units.size(model.file_bytes) if model.file_bytes else None),
        "model_hash": model.file_sha256,
        "precision": _precision(run, words),
        "engine": _joined(engine.name, engine.version or engine.build),
        "engine_flags": " ".join(engine.flags or ()),
        "slots": None if engine.slots is None else units.count(engine.slots),
        "context": None if engine.context_tokens is None else units.count(engine.context_tokens),
        "server_header": engine.server_header,
    }


def _name(file: str | None) -> str | None:
    """A file without its folders, which tell more of a machine than a report should."""
    return None if file is None else file.replace("\\", "/").rpartition("/")[2]


def _precision(run: Run, words: Catalogue) -> str | None:
    model = run.environment.model
    if model.requantised_from is None:
        return model.precision
    return words.say("screen.condition.requantised", precision=model.precision, former=model.requantised_from)


def _asked(run: Run, words: Catalogue) -> dict[str, str | None]:
    load, prompts = run.spec.load, run.spec.prompts
    until = "until_count" if load.requests is not None else "until_time"
    return {
        "load": loads.kind(run.spec, words),
        "phases": words.say(
            f"screen.condition.{until}",
            warmup=load.warmup_s,
            measured=load.duration_s,
            n=load.requests,
            drain=load.drain_s,
        ),
        "window_rule": load.window,
        "stream": None if run.spec.stream else words.say("screen.condition.whole"),
        "workload": prompts.workload,
        "workload_hash": prompts.workload_sha256,
        **_prompts(prompts),
        "sampling": " ".join(_sampling(run)),
        "slo": run.spec.slo,
        "timeouts": " ".join(f"{name.removesuffix('_s')}={value}" for name, value in _limits(run)),
    }


def _prompts(prompts: Prompts) -> dict[str, str | None]:
    """What made-up prompts are; nothing where a workload says it."""
    made = prompts.workload is None
    prefix = f"{units.count(prompts.shared_prefix_tokens)} ({units.percent(prompts.shared_prefix_share)})"
    return {
        "input_tokens": prompts.input_tokens if made else None,
        "output_tokens": prompts.output_tokens if made else None,
        "scenarios": " ".join(f"{one.name}:{one.weight:g}" for one in prompts.scenarios),
        "turns": prompts.turns if prompts.turns != "1" else None,
        "think": prompts.think_s if prompts.think_s != "0" else None,
        "shared_prefix": prefix if prompts.shared_prefix_tokens else None,
        "prompt_text": prompts.text if made else None,
        "seed": str(prompts.seed),
    }


def _sampling(run: Run) -> Iterator[str]:
    sampling = run.spec.sampling
    yield f"temperature={units.plain(sampling.temperature)}"
    if sampling.top_p is not None:
        yield f"top_p={units.plain(sampling.top_p)}"
    if sampling.seed is not None:
        yield f"seed={sampling.seed}"
    yield from (f"{name}={value}" for name, value in sampling.extra_body.items())


def _limits(run: Run) -> Iterator[tuple[str, str]]:
    limits = run.spec.timeouts
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        yield name, value if isinstance(value, str) else units.seconds(value).replace(" ", "")


def _where(run: Run, words: Catalogue) -> dict[str, str | None]:
    machine, client = run.environment.machine, run.environment.client
    return {
        "machine": _joined(machine.cpu_model, None if machine.cpu_count is None else f"× {machine.cpu_count}"),
        "memory": None if machine.memory_bytes is None else units.size(machine.memory_bytes),
        "limits": _joined(
            None if machine.container_cpu_limit is None else f"CPU {machine.container_cpu_limit:g}",
            None if machine.container_memory_limit_bytes is None else units.size(machine.container_memory_limit_bytes),
        ),
        "devices": ", ".join(machine.devices),
        "system": machine.os or machine.kernel,
        "client": None if client is None else words.say("screen.condition.client_told", **msgspec.to_builtins(client)),
    }


def _filed(run: Run, words: Catalogue) -> dict[str, str | None]:
    labels = run.spec.labels
    return {
        "service": _joined(labels.service, labels.service_version),
        "labelled": _joined(labels.model_version, labels.quantisation),
        "labels": " ".join(f"{name}={value}" for name, value in labels.extra.items()),
        "started": units.moment(run.phases.started_wall_ns),
        "origin": words.say(f"screen.origin.{run.origin}") if run.origin != "measured" else None,
        "tool": _joined(run.tool, run.tool_version) if run.tool != "nilometer" else None,
        "definitions": str(run.definitions),
        "condition_hash": run.condition_hash,
    }


def _joined(*parts: str | None) -> str | None:
    return " ".join(part for part in parts if part) or None
