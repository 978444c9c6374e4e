"""The page on conversations, mixes and spikes: what it shows is what runs, shortened, on a mock."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loopback.test_measure import Env, env, nilo

from nilometer.engines.mock import Mock, launched
from nilometer.engines.mock_script import Script

__all__ = ["env"]

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = [FOLDER / "conversations-and-mixes.md", FOLDER / "conversations-and-mixes.zh-CN.md"]
SHOWN = "http://127.0.0.1:8000"
SHORT = ("--warmup", "0.2s", "--duration", "1.5s", "--no-archive", "--json")


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    with launched(Script(models=("m",), ttft_ms=5, gap_ms=1)) as server:
        yield server


def test_both_pages_show_the_same() -> None:
    en, zh = (re.findall(r"```\w*\n(.*?)```", page.read_text("utf-8"), re.DOTALL) for page in PAGES)
    assert en == zh


def test_what_the_page_shows_runs(env: Env, mock: Mock, tmp_path: Path) -> None:
    text = PAGES[0].read_text("utf-8").replace(SHOWN, mock.url)
    mix = tmp_path / "mix.toml"
    mix.write_text(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0].replace("exponential:2", "exponential:0.1"))
    turns, mixed, spike = (
        shlex.split(line.replace("mix.toml", str(mix)).replace("5,40,20s", "20,60,0.5s"))
        for line in re.findall(r"^nilo (measure .*)$", text, re.MULTILINE)
    )
    made = []
    for command in (turns, mixed, spike):
        done = nilo(env, *command, "--input-tokens", "40", "--output-tokens", "5", "--drain", "1s", *SHORT)
        assert done.returncode in (0, 4), done.stderr
        made.append(json.loads(done.stdout))
    talked, mixture, spiked = made
    assert talked["latency_from"] == "mixed"
    assert talked["lengths"]["input"]["max"] > 3 * 40
    assert talked["lengths"]["asked_input"]["mean"] is None
    assert set(mixture["scenarios"]) <= {"chat", "summarise", "code"}
    assert mixture["scenarios"]["chat"]["latency_ms"]["ttft"]["n"] > 0
    assert spiked["recovery"]["metric"] == "ttft"
    assert spiked["recovery"]["watched_s"] == pytest.approx(0.5, abs=0.01)
