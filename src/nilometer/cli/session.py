"""What every command shares: language, machine form, quietness, archive; how results and errors leave the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nilometer.core.errors import NiloError, Param, SpecError
from nilometer.core.mask import NO_SECRETS
from nilometer.text.i18n import LANGUAGES, Catalogue, language

if TYPE_CHECKING:
    from nilometer.report.document import Document

Command = TypeVar("Command", bound=Callable[..., Any])


class Session:
    """The resolved shared options of one invocation."""

    def __init__(self, lang: str | None, json: bool, json_file: str | None, quiet: bool, archive: str | None) -> None:
        self.words = Catalogue(language(lang, os.environ))
        self.json = json
        self.json_file = json_file
        self.quiet = quiet
        self.archive_url = archive or os.environ.get("NILO_ARCHIVE")
        self.mask = NO_SECRETS
        """What an error's line must not tell, once that is known."""

    def emit(self, machine: object, human: Callable[[], str], *, archived: Sequence[str] = ()) -> None:
        """The result on stdout: `machine` as JSON with --json, else the text; --json-file is written beside it.

        Where one of the two cannot be written, the other is. `archived` names the runs that hold the result, which is
        said where stdout does not take it: slug `output_failed_archived`, else `output_failed`.
        """
        try:
            if self.json_file:
                write_result(self.json_file, indented(machine) + "\n")
        finally:
            try:
                click.echo(indented(machine) if self.json else human())
            except NiloError as fault:
                if fault.slug != "output_failed" or not archived:
                    raise
                raise NiloError("output_failed_archived", runs=", ".join(archived), **fault.params) from None

    def check_outputs(self) -> None:
        """Refuse a --json-file that cannot be written before anything is done; slug `file_unwritable`."""
        if self.json_file:
            check_writable(self.json_file)

    def tell(self, line: str) -> None:
        """One line of progress or warning on stderr; silent with -q."""
        if not self.quiet:
            click.echo(line, err=True)

    def progress(self, word: str, /, **params: Param) -> None:
        """The same for a screen word: how what takes its time is going."""
        self.tell(self.words.say(f"screen.{word}", **params))

    def render(self, document: Document) -> str:
        """A Document as this terminal shows it; plain text where stdout is none."""
        from nilometer.report.terminal import render

        terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return render(document, width=_width(), colour=terminal)

    def fail(self, error: NiloError) -> None:
        """One line on stderr: what, slug, next step."""
        click.echo(self.mask(error_line(self.words, error, self.mask)), err=True)


def indented(machine: object) -> str:
    """The machine form as it is printed."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(machine), indent=2).decode()


def _width() -> int:
    """Columns of a terminal, at most 100; 80 elsewhere."""
    from shutil import get_terminal_size

    return min(max(get_terminal_size((80, 24)).columns, 60), 100) if sys.stdout.isatty() else 80


def error_line(words: Catalogue, error: NiloError, mask: Callable[[str], str] = NO_SECRETS) -> str:
    """`nilo: WHAT (SLUG). Next: STEP` in the session's language; `mask` goes over each value before it is cut."""
    what, step = _told(words, error, mask)
    return words.say("screen.error_line", what=what, slug=error.slug, step=step)


def _told(words: Catalogue, error: NiloError, mask: Callable[[str], str]) -> tuple[str, str]:
    """What is wrong and what to do, with the same of the error behind it where its words ask for that."""
    params = {key: brief(mask(one)) if isinstance(one, str) else one for key, one in error.params.items()}
    if isinstance(error.__cause__, NiloError):
        params["cause"], params["remedy"] = _told(words, error.__cause__, mask)
    return words.say(f"error.{error.slug}.what", **params), words.say(f"error.{error.slug}.next", **params)


VALUE_MOST = 600
"""Characters of a value in an error's line: a path, a list of names. What was pasted by mistake is far longer."""
_HEAD, _TAIL = 400, 100


def brief(value: str) -> str:
    """A value as a line can hold it: in the middle of a long one stands `...`, and no sign moves the cursor."""
    if len(value) > VALUE_MOST:
        value = f"{value[:_HEAD]}...{value[-_TAIL:]}"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in value)


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Around nothing but the opening or writing of this file: its OSError becomes `file_unwritable`."""
    try:
        yield
    except OSError as fault:
        raise SpecError("file_unwritable", file=path, detail=fault.strerror or str(fault)) from None


def check_writable(path: str) -> None:
    """Refuse a path that no result can be written to, slug `file_unwritable`; what is there stays as it is."""
    new = not os.path.exists(path)
    if new or os.path.isfile(path) or os.path.isdir(path):  # a device or a pipe would notice that it was opened
        with writing(path):
            open(path, "ab").close()
            if new:
                os.unlink(os.path.realpath(path))


def write_result(path: str, text: str) -> None:
    """Write a result file whole; slug `file_unwritable`."""
    with writing(path), open(path, "w", encoding="utf-8") as file:
        file.write(text)


def shared_options(command: Command) -> Command:
    """Add --lang, --json, --json-file, -q, --archive; the command receives them as one `session`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        names = ("lang", "json", "json_file", "quiet", "archive")
        session = Session(**{name: kwargs.pop(name) for name in names})
        try:
            session.check_outputs()
            return command(*args, session=session, **kwargs)
        except NiloError as error:
            session.fail(error)
            sys.exit(error.exit_code)

    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option(
            "--archive",
            metavar="URL",
            help="sqlite:///path or postgresql://...; default from NILO_ARCHIVE, else the data folder.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="No progress, no warnings on stderr."),
        click.option("--json-file", metavar="FILE", help="Write the machine form to FILE beside the normal output."),
        click.option("--json", is_flag=True, help="Machine form on stdout."),
        click.option("--lang", type=click.Choice(LANGUAGES), help="Language; default from the locale."),
    ):
        run = option(run)
    return run  # type: ignore[return-value]
