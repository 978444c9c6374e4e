"""Where the archive is and which store answers there: a URL in, an open Archive out."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_data_path

from nilometer.core.errors import ArchiveError, SpecError
from nilometer.core.secrets import mask_url

from .protocol import Archive
from .sqlite import SqliteArchive

FILE_NAME = "archive.sqlite"


def open_archive(url: str | None = None, *, must_exist: bool = False) -> Archive:
    """The archive at `url` (default: the user's data folder), created if there is none; use it in a `with`.

    `must_exist`: who only reads is not given an empty one at a place that was named wrong: slug `archive_missing`.

    `sqlite:///path` is relative, `sqlite:////path` absolute, `~` the home folder; a bare path will do. Slugs
    `archive_scheme_unsupported`, `archive_url`, and those of opening: `archive_unwritable`, `archive_unreadable`,
    `archive_newer`, `archive_locked`, `archive_full`, `archive_failed`.
    """
    place = location(url)
    if must_exist and url and not place.exists():
        raise ArchiveError("archive_missing", file=str(place))
    return SqliteArchive(place)


def location(url: str | None) -> Path:
    """The file that `url` means. Slugs `archive_scheme_unsupported`, `archive_url`."""
    if not url:
        return _default()
    scheme, mark, rest = url.partition("://")
    if not mark:
        return Path(url).expanduser().absolute()
    if scheme != "sqlite":
        raise SpecError("archive_scheme_unsupported", url=mask_url(url), scheme=scheme)
    if len(rest) < 2 or not rest.startswith("/"):
        raise SpecError("archive_url", url=mask_url(url))
    return Path(rest[1:]).expanduser().absolute()


def _default() -> Path:
    return user_data_path("nilometer") / FILE_NAME
