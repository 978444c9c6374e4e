"""When a server counts as ready, with its process and its answers made up."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from nilometer.core.errors import EngineError, TargetError
from nilometer.engines import ready
from nilometer.engines.ready import Answered, wait_until_ready
from nilometer.net.fetch import Response

URL = "http://127.0.0.1:1"
MODELS = {"data": [{"id": "m"}]}
TOKEN = {"usage": {"completion_tokens": 1}}


class Alive:
    """A process that ends after `looks` looks, or never."""

    program = "server"
    log_path = Path("/log")

    def __init__(self, looks: int | None = None) -> None:
        self.looks = looks

    def ended(self) -> str | None:
        if self.looks is None:
            return None
        self.looks -= 1
        return "exit 3" if self.looks < 0 else None

    def tail(self) -> str:
        return "last words"


Answer = tuple[int, object] | None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, list[Answer]]], list[str]]:
    """Lets a made-up server answer each path in turn, its last answer for ever; returns what was asked."""

    def install(answers: dict[str, list[Answer]]) -> list[str]:
        asked: list[str] = []

        def fetch(url: str, **_: object) -> Response:
            path = url.removeprefix(URL)
            asked.append(path)
            turn = answers.get(path, [(404, {})])
            answer = turn.pop(0) if len(turn) > 1 else turn[0]
            if answer is None:
                raise TargetError("connect_refused", url=url, detail="")
            body = answer[1] if isinstance(answer[1], bytes) else msgspec.json.encode(answer[1])
            headers: Mapping[str, str] = {"server": "llama.cpp"}
            return Response(answer[0], dict(headers), body, 1)

        monkeypatch.setattr(ready, "fetch", fetch)
        monkeypatch.setattr(ready, "POLL_S", 0.0)
        return asked

    return install


Server = Callable[[dict[str, list[Answer]]], list[str]]


def test_only_a_token_is_ready(server: Server) -> None:
    asked = server(
        {
            "/v1/models": [None, (503, {}), (200, MODELS)],
            "/v1/completions": [
                (503, {"error": {}}),
                (200, {"usage": {"completion_tokens": 0}}),
                (200, b"<html>"),
                (200, TOKEN),
            ],
            "/props": [(200, {"total_slots": 2, "model_ftype": "F16"})],
        }
    )
    answered = wait_until_ready(Alive(), URL, {}, 60)
    assert asked.count("/v1/models") == 3
    assert asked.count("/v1/completions") == 4
    assert answered == Answered(
        URL, answered.load_time_s, server_header="llama.cpp", model_id="m", precision="F16", slots=2
    )


def test_a_server_without_props_is_ready_all_the_same(server: Server) -> None:
    server({"/v1/models": [(200, MODELS)], "/v1/completions": [(200, TOKEN)]})
    answered = wait_until_ready(Alive(), URL, {}, 60)
    assert (answered.slots, answered.context_tokens, answered.build) == (None, None, None)


@pytest.mark.parametrize("looks", [0, 3])
def test_a_process_that_ends_while_loading_is_dead(server: Server, looks: int) -> None:
    server({"/v1/models": [None]})
    with pytest.raises(EngineError) as caught:
        wait_until_ready(Alive(looks), URL, {}, 60)
    assert caught.value.slug == "engine_died"
    assert caught.value.params == {"program": "server", "ended": "exit 3", "log": "/log", "detail": "last words"}


def test_a_token_of_another_server_does_not_make_a_dead_process_ready(server: Server) -> None:
    server({"/v1/models": [(200, MODELS)], "/v1/completions": [(200, TOKEN)]})
    with pytest.raises(EngineError) as caught:
        wait_until_ready(Alive(1), URL, {}, 60)
    assert caught.value.slug == "engine_died"


def test_the_budget_ends_the_wait(server: Server) -> None:
    server({"/v1/models": [(200, MODELS)], "/v1/completions": [(500, {})]})
    with pytest.raises(EngineError) as caught:
        wait_until_ready(Alive(), URL, {}, 0.02)
    assert caught.value.slug == "engine_not_ready"
    assert caught.value.params == {"seconds": 0.02, "log": "/log", "detail": "last words"}
