"""Faults made on the real engine, each measured as a ladder of loads and kept, to be diagnosed again and again.

`python -m benchmarks.faults.engine measure [KIND...]` fills benchmarks/out/faults-engine.sqlite (half an hour on a
quiet machine with two processors; needs nginx for its three kinds), `... score` diagnoses what is there, with the
server's own figures and without. Each case is a group whose `spec` labels it; what was measured before stays.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from nilometer.archive.protocol import Archive
from nilometer.archive.store import open_archive
from nilometer.core.group import Group
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Labels, Load, Prompts, Spec, to_toml
from nilometer.diagnose.diagnosis import diagnose, scores
from nilometer.diagnose.group import evidence_of_runs
from nilometer.engines import embedded
from nilometer.engines.embedded import LaunchedEngine
from nilometer.experiment.follow import Stop
from nilometer.experiment.ladder import Search
from nilometer.experiment.measure import Behind
from nilometer.experiment.sweep import Plan, sweep

from ..rig import OUT

FILE = OUT / "faults-engine.sqlite"
ENGINE = "embedded"

Around = Callable[[LaunchedEngine], AbstractContextManager[str]]
"""Makes the fault and gives the address to be measured."""


class Case(NamedTuple):
    """One setting of one kind. `also`: other answers that are true of it."""

    kind: str
    setting: str
    flags: str = ""
    around: Around | None = None
    input_tokens: str = "uniform:36,96"
    output_tokens: str = "uniform:8,32"
    shared_prefix: int = 0
    levels: tuple[int, ...] = (1, 4, 8)
    duration_s: float = 10.0
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.setting}"


@contextmanager
def _plain(engine: LaunchedEngine) -> Iterator[str]:
    yield engine.url


def _burn(until_s: float, on_s: float, period_s: float, core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    while time.monotonic() < until_s:
        end = time.monotonic() + on_s
        while time.monotonic() < end:
            pass
        time.sleep(max(period_s - on_s, 0.0))


@contextmanager
def _burners(n: int, on_s: float, period_s: float, core: int | None = None) -> Iterator[None]:
    """So many busy loops, `on_s` of every `period_s`; they end by themselves if this process dies."""
    work = partial(_burn, time.monotonic() + 300, on_s, period_s, core)
    burning = [multiprocessing.get_context("fork").Process(target=work, daemon=True) for _ in range(n)]
    for one in burning:
        one.start()
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.join()


@contextmanager
def neighbour(engine: LaunchedEngine, *, n: int, on_s: float, period_s: float) -> Iterator[str]:
    """Somebody else computes on the machine now and then."""
    with _burners(n, on_s, period_s):
        yield engine.url


@contextmanager
def duty(engine: LaunchedEngine, *, period_s: float, share: float) -> Iterator[str]:
    """The server stands still for a part of every period, as under a quota of processor time."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(period_s * share):
            os.kill(engine.pid, signal.SIGSTOP)
            time.sleep(period_s * (1 - share))
            os.kill(engine.pid, signal.SIGCONT)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield engine.url
    finally:
        over.set()
        thread.join()


