"""`nilo diagnose RUN|GROUP|TARGET`: what limits a service, with evidence, counter-evidence and what to do."""

from __future__ import annotations

from typing import Any

import click

from .session import Session, shared_options
from .spec_options import Command, spec_options, told_otherwise
from .values import SECONDS


def _options(command: Command) -> Command:
    """Those of a load test, less what the ladder of loads chooses itself."""
    return told_otherwise(
        spec_options(command),
        concurrency=None,
        rate=None,
        arrivals=None,
        ramp=None,
        requests=None,
        replay=None,
        speed=None,
        slo=None,
        warmup="Load before the measured stretch of each level.  [default: by --budget]",
        duration="The measured stretch of each level.  [default: by --budget]",
    )


@click.command()
@click.argument("subject", metavar="RUN|GROUP|TARGET")
@_options
@click.option("--budget", type=SECONDS, default="3m", show_default=True, help="TARGET: the whole ladder's time.")
@click.option("--most", type=click.IntRange(2, 100_000), default=256, show_default=True, help="TARGET: greatest load.")
@click.option("--experiment", is_flag=True, help="Then make the measurement that tells the rivals apart.")
@click.option("--watch", is_flag=True, help="TARGET: only look at its metrics page, once a second; send no load.")
@click.option("--every", type=SECONDS, default="10s", show_default=True, help="--watch: a line so often.")
@click.option("--for", "for_s", type=SECONDS, help="--watch: end after this time.  [default: at Ctrl-C]")
@click.option("--no-archive", is_flag=True, help="TARGET: keep the runs out of the archive.")
@shared_options
def command(subject: str, session: Session, **given: Any) -> None:
    """What limits a service: the finding, where the time goes, what speaks for and against it, and what to do.

    RUN or GROUP is read from the archive, a run with the other loads of its group. TARGET (an address, `embedded`, an
    engine spec, a TOML file) is measured first: at 1, 2, 4, ... requests in flight until more of them bring no more
    tokens. Exit 0: found, or nothing is wrong; 4: the runs are no evidence; 5: not decided.
    """
    if given["watch"]:
        from .watching import run_watch

        raise SystemExit(run_watch(subject, session, given))
    from .diagnosing import run_diagnose

    raise SystemExit(run_diagnose(subject, session, given))
