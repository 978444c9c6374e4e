"""`nilo lab NAME`: a lesson of the handbook on an engine of our own, both sides shown."""

from __future__ import annotations

import click

from .session import Session, shared_options

NAMES = ("length-mix", "felt-faster", "really-faster")
"""Those of `experiment.lab` and `experiment.contest`, which are imported only when one is run; a test holds them to
each other."""


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@shared_options
def command(session: Session, name: str) -> None:
    """Repeat a lesson of the handbook; both sides are kept as one group.

    `length-mix`: short prompts of one length against a mix with a long tail, on the embedded engine; two minutes.
    `felt-faster`: a version whose first token comes sooner and whose others come 10 % later, on the mock; a minute.
    `really-faster`: the embedded engine against itself, the noise floor of this machine, and against smaller weights;
    six minutes.
    The embedded engine needs the extra: pip install "nilometer[embedded]".
    """
    from nilometer.experiment.lab import LABS

    from .labs import run_contests, run_mix

    raise SystemExit(run_mix(LABS[name], session) if name in LABS else run_contests(name, session))
