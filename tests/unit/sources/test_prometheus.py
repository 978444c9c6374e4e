"""What Prometheus answers, as pages: its samples at each moment as an engine would write them."""

from __future__ import annotations

import json

import pytest

from nilometer.core.errors import TargetError
from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import read
from nilometer.net.fetch import Response
from nilometer.sources import prometheus
from nilometer.sources.prometheus import Asked, pages, require


def answering(monkeypatch: pytest.MonkeyPatch, body: bytes, status: int = 200) -> list[tuple[str, bytes]]:
    asked: list[tuple[str, bytes]] = []

    def fetch(url: str, *, body: bytes, **_: object) -> Response:
        asked.append((url, body))
        return Response(status, {}, told, 1, None, ())

    told = body
    monkeypatch.setattr(prometheus, "fetch", fetch)
    return asked


def matrix(*rows: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    result = [{"metric": metric, "values": values} for metric, values in rows]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def test_each_moment_is_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label may hold anything; a series that was not there yet is on the later page alone."""
    odd = {"__name__": "vllm:num_requests_running", "model_name": 'a"b\\c\nd', "instance": "x:1"}
    bucket = {"__name__": "vllm:request_queue_time_seconds_bucket", "le": "+Inf"}
    body = matrix((odd, [(10.0, "3"), (11.0, "4")]), (bucket, [(11.0, "NaN")]))
    asked = answering(monkeypatch, body)
    found = list(pages(Asked("http://p:9090/prom/?x=1", 'job="v"'), 10, 11))
    assert [at_s for at_s, _ in found] == [10, 11]
    (row,) = read(found[0][1], FAMILIES).series["vllm:num_requests_running"]
    assert (row.labels, row.value) == ({"model_name": 'a"b\\c\nd', "instance": "x:1"}, 3)
    assert found[1][1].splitlines()[1] == 'vllm:request_queue_time_seconds_bucket{le="+Inf"} NaN'
    assert asked[0][0] == "http://p:9090/prom/api/v1/query_range?x=1"


@pytest.mark.parametrize(
    ("length_s", "step"), [(60, b"step=1"), (600, b"step=1"), (601, b"step=2"), (36_000, b"step=60")]
)
def test_a_long_stretch_has_no_more_pages(monkeypatch: pytest.MonkeyPatch, length_s: int, step: bytes) -> None:
    asked = answering(monkeypatch, matrix())
    assert list(pages(Asked("http://p:9090"), 0, length_s)) == []
    assert asked[0][1].endswith(step)


@pytest.mark.parametrize(
    ("body", "status", "slug", "detail"),
    [
        (
            b'{"status":"error","errorType":"bad_data","error":"parse error:  x"}',
            400,
            "prometheus_refused",
            "parse error: x",
        ),
        (b"<html>\nlog in", 200, "prometheus_refused", "<html> log in"),
        (b"\xff\xfe", 502, "prometheus_refused", "\ufffd\ufffd"),
        (matrix(), 200, "prometheus_empty", None),
    ],
)
def test_what_is_no_answer_is_told(
    monkeypatch: pytest.MonkeyPatch, body: bytes, status: int, slug: str, detail: str | None
) -> None:
    answering(monkeypatch, body, status)
    with pytest.raises(TargetError) as caught:
        require(Asked("http://reed:pw@p:9090"), 5)
    assert (caught.value.slug, caught.value.params.get("detail")) == (slug, detail)
    assert "pw" not in str(caught.value.params)
