"""Faults made on the real engine, each measured as a ladder of loads and kept, to be diagnosed again and again.

`python -m benchmarks.faults.engine measure [KIND...]` fills benchmarks/out/faults-engine.sqlite (half an hour on a
quiet machine with two processors; needs nginx for its three kinds), `... score` diagnoses what is there, with the
server's own figures and without. Each case is a group whose `spec` labels it; what was measured before stays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
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
from nilometer.experiment.follow import Stop
from nilometer.experiment.ladder import Search
from nilometer.experiment.measure import Behind
from nilometer.experiment.sweep import Plan, sweep

from ..rig import OUT
from .on_the_way import BUFFERS, Way, beside_burners, duty, has_nginx, neighbour, nginx, nothing

FILE = OUT / "faults-engine.sqlite"
ENGINE = "embedded"


class Case(NamedTuple):
    """One setting of one kind. `also`: other answers that are true of it."""

    kind: str
    setting: str
    flags: str = ""
    way: Way = nothing
    input_tokens: str = "uniform:36,96"
    output_tokens: str = "uniform:8,32"
    shared_prefix: int = 0
    levels: tuple[int, ...] = (1, 4, 8)
    duration_s: float = 10.0
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.setting}"


def _limited(rate: str, status: int, burst: str = "") -> Way:
    return nginx(
        f"limit_req zone=z{burst}; limit_req_status {status}; proxy_buffering off; proxy_http_version 1.1;",
        zone=f"limit_req_zone $server_name zone=z:1m rate={rate};",
    )


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
            neighbour(n, on, period - on),
            duration_s=14.0,
        )
        for n, on, period in ((4, 1.0, 3.0), (6, 1.0, 4.0), (4, 2.0, 5.0))
    ),
    *(
        Case("throttling", f"{period}-{share}", "", duty(period, share), duration_s=14.0)
        for period, share in ((0.2, 0.6), (0.4, 0.6), (0.8, 0.5))
    ),
    *(
        Case("generator_limited", f"burners{n}", "-t 1", beside_burners(n), output_tokens="uniform:24,48")
        for n in (3, 5, 8)
    ),
    Case("buffered_stream", "default", "", nginx("")),
    Case(
        "buffered_stream",
        "http11",
        "",
        nginx(f"proxy_http_version 1.1; {BUFFERS}"),
    ),
    Case("buffered_stream", "long", "-c 8192", nginx(""), output_tokens="uniform:48,96", duration_s=14.0),
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
    with embedded.launch_spec(name) as engine, case.way(engine.url, engine.pid) as url:
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
        if case.kind in _OF_NGINX and not has_nginx():
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
