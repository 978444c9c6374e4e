"""What the URL of an archive means, and how it is shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nilometer.archive.address import location, on_server, shown
from nilometer.archive.store import open_archive
from nilometer.core.errors import ArchiveError, SpecError


def test_three_slashes_are_relative_four_absolute() -> None:
    assert location("sqlite:////var/x/a.sqlite") == Path("/var/x/a.sqlite")
    assert location("sqlite:///x/a.sqlite") == Path.cwd() / "x/a.sqlite"


def test_a_bare_path_and_the_home_folder_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert location("/var/a.sqlite") == Path("/var/a.sqlite")
    assert location("sqlite:///~/a.sqlite") == location("~/a.sqlite") == Path("/home/someone/a.sqlite")


@pytest.mark.parametrize("url", [None, ""])
def test_the_default_is_in_the_users_data_folder(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_DATA_HOME", "/home/someone/data")
    assert location(url).name == "archive.sqlite"
    assert location(url).parent.name == "nilometer"
    assert Path("/home/someone") in location(url).parents


def test_other_stores_are_refused_without_their_password() -> None:
    with pytest.raises(SpecError) as caught:
        location("mysql://nilo:geheim@db/archive")
    assert caught.value.slug == "archive_scheme_unsupported"
    assert caught.value.params == {"scheme": "mysql", "url": "mysql://***@db/archive"}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/a.sqlite"])
def test_a_url_without_a_path_is_refused(url: str) -> None:
    with pytest.raises(SpecError) as caught:
        location(url)
    assert caught.value.slug == "archive_url"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://nilo:geheim@db:5432/archive", "postgresql://***@db:5432/archive"),
        ("postgresql://nilo:ge/he@im?@db/archive", "postgresql://***@db/archive"),
        ("postgres://db/archive?user=nilo&password=geheim", "postgres://db/archive?user=nilo&password=***"),
        ("postgresql:///archive?sslpassword=geheim", "postgresql:///archive?sslpassword=***"),
        ("postgresql:///archive", "postgresql:///archive"),
    ],
)
def test_an_address_of_a_server_is_shown_without_its_secrets(url: str, told: str) -> None:
    assert on_server(url)
    assert shown(url) == told


def test_a_file_is_on_no_server() -> None:
    assert not any(map(on_server, [None, "", "a.sqlite", "sqlite:///postgresql", "postgresql"]))


def test_a_server_without_the_driver_is_told_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("psycopg", "nilometer.archive.postgres"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArchiveError) as caught:
        open_archive("postgresql://nilo:geheim@db/archive")
    assert caught.value.slug == "archive_driver_missing"
    assert caught.value.params["url"] == "postgresql://***@db/archive"
