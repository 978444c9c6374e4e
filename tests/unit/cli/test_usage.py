"""Every way to write a wrong command line is one line of ours, in both languages."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from nilometer.cli.root import nilo
from nilometer.cli.session import error_line
from nilometer.cli.usage import as_error
from nilometer.text.i18n import LANGUAGES, Catalogue

WRONG = [
    (("measure", "--concurency", "4"), "option_misspelt", "--concurrency"),
    (("measure", "--zzzz"), "option_unknown", "nilo measure --help"),
    (("--zzzz",), "option_unknown", "nilo --help"),
    (("measure", "-c"), "option_without_value", "-c"),
    (("measure", "--json=3"), "flag_with_value", "--json"),
    (("nothing",), "command_unknown", "quickstart, measure"),
    (("runs", "shw"), "command_unknown", "show"),
    (("runs", "show"), "argument_missing", "nilo runs show [OPTIONS] RUN|GROUP"),
    (("workload", "make", "x"), "argument_missing", "--output"),
    (("measure", "a", "b c\nd"), "argument_extra", "nilo measure [OPTIONS] [TARGET]"),
    (("runs", "list", "postgresql://nilo:geheim@db/a"), "argument_extra", "postgresql://***@db/a"),
    (("measure", "-c", "four"), "value_wrong", "1 <= N <= 100000"),
    (("measure", "-c", "0"), "value_wrong", "1 <= N <= 100000"),
    (("measure", "--rate", "0"), "value_wrong", "0 < N"),
    (("measure", "--seed", "x"), "value_wrong", "42"),
    (("sweep", "--most", "x"), "value_wrong", "0.5"),
    (("measure", "--warmup", "2\nx"), "value_wrong", "60s, 500ms, 2m"),
    (("measure", "--max-error-rate", "2"), "value_wrong", "1%"),
    (("measure", "--timeout", "all=2s"), "value_wrong", "connect=10s"),
    (("measure", "--price", "in=cheap"), "value_wrong", "in=0.15"),
    (("mock", "--queue", "a"), "option_misspelt", "--"),
    (("sweep", "--levels", "2,2"), "levels_wrong", "1,2,4,8"),
    (("measure", "--lang", "fr"), "choice_wrong", "en, zh"),
    (("mock", "--tls-cert", "/nowhere"), "file_unreadable", "/nowhere"),
]


def _met(words: tuple[str, ...]) -> click.ClickException:
    with pytest.raises(click.ClickException) as caught:
        nilo(list(words), standalone_mode=False, prog_name="nilo")
    return caught.value


@pytest.mark.parametrize(("words", "slug", "told"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_is_wrong_where_and_what_next(words: tuple[str, ...], slug: str, told: str, lang: str) -> None:
    fault = as_error(_met(words), words)
    line = error_line(Catalogue(lang), fault)
    assert (fault.slug, fault.exit_code, len(line.splitlines())) == (slug, 2, 1)
    assert told in line
    assert line.isascii() or lang == "zh"


def test_a_value_that_may_be_a_secret_is_not_said_back() -> None:
    line = error_line(Catalogue("en"), as_error(_met(("measure", "--header", "sk-12345")), ()))
    assert ("sk-12345" in line, "***" in line, "KEY:VALUE" in line) == (False, True, True)


def test_a_kind_that_is_not_known_is_told_in_its_own_words() -> None:
    fault = as_error(click.UsageError("two\nlines"), ())
    assert (fault.slug, fault.params["detail"]) == ("usage_wrong", "two lines")


@pytest.mark.parametrize("words", [("--lang", "zh"), ("--lang=zh",), ()])
def test_the_command_line_ends_with_2_and_one_line(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "nilometer", "measure", "--concurency", "4", *words]
    env = {**os.environ, "NILO_LANG": "en"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert ("下一步" in done.stderr) == bool(words)


def test_a_group_alone_shows_its_help() -> None:
    done = subprocess.run([sys.executable, "-m", "nilometer", "runs"], capture_output=True, text=True, check=False)
    assert (done.returncode, "Usage: nilo runs" in done.stderr + done.stdout) == (2, True)
