"""`python -m benchmarks [NAME...]`: runs the benches, prints one table each, writes them to benchmarks/out/."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence

from . import (
    alarms,
    archive,
    border,
    capacity,
    counts,
    diagnosis,
    fidelity,
    peer,
    plan_embedded,
    plan_latency,
    plan_memory,
    plan_speed,
    rig,
    secure,
    size,
    traces,
    verdict,
    verifies,
    volume,
    workers,
)
from .result import Row, median_rows, table

Bench = Callable[[], list[Row]]

BENCHES: dict[str, tuple[Bench, str]] = {
    "eight": (fidelity.eight, "error against truth at 8 streams"),
    "scenarios": (fidelity.scenarios, "the same with awkward streams and a queue"),
    "burst": (fidelity.burst, "64 streams written at the same instant, 300 steps"),
    "64": (capacity.ladder_64, "64 streams at once"),
    "256": (capacity.ladder_256, "256 streams at once, 12,000 events/s, CPU per event"),
    "spread": (capacity.spread_256, "256 streams with a spread wave; staggered CPU per event"),
    "1024": (capacity.ladder_1024, "1,024 streams, one process, at once and spread"),
    "workers": (workers.workers, "the same load on one load process and on two"),
    "tls": (secure.tls, "TLS 1.3 against plain"),
    "counts": (counts.counts, "tokens, frames and failures, exactly"),
    "verdict": (verdict.ladder, "the generator's verdict on itself, with and without busy neighbours"),
    "size": (size.size, "installation and start-up"),
    "traces": (traces.traces, "27 million rows of a trace inspected, 200 requests sampled from a million log lines"),
    "traces-quick": (traces.quick_traces, "a tenth of that"),
    "border": (border.border, "the search of `nilo sweep` against exhaustive grids, 20 engines (about an hour)"),
    "border-embedded": (border.embedded, "the same on the embedded engine (about 7 minutes)"),
    "border-quick": (border.quick_border, "two of them"),
    "alarms": (alarms.alarms, "false alarms, power and coverage of a verify, on simulated servers (2 minutes)"),
    "verifies": (verifies.verifies, "20 verifies of a server against itself, for real (about 15 minutes)"),
    "verifies-quick": (verifies.quick_verifies, "two of them"),
    "archive": (
        archive.archive,
        "100,000 archived runs on SQLite and PostgreSQL; 8 writers, one killed (about 4 minutes)",
    ),
    "archive-quick": (archive.quick_archive, "a twentieth of that"),
    "plan-latency": (
        plan_latency.plan_latency,
        "plans of latency and throughput against published measurements, row by row",
    ),
    "plan-memory": (plan_memory.plan_memory, "plans of memory against logged start-ups of engines, row by row"),
    "plan-speed": (plan_speed.plan_speed, "9,600 plans in one process, and the command `nilo plan`"),
    "plan-embedded": (
        plan_embedded.plan_embedded,
        "the embedded engine, calibrated at 1 and 4 requests, against its plan for 2, 8 and 16 (about 7 minutes)",
    ),
    "diagnosis": (diagnosis.diagnosis, "the diagnosis of a stored run of 100,000 requests (a minute)"),
    "scraping": (diagnosis.scraping, "looking at a metrics page of 500 kB once a second (half a minute)"),
    "peer": (peer.peer, "another tool against the same server"),
    "volume": (volume.volume, "100,000 requests of 200 events (about 8 minutes)"),
    "volume-quick": (volume.quick_volume, "5,000 of them"),
}
NOT_BY_DEFAULT = {
    "alarms",
    "volume-quick",
    "archive",
    "archive-quick",
    "verifies",
    "verifies-quick",
    "traces-quick",
    "border",
    "border-embedded",
    "border-quick",
    "plan-embedded",
}


def main(arguments: Sequence[str]) -> int:
    """0 when no judged row was missed, 1 when one was, 2 where the bench cannot run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" | ".join(BENCHES))
    parser.add_argument("--repeats", type=int, default=1, help="run each so often and give medians")
    parser.add_argument("--list", action="store_true", help="say what there is")
    asked = parser.parse_args(arguments)
    if asked.list:
        print("\n".join(f"{name:14}{says}" for name, (_, says) in BENCHES.items()))
        return 0
    unknown = [name for name in asked.names if name not in BENCHES]
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    try:
        notes = rig.check()
        rig.build()
    except (rig.RigError, OSError) as fault:
        print(f"cannot run: {fault}", file=sys.stderr)
        return 2
    for note in notes:
        print(f"note: {note}")
    names = asked.names or [name for name in BENCHES if name not in NOT_BY_DEFAULT]
    missed = [row for name in names for row in _one(name, asked.repeats, notes) if row.met is False]
    print(f"\n{len(missed)} missed" + "".join(f"\n  {row.what}" for row in missed))
    return 1 if missed else 0


def _one(name: str, repeats: int, notes: Sequence[str]) -> list[Row]:
    bench, says = BENCHES[name]
    print(f"\n== {name}: {says}", flush=True)
    started = time.time()
    try:
        rows = median_rows([bench() for _ in range(repeats)])
    except rig.RigError as fault:
        rows = [Row(name, "a result", "none", met=False, unit="", note=str(fault))]
    print(table(rows), flush=True)
    told = {
        "bench": name,
        "says": says,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "took_s": round(time.time() - started, 1),
        "repeats": repeats,
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()},
        "load_average": os.getloadavg(),
        "notes": list(notes),
        "rows": [row.as_json() for row in rows],
    }
    (rig.OUT / f"{name}.json").write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
