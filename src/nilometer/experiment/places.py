"""Where a run keeps its journals while it is not yet archived, and whether this machine lets it open enough sockets."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

from platformdirs import user_data_path

from nilometer.core.errors import ArchiveError, SpecError
from nilometer.load.crew import usable_cores

from .orders import Share

OWN_FILES = 64
"""Descriptors a worker needs besides its sockets."""


def journal_folder() -> Path:
    """Journals lie beside the archive's default place: `nilo runs check` looks there for runs that were cut off."""
    return user_data_path("nilometer") / "journals"


def shares(run_id: str, workers: int, folder: Path) -> list[Share]:
    """The files of each worker. The counter block is scratch and goes with the run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise ArchiveError("journal_unwritable", file=str(folder), detail=fault.strerror or str(fault)) from None
    scratch = Path(tempfile.gettempdir())
    return [Share(folder / f"{run_id}-{i}.journal", scratch / f"nilo-{run_id}-{i}.counters") for i in range(workers)]


def pages_file(run_id: str) -> Path:
    """What is seen of the server's metrics page goes there: scratch, as the counter blocks are."""
    return Path(tempfile.gettempdir()) / f"nilo-{run_id}.pages"


def allow_sockets(concurrency: int | None) -> int:
    """Raise the soft open-file limit as far as is needed and allowed; slug `open_files_too_few` where it is not.

    An open loop (None) may need any number: it gets all there are. Returns the limit in force, for this process and
    the workers it starts.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if concurrency is None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    need = concurrency + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < need:
        if hard != resource.RLIM_INFINITY and hard < need:
            raise SpecError("open_files_too_few", limit=hard, need=need, concurrency=concurrency)
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
        soft = need
    return soft


def usable_count(container_limit: float | None) -> int:
    """Processors that this process may use, at most as many whole ones as its container has."""
    seen = len(usable_cores()) or os.cpu_count() or 1
    return seen if container_limit is None else max(min(seen, int(container_limit)), 1)
