"""`nilo sweep TARGET`: the load curve, its knee, and the greatest load that keeps an SLO."""

from __future__ import annotations

from typing import Any

import click

from nilometer.core.errors import SpecError

from .pages_options import pages_options
from .session import Session, shared_options
from .spec_options import Command, spec_options, told_otherwise
from .values import LEVELS, SECONDS


def _options(command: Command) -> Command:
    """Those of a load test, less what has no meaning for a curve."""
    return told_otherwise(
        spec_options(command),
        requests=None,
        replay=None,
        speed=None,
        arrivals="Open loop: poisson, constant or gamma:CV.  [default: poisson]",
        concurrency="The first level of a closed loop: N requests in flight.  [default: 1]",
        rate="The first level of an open loop: requests per second; beside --levels only that these are rates.",
        warmup="Load before the measured stretch of each level.  [default: 15s]",
        duration="The measured stretch of each level.  [default: 45s]",
    )


@click.command()
@click.argument("target", required=False)
@_options
@pages_options
@click.option("--like", metavar="RUN", help="Sweep under the conditions of an archived run.")
@click.option("--levels", type=LEVELS, help="Loads to measure, N,N,...; left out: they are searched.")
@click.option("--most", type=float, help="The greatest load to try.  [default: 256 times the first]")
@click.option("--budget", type=SECONDS, help="No level begins that would end after this time.")
@click.option(
    "--resume",
    metavar="GROUP",
    help="Go on with a sweep that was cut short, as it was begun; finished levels are kept.",
)
@click.option("--no-archive", is_flag=True, help="Keep the runs out of the archive.")
@shared_options
def command(target: str | None, session: Session, **given: Any) -> None:
    """The load curve of TARGET, one load test a level, all in one group.

    -c N or --rate R is the first level (1 in flight where neither is given). With --slo (bounds, `chat` or `batch`) the
    greatest load that keeps it is searched: doubled until it breaks, then narrowed to a tenth. Without, the load is
    doubled until more of it makes no more tokens. Each level: 15 s of warm-up, then 45 s, unless said.
    """
    from .sweeping import run_sweep

    if target is None and not given["like"] and not given["resume"]:
        raise SpecError("target_missing")
    raise SystemExit(run_sweep(target, session, given))
