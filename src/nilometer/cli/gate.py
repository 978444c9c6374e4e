"""`nilo gate RUN --baseline TAG`: a comparison as a check of a pipeline."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from nilometer.core.errors import NiloError, SpecError

from .comparing import CHANGES, LEVEL, METRICS
from .session import Session, check_writable, error_line, shared_options, write_result

if TYPE_CHECKING:
    from .comparing import Compared

OF_A_NEW_VERSION = "service-version"
"""What a gate is there for: the service's version and the engine's may differ from the baseline's."""


@click.command()
@click.argument("ref", metavar="RUN|GROUP")
@click.option("--baseline", metavar="TAG", required=True, help="What it is held against: a tag, a run or a group.")
@METRICS
@CHANGES
@LEVEL
@click.option("--junit", metavar="FILE", help="Write the result as JUnit XML, a test case for each judged figure.")
@click.option("--markdown", metavar="FILE", help="Write the result as Markdown, as for a comment on a pull request.")
@shared_options
def command(
    ref: str,
    session: Session,
    baseline: str,
    metrics: str | None,
    changes: tuple[str, ...],
    level: str | None,
    junit: str | None,
    markdown: str | None,
) -> None:
    """Is RUN or GROUP worse than the baseline: as `nilo compare BASELINE RUN --change service-version`, for a pipeline.

    Exit 0: alike or better; 1: worse; 4: unlike conditions; 5: not decided, as with fewer than three runs a side
    (`nilo measure --repeat 5` makes a group of five).
    """
    from nilometer.archive.store import open_archive

    from .comparing import compared, exit_code, family_of, side_of

    try:
        for path in (junit, markdown):
            if path is not None:
                check_writable(path)
        family = family_of(metrics)
        with open_archive(session.archive_url, must_exist=True) as archive:
            sides = side_of(archive, baseline, level), side_of(archive, ref, level)
            found = compared(sides, family, (OF_A_NEW_VERSION, *changes), archive)
    except NiloError as fault:
        _write_refusal(session, fault, junit, markdown)
        raise
    code = exit_code(found.comparison)
    try:
        _write(found, code, session, junit, markdown)
    finally:
        found.show(session)
    raise SystemExit(code)


def _write(found: Compared, code: int, session: Session, junit: str | None, markdown: str | None) -> None:
    """The files, the second also where the first cannot be written. Without a run that counts JUnit has an error."""
    from nilometer.report import markdown as as_markdown
    from nilometer.report.comparison import lead_of
    from nilometer.report.junit import junit_xml, refused_xml

    try:
        if junit is not None and code == 4:
            write_result(
                junit,
                refused_xml(found.comparison.verdict, lead_of(found.comparison, found.family, session.words).text),
            )
        elif junit is not None:
            write_result(junit, junit_xml(found.comparison, found.family, session.words))
    finally:
        if markdown is not None:
            write_result(markdown, as_markdown.render(found.document(session.words)))


def _write_refusal(session: Session, fault: NiloError, junit: str | None, markdown: str | None) -> None:
    """The files say that there is no verdict: what stood there from another time would be read as this one's. One that
    cannot be written is not what went wrong first."""
    told = error_line(session.words, fault)
    if junit is not None:
        from nilometer.report.junit import refused_xml

        with suppress(SpecError):
            write_result(junit, refused_xml(fault.slug, told))
    if markdown is not None:
        from nilometer.report import markdown as as_markdown
        from nilometer.report.document import Document, Lead

        refusal = Document(lang=session.words.lang, blocks=[Lead(text=told, tone="trouble")])
        with suppress(SpecError):
            write_result(markdown, as_markdown.render(refusal))