@contextmanager
def starved(engine: LaunchedEngine, *, n: int) -> Iterator[str]:
    """The load generator shares one processor with `n` busy loops; the server has the other for itself."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(engine.pid, {0})
    os.sched_setaffinity(0, {1})
    try:
        with _burners(n, 1.0, 1.0, core=1):
            yield engine.url
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def nginx(engine: LaunchedEngine, *, zone: str = "", location: str = "") -> Iterator[str]:
    """A real nginx in front of it."""
    port, backend = _free_port(), engine.url.removeprefix("http://").partition("/")[0]
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "nginx.conf"
        conf.write_text(
            f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; {zone}\n"
            f"server {{ listen 127.0.0.1:{port};\n"
            f"location /v1/chat/completions {{ proxy_pass http://{backend}; {location} }}\n"
            f"location / {{ proxy_pass http://{backend}; }} }} }}\n"
        )
        server = subprocess.Popen(["nginx", "-p", folder, "-c", str(conf)], stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise SystemExit("nginx did not start")


def _limited(rate: str, status: int, burst: str = "") -> Around:
    return partial(
        nginx,
        zone=f"limit_req_zone $server_name zone=z:1m rate={rate};",
        location=f"limit_req zone=z{burst} ; limit_req_status {status}; proxy_buffering off; proxy_http_version 1.1;",
    )


_LONG = "uniform:600,1400"

CASES: tuple[Case, ...] = (
    *(Case("queue", f"np{n}", f"-np {n} -c {n * 512}", levels=(1, 4, 12)) for n in (1, 2, 3)),
    *(Case("static_batching", f"np{n}", f"-nocb -np {n} -c {n * 512}", levels=(1, 4, 12)) for n in (4, 6, 8)),
    *(
        Case(
            "prefill",
            f"p{p}",
            "--no-cache-prompt -np 8 -c 24576",
            input_tokens=f"uniform:{p // 2},{p * 3 // 2}",
            output_tokens="uniform:4,8",
            levels=(1, 2, 4, 8),
            duration_s=25.0,
            also=("prefill_stalls",),
        )
        for p in (400, 700, 1000)
    ),
    *(
        Case(
            "prefill_stalls",
            f"ub{ub}",
            f"--no-cache-prompt -b {ub} -ub {ub} -np 8 -c 24576",
            input_tokens=f"uniform:300,{high}",
            output_tokens="uniform:48,96",
            levels=(1, 3, 6),
            duration_s=30.0,
        )
        for ub, high in ((2048, 900), (2048, 1500), (1024, 1200))
    ),
    *(
        Case(
            "decode_compute",
            f"t{t}-o{output}",
            f"-t {t} -np 16 -c 8192",
            input_tokens="uniform:34,44",
            output_tokens=f"uniform:{output // 2},{output}",
            levels=(1, 4, 8, 16),
            duration_s=12.0,
        )
        for t, output in ((1, 48), (1, 96), (2, 64))
    ),
    *(
        Case("kv_reserved", f"c{c}-np{n}", f"-c {c} -np {n}", levels=(1, 4, 12))
        for c, n in ((16384, 2), (16384, 1), (32768, 3))
    ),
    *(
        Case(
            "prefix_flattered",
            f"prefix{prefix}",
            "--cache-prompt -np 8 -c 16384",
            input_tokens=f"uniform:{prefix + 16},{prefix + 64}",
            shared_prefix=prefix,
            levels=(1, 2),
        )
        for prefix in (128, 256, 512)
    ),
    *(
        Case(
            "noisy_neighbour",
            f"{on}of{period}",
            "-t 2",
            partial(neighbour, n=n, on_s=on, period_s=period),
            duration_s=14.0,
        )
        for n, on, period in ((4, 1.0, 3.0), (6, 1.0, 4.0), (4, 2.0, 5.0))
    ),
    *(
        Case("throttling", f"{period}-{share}", "", partial(duty, period_s=period, share=share), duration_s=14.0)
        for period, share in ((0.2, 0.6), (0.4, 0.6), (0.8, 0.5))
    ),
    *(
        Case("generator_limited", f"burners{n}", "-t 1", partial(starved, n=n), output_tokens="uniform:24,48")
        for n in (3, 5, 8)
    ),
    Case("buffered_stream", "default", "", partial(nginx)),
    Case(
        "buffered_stream",
        "http11",
        "",
        partial(nginx, location="proxy_http_version 1.1; proxy_buffers 8 64k; proxy_buffer_size 64k;"),
    ),
    Case("buffered_stream", "long", "-c 8192", partial(nginx), output_tokens="uniform:48,96", duration_s=14.0),
    Case("rate_limit", "2-429", "", _limited("2r/s", 429)),
    Case("rate_limit", "4-429-burst", "", _limited("4r/s", 429, " burst=2 nodelay")),
    Case("rate_limit", "3-503", "", _limited("3r/s", 503)),
    *(
        Case("front_end", f"http{n}", f"--threads-http {n} -np 8", levels=(1, 4, 12), also=("queue", "client_pool"))
        for n in (1, 2, 3)
    ),
    *(
        Case("short_answers", f"n{n}", f"-n {n} -np 8", output_tokens="uniform:48,80", levels=(1, 2))
        for n in (8, 16, 24)
    ),
    *(Case("unreal_lengths", f"p{p}", "-np 8", input_tokens=str(p), levels=(1, 2)) for p in (40, 64, 128)),
    *(
        Case("healthy", f"o{output}-{levels[-1]}", "-np 8 -t 2", output_tokens=f"uniform:8,{output}", levels=levels)
        for output, levels in ((24, (1, 2)), (32, (1, 2)), (48, (1, 2)), (64, (1, 2)), (40, (1,)), (24, (1,)))
    ),
)


_OF_NGINX = ("buffered_stream", "rate_limit")


class _Silent:
    """Nobody looks on."""

    def probing(self, step: str) -> None: ...

    def before(self, spec: Spec, **_: object) -> None: ...

    def update(self, live: object) -> None: ...


def measure(case: Case, archive: Archive) -> str:
    """The ladder of a case into the archive; its group's id."""
    name = f"{ENGINE}:{case.flags}" if case.flags else ENGINE
    with embedded.launch_spec(name) as engine, (case.around or _plain)(engine) as url:
        spec = Spec(
            target=url,
            load=Load(concurrency=1, warmup_s=2.0, duration_s=case.duration_s, drain_s=20.0),
            prompts=Prompts(
                input_tokens=case.input_tokens,
                output_tokens=case.output_tokens,
                shared_prefix_tokens=case.shared_prefix,
            ),
            labels=Labels(service=case.name),
        )
        group = Group(id=new_id(Random()), type="sweep", started_wall_ns=time.time_ns(), spec=to_toml(spec))
        plan = Plan(Search(1.0, 64.0, whole=True, by_slo=False), tuple(map(float, case.levels)))
        behind = Behind(url, engine.facts, engine.model, engine.pid)
        sweep(
            spec,
            tuple(engine.headers.items()),
            plan,
            group,
            before=[],
            runs=archive,
            watch=_Silent(),  # type: ignore[arg-type]
            stop=Stop(),
            behind=behind,
            random=Random(),
        )
    return group.id


