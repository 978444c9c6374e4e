"""Every page has its twin in the other language, its links lead somewhere, and the commands it shows exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nilometer.cli.root import nilo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ZH = ".zh-CN.md"
ONE_LANGUAGE = (DOCS / "design",)
AWAITED: set[Path] = set()
"""Pages that are linked to and still to be written; an entry goes when its page comes."""
MOST_LINES = 120
"""A page that is longer wants to be two."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_IN_LINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?:\$ )?(nilo(?: .*)?)")
_SHELL_WORDS = {"|", "&", "&&", "||", ">", "2>", ";"}
_REAL_LANGUAGES = ("", "bash", "console")
"""Code blocks a reader types in; the others show files, programs and output."""


def _written() -> list[Path]:
    """The pages of docs/ that come in two languages, and both READMEs of the repository."""
    pages = [page for page in DOCS.rglob("*.md") if not any(folder in page.parents for folder in ONE_LANGUAGE)]
    return sorted([*pages, ROOT / "README.md", ROOT / f"README{ZH}"])


def _all() -> list[Path]:
    others = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(DOCS / "design").glob("*.md")]
    others += (ROOT / "benchmarks").glob("README*.md")
    return sorted([*_written(), *others])


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _twin(page: Path) -> Path:
    name = page.name
    return page.with_name(name.removesuffix(ZH) + ".md" if name.endswith(ZH) else name.removesuffix(".md") + ZH)


def _blocks(text: str) -> list[tuple[str, str]]:
    """(language, text) of every code block."""
    return [(found[2], found[3]) for found in _FENCE.finditer(text)]


def _links(text: str) -> list[str]:
    prose = _IN_LINE.sub("", _FENCE.sub("", text))
    return [link for link in _LINK.findall(prose) if not re.match(r"[a-z]+:", link)]


def commands_in(text: str) -> Iterator[str]:
    """What a reader would type: lines of code blocks."""
    for language, block in _blocks(text):
        if language in _REAL_LANGUAGES:
            lines = block.replace("\\\n", " ").splitlines()
            yield from (found[1] for line in lines if (found := _COMMAND.fullmatch(line.strip())))


def _mentions(text: str) -> list[str]:
    """Commands inside the text; what they need may be left out there, and `a|b` stands for several."""
    quoted = _IN_LINE.findall(_FENCE.sub("", text))
    return [command for command in quoted if command.startswith("nilo ") and not re.search(r"\.\.\.|\||…", command)]


PAGES = [pytest.param(page, id=_name(page)) for page in _all()]
SHOWN = sorted({(_name(page), command) for page in _all() for command in commands_in(page.read_text("utf-8"))})
MENTIONED = sorted({(_name(page), command) for page in _all() for command in _mentions(page.read_text("utf-8"))})


def _words(command: str) -> list[str]:
    """The words up to where the shell takes over."""
    words = shlex.split(command, comments=True)
    end = next((at for at, word in enumerate(words) if word in _SHELL_WORDS), len(words))
    return words[1:end]


def _parse(words: list[str]) -> None:
    """Raises click's UsageError where there is no such command or option, or where an argument is wrong or missing."""
    command: click.Command = nilo
    context = click.Context(nilo, info_name="nilo")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        child = command.get_command(context, words[0])
        if child is None:
            raise click.UsageError(f"no command {words[0]}")
        command, words = child, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    if words not in (["--help"], ["--version"]) and not (isinstance(command, click.Group) and not words):
        command.make_context(command.name, words)


def test_there_are_pages_and_commands_to_look_at() -> None:
    assert len(PAGES) > 30
    assert len({command for _, command in SHOWN}) > 30
    assert len({command for _, command in MENTIONED}) > 20


@pytest.mark.parametrize("page", [pytest.param(page, id=_name(page)) for page in _written()])
def test_a_page_has_its_twin(page: Path) -> None:
    assert _twin(page).is_file()


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_somewhere(page: Path) -> None:
    targets = [link.partition("#")[0] for link in _links(page.read_text("utf-8"))]
    paths = {(page.parent / target).resolve() for target in targets if target}
    assert [_name(path) for path in paths if not path.exists()] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=_name(page)) for page in _written()])
def test_a_page_links_to_pages_of_its_own_language(page: Path) -> None:
    chinese = page.name.endswith(ZH)
    pages = {(page.parent / link.partition("#")[0]).resolve() for link in _links(page.read_text("utf-8"))}
    pages = {linked for linked in pages if linked.suffix == ".md" and linked != _twin(page)}
    foreign = [linked for linked in pages if linked.name.endswith(ZH) != chinese]
    assert [linked.name for linked in foreign if _twin(linked).is_file()] == []


@pytest.mark.parametrize(("page", "command"), SHOWN, ids=[f"{page}: {command}" for page, command in SHOWN])
def test_a_command_that_is_shown_parses(page: str, command: str) -> None:
    try:
        _parse(_words(command))
    except click.UsageError as error:
        pytest.fail(f"{page}: {error.format_message()}")


@pytest.mark.parametrize(("page", "command"), MENTIONED, ids=[f"{page}: {command}" for page, command in MENTIONED])
def test_a_command_that_is_mentioned_exists(page: str, command: str) -> None:
    try:
        _parse(_words(command))
    except (click.MissingParameter, click.BadOptionUsage):
        pass
    except click.UsageError as error:
        pytest.fail(f"{page}: {error.format_message()}")


@pytest.mark.parametrize("page", [page for page in _written() if page.name.endswith(ZH)], ids=_name)
def test_twins_show_the_same_commands_and_programs(page: Path) -> None:
    """A command that only one language knows is a page that was not kept up."""
    texts = [each.read_text("utf-8") for each in (page, _twin(page))]
    commands = [{command.removesuffix(" --lang zh") for command in commands_in(text)} for text in texts]
    programs = [[block for language, block in _blocks(text) if language in ("python", "toml")] for text in texts]
    assert commands[0] == commands[1]
    assert programs[0] == programs[1]


@pytest.mark.parametrize("page", [page for page in _written() if page.parent != DOCS / "reference"], ids=_name)
def test_a_page_is_no_longer_than_a_reader_stays(page: Path) -> None:
    assert len(page.read_text("utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize(
    "command",
    ["nilo nothing", "nilo measure --concurency 4", "nilo measure -c four", "nilo runs show", "nilo mock --gap 2x"],
)
def test_what_does_not_exist_is_refused(command: str) -> None:
    with pytest.raises(click.UsageError):
        _parse(_words(command))


def test_commands_are_found_where_readers_type_them() -> None:
    text = "text `nilo doctor` and\n\n```\n$ nilo runs list | head\n```\n\n```text\nnilo: no\nnilo mock\n```\n"
    assert list(commands_in(text)) == ["nilo runs list | head"]
    assert _mentions(text) == ["nilo doctor"]
    assert _words("nilo runs list | head") == ["runs", "list"]
    assert _links("a [b](c.md) `[d](e.md)` [f](https://g)") == ["c.md"]
