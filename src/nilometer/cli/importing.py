"""`nilo runs import`: result files of other tools into the archive, each figure by what it means here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nilometer.core.errors import SpecError

from .session import Session, shared_options
from .values import LABEL

if TYPE_CHECKING:
    from nilometer.sources.results.told import Imported
    from nilometer.text.i18n import Catalogue

_EXPORTED = ".nilo"
TOOLS = ("vllm", "sglang", "genai-perf", "aiperf", "guidellm", "inference-perf", "evalscope", "llama-bench")
"""The names of the table of formats, here for `--help`, which reads no result."""


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--tool", type=click.Choice(TOOLS), help="What wrote FILE; default: recognised.")
@click.option("--model", help="The model, where FILE does not name it.")
@click.option("--service", help="What the runs are filed under.")
@click.option("--service-version", help="Its version.")
@click.option("--model-version", help="The model's version.")
@click.option("--quantisation", help="The model's precision.")
@click.option("--label", "labels", type=LABEL, multiple=True, help="More labels, K=V; may repeat.")
@click.option("--no-archive", is_flag=True, help="Only show what FILE holds.")
@shared_options
def import_command(
    session: Session,
    files: Sequence[Path],
    tool: str | None,
    model: str | None,
    service: str | None,
    service_version: str | None,
    model_version: str | None,
    quantisation: str | None,
    labels: Sequence[tuple[str, str]],
    no_archive: bool,
) -> None:
    """Take over runs out of files: those that `nilo runs export` has made, or result files of other tools: vllm bench
    serve, SGLang bench_serving, genai-perf, aiperf, guidellm, inference-perf, evalscope perf, llama-bench.

    What has no counterpart here is left out and said. A FILE that cannot be read refuses all of them.
    """
    from .bundles import take

    ours = [file for file in files if file.suffix == _EXPORTED]
    if ours:
        if len(ours) < len(files):
            raise SpecError("import_mixed", file=str(ours[0]))
        _refuse_options(ours[0])
        take(session, [file.expanduser() for file in files])
        return
    from random import SystemRandom

    from nilometer.core.spec import Labels
    from nilometer.sources.results.formats import read_results

    filed = Labels(
        service=service,
        service_version=service_version,
        model_version=model_version,
        quantisation=quantisation,
        extra=dict(labels),
    )
    random = SystemRandom()
    found = [one for file in files for one in read_results(file, random, name=tool, labels=filed, model=model)]
    if not no_archive:
        _store(session, found)
    _show(session, found, archived=not no_archive)


def _refuse_options(file: Path) -> None:
    """A run of ours comes as it is, labels and all: slug `import_option` for an option that would be passed over."""
    ctx = click.get_current_context()
    ours = {param.name: param.opts[-1] for param in ctx.command.params if isinstance(param, click.Option)}
    for name in (
        "tool",
        "model",
        "service",
        "service_version",
        "model_version",
        "quantisation",
        "labels",
        "no_archive",
    ):
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise SpecError("import_option", option=ours[name], file=str(file))


def _store(session: Session, found: Sequence[Imported]) -> None:
    """All of them or none."""
    from nilometer.archive.store import open_archive
    from nilometer.core.errors import NiloError

    with open_archive(session.archive_url) as archive:
        stored: list[str] = []
        try:
            for one in found:
                archive.put(one.run, one.records)
                stored.append(one.run.id)
        except NiloError:
            for run_id in stored:
                with suppress(NiloError):
                    archive.remove(run_id)
            raise


def _show(session: Session, found: Sequence[Imported], *, archived: bool) -> None:
    from nilometer.report.lead import taken_over

    from .machine import head, run_object

    warnings = list(dict.fromkeys((one.slug, tuple(one.params.items())) for each in found for one in each.warnings))
    machine = {
        **head("runs"),
        "runs": [run_object(one.run) for one in found],
        "warnings": [{"slug": slug, "params": dict(params)} for slug, params in warnings],
    }
    words, said = session.words, "screen.runs.imported" if archived else "screen.runs.imported_only"
    lines = [words.say(said, run=one.run.id, what=taken_over(one.run, words)) for one in found]
    session.emit(machine, lambda: "\n".join(lines), archived=[one.run.id for one in found] if archived else [])
    for line in dict.fromkeys(_warnings(found, words, archived)):
        session.tell(line)


def _warnings(found: Sequence[Imported], words: Catalogue, archived: bool) -> Iterator[str]:
    """What of each run weighs, and where the rest is said."""
    from nilometer.report.findings import cause
    from nilometer.report.notes import short

    rest = 0
    for one in found:
        notes = [finding for finding in one.run.findings if finding.slug.startswith("import_")]
        grave = [finding for finding in notes if finding.severity != "low"]
        rest += len(notes) - len(grave)
        yield from (words.say("screen.runs.import_note", what=cause(finding, words)) for finding in grave)
    if rest and archived and found:
        yield words.say("screen.runs.import_more", n=rest, run=short(found[-1].run))
