"""`nilo quickstart`: no arguments, a real engine, three loads, what limits it, and where to go from there."""

from __future__ import annotations

from random import Random

import click

from .session import Session, shared_options


@click.command()
@shared_options
def command(session: Session) -> None:
    """Measure the embedded engine at 1, 4 and 8 requests in flight, say what limits it, keep the runs as one group.

    Takes under three minutes after the model was fetched. Needs the extra: pip install "nilometer[embedded]".
    """
    from nilometer.engines import embedded
    from nilometer.experiment.measure import Behind
    from nilometer.experiment.quickstart import quickstart
    from nilometer.report.build import group_document

    from .machine import group_object
    from .measuring import exit_code, interrupts, open_archive_of
    from .progress import Progress

    with (
        open_archive_of(session) as archive,
        interrupts() as stop,
        embedded.start(tell=session.progress) as engine,
        Progress(session.words, quiet=session.quiet) as progress,
    ):
        group, series, findings = quickstart(
            Behind(engine.url, engine.facts, engine.model, engine.pid),
            tuple(engine.headers.items()),
            runs=archive,
            watch=progress,
            stop=stop,
            random=Random(),  # noqa: S311 - names, not secrets
        )
    runs = series.runs
    machine = group_object(group.id, "quickstart", runs, findings)
    session.emit(
        machine,
        lambda: session.render(group_document(runs, group.id, findings[0], session.words)),
        archived=[run.id for run in runs],
    )
    raise SystemExit(exit_code(series, session))
