"""Laws of responses: what is left of one does not depend on how reads cut it, nor on what comes behind it."""

from __future__ import annotations

import httptools
from hypothesis import given
from hypothesis import strategies as st

from nilometer.net.inbox import Inbox

INTERIM = st.lists(
    st.sampled_from([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"]), max_size=2
)
GARBAGE = st.sampled_from([b"", b"garbage", b"\x00", b"HTTP/1.1 500 X\r\nX-N: 9\r\nContent-Length: 3\r\n\r\nbad"])
CONNECTION = {b"": True, b"Connection: keep-alive\r\n": True, b"Connection: close\r\n": False}


@given(
    interim=INTERIM,
    status=st.sampled_from([200, 404, 429, 503]),
    connection=st.sampled_from(sorted(CONNECTION)),
    pieces=st.lists(st.binary(min_size=1, max_size=12), max_size=4),
    chunked=st.booleans(),
    garbage=GARBAGE,
    data=st.data(),
)
def test_a_whole_answer_stands_however_it_comes(
    interim: list[bytes],
    status: int,
    connection: bytes,
    pieces: list[bytes],
    chunked: bool,
    garbage: bytes,
    data: st.DataObject,
) -> None:
    body = b"".join(pieces)
    if chunked:
        framing = b"Transfer-Encoding: chunked\r\n"
        sent = b"".join(b"%X;x=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        framing, sent = b"Content-Length: %d\r\n" % len(body), body
    head = b"HTTP/1.1 %d X\r\nX-N: 1\r\n" % status + connection + framing + b"\r\n"
    answer = b"".join(interim) + head + sent
    stream = answer + garbage
    cuts = sorted({*data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=8)), len(stream)})

    inbox, at = Inbox(), 0
    for cut in cuts:
        try:
            inbox.feed(stream[at:cut])
        except httptools.HttpParserError:
            assert cut > len(answer)  # only what comes behind is at fault
            break
        assert inbox.done == (cut >= len(answer))
        at = cut
    assert (inbox.done, inbox.status, inbox.headers["x-n"]) == (True, status, "1")
    assert b"".join(inbox.pieces) == body
    assert inbox.keep_alive == CONNECTION[connection]
    assert "link" not in inbox.headers
    assert not inbox.ends_by_close
