"""`nilo compare A B`: archived runs side by side, where their conditions are alike."""

from __future__ import annotations

import click

from .comparing import CHANGES, LEVEL, METRICS
from .session import Session, shared_options


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@METRICS
@CHANGES
@LEVEL
@shared_options
def command(a: str, b: str, session: Session, metrics: str | None, changes: tuple[str, ...], level: str | None) -> None:
    """Is B worse, alike or better than A: archived runs or groups of repeats (RUN|GROUP), the run being the unit.

    From three runs a side on there is a verdict (`nilo measure --repeat 5`). Runs made under unlike conditions are
    refused, with the differences listed; what is to differ is named by --change. Exit 0: alike or better; 1: worse;
    4: unlike conditions; 5: not decided.
    """
    from nilometer.archive.store import open_archive

    from .comparing import compared, exit_code, family_of, side_of

    family = family_of(metrics)
    with open_archive(session.archive_url, must_exist=True) as archive:
        sides = side_of(archive, a, level), side_of(archive, b, level)
        found = compared(sides, family, changes, archive)
    found.show(session)
    raise SystemExit(exit_code(found.comparison))
