"""The command `nilo`: a table of commands, each imported only when it is called, so that --help stays quick."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from nilometer import __version__
from nilometer.core.errors import NiloError

from .streams import take_streams

if TYPE_CHECKING:
    from nilometer.text.i18n import Catalogue

COMMANDS = {
    "quickstart": "Measure the embedded engine at three loads and say what limits it.",
    "measure": "One load test on TARGET: a Run with its figures and a verdict.",
    "sweep": "The load curve of TARGET: knee, and the greatest load that keeps an SLO.",
    "diagnose": "What limits a service: evidence, counter-evidence, what to do, expected gain.",
    "plan": "Know before you buy or change: memory, greatest concurrency, latency of a model on a device.",
    "verify": "Is B worse, alike or better than A: pairs of runs until that can be told.",
    "compare": "Archived runs side by side, and the verdict on what changed.",
    "gate": "The same as a check of a pipeline, against a baseline.",
    "workload": "Data sets, traces and logs: inspect, sample, make.",
    "lab": "A lesson of the handbook on the embedded engine, both sides shown.",
    "runs": "The performance archive: list, show, tag, prune, export, import, copy, check.",
    "report": "One self-contained HTML file of runs; also Markdown, CSV, JSON, Parquet.",
    "scrape": "A server's metrics page in common terms; the differences of two.",
    "engine": "Engines nilometer can launch: list, prepare, start, show.",
    "doctor": "Can this machine measure, does the target answer.",
    "mock": "A server with scripted timing and faults that logs the truth.",
}
"""Name -> short help. The module `cli/<name>.py` holds the click object `command`; a test holds both to each other."""


_HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""A group that was called alone shows its help; click before 8.2 does so without an exception."""


class LazyGroup(click.Group):
    """Lists the table; imports a command when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the interface is click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"nilometer.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="nilometer")
def nilo() -> None:
    """Measure, locate, optimise and verify the performance of LLM inference services."""


def run() -> None:
    """Run the command line; a fault of our own becomes one line and a file, never a traceback on the screen."""
    take_streams()
    try:
        nilo(standalone_mode=False, prog_name="nilo")
    except click.exceptions.Abort:
        _say_interrupted()
        sys.exit(130)
    except _HELP as fault:
        fault.show()
        sys.exit(2)
    except click.ClickException as fault:
        from .usage import as_error

        sys.exit(_told(as_error(fault, sys.argv[1:])))
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except NiloError as fault:  # met outside any command's own options: in --help
        sys.exit(_told(fault))
    except Exception as fault:  # noqa: BLE001 - the top of the command line is one of the two places for it
        sys.exit(_own_fault(fault))


def _words() -> Catalogue:
    """In the language that was asked for, also where the command line is none."""
    import os

    from nilometer.text.i18n import Catalogue, language

    words = sys.argv[1:]
    asked = [behind for word, behind in pairwise(words) if word == "--lang"]
    asked += [word.removeprefix("--lang=") for word in words if word.startswith("--lang=")]
    return Catalogue(language(asked[-1] if asked else None, os.environ))


def _say_interrupted() -> None:
    click.echo(_words().say("screen.interrupted"), err=True)


def _own_fault(fault: Exception) -> int:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="nilo-fault-", suffix=".txt", delete=False) as file:
        traceback.print_exception(fault, file=file)
    return _told(NiloError("unexpected", detail=repr(fault)[:200], file=file.name))


def _told(fault: NiloError) -> int:
    from .session import error_line

    click.echo(error_line(_words(), fault), err=True)
    return fault.exit_code
