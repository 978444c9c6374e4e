"""`nilo report`: one run, several beside each other, or a group as a file to keep and pass on."""

from __future__ import annotations

import click

from .session import Session, shared_options

FORMATS = ("html", "markdown", "csv", "json", "parquet")


@click.command()
@click.argument("refs", metavar="RUN...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Where to; - is stdout. Default: nilo-RUN.html in this folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Default: by the ending of FILE, else html. csv: the figures; parquet: the requests (needs an extra).",
)
@click.option("--records", is_flag=True, help="With csv: a line for each request in place of the figures.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@shared_options
def command(
    session: Session, refs: tuple[str, ...], output: str | None, form: str | None, records: bool, force: bool
) -> None:
    """A report of RUN to keep and pass on: one self-contained HTML file, in English and Chinese.

    Several RUN stand side by side; RUN may be a group. `latest` is the newest run.
    """
    from nilometer.archive.store import open_archive

    from . import reporting

    asked = reporting.asked(form, output, records=records, force=force, json=session.json)
    with open_archive(session.archive_url, must_exist=True) as archive:
        chosen = reporting.choose(archive, refs)
        target = reporting.target(asked, chosen)
        size = reporting.write(archive, chosen, asked, target, session.words.lang)
    if target is not None:
        machine = reporting.report_object(asked, chosen, target, size)
        session.emit(machine, lambda: session.words.say("screen.report.written", file=target, bytes=size))
