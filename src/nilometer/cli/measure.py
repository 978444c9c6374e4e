"""`nilo measure TARGET`: one load test, its figures, a verdict, and an exit code that says the same."""

from __future__ import annotations

from typing import Any

import click

from nilometer.core.errors import SpecError

from .pages_options import pages_options
from .session import Session, shared_options
from .spec_options import spec_options


@click.command()
@click.argument("target", required=False)
@spec_options
@pages_options
@click.option("--like", metavar="RUN", help="Repeat an archived run's spec under the same conditions.")
@click.option("--repeat", type=click.IntRange(1), default=1, help="K runs of the same spec in one group.")
@click.option("--no-archive", is_flag=True, help="Keep the run out of the archive.")
@click.option("--records", metavar="FILE", help="Write the raw records, one JSON object a line.")
@click.option("--keep-text", is_flag=True, help="Keep the texts of the answers, in the archive and in --records.")
@shared_options
def command(target: str | None, session: Session, **given: Any) -> None:
    """One load test on TARGET: an address (with or without /v1), `embedded`, an engine spec, or a TOML file.

    A TOML file or an engine spec that names an engine command runs that command.
    """
    from .measuring import run_measure

    if target is None and not given["like"]:
        raise SpecError("target_missing")
    if given["keep_text"] and given["no_archive"] and not given["records"]:
        raise SpecError("keep_text_nowhere")
    raise SystemExit(run_measure(target, session, given))
