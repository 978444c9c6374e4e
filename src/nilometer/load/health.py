"""The health of several workers as one: in flight and asked add up, the loop's lag and CPU are those of the worst."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from nilometer.core.run import Health


def merged(healths: list[Health]) -> Health:
    """One Health, row by row over the rows all have; one worker's is returned as it is."""
    if len(healths) == 1:
        return healths[0]
    asked = [h.asked_in_flight for h in healths if h.asked_in_flight is not None]
    return Health(
        at=_column([h.at for h in healths], min),
        wall_offset=_column([h.wall_offset for h in healths], min),
        lag_max=_column([h.lag_max for h in healths], max),
        in_flight=_column([h.in_flight for h in healths], sum),
        cpu=_column([h.cpu for h in healths], max),
        asked_in_flight=sum(asked) if asked else None,
        event_loop=healths[0].event_loop,
        resent=sum(h.resent for h in healths),
        socketless=sum(h.socketless for h in healths),
        connections_opened=sum(h.connections_opened for h in healths),
        wall_steps=max(h.wall_steps for h in healths),
        death=next((h.death for h in healths if h.death), None),
        damage=tuple(one for h in healths for one in h.damage),
    )


def _column(columns: list[bytes], combine: Callable[[Iterable[int]], int]) -> bytes:
    rows = zip(*(memoryview(column).cast("q") for column in columns if column), strict=False)
    return array("q", (combine(row) for row in rows)).tobytes()
