"""What the URL of an archive means: a file, or a database on a server; and how it is shown."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_data_path

from nilometer.core.errors import SpecError
from nilometer.core.secrets import SHOWN, mask_url

FILE_NAME = "archive.sqlite"
EXPORTED = ".nilo"
"""How the name of an exported run's file ends."""
SERVERS = ("postgresql", "postgres")
"""Schemes of a server's address, as its own programs know them."""


def on_server(url: str | None) -> bool:
    """Whether it is an address of PostgreSQL."""
    scheme, mark, _ = (url or "").partition("://")
    return bool(mark) and scheme in SERVERS


def location(url: str | None) -> Path:
    """The file that `url` means, without one that in the user's data folder.

    `sqlite:///path` is relative, `sqlite:////path` absolute, `~` the home folder; a bare path will do. Slugs
    `archive_scheme_unsupported`, `archive_url`.
    """
    if not url:
        return user_data_path("nilometer") / FILE_NAME
    scheme, mark, rest = url.partition("://")
    if not mark:
        return Path(url).expanduser().absolute()
    if scheme != "sqlite":
        raise SpecError("archive_scheme_unsupported", url=shown(url), scheme=scheme)
    if len(rest) < 2 or not rest.startswith("/"):
        raise SpecError("archive_url", url=shown(url))
    return Path(rest[1:]).expanduser().absolute()


def shown(url: str) -> str:
    """An address without its secrets, also where a password holds what ends one: all before the last `@` is hidden."""
    scheme, mark, rest = url.partition("://")
    _, at, behind = rest.rpartition("@")
    return mask_url(f"{scheme}{mark}{SHOWN}@{behind}" if at and mark else url)
