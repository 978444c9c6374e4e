"""Laws of the wire: any split of a response leaves the same, `/v1` stands in a path exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nilometer.core.secrets import mask_url
from nilometer.net.endpoint import parse
from nilometer.net.inbox import Inbox

HEADERS = b"X-Request-Id: 7\r\nContent-Type: text/event-stream\r\n"
PIECES = st.lists(st.binary(min_size=1, max_size=20), max_size=5)


def chunked(pieces: list[bytes]) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\n" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def measured(pieces: list[bytes]) -> bytes:
    body = b"".join(pieces)
    return b"HTTP/1.1 200 OK\r\n" + HEADERS + b"Content-Length: %d\r\n\r\n" % len(body) + body


def unmeasured(pieces: list[bytes]) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + HEADERS + b"\r\n" + b"".join(pieces)


@given(
    st.sampled_from([chunked, measured, unmeasured]),
    PIECES,
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]),
    st.data(),
)
def test_any_split_leaves_the_same(form: object, pieces: list[bytes], interim: bytes, data: st.DataObject) -> None:
    assert callable(form)
    response = interim + form(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(response)), max_size=12)))
    inbox = Inbox()
    for start, end in zip([0, *cuts], [*cuts, len(response)], strict=True):
        inbox.feed(response[start:end])
    assert inbox.status == 200
    assert b"".join(inbox.pieces) == b"".join(pieces)
    assert (inbox.headers["x-request-id"], inbox.headers["content-type"]) == ("7", "text/event-stream")
    assert inbox.done == (form is not unmeasured)
    assert inbox.ends_by_close == (form is unmeasured)


SEGMENT = st.text("abcxyz0189-_.~", min_size=1, max_size=8).filter(lambda text: text not in ("v1", "completions"))
TAILS = ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/completions", "/v1/models", "/chat/completions"]


@given(st.sampled_from(["http", "https"]), st.lists(SEGMENT, max_size=4), st.integers(1, 65535), st.sampled_from(TAILS))
def test_v1_stands_exactly_once(scheme: str, segments: list[str], port: int, tail: str) -> None:
    base = "".join(f"/{segment}" for segment in segments)
    endpoint = parse(f"{scheme}://host:{port}{base}{tail}")
    assert endpoint.path("/chat/completions") == f"{base}/v1/chat/completions"
    assert endpoint.root("/health") == f"{base}/health"
    assert parse(endpoint.url(endpoint.path("/chat/completions"))) == endpoint  # taken apart again it is the same


SECRET = "canary"


@given(st.text("ab:@%&=+.", max_size=6), st.text("ab:@%&=+.", max_size=6), st.sampled_from(["", "/v1", "/p?x=1"]))
def test_no_part_of_the_credentials_is_ever_shown(before: str, after: str, path: str) -> None:
    assert SECRET not in mask_url(f"https://user:{before}{SECRET}{after}@host{path}")
