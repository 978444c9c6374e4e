"""The archive with 100,000 runs in it: opening, listing, searching, a service's history; eight writers, one killed.

The runs are those of the golden screens, each with a name, a moment, a service and figures of its own, put in by the
archive's own statements, a thousand to a transaction: `put` would be the same, with a flush to disk for each. They have
no records, which no query here reads.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.contract.cluster import serving

from nilometer.archive import rows
from nilometer.archive.database import Database, Values, insert
from nilometer.archive.postgres import Postgres
from nilometer.archive.protocol import Archive, Filter
from nilometer.archive.sqlite import Sqlite
from nilometer.archive.store import open_archive
from nilometer.archive.stored import StoredArchive
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Labels
from nilometer.metrics.figures import Figure, figures

from . import rig
from .result import Row, exact, judged, shown

RUNS = 100_000
SERVICES = 20
MODELS = 10
EVERY_NS = 300 * 10**9
BEGUN_NS = 1_760_000_000 * 10**9
AT_ONCE = 1_000
REPEATS = 7
WRITERS = 8
PUTS = 25
KEPT = Path(__file__).parents[1] / "tests" / "golden" / "runs"
HISTORY = (("latency_ms", "ttft", "p95"), ("latency_ms", "tpot", "p95"), ("latency_ms", "e2e", "p95"))
HISTORY += (("throughput", "output_tokens_per_s", "value"),)
GOAL_MS, OPEN_GOAL_MS = 200.0, 50.0


def archive(runs: int = RUNS) -> list[Row]:
    """SQLite, then PostgreSQL."""
    with rig.scratch() as folder:
        found = _of_store("SQLite", f"sqlite:///{folder}/archive.sqlite", runs)
        found.append(
            shown("SQLite: file", sum(file.stat().st_size for file in folder.glob("archive.sqlite*")) / 1e9, unit="GB")
        )
    with serving(("shared_buffers=256MB", "max_wal_size=4GB")) as server:
        found += _of_store("PostgreSQL", server.url, runs)
    return found


def quick_archive() -> list[Row]:
    """A twentieth of the runs."""
    return archive(RUNS // 20)


def _of_store(name: str, url: str, runs: int) -> list[Row]:
    with open_archive(url) as opened:
        assert isinstance(opened, StoredArchive)
        started = time.perf_counter()
        fill(opened.db, runs)
        filled_s = time.perf_counter() - started
        opened.tag("base", opened.list_runs(runs)[runs // 2].id)
    told = [shown(f"{name}: {runs:,} runs put in", filled_s, unit="s")]
    told.append(judged(f"{name}: open", _median_ms(lambda: open_archive(url).__exit__()), absolute=OPEN_GOAL_MS))
    with open_archive(url) as opened:
        told += [
            judged(f"{name}: {what}", _median_ms(lambda ask=ask: ask(opened)), absolute=GOAL_MS, note=f"{found} rows")
            for what, ask in _questions(runs)
            if (found := len(ask(opened))) is not None
        ]
    return told + _writers(name, url)


def _questions(runs: int) -> Iterator[tuple[str, Callable[[Archive], list[Any]]]]:
    middle = BEGUN_NS + runs * EVERY_NS // 2
    searches = {
        "list, the 50 newest": Filter(),
        "search by service, model and time": Filter(service="svc-7", model="MODEL-7", since_ns=middle),
        "search by a part of a model's name": Filter(model="odel-3"),
        "search by a verdict that few have": Filter(verdict="inadmissible", service="svc-3"),
        "search by tag": Filter(tag="base"),
        "search that finds nothing": Filter(service="svc-7", model="nobody's"),
    }
    for what, only in searches.items():
        yield what, lambda opened, only=only: opened.list_runs(50, only)
    yield "the beginning of an id", lambda opened: [opened.resolve(opened.list_runs(1)[0].id[:8])]
    yield "history of a service, 4 figures", lambda opened: opened.series(HISTORY, Filter(service="svc-7"))


def _median_ms(action: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        action()
        taken.append((time.perf_counter() - started) * 1e3)
    return statistics.median(taken)


def fill(db: Database, runs: int) -> None:
    """Put so many runs into the archive, a run each five minutes."""
    chance = random.Random(1)
    kept = [msgspec.json.decode(path.read_bytes(), type=Run) for path in sorted(KEPT.glob("*.json"))]
    whole = [(run, rows.from_run(run), figures(run.summary)) for run in kept]
    for first in range(0, runs, AT_ONCE):
        made = [_made(whole[i % len(whole)], i, chance) for i in range(first, min(first + AT_ONCE, runs))]
        with db.transaction():
            _insert(db, "run", rows.COLUMNS, [rows.values(row) for row, _ in made])
            told = [(row["id"], *figure) for row, own in made for figure in own]
            _insert(db, "summary_value", ("run", *Figure._fields), told)


def _insert(db: Database, table: str, columns: Sequence[str], told: Sequence[Values]) -> None:
    """On a server by COPY: a statement for each of nine million figures would take minutes."""
    if isinstance(db, Sqlite):
        db.execute_many(insert(table, columns), told)
        return
    assert isinstance(db, Postgres)
    with (
        db.connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as to,
    ):
        for row in told:
            to.write_row(row)


def _made(
    kept: tuple[Run, dict[str, Any], list[Figure]], i: int, chance: random.Random
) -> tuple[dict[str, Any], list[Figure]]:
    run, row, own = kept
    labels = Labels(service=f"svc-{i % SERVICES}", service_version=f"1.{i // 5000}", quantisation="q4_0")
    spec = replace(run.spec, labels=labels, model=f"model-{i // 7 % MODELS}")
    text = msgspec.json.encode(spec).decode()
    fields = {"id": new_id(chance), "started_wall_ns": BEGUN_NS + i * EVERY_NS, "spec": text, "records": 0}
    scale = chance.lognormvariate(0, 0.1)
    return row | fields | rows.searched(text), [figure._replace(value=figure.value * scale) for figure in own]


WRITER = """
import sys
from nilometer.archive.store import open_archive
from tests.unit.archive.samples import make_records, make_run
with open_archive(sys.argv[1]) as archive:
    for i in range(int(sys.argv[3])):
        run = make_run(f"{sys.argv[2]}-{i}")
        archive.put(run, make_records(500, 50))
        print(run.id, flush=True)
