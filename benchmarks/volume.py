"""What a long run weighs (100,000 requests of 200 events): memory while running, time to summarise, size on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from . import rig, tool
from .result import Row, judged, shown
from .tool import Load

REQUESTS = 100_000
TOKENS = 200
STREAMS = 256
GAP_US = 5000
"""51,200 events/s offered: fast enough to end in seven minutes, slow enough that the loop keeps up."""

SUMMARISE = """
import json, resource, sys, time
from nilometer.archive.store import open_archive
from nilometer.metrics.summary import summarise
with open_archive(sys.argv[1]) as archive:
    run = archive.get(sys.argv[2])
    started = time.perf_counter()
    summary = summarise(archive.records(run.id), run.spec, run.phases, run.health)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started = time.perf_counter()
    read = sum(1 for record in archive.records(run.id))
    reading = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "reading": reading, "read": read, "ok": summary.requests.ok, "peak": peak}))
"""


def volume(requests: int = REQUESTS) -> list[Row]:
    """One run of `requests`, archived, then summarised anew from the archive."""
    scale = requests / REQUESTS
    with rig.scratch() as folder:
        started = time.monotonic()
        with rig.truth_server(folder, {"gap_us": GAP_US, "ttft_us": 20_000}, log=False) as server:
            run = tool.measure(server.url, Load(STREAMS, requests, TOKENS, spread_ms=500), folder, keep=True)
        took_s = time.monotonic() - started
        size = sum(path.stat().st_size for path in folder.glob(f"{rig.archive_file(folder).name}*"))
        summed = _summarise(folder, str(run.summary["run"]))
    name = f"{requests:,} x {TOKENS}"
    worker, parent = run.rss_peak_bytes["worker"] / 1e9, run.rss_peak_bytes["parent"] / 1e9
    return [
        judged(f"{name}: worker's RSS", worker, absolute=1, unit="GB"),
        judged(f"{name}: parent's RSS, summary included", parent, absolute=1, unit="GB"),
        judged(f"{name}: summary", summed["seconds"] - summed["reading"], absolute=5 * scale, unit="s"),
        shown(f"{name}: reading it back from the archive", summed["reading"], unit="s", note="not in the row above"),
        judged(f"{name}: archived run", size / 1e6, absolute=120 * scale, unit="MB"),
        shown(
            f"{name}: whole command",
            took_s,
            unit="s",
            note=f"generator {run.generator}; {summed['ok']:.0f} ok of {summed['read']:.0f}",
        ),
        shown(f"{name}: RSS of that summary", summed["peak"] / 1e9, unit="GB"),
    ]


def quick_volume() -> list[Row]:
    """A twentieth of it, goals scaled: for trying out, not for the table (start-up weighs more in it)."""
    return volume(REQUESTS // 20)


def _summarise(folder: Path, run_id: str) -> dict[str, float]:
    command = [sys.executable, "-c", SUMMARISE, rig.archive_url(folder), run_id]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=rig.client_environment(folder))
    told: dict[str, float] = json.loads(done.stdout)
    return told
