"""`python -m benchmarks.faults evidence|score|show`: plays the cases of a split, scores the diagnosis on them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import msgspec

from . import kept, score, store


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("task", choices=("evidence", "score", "all"))
    parser.add_argument("--split", choices=("tune", "score"), default="tune")
    parser.add_argument("--view", choices=("client", "server", "mixed", "all"), default="all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--list-wrong", action="store_true")
    parser.add_argument("--keep", action="store_true", help="as what the reference shows")
    asked = parser.parse_args(arguments)
    failed = 0
    if asked.task in ("evidence", "all"):
        failed = _evidence(asked)
    if asked.task in ("score", "all") and not _score(asked):
        print("no evidence: run `python -m benchmarks.faults evidence` first", file=sys.stderr)
        return 2
    return 1 if failed else 0


def _score(asked: argparse.Namespace) -> bool:
    """Print each view asked for; whether there was anything to look at."""
    views: tuple[score.View, ...] = ("mixed", "server", "client") if asked.view == "all" else (asked.view,)
    met: dict[str, score.Accuracy] = {}
    for view in views:
        found = list(score.answers(store.stored(asked.split, asked.only), view))
        if not found:
            return False
        met[view] = score.accuracy_of(found, view)
        for line in (*score.report(met[view], view), ""):
            print(line)
        for line in score.wrong(found, view) if asked.list_wrong else ():
            print(line)
    if asked.keep:
        kept.keep(msgspec.structs.replace(kept.kept(), views=met))
    return True


def _evidence(asked: argparse.Namespace) -> int:
    started, failed = time.time(), 0
    for done, n, last in store.build(asked.split, asked.jobs, asked.only):
        if last.startswith("FAILED"):
            failed += 1
            print(last, file=sys.stderr)
        if done % 20 == 0 or done == n:
            print(f"{done} of {n} cases, {time.time() - started:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
