"""What a diagnosis costs: of a stored run of 100,000 requests, and of looking at a large metrics page once a second."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from nilometer.archive.store import open_archive
from nilometer.core.clock import NS_PER_S
from nilometer.core.environment import Environment
from nilometer.core.record import Frames, Record
from nilometer.core.run import Health, Phases, Run
from nilometer.core.spec import Load, Spec
from nilometer.metrics.summary import summarise
from nilometer.telemetry.scrape import Scraper

from . import rig
from .result import Row, judged, shown

REQUESTS, STREAMS, TOKENS = 100_000, 64, 100
PAGE_BYTES, LOOKS = 500_000, 30

DIAGNOSE = """
import json, resource, sys, time
from nilometer.archive.store import open_archive
from nilometer.diagnose.diagnosis import diagnose
from nilometer.diagnose.group import evidence_of_runs
with open_archive(sys.argv[1]) as archive:
    run = archive.get(sys.argv[2])
    records = archive.records(run.id)
    started = time.perf_counter()
    kept = list(records)
    reading = time.perf_counter() - started
    started = time.perf_counter()
    evidence = evidence_of_runs([(run, iter(kept))])
    looked = time.perf_counter() - started
    started = time.perf_counter()
    found = diagnose(evidence)
    ruled = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"reading": reading, "looked": looked, "ruled": ruled, "state": found.state, "peak": peak}))
"""


def diagnosis(requests: int = REQUESTS) -> list[Row]:
    """A closed loop of 64 streams, one token every 20 ms, archived; then diagnosed in a process of its own."""
    with rig.scratch() as folder:
        run, records = _stored(requests)
        with open_archive(rig.archive_url(folder)) as archive:
            archive.put(run, records)
        command = [sys.executable, "-c", DIAGNOSE, rig.archive_url(folder), run.id]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=rig.client_environment(folder))
        told = json.loads(done.stdout)
        started = time.perf_counter()
        command = [sys.executable, "-m", "nilometer", "diagnose", run.id, "--archive", rig.archive_url(folder)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=rig.client_environment(folder))
        whole_s = time.perf_counter() - started
    name = f"{requests:,} x {TOKENS}"
    return [
        judged(
            f"{name}: evidence and rules", told["looked"] + told["ruled"], absolute=2 * requests / REQUESTS, unit="s"
        ),
        shown(f"{name}: rules alone", told["ruled"] * 1000),
        shown(f"{name}: reading it from the archive", told["reading"], unit="s", note="not in the row above"),
        shown(f"{name}: `nilo diagnose RUN`, whole command", whole_s, unit="s"),
        shown(f"{name}: RSS", told["peak"] / 1e9, unit="GB", note=told["state"]),
    ]


def _stored(requests: int) -> tuple[Run, list[Record]]:
    draw = np.random.default_rng(1)
    free = np.zeros(STREAMS)
    records = []
    for seq in range(requests):
        slot = int(free.argmin())
        record, free[slot] = _record(seq, float(free[slot]), draw)
        records.append(record)
    stop_ns = round(float(free.min()) * NS_PER_S)
    spec = Spec(target="http://127.0.0.1:8000", load=Load(concurrency=STREAMS, window=f"0..{stop_ns / NS_PER_S:g}"))
    phases = Phases(started_wall_ns=0, start_ns=0, measured_ns=0, stop_ns=stop_ns, end_ns=stop_ns)
    health = Health()
    summary = summarise(iter(records), spec, phases, health)
    run = Run(
        id="a23456789abc",
        spec=spec,
        environment=Environment(),
        phases=phases,
        health=health,
        summary=summary,
        findings=[],
        verdict="admissible",
    )
    return run, records


def _record(seq: int, sent_s: float, draw: np.random.Generator) -> tuple[Record, float]:
    prompt = int(draw.integers(100, 1000))
    first_s = sent_s + 0.02 + prompt * 1e-4 * float(draw.lognormal(0.0, 0.1))
    stamps = first_s + np.concatenate([[0.0], np.cumsum(draw.lognormal(np.log(0.02), 0.2, TOKENS - 1))])
    at_ns = (stamps * NS_PER_S).astype(np.int64)
    record = Record(
        id=f"r{seq}",
        seq=seq,
        phase="measured",
        outcome="ok",
        sent_ns=round(sent_s * NS_PER_S),
        first_token_ns=int(at_ns[0]),
        first_answer_ns=int(at_ns[0]),
        last_token_ns=int(at_ns[-1]),
        end_ns=int(at_ns[-1]),
        prompt_tokens=prompt,
        output_tokens=TOKENS,
        token_source="usage",
        frames=Frames(user=array("q", at_ns.tolist()).tobytes()),
    )
    return record, float(stamps[-1])


def scraping() -> list[Row]:
    """Processor time of the child that looks at a page of half a megabyte, start-up left out."""
    with tempfile.TemporaryDirectory() as folder, _serving(_page()) as url:
        with Scraper(url, Path(folder) / "looks") as scraper:
            time.sleep(2.5)
            (child,) = (one for one in psutil.Process().children() if "scrape_child" in " ".join(one.cmdline()))
            before, started = _cpu_s(child), time.monotonic()
            time.sleep(LOOKS)
            share = (_cpu_s(child) - before) / (time.monotonic() - started)
        looked = list(scraper.looks())
    pages = [one for one in looked if one.fault is None]
    note = f"{len(pages)} pages of {PAGE_BYTES / 1000:.0f} kB, {len(looked) - len(pages)} in vain"
    return [judged("scraping at 1 Hz: of a core", share * 100, absolute=1, unit="%", note=note)]


def _cpu_s(child: psutil.Process) -> float:
    used = child.cpu_times()
    return float(used.user + used.system)


def _page() -> bytes:
    """vLLM's gauges among a great many series of somebody else."""
    own = [f'vllm:num_requests_{name}{{engine="0"}} 3.0' for name in ("running", "waiting")]
    foreign = (f'process_something_{n}_bucket{{handler="/v1/completions",le="{n}"}} {n}.0' for n in range(100_000))
    lines, size = own, 0
    for line in foreign:
        lines.append(line)
        size += len(line) + 1
        if size >= PAGE_BYTES:
            break
    return "\n".join(lines).encode() + b"\n"


@contextmanager
def _serving(page: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()
