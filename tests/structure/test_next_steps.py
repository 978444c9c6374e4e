"""A next step that names a command or an option names one that exists: every one of them is held to `--help`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nilometer.cli.root import nilo
from nilometer.text.i18n import LANGUAGES, Catalogue

SOURCE = Path(__file__).parents[2] / "src" / "nilometer"
FOREIGN_OPTIONS = {"-np", "-Hn", "-g", "-m", "--no-deps", "--output-details", "--metrics", "--enable-metrics"}
"""Options of other programs that a sentence or a command may name: llama-server, SGLang, ulimit, cpupower, pip,
SGLang's bench_serving."""


_BARE_COMMAND = re.compile(r"\bnilo (?!from|is)[a-z]")
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def _sentences() -> Iterator[tuple[str, str]]:
    for lang in LANGUAGES:
        words = Catalogue(lang)
        yield from (
            (f"{lang} {key}", words.template(key)) for key in sorted(words.keys()) if not key.startswith("key.")
        )


def _commands_in(text: str) -> list[str]:
    return [quoted for quoted in re.findall(r"`([^`]+)`", text) if quoted.startswith("nilo ")]


def _commands_in_code() -> Iterator[tuple[str, str]]:
    """Texts of the code that are commands to be shown; what is filled in stands as `1`."""
    for path in SOURCE.rglob("*.py"):
        source = path.read_text("utf-8")
        if not re.search("[\"']nilo ", source):
            continue  # to walk all trees would take seconds of every process of the tests
        tree = ast.parse(source)
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            text = None
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                text = node.value
            if text is not None and re.fullmatch(r"nilo [a-z].*", text):
                yield path.name, text


COMMANDS = sorted(
    {(where, command) for where, text in _sentences() for command in _commands_in(text)} | {*_commands_in_code()}
)


@cache
def _named(path: tuple[str, ...]) -> click.Command:
    """The command of a path, its --help having been shown without a fault."""
    shown = CliRunner().invoke(nilo, [*path, "--help"], prog_name="nilo")
    assert shown.exit_code == 0, shown.output
    command: click.Command = nilo
    for name in path:
        assert isinstance(command, click.Group)
        child = command.get_command(click.Context(command), name)
        assert child is not None, f"no command {name}"
        command = child
    return command


def _resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the leading words name, and the words left."""
    path: tuple[str, ...] = ()
    command: click.Command = nilo
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        path, words = (*path, words[0]), words[1:]
        command = _named(path)
    return command, words


def _options(command: click.Command) -> set[str]:
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return options | set(command.context_settings.get("help_option_names", ["--help"])) | {"--help"}


@cache
def _all_options() -> frozenset[str]:
    """Every option of every command."""

    def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
        yield from _options(command)
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                yield from walk(_named((*path, name)), (*path, name))

    return frozenset(walk(nilo, ()))


def test_there_are_commands_to_look_at() -> None:
    assert len(COMMANDS) > 20


@pytest.mark.parametrize(("where", "command"), COMMANDS, ids=[f"{where}: {command}" for where, command in COMMANDS])
def test_a_command_that_is_named_exists_with_its_options_and_as_many_arguments(where: str, command: str) -> None:
    found, words = _resolve(shlex.split(re.sub(r"\{[^}]*\}", "1", command))[1:])
    assert not isinstance(found, click.Group) or "--help" in words or not words, "a group alone does nothing"
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in _options(found)]
    assert unknown == []
    if "--help" not in words:
        found.make_context(found.name, words, resilient_parsing=False)


def test_a_command_stands_in_backticks() -> None:
    bare = [(where, text) for where, text in _sentences() if _BARE_COMMAND.search(re.sub(r"`[^`]*`", "", text))]
    assert bare == []


def test_an_option_named_by_itself_is_one_of_ours() -> None:
    known = _all_options() | FOREIGN_OPTIONS
    named = [(where, option) for where, text in _sentences() for option in _OPTION.findall(text)]
    assert len(named) > 20
    assert [(where, option) for where, option in named if option not in known] == []
