"""`nilo verify A B`: two targets in turns, and a verdict that can be trusted, or none yet."""

from __future__ import annotations

from typing import Any

import click

from .comparing import CHANGES, METRICS
from .session import Session, shared_options
from .spec_options import Command, spec_options, told_otherwise
from .values import WAIT


def _options(command: Command) -> Command:
    """Those of a load test, of which each side has one."""
    return told_otherwise(
        spec_options(command),
        warmup="Load before the measured stretch of each run.  [default: 60s]",
        duration="The measured stretch of each run.  [default: 180s]",
    )


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@_options
@click.option("--like", metavar="RUN", help="Both under the conditions of an archived run.")
@click.option(
    "--pairs",
    type=click.IntRange(min=3, max=50),
    default=10,
    show_default=True,
    help="The most pairs of runs; it ends with the first that decides.",
)
@click.option("--budget", type=WAIT, help="No pair begins that would end after this time.")
@METRICS
@CHANGES
@click.option("--no-archive", is_flag=True, help="Keep the runs out of the archive.")
@shared_options
def command(a: str, b: str, session: Session, **given: Any) -> None:
    """Is B worse, alike or better than A: pairs of runs in the order A B B A, until that can be told.

    A and B are targets as of `nilo measure`: addresses, TOML files, or engines with their settings, which are started
    for each of their runs. All options hold for both. A against itself tells the noise floor of the machine and the
    smallest change it can show. Exit 0: alike or better; 1: worse; 4: unlike conditions, or nothing admissible; 5: not
    decided.
    """
    from .verifying import run_verify

    raise SystemExit(run_verify(a, b, session, given))
