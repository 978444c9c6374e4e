"""The second floor: a bare httptools + uvloop closed loop that stamps and refills, and does nothing else.

Same arguments and output as the C drain (see native/drain_client.c); user stamps only.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from array import array
from pathlib import Path

import httptools
import uvloop

MATTER = b'content":"'


class Request:
    """One request as the loop saw it."""

    __slots__ = ("complete", "connection", "end_ns", "events", "id", "sent_ns", "status", "user_ns")

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self.id = ""
        self.status = 0
        self.complete = False
        self.sent_ns = 0
        self.end_ns = 0
        self.user_ns = array("q")
        self.events = array("i")

    def line(self) -> str:
        """As the C drain writes it."""
        frames = [[None, ns, count] for ns, count in zip(self.user_ns, self.events, strict=True)]
        told = {"id": self.id, "connection": self.connection, "status": self.status, "complete": self.complete}
        return json.dumps({**told, "sent_ns": self.sent_ns, "end_ns": self.end_ns, "frames": frames})


class Load:
    """What all connections share."""

    def __init__(self, port: int, total: int, tokens: int) -> None:
        body = json.dumps(
            {
                "model": "mock",
                "messages": [{"role": "user", "content": "how high is the river"}],
                "max_tokens": tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()
        self.ask = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body
        self.total = total
        self.requests: list[Request] = []
        self.ended = 0
        self.done = asyncio.Event()

    def count_end(self) -> None:
        """One more has ended."""
        self.ended += 1
        if self.ended >= self.total:
            self.done.set()


class Slot(asyncio.Protocol):
    """One connection of the closed loop."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._number = number
        self._request: Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def start(self) -> None:
        """Send the next request if one is left."""
        load = self._load
        if len(load.requests) >= load.total:
            self._request = None
            return
        self._request = Request(self._number)
        load.requests.append(self._request)
        self._parser = httptools.HttpResponseParser(self)
        self._request.sent_ns = time.monotonic_ns()
        self._transport.write(load.ask)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._now_ns = time.monotonic_ns()
        if self._request is not None:
            self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name == b"x-request-id" and self._request is not None:
            self._request.id = value.decode()

    def on_body(self, body: bytes) -> None:
        if self._request is not None and MATTER in body:
            self._request.user_ns.append(self._now_ns)
            self._request.events.append(body.count(MATTER))

    def on_message_complete(self) -> None:
        request = self._request
        if request is None:
            return
        request.status = self._parser.get_status_code()
        request.complete = request.status == 200
        request.end_ns = self._now_ns
        self._load.count_end()
        self.start()


async def run(port: int, streams: int, load: Load, spread_s: float) -> tuple[int, int, int]:
    """First sent, last end, CPU ns between."""
    loop = asyncio.get_running_loop()
    slots: list[Slot] = []
    for number in range(streams):
        _, slot = await loop.create_connection(lambda number=number: Slot(load, number + 1), "127.0.0.1", port)  # type: ignore[misc]
        slots.append(slot)
    gc.collect()
    gc.disable()
    cpu_ns = time.process_time_ns()
    first_ns = time.monotonic_ns()
    for number, slot in enumerate(slots):
        if spread_s:
            await asyncio.sleep(first_ns / 1e9 + spread_s * number / streams - time.monotonic())
        slot.start()
    await load.done.wait()
    return first_ns, time.monotonic_ns(), time.process_time_ns() - cpu_ns


def main() -> None:
    """PORT STREAMS REQUESTS TOKENS SPREAD_US OUT."""
    port, streams, total, tokens, spread_us = map(int, sys.argv[1:6])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def go() -> tuple[Load, tuple[int, int, int]]:
        load = Load(port, total, tokens)
        return load, await run(port, streams, load, spread_us / 1e6)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        load, (first_ns, last_ns, cpu_ns) = runner.run(go())
    Path(sys.argv[6]).write_text("".join(request.line() + "\n" for request in load.requests), "utf-8")
    events = sum(sum(request.events) for request in load.requests)
    reads = sum(len(request.events) for request in load.requests)
    told = {"events": events, "reads": reads, "cpu_ns": cpu_ns, "first_sent_ns": first_ns, "last_end_ns": last_ns}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
