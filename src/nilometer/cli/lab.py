"""`nilo lab NAME`: a lesson of the handbook on the embedded engine, both sides shown."""

from __future__ import annotations

from random import Random

import click

from .session import Session, shared_options

NAMES = ("length-mix",)
"""Those of `experiment.lab`, which is imported only when one is run; a test holds both to each other."""


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@shared_options
def command(session: Session, name: str) -> None:
    """Repeat a lesson of the handbook on the embedded engine; both sides are kept as one group.

    `length-mix`: short prompts of one length against a mix with a long tail. Takes about two minutes.
    Needs the extra: pip install "nilometer[embedded]".
    """
    from nilometer.engines import embedded
    from nilometer.experiment.lab import LABS, run_lab
    from nilometer.experiment.measure import Behind
    from nilometer.report.lab import lab_document

    from .machine import group_object
    from .measuring import exit_code, interrupts, open_archive_of
    from .progress import Progress

    lab = LABS[name]
    with (
        open_archive_of(session) as archive,
        interrupts() as stop,
        embedded.start(context_tokens_per_slot=lab.context_tokens, tell=session.progress) as engine,
        Progress(session.words, quiet=session.quiet) as progress,
    ):
        group, series = run_lab(
            lab,
            Behind(engine.url, engine.facts, engine.model, engine.pid),
            tuple(engine.headers.items()),
            runs=archive,
            watch=progress,
            stop=stop,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    session.emit(
        group_object(group.id, "lab", series.runs),
        lambda: session.render(lab_document(series.runs, group.id, session.words)),
        archived=[run.id for run in series.runs],
    )
    raise SystemExit(exit_code(series, session))