def main(words: Sequence[str]) -> None:
    OUT.mkdir(exist_ok=True)
    action, kinds = words[0], set(words[1:]) - {"-v"}
    with open_archive(str(FILE)) as archive:
        if action == "measure":
            _measure_all(archive, [case for case in CASES if not kinds or case.kind in kinds or case.name in kinds])
        else:
            score(archive, kinds)


def _measure_all(archive: Archive, cases: Sequence[Case]) -> None:
    done = {run.spec.labels.service for run in _runs(archive)}
    for case in cases:
        if case.name in done:
            continue
        if case.kind in _OF_NGINX and shutil.which("nginx") is None:
            print(f"{case.name}: no nginx here", flush=True)
            continue
        begun = time.monotonic()
        measure(case, archive)
        print(f"{case.name}: {time.monotonic() - begun:.0f} s", flush=True)


def _runs(archive: Archive) -> list[Run]:
    return [archive.get(row.id) for row in archive.list_runs(limit=10_000)]


def score(archive: Archive, kinds: set[str]) -> None:
    """Each case's answer, with the server's figures and without."""
    for case in CASES:
        runs = [run for run in _runs(archive) if run.spec.labels.service == case.name]
        if not runs or (kinds and case.kind not in kinds and case.name not in kinds):
            continue
        told = []
        for blind in (False, True):
            levels = [(_without_server(run) if blind else run, archive.records(run.id)) for run in runs]
            evidence = evidence_of_runs(levels)
            found = diagnose(evidence)
            names = [f"{one.slug}({one.confidence})" for one in found.findings] or ["healthy"]
            told.append(f"{found.state:9} {' '.join(names[:3])}")
            if "-v" in sys.argv:
                print({k: round(v, 2) for k, v in scores(evidence).items() if v > 0.1})
        print(f"{case.name:28} server: {told[0]:70} client: {told[1]}")


def _without_server(run: Run) -> Run:
    return msgspec.structs.replace(run, summary=msgspec.structs.replace(run.summary, server={}, host={}))


if __name__ == "__main__":
    main(sys.argv[1:])
