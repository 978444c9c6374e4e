"""What TLS 1.3 costs: the same load against `nilo mock` with and without it (the C server speaks no TLS)."""

from __future__ import annotations

from typing import Any

import msgspec

from nilometer.engines.mock import IN_MEMORY, Hosting, launched
from nilometer.engines.mock_script import Script

from . import rig, tool, truth
from .pair import q
from .result import Row, judged, shown
from .tool import Load

LOAD = Load(256, 512, 150)


def tls() -> list[Row]:
    """256 streams, 12,000 events/s."""
    plain_us, plain = _run(False)
    tls_us, errors = _run(True)
    return [
        judged(
            "TLS 1.3: CPU per event against plain", tls_us, plain_us, times_floor=2, unit="us", note="floor = plain"
        ),
        shown("TLS 1.3: frame gap p99", q(errors.gap, 0.99), q(plain.gap, 0.99), note="floor = plain"),
        shown(
            "TLS 1.3: TTFT p99", q(errors.ttft, 0.99), q(plain.ttft, 0.99), note="floor = plain; the server is Python"
        ),
    ]


def _run(secure: bool) -> tuple[float, truth.Errors]:
    hosting = Hosting(tls=secure, truth=IN_MEMORY)
    with rig.scratch() as folder, launched(Script(ttft_ms=200, gap_ms=20), hosting) as mock:
        rig.on_server_core(mock.pid)
        run = tool.measure(mock.url, LOAD, folder, ["--insecure"] if secure else [])
        lines: list[dict[str, Any]] = [msgspec.to_builtins(line) for line in mock.truth()]
    errors = truth.errors(run.seen, lines)
    return run.worker_cpu_ns / 1000 / max(1, errors.events), errors