"""


def _writers(name: str, url: str) -> list[Row]:
    """Eight processes that put runs; the first is killed in its midst. What was said to be there must be."""
    begun = time.perf_counter()
    command = [sys.executable, "-c", WRITER, url]
    processes = [
        subprocess.Popen(
            [*command, f"w{i}", str(PUTS)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )
        for i in range(WRITERS)
    ]
    victim = processes[0]
    assert victim.stdout is not None
    told = [victim.stdout.readline().strip() for _ in range(PUTS // 3)]
    time.sleep(0.01)
    os.kill(victim.pid, signal.SIGKILL)
    for process in processes:
        told += process.communicate()[0].split()
    took_s = time.perf_counter() - begun
    with open_archive(url) as opened:
        there = {row.id for row in opened.list_runs(RUNS * 2) if "-" in row.id}
        read = [sum(1 for _ in opened.records(run_id)) for run_id in there]
        whole = all(opened.get(run_id).summary is not None for run_id in there)
    lost, extra = {*told} - there, there - {*told}
    return [
        exact(f"{name}: {WRITERS} writers, one killed: runs lost", len(lost), 0),
        exact(f"{name}: runs half-written", sum(n != 500 for n in read) + (not whole), 0),
        judged(f"{name}: runs there that nobody was told of", len(extra), absolute=1, unit=""),
        shown(
            f"{name}: put of a run of 25,000 events, {WRITERS} at once",
            took_s / len(there) * 1e3,
            note=f"{len(there)} runs",
        ),
    ]
