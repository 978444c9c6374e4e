"""Faults made on the real engine, each measured as a ladder of loads and kept, to be diagnosed again and again.

`python -m benchmarks.faults.engine measure [KIND...]` fills benchmarks/out/faults-engine.sqlite (three quarters of an
hour on a quiet machine with two processors; one kind needs nginx), `... score` diagnoses what is there, with the
server's own figures and without. Each case is a group whose `spec` labels it; what was measured before stays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from nilometer.archive.protocol import Archive
from nilometer.archive.store import open_archive
from nilometer.core.group import Group
from nilometer.core.record import Record
from nilometer.core.run import Run, new_id
from nilometer.core.spec import Labels, Load, Prompts, Spec, to_toml
from nilometer.diagnose.diagnosis import Diagnosis, diagnose, scores
from nilometer.diagnose.group import evidence_of_runs
from nilometer.engines import embedded
from nilometer.experiment.follow import Stop
from nilometer.experiment.ladder import Search
from nilometer.experiment.measure import Behind
from nilometer.experiment.sweep import Plan, sweep
from nilometer.metrics.summary import summarise

from ..rig import OUT
from . import kept
from .engine_cases import CASES, Case, is_scored
from .on_the_way import has_nginx
from .score import interval

FILE = OUT / "faults-engine.sqlite"
ENGINE = "embedded"


_OF_NGINX = ("rate_limit",)


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
            load=Load(concurrency=1, warmup_s=3.0, duration_s=case.duration_s, drain_s=20.0),
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("measure", "score"))
    parser.add_argument("names", nargs="*", help="kinds, or cases (`queue/np2`)")
    parser.add_argument("--split", choices=("tune", "score"), help="only those that the rules are tuned, or scored, on")
    parser.add_argument("--keep", action="store_true", help="as what the reference shows")
    parser.add_argument("-v", action="store_true", help="with how far every cause held")
    asked = parser.parse_args(words)
    cases = [case for case in CASES if not asked.names or {case.kind, case.name} & {*asked.names}]
    if asked.split:
        cases = [case for case in cases if is_scored(case) == (asked.split == "score")]
    OUT.mkdir(exist_ok=True)
    with open_archive(str(FILE)) as archive:
        if asked.action == "measure":
            _measure_all(archive, cases)
        else:
            done = score(archive, cases, every=asked.v)
            if asked.keep:
                kept.keep(msgspec.structs.replace(kept.kept(), engine=done))


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


def score(archive: Archive, cases: Sequence[Case], *, every: bool = False) -> list[kept.EngineCase]:
    """Print each case's answer and how many are right, with the server's figures and without; the cases."""
    measured: dict[str, list[Run]] = {}
    for run in _runs(archive):
        measured.setdefault(run.spec.labels.service, []).append(run)
    done = [_scored(case, measured[case.name], archive, every=every) for case in cases if case.name in measured]
    for view, share in kept.Scored(engine=done).engine_shares.items() if done else ():
        low, high = interval(*share)
        print(f"{view}: {share.right} of {share.n} = {share.right / share.n:.1%} (95 % {low:.1%} to {high:.1%})")
    return done


def _scored(case: Case, runs: Sequence[Run], archive: Archive, *, every: bool) -> kept.EngineCase:
    said, right = {}, {}
    for view in ("server", "client"):
        evidence = evidence_of_runs(_seen_by(view, case, runs, archive))
        found = diagnose(evidence)
        right[view] = is_right(case, found, case.also_client if view == "client" else ())
        said[view] = _first(found)
        names = [f"{one.slug}({one.confidence})" for one in found.findings]
        print(f"{'ok' if right[view] else 'NO':3}{case.name:30}{view}: {found.state:9} {' '.join(names[:4])}")
        if every:
            print({slug: round(held, 2) for slug, held in scores(evidence).items() if held > 0.1})
    return kept.EngineCase(
        name=case.name,
        right_server=right["server"],
        right_client=right["client"],
        said_server=said["server"],
        said_client=said["client"],
    )


def _first(found: Diagnosis) -> str:
    return found.findings[0].slug if found.state in ("found", "vetoed") else found.state


def is_right(case: Case, found: Diagnosis, also: Sequence[str] = ()) -> bool:
    """Whether the first finding is the case's, or one that is true of it too; of a healthy one, that none is."""
    return _first(found) in (case.kind, *case.also, *also)


def _seen_by(view: str, case: Case, runs: Sequence[Run], archive: Archive) -> Iterator[tuple[Run, list[Record]]]:
    """Each level of the case; of `client` with what the answers told of the server, but no page and no machine."""
    for run in runs:
        if run.level is not None and float(run.level) in case.levels:
            records = list(archive.records(run.id))
            yield (_without_page(run, records) if view == "client" else run), records


def _without_page(run: Run, records: Sequence[Record]) -> Run:
    told = summarise(iter(records), run.spec, run.phases, run.health).server
    return msgspec.structs.replace(run, summary=msgspec.structs.replace(run.summary, server=told, host={}))


if __name__ == "__main__":
    main(sys.argv[1:])
