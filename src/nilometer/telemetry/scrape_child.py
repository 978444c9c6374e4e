"""The process that asks for a metrics page at a steady pace: `python -m nilometer.telemetry.scrape_child`.

Its order comes as one line on stdin; it leaves when stdin ends. It parses nothing and says nothing.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from nilometer.core.errors import NiloError
from nilometer.core.telemetry import Look
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.page_lines import kept
from nilometer.net.fetch import fetch

from .scrape import MOST_TEXT_BYTES, ScrapeOrder, packed


def run(order: ScrapeOrder, over: Callable[[float], bool]) -> None:
    """Look until `over(seconds to wait)` says so or the file is full.

    A look that took longer than the pace costs those that it covered; the others stay on the beat.
    """
    start, turn, written = time.monotonic(), 0, 0
    with Path(order.file).open("wb") as file:
        while written < order.most_bytes:
            row = packed(look(order))
            file.write(row)
            file.flush()
            written += len(row)
            turn = max(turn + 1, int((time.monotonic() - start) / order.every_s) + 1)
            if over(max(0.0, start + turn * order.every_s - time.monotonic())):
                return


def look(order: ScrapeOrder) -> Look:
    """The page now, sifted; what kept it from us where it did."""
    asked_ns = time.monotonic_ns()
    try:
        answer = fetch(
            order.url,
            headers=order.headers,
            timeout_s=order.timeout_s,
            insecure=order.insecure,
            proxy=order.proxy,
            limit_bytes=MOST_TEXT_BYTES,
        )
    except NiloError as fault:
        return Look(asked_ns, time.monotonic_ns(), fault=fault.slug)
    answered_ns = time.monotonic_ns()
    if answer.status != 200:
        return Look(asked_ns, answered_ns, fault=f"http_{answer.status}")
    return Look(asked_ns, answered_ns, kept(answer.body.decode("utf-8", "replace"), FAMILIES))


def main() -> None:
    """Read the order and follow it."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=ScrapeOrder)

    def over(seconds: float) -> bool:
        return bool(select.select([sys.stdin], [], [], seconds)[0])

    try:
        run(order, over)
    except (OSError, KeyboardInterrupt):  # the disk is full or gone; Ctrl-C is the parent's to answer
        return


if __name__ == "__main__":
    main()
