"""How errors leave the program: one line in the user's language, whatever stands behind them."""

from __future__ import annotations

import string

import pytest

from nilometer.cli.session import Session, error_line
from nilometer.core.errors import ArchiveError, NiloError, Param
from nilometer.core.mask import Mask
from nilometer.text.i18n import LANGUAGES, Catalogue

EN = Catalogue("en")


def slugs() -> list[str]:
    keys = EN.keys()
    return sorted({key.split(".")[1] for key in keys if key.startswith("error.")})


def typical(slug: str) -> NiloError:
    """An error with a value of the right sort for each parameter of its sentences."""
    params: dict[str, Param] = {}
    for part in ("what", "next"):
        for _, name, form, _ in string.Formatter().parse(EN.template(f"error.{slug}.{part}")):
            if name is not None and name not in ("cause", "remedy"):
                params[name] = 3 if form else "/a/b"
    return NiloError(slug, **params)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("slug", slugs())
def test_every_error_is_one_clean_line_alone_and_behind_another(slug: str, lang: str) -> None:
    words = Catalogue(lang)
    fault = typical(slug)
    fault.__cause__ = typical("archive_full")
    filing = ArchiveError("run_not_archived", file="/j/x.journal")
    filing.__cause__ = fault
    for line in (error_line(words, fault), error_line(words, filing)):
        assert "\n" not in line
        assert not any(mark in line for mark in (f"{slug}(", "Error(", "='"))
    assert words.say(f"error.{slug}.what", **fault.params, cause="c", remedy="r").partition("c")[0] in line


def test_an_error_tells_no_secret_that_is_known_by_then(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session("en", json=False, json_file=None, quiet=False, archive=None)
    session.mask = Mask(["canary-1"])
    session.fail(NiloError("worker_not_ready", why="said canary-1"))
    told = capsys.readouterr().err
    assert "said ***" in told
    assert "canary" not in told


def test_what_could_not_be_filed_says_why_where_it_is_and_what_to_do() -> None:
    filing = ArchiveError("run_not_archived", file="/j/x.journal")
    filing.__cause__ = ArchiveError("archive_full", path="/a.sqlite", detail="database or disk is full")
    line = error_line(EN, filing)
    assert line == (
        "nilo: the run was measured but could not be filed: no room left to write the archive /a.sqlite (database or "
        "disk is full); it is kept in /j/x.journal (run_not_archived). Next: make room (`nilo runs rm RUN` gives it "
        "back), or give another --archive; then `nilo runs check` files it, with the same --archive if one was given"
    )


def test_what_was_pasted_by_mistake_is_cut_and_moves_no_cursor() -> None:
    line = error_line(EN, NiloError("device_unknown", name="\x1b[2J" + "x" * 100_000, nearest="A\nB"))
    assert len(line) < 1_000
    assert line.isprintable()
    assert "x..." in line


def test_a_secret_is_masked_before_it_is_cut() -> None:
    """What is left of one that the cut goes through is no longer known as a secret."""
    session = Session("en", json=False, json_file=None, quiet=False, archive=None)
    session.mask = Mask(["canary-" + "9" * 50])
    fault = NiloError("worker_not_ready", why="y" * 380 + "canary-" + "9" * 50 + "z" * 500)
    assert "canary" not in error_line(EN, fault, session.mask)
