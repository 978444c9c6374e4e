"""`nilo scrape`: its machine form, its exit codes, and that every refusal is one line that names what to do."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.loopback.scripted import Scripted, take_request

from nilometer.cli.root import nilo

CASES = Path(__file__).parents[2] / "cases" / "metrics"
M02 = str(CASES / "m02_vllm_v1_two_engines.prom")
SECRET = "canary-9471"


def scrape(*words: str) -> Result:
    return CliRunner().invoke(nilo, ["scrape", *words, "--lang", "en"])


def test_a_running_server(tmp_path: Path) -> None:
    """The page now against the one kept before, with the key that the server asks for."""

    def handle(sock: socket.socket) -> None:
        asked = take_request(sock)
        status = b"200 OK" if f"Bearer {SECRET}".encode() in asked else b"401 No"
        sock.sendall(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n\r\nvllm:generation_tokens_total 500\n")

    before = tmp_path / "before.prom"
    before.write_text("vllm:generation_tokens_total 200\n")
    with Scripted(handle) as server:
        done = scrape(
            server.url,
            *("--before", str(before), "--elapsed", "1m", "--json"),
            *("--header", f"Authorization: Bearer {SECRET}"),
        )
        refused = scrape(server.url)
    machine = json.loads(done.stdout)
    assert (done.exit_code, machine["generation_tokens"], machine["generation_tps"]) == (0, 300, 5.0)
    assert refused.exit_code == 3
    assert "unauthorised" in refused.stderr


def test_an_unknown_engine_is_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_text("go_goroutines 7\nenvoy_requests_total 3\n")
    machine = json.loads(scrape(str(file), "--json").stdout)
    assert (machine["engine"], machine["dialect"], machine["running"]) == (None, None, None)
    assert (machine["names"], machine["hints"]) == (["go_goroutines", "envoy_requests"], ["names_unknown"])
    shown = scrape(str(file))
    assert shown.exit_code == 0
    assert "go_goroutines, envoy_requests" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["nowhere.prom"], 2, "file_unreadable"),
        ([__file__], 2, "metrics_file_not"),
        ([M02, "--elapsed", "60s"], 2, "elapsed_alone"),
        ([M02, "--before", "nowhere.prom"], 2, "file_unreadable"),
        ([M02, "--before", str(CASES / "m06_tgi.prom")], 2, "metrics_pages_differ"),
        ([M02, "--before", str(CASES / "m01_vllm_v0.prom")], 2, "metrics_pages_differ"),
        (["http://127.0.0.1:9/metrics", "--before", "nowhere.prom"], 2, "file_unreadable"),
        (["ftp://127.0.0.1/metrics"], 2, "target_url"),
        (["http://127.0.0.1:0"], 2, "target_url"),
    ],
)
def test_a_refusal_is_one_line(words: list[str], code: int, slug: str) -> None:
    done = scrape(*words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert f"({slug})" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nobody_there_is_told_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = scrape(f"http://user:{SECRET}@127.0.0.1:{port}")
    assert (done.exit_code, SECRET in done.output) == (3, False)
    assert "connect_refused" in done.stderr


def test_a_page_against_itself_is_nothing(tmp_path: Path) -> None:
    machine = json.loads(scrape(M02, "--before", M02, "--elapsed", "10s", "--json").stdout)
    assert (machine["prompt_tokens"], machine["preemptions"], machine["generation_tps"]) == (0, 0, 0.0)
    assert machine["per_token"]["count"] == 0
    assert (machine["per_token"]["mean_s"], machine["prefix_hit_ratio"], machine["spec"]) == (None, None, None)
    assert (machine["running"], machine["reset"]) == (12, False)
