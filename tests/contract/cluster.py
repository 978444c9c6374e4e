"""A PostgreSQL server of our own, from Debian's packages: for the tests and the benches, gone when they end."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

PASSWORD = "geheim/ß"
_USER = "postgres"
"""Of the system, where we are root: PostgreSQL refuses to run as root."""
_SETTINGS = ("fsync=off", "full_page_writes=off", "shared_buffers=256MB", "max_wal_size=4GB", "autovacuum=on")


def programs() -> Path | None:
    """Where the newest PostgreSQL of this machine has its programs; None where there is none."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = str(packaged[-1]) if packaged else shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


class Server:
    """A running server. `url` names its database, `fresh` an empty schema in it."""

    def __init__(self, folder: Path, binaries: Path, *, settings: tuple[str, ...] = _SETTINGS) -> None:
        self.folder, self._binaries, self._settings = folder, binaries, settings
        self._names = itertools.count(1)
        self._rights: dict[str, Any] = {"user": _USER, "group": _USER, "extra_groups": []} if os.geteuid() == 0 else {}
        self.port = _free_port()
        self.url = f"postgresql://nilo:geheim%2F%C3%9F@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """A new cluster in the folder."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if self._rights:
            shutil.chown(self.folder, _USER, _USER)
            shutil.chown(secret, _USER, _USER)
        words = ["-D", str(self.folder / "data"), "-U", "nilo", "-A", "password", f"--pwfile={secret}"]
        words += ["--no-sync", "--wal-segsize=1", "--no-instructions", "-E", "UTF8", "--locale=C.UTF-8"]
        self._do([str(self._binaries / "initdb"), *words])

    def start(self) -> None:
        """Serve on 127.0.0.1; returns when it answers."""
        settings = (
            *self._settings,
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
        )
        words = [word for setting in settings for word in ("-c", setting)]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, **self._rights)
        deadline_s = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.03)

    def stop(self) -> None:
        """End it at once, as a crash would; `start` begins anew with what was committed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def fresh(self) -> str:
        """The address of an archive that is not yet there."""
        name = f"s{next(self._names)}"
        self.sql(f"CREATE SCHEMA {name}")
        return f"{self.url}?options=-csearch_path%3D{name}"

    def sql(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Do this past the archive, in SQLite's words for a piece of text and for bytes."""
        statement = re.sub(r"x'([0-9a-f]*)'", r"'\\x\1'", statement)
        with psycopg.connect(url or self.url) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def cut_all(self) -> None:
        """Cut every other connection to an archive, as a restart or a firewall would."""
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nilometer'")

    def _do(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **self._rights)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)


@contextmanager
def serving(settings: tuple[str, ...] = _SETTINGS) -> Iterator[Server]:
    """A server of one's own; RuntimeError where the machine has no PostgreSQL."""
    binaries = programs()
    if binaries is None:
        raise RuntimeError("no PostgreSQL here: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="nilo-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), binaries, settings=settings)
        server.make()
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
