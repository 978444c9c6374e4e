"""What opening a connection took: the time to connect runs until it stands, the handshake's is apart from it."""

from __future__ import annotations

import select
import time
from pathlib import Path

import pytest
from tests.loopback.driving import MS, SHORT, calls, drive_here, free_port, order
from tests.loopback.replay import Replay, Reply
from tests.loopback.scripted import Scripted, answering, certificate, ok

from nilometer.net.connection import Connection, Want
from nilometer.net.endpoint import parse
from nilometer.net.route import resolve

PAUSE_S = 0.03


def test_the_time_to_connect_ends_with_the_address_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused address before it counts too; a second socket gets the number of the first, and is another."""
    advance = Connection.advance
    slow: list[bool] = []

    def slowly(self: Connection) -> Want:
        if slow:
            time.sleep(PAUSE_S)
        slow.append(True)
        return advance(self)

    monkeypatch.setattr(Connection, "advance", slowly)
    with Replay(Reply(SHORT, ending="keep")) as replay:
        route = resolve(parse(replay.url))
        route = route._replace(addresses=((route.addresses[0][0], ("127.0.0.1", free_port())), *route.addresses))
        record = drive_here(order(tmp_path, replay.url, requests=1), calls(1), route=route).one()
    assert record.outcome == "ok"
    assert record.connect_ns is not None
    assert len(slow) == 1 or record.connect_ns >= PAUSE_S * 1e9  # one step: the refusal was told at once


def test_the_handshake_is_apart_from_connecting_however_quick_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the peer's half is there before this side looks, the handshake is over in one go."""
    pull = Connection._pull

    def patiently(self: Connection) -> bool:
        select.select([self.sock], [], [], 1)
        return pull(self)

    monkeypatch.setattr(Connection, "_pull", patiently)
    with Scripted(answering(ok(SHORT, "Content-Type: text/event-stream")), certificate(tmp_path).server()) as server:
        told = order(tmp_path, server.url, requests=2, insecure=True)
        outcome = drive_here(told, calls(2), route=resolve(parse(server.url), insecure=True))
    assert outcome.kinds() == {("ok", None): 2}
    first = next(record for record in outcome.records if record.new_connection)
    assert first.connect_ns is not None
    assert first.tls_ns is not None
    assert 0 < first.connect_ns < 100 * MS
    assert first.tls_ns > 0
