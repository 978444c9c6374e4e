"""Which file an archive URL means."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.archive.store import location
from nilometer.core.errors import SpecError


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
        location("postgresql://nilo:geheim@db/archive")
    assert caught.value.slug == "archive_scheme_unsupported"
    assert caught.value.params == {"scheme": "postgresql", "url": "postgresql://***@db/archive"}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/a.sqlite"])
def test_a_url_without_a_path_is_refused(url: str) -> None:
    with pytest.raises(SpecError) as caught:
        location(url)
    assert caught.value.slug == "archive_url"
