"""The evidence of all cases of a split, kept in files: rules are scored anew in seconds, without playing again.

The folder is named by a hash of all source that the evidence depends on. Rules are not among it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

import msgspec

from nilometer.diagnose.group import GroupEvidence, evidence_of_runs

from .cases import Case, Label, case_of, labels
from .play import by_client
from .service import Split

OUT = Path(__file__).resolve().parents[1] / "out" / "faults"
SERVER_SHARE = 0.6
"""Of the cases, whose server shows a metrics page."""
_ROOT = Path(__file__).resolve().parents[2]
_LOADED = """
import sys, benchmarks.faults.store
files = {getattr(module, "__file__", None) or "" for name, module in sys.modules.items()
         if name.split(".")[0] in ("nilometer", "benchmarks")}
print("\\n".join(sorted(file for file in files if file)))
"""
_NOT_EVIDENCE = ("__main__.py", "score.py", "store.py", "rules.py", "diagnosis.py")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One case: what it is of, what else would be true to say, and its evidence with and without the server's page."""

    name: str
    kinds: tuple[str, ...]
    sort: str
    setting: int
    seed: int
    severity: float
    sweep: bool
    redraws: int
    top: int
    """Of the levels that were asked for, the highest."""
    facts: dict[str, float | str]
    also_client: tuple[str, ...]
    also_server: tuple[str, ...]
    has_server: bool
    client: GroupEvidence
    server: GroupEvidence


def kept_of(case: Case) -> Kept:
    """The evidence of a case, both views."""
    d, label = case.draft, case.label
    server = evidence_of_runs((one.run, iter(one.records)) for one in case.levels)
    client = evidence_of_runs((by_client(one), iter(one.records)) for one in case.levels)
    top = case.levels[-1].truth
    return Kept(
        name=label.name,
        kinds=label.kinds,
        sort=label.sort,
        setting=label.setting,
        seed=label.seed,
        severity=case.severity,
        sweep=label.sweep,
        redraws=case.redraws,
        top=d.top,
        facts={
            "tpot_ms": d.tpot * 1e3,
            "prompt": d.prompt,
            "output": d.output,
            "full": top.full_share,
            "blocked": top.blocked_share,
            "held": top.held_share,
            "preemptions": float(top.preemptions),
            "faults": repr(d.faults),
        },
        also_client=d.also_client,
        also_server=d.also_server,
        has_server=int(hashlib.sha256(label.name.encode()).hexdigest()[:8], 16) % 100 < 100 * SERVER_SHARE,
        client=client,
        server=server,
    )


@cache
def source_hash() -> str:
    """Of every module that playing and evidence load."""
    told = subprocess.run([sys.executable, "-c", _LOADED], cwd=_ROOT, capture_output=True, text=True, check=True)
    digest = hashlib.sha256()
    for file in told.stdout.split():
        if not file.endswith(_NOT_EVIDENCE):
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:12]


def folder(split: Split) -> Path:
    return OUT / source_hash() / split


def build(split: Split, jobs: int, chosen: str = "") -> Iterator[tuple[int, int, str]]:
    """Makes what is missing; tells how many of how many are there, and what was made or failed last."""
    at = folder(split)
    at.mkdir(parents=True, exist_ok=True)
    wanted = [label for label in labels(split) if chosen in label.name]
    missing = [label for label in wanted if not (at / f"{label.name}.msgpack").exists()]
    done = len(wanted) - len(missing)
    yield done, len(wanted), ""
    with ProcessPoolExecutor(jobs) as pool:
        for made in as_completed([pool.submit(_make, label, split, at) for label in missing]):
            done += 1
            yield done, len(wanted), made.result()


def _make(label: Label, split: Split, at: Path) -> str:
    try:
        kept = kept_of(case_of(label, split))
    except (RuntimeError, ValueError, ZeroDivisionError) as fault:
        return f"FAILED {label.name}: {fault!r}"
    part = at / f"{label.name}.part"
    part.write_bytes(msgspec.msgpack.encode(kept))
    part.rename(at / f"{label.name}.msgpack")
    return label.name


def stored(split: Split, chosen: str = "") -> Iterator[Kept]:
    """What is there, by name. Where the source has changed since, that of the newest folder."""
    at = folder(split)
    if not at.exists():
        others = sorted(OUT.glob(f"*/{split}"), key=lambda one: one.stat().st_mtime)
        if not others:
            return
        at = others[-1]
        print(f"note: no evidence of this source; taken from {at}", file=sys.stderr)
    decoder = msgspec.msgpack.Decoder(Kept)
    for file in sorted(at.glob("*.msgpack")):
        if chosen in file.stem:
            yield decoder.decode(file.read_bytes())
