"""Which database answers at a URL: an open Archive out."""

from __future__ import annotations

from nilometer.core.errors import ArchiveError

from .address import location, on_server, shown
from .guests import HostArchive
from .sqlite import Sqlite


def open_archive(url: str | None = None, *, must_exist: bool = False) -> HostArchive:
    """The archive at `url` (default: the user's data folder), created if there is none; use it in a `with`.

    `must_exist`: who only reads is not given an empty one at a place that was named wrong: slug `archive_missing`.
    Slugs of `address.location`, those of opening: `archive_unwritable`, `archive_unreadable`, `archive_newer`,
    `archive_locked`, `archive_full`, `archive_failed`; of a server also `archive_driver_missing`, `archive_server_url`,
    `archive_unreachable`.
    """
    if url and on_server(url):
        return _on_server(url, must_exist=must_exist)
    place = location(url)
    if must_exist and url and not place.exists():
        raise ArchiveError("archive_missing", file=str(place))
    return HostArchive(Sqlite(place))


def _on_server(url: str, *, must_exist: bool) -> HostArchive:
    try:
        from .postgres import Postgres  # noqa: PLC0415 - its driver is an extra
    except ImportError as fault:
        raise ArchiveError("archive_driver_missing", url=shown(url), detail=str(fault)) from None
    return HostArchive(Postgres(url, must_exist=must_exist))
