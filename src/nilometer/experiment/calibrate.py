"""What this machine's load generator can do: a short full load on the null server, which answers at once.

Server and generator share the machine, so the figure is the generator's events per second of its own processor time:
what one worker could take if it had a core to itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from nilometer import __version__
from nilometer.core.clock import NS_PER_S
from nilometer.core.environment import Environment
from nilometer.core.errors import EngineError
from nilometer.core.record import LATE, Call, Record
from nilometer.engines.mock import launched
from nilometer.engines.mock_script import Script
from nilometer.load import journal
from nilometer.load.crew import Crew
from nilometer.load.journal import Trailer
from nilometer.load.order import Limits, Order
from nilometer.net.endpoint import parse
from nilometer.wire.dialects import DIALECTS, Ask
from nilometer.workload.plan import head

STREAMS = 64
TOKENS = 128
_MODEL = "null"


class Ceiling(NamedTuple):
    """What was reached. `events_per_core_s` is None when nothing came back."""

    events: int
    events_per_s: float | None
    events_per_core_s: float | None
    cpu_share: float | None
    late_share: float | None
    stamp_source: str | None


def ceiling(seconds: float = 3.0) -> Ceiling:
    """Measure for so long. Raises EngineError where the null server or the worker does not start."""
    with launched(Script(models=(_MODEL,), null=True)) as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ceiling.journal"
        journal.create(path, _header()).close()
        order = Order(
            target=server.url,
            dialect="chat",
            journal=str(path),
            counters=str(Path(folder) / "counters"),
            lanes=STREAMS,
            duration_ns=round(seconds * NS_PER_S),
            drain_ns=5 * NS_PER_S,
            limits=Limits(connect_ns=5 * NS_PER_S, total_ns=30 * NS_PER_S),
        )
        with Crew([order], _calls(server.url)) as crew:
            crew.wait_ready()
            crew.go()
            for worker in crew.workers:
                worker.process.wait(seconds + 60)
        return _reached(path)


@cache
def one_process() -> float | None:
    """Events per second that one process takes here, measured once for a second; None where it could not be."""
    try:
        return ceiling(1.0).events_per_core_s
    except EngineError:
        return None


def _header() -> journal.Header:
    return journal.Header(
        run="ceiling",
        worker=0,
        workers=1,
        spec={},
        environment=Environment(),
        started_wall_ns=0,
        tool_version=__version__,
    )


def _calls(url: str) -> Iterator[Call]:
    endpoint = parse(url)
    dialect = DIALECTS["chat"]
    body = dialect.body(Ask(model=_MODEL, prompt="null", max_tokens=TOKENS))
    opening = head(host=endpoint.host_header, target=endpoint.path(dialect.path))
    request = opening + b"Content-Length: %d\r\n\r\n" % len(body) + body
    return (Call(seq=i, request=request, asked_output=TOKENS) for i in count())


def _reached(path: Path) -> Ceiling:
    events = late = 0
    source: str | None = None
    trailer: Trailer | None = None
    for entry in journal.read(path):
        if isinstance(entry, Record):
            events += len(entry.frames)
            late += sum(1 for flags in entry.frames.flags if flags & LATE)
            source = entry.stamp_source
        elif isinstance(entry, Trailer):
            trailer = entry
    if trailer is None:
        raise EngineError("worker_not_ready", why="no trailer")
    return _rates(events, late, source, trailer)


def _rates(events: int, late: int, source: str | None, trailer: Trailer) -> Ceiling:
    cpu = memoryview(trailer.health.cpu).cast("q")
    at = memoryview(trailer.health.at).cast("q")
    cpu_s, wall_s = (cpu[-1] - cpu[0]) / NS_PER_S, (at[-1] - at[0]) / NS_PER_S
    return Ceiling(
        events=events,
        events_per_s=events / wall_s if events and wall_s else None,
        events_per_core_s=events / cpu_s if events and cpu_s else None,
        cpu_share=cpu_s / wall_s if wall_s else None,
        late_share=late / events if events else None,
        stamp_source=source,
    )
