from __future__ import annotations

import pytest

from nilometer.core.errors import TargetError
from nilometer.core.mask import WORD_CHARS
from nilometer.core.spec import Http
from nilometer.load.probe_courier import GLANCE_S, Courier
from nilometer.net.endpoint import parse
from nilometer.net.fetch import Response

OK = Response(200, {}, b"{}", 5)
AT_PROXY = "http://t:1/v1/models via http://p:1"


class Line:
    """Answers in order, the last one for ever; an error in the list is raised. Remembers what it was asked."""

    def __init__(self, *answers: Response | TargetError) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, object]] = []

    def fetch(self, url: str, **more: object) -> Response:
        self.asked.append({"url": url, **more})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, TargetError):
            raise answer
        return answer


def made(line: Line, address: str = "http://t:1", **headers: str) -> tuple[Courier, list[float]]:
    pauses: list[float] = []
    http = Http(insecure=True, proxy="http://p:1")
    endpoint = parse(address)
    courier = Courier(endpoint, http, headers, timeout_s=99, ready_s=5, fetch=line.fetch, wait=pauses.append)
    return courier, pauses


def refusal(line: Line, address: str = "http://t:1") -> TargetError:
    courier, _ = made(line, address)
    with pytest.raises(TargetError) as refused:
        courier.send("/v1/models")
    return refused.value


def test_a_body_is_posted_with_the_users_headers_and_way() -> None:
    line = Line(OK)
    courier, _ = made(line, Authorization="Bearer k")
    assert courier.send("/v1/x", b"{}") == OK
    assert line.asked == [
        {
            "url": "http://t:1/v1/x",
            "method": "POST",
            "headers": {
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "Authorization": "Bearer k",
                "Content-Type": "application/json",
            },
            "body": b"{}",
            "timeout_s": 99,
            "insecure": True,
            "proxy": "http://p:1",
        }
    ]


def test_without_a_body_it_is_a_get_that_must_be_answered_soon() -> None:
    line = Line(OK)
    courier, _ = made(line)
    courier.send("/v1/models")
    assert (line.asked[0]["method"], line.asked[0]["timeout_s"]) == ("GET", GLANCE_S)


@pytest.mark.parametrize("status", [200, 400, 404, 405, 422, 500])
def test_what_the_talk_must_judge_is_handed_back(status: int) -> None:
    line = Line(Response(status, {}, b"{}", 5))
    courier, pauses = made(line)
    assert courier.send("/x").status == status
    assert (courier.requests, pauses) == (1, [])


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_busy_target_is_waited_for_and_each_try_is_counted(status: int) -> None:
    busy = Response(status, {}, b"loading", 5)
    courier, pauses = made(Line(busy, busy, OK))
    assert courier.send("/x") == OK
    assert pauses == [0.5, 0.5]
    assert (courier.requests, courier.waited_s) == (3, 1.0)


def test_it_waits_as_long_as_the_target_asks() -> None:
    courier, pauses = made(Line(Response(429, {"retry-after": "3"}, b"", 5), OK))
    courier.send("/x")
    assert pauses == [3.0]


def test_the_whole_wait_has_a_limit() -> None:
    fault = refusal(Line(Response(503, {}, b'{"error":{"message":"Loading model"}}', 5)))
    assert fault.slug == "target_busy"
    assert fault.params == {"url": AT_PROXY, "status": 503, "seconds": 5.0, "detail": "Loading model"}


def test_a_wait_longer_than_the_limit_is_not_begun() -> None:
    courier, pauses = made(Line(Response(429, {"retry-after": "60"}, b"", 5)))
    with pytest.raises(TargetError, match="target_busy"):
        courier.send("/x")
    assert pauses == []


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("slug", "headers"),
    [
        ("unauthorised", {"Accept": "*/*"}),
        ("key_refused", {"Authorization": "Bearer k"}),
        ("key_refused", {"X-Key": "k"}),
    ],
)
def test_a_key_that_is_missing_or_wrong_is_told(status: int, slug: str, headers: dict[str, str]) -> None:
    line = Line(Response(status, {}, b'{"error":{"message":"bad key"}}', 5))
    with pytest.raises(TargetError) as refused:
        made(line, **headers)[0].send("/v1/models")
    assert refused.value.slug == slug
    assert refused.value.params == {"url": AT_PROXY, "status": status, "detail": "bad key"}


def test_a_redirect_is_told_and_not_followed() -> None:
    fault = refusal(Line(Response(307, {"location": "https://u:pw@t/v1?api_key=abc"}, b"", 5)))
    assert fault.slug == "redirected"
    assert fault.params["location"] == "https://***@t/v1?api_key=***"


def test_where_a_redirect_leads_is_told_no_longer_than_a_name() -> None:
    fault = refusal(Line(Response(307, {"location": "http://t/" + "x" * 9_000}, b"", 5)))
    assert len(str(fault.params["location"])) == WORD_CHARS


def test_no_error_shows_the_secrets_of_an_address() -> None:
    fault = refusal(Line(Response(401, {}, b"", 5)), "http://u:pw@t:1?api_key=abc")
    assert "pw" not in str(fault)
    assert "abc" not in str(fault)


@pytest.mark.parametrize(
    "answer", [Response(404, {}, b"", 5), Response(403, {}, b"", 5), Response(503, {}, b"", 5), TargetError("timeout")]
)
def test_what_need_not_be_there_may_fail_in_any_way(answer: Response | TargetError) -> None:
    courier, pauses = made(Line(answer))
    assert courier.try_("/tokenize", b"{}") is None
    assert (courier.requests, pauses) == (1, [])


def test_what_need_not_be_there_is_taken_where_it_is() -> None:
    courier, _ = made(Line(OK))
    assert courier.try_("/tokenize") == OK
