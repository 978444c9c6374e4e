"""`python -m benchmarks.faults evidence|score|show`: plays the cases of a split, scores the diagnosis on them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from . import score, store


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("task", choices=("evidence", "score", "all"))
    parser.add_argument("--split", choices=("tune", "score"), default="tune")
    parser.add_argument("--view", choices=("client", "server", "mixed"), default="mixed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--list-wrong", action="store_true")
    asked = parser.parse_args(arguments)
    failed = 0
    if asked.task in ("evidence", "all"):
        failed = _evidence(asked)
    if asked.task in ("score", "all"):
        found = list(score.answers(store.stored(asked.split, asked.only), asked.view))
        if not found:
            print("no evidence: run `python -m benchmarks.faults evidence` first", file=sys.stderr)
            return 2
        for line in score.report(found, asked.view):
            print(line)
        if asked.list_wrong:
            for line in score.wrong(found, asked.view):
                print(line)
    return 1 if failed else 0


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
