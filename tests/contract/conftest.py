"""The stores that the contract is held on, each on an archive of its own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.cluster import Server, programs, serving

from nilometer.archive.address import on_server
from nilometer.archive.protocol import Archive
from nilometer.archive.store import open_archive

ON_SERVER = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
STORES = ("sqlite", ON_SERVER)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL of this session's own; where it must be and is not, the tests fail."""
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    with serving() as running:
        yield running


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an archive is or will be, empty, on each store there is; on a server the same one for all that need no
    `fresh` one, which takes a tenth of a second to make."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'archive.sqlite'}"
    running: Server = request.getfixturevalue("server")
    if request.node.get_closest_marker("fresh"):
        return running.fresh()
    used: str = request.getfixturevalue("used")
    running.sql("DELETE FROM run; DELETE FROM run_group", used)
    return used


@pytest.fixture(scope="session")
def used(server: Server) -> str:
    """An archive on the server that test after test empties."""
    url = server.fresh()
    open_archive(url).__exit__()
    return url


@pytest.fixture
def archive(url: str) -> Iterator[Archive]:
    """An empty archive."""
    with open_archive(url) as opened:
        yield opened


Past = Callable[[str], list[tuple[Any, ...]]]
"""Does a statement past the archive, as another program would."""


@pytest.fixture
def past(url: str, request: pytest.FixtureRequest) -> Past:
    """The back door of the archive at `url`."""
    if on_server(url):
        running: Server = request.getfixturevalue("server")
        return lambda statement: running.sql(statement, url)

    def in_file(statement: str) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            with db:
                return db.execute(statement).fetchall()
        finally:
            db.close()

    return in_file
