"""`nilo quickstart` on the real engine, whole; and the README's copy of its output, held to the form of a real one.

NILO_UPDATE_README=1 puts this run's output into both READMEs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from nilometer.archive.store import open_archive
from nilometer.diagnose.rules import RULES
from nilometer.experiment.quickstart import diagnosis
from nilometer.report.build import group_document
from nilometer.report.terminal import render
from nilometer.text.i18n import Catalogue

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(<!-- quickstart:begin -->\n```\n)(.*?)(```\n<!-- quickstart:end -->)", re.DOTALL)
IMPOSSIBLE = {
    *("buffered_stream", "rate_limit", "failures", "client_pool", "static_batching", "adapters", "replica_imbalance"),
    *("poor_drafts", "interconnect", "grouped_tokens", "short_answers", "kv_capacity"),
}
"""What this engine, as the quickstart starts it, cannot have; which of the others is first is the machine's doing."""


class Shown(NamedTuple):
    """What one quickstart said, to a human and to a machine, and where it kept it."""

    text: str
    told: dict[str, Any]
    env: dict[str, str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("quickstart")
    env = {**os.environ, "XDG_DATA_HOME": str(folder), "NILO_LANG": "en"}
    file = folder / "told.json"
    command = [sys.executable, "-m", "nilometer", "quickstart", "-q", "--json-file", str(file)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400, check=False)
    # 4: a busy machine may make a run inadmissible; what it shows is then still to be right
    assert done.returncode in (0, 4), done.stderr
    yield Shown(done.stdout, json.loads(file.read_text("utf-8")), env)


def test_three_loads_of_a_real_engine_are_measured_and_kept(shown: Shown) -> None:
    told = shown.told
    assert (told["kind"], told["type"]) == ("group", "quickstart")
    assert [run["level"] for run in told["runs"]] == ["1", "4", "8"]
    for run in told["runs"]:
        assert run["requests"]["ok"] >= 5
        assert run["requests"]["error"] == run["requests"]["incomplete"] == 0
        assert run["lengths"]["token_source"] == {"usage": run["requests"]["ok"]}
        assert run["lengths"]["output"]["mean"] == run["lengths"]["asked_output"]["mean"]
        assert run["lengths"]["input"]["mean"] == pytest.approx(run["lengths"]["asked_input"]["mean"], rel=0.01)
        assert run["latency_ms"]["ttft"]["p50"] > 1
        assert run["environment"]["model"]["file_sha256"]
        assert run["environment"]["model"]["requantised_from"] == "Q4_1"
        assert run["memory"]["server_rss_peak_bytes"] > 100_000_000
        assert run["group"] == told["group"]
    known = {rule.slug for rule in RULES} | {"room", "room_to_knee", "not_yet_known"}
    assert told["findings"][0]["slug"] in known - IMPOSSIBLE
    listed = [sys.executable, "-m", "nilometer", "runs", "list", "--json"]
    rows = json.loads(subprocess.run(listed, env=shown.env, capture_output=True, check=True).stdout)["runs"]
    assert {row["run"] for row in rows} == {run["run"] for run in told["runs"]}


def test_no_engine_is_left(shown: Shown) -> None:
    assert Path(shown.told["runs"][0]["environment"]["engine"]["log_path"]).exists()
    assert [process.pid for process in psutil.process_iter() if _is_of(process, shown.env["XDG_DATA_HOME"])] == []


@pytest.mark.parametrize(("name", "lang"), [("README.md", "en"), ("README.zh-CN.md", "zh")])
def test_the_readme_shows_what_is_really_shown(shown: Shown, name: str, lang: str) -> None:
    path = ROOT / name
    text, screen = path.read_text("utf-8"), in_language(shown, lang)
    if os.environ.get("NILO_UPDATE_README"):
        text = BLOCK.sub(lambda found: found[1] + screen + found[3], text)
        path.write_text(text, "utf-8")
    found = BLOCK.search(text)
    assert found is not None
    assert table_of(found[2]) == table_of(screen)


def in_language(shown: Shown, lang: str) -> str:
    """The screen of the quickstart; in another language than it was run in, drawn anew from the archive."""
    if lang == "en":
        return shown.text
    url = f"sqlite:///{shown.env['XDG_DATA_HOME']}/nilometer/archive.sqlite"
    with open_archive(url) as archive:
        runs = archive.find(shown.told["group"])
        cause = diagnosis(runs, archive.records)[0]
    return render(group_document(runs, shown.told["group"], cause, Catalogue(lang))) + "\n"


def table_of(screen: str) -> list[str]:
    """The table's words and the form of its rows: figures, marks and spaces may differ."""
    lines = screen.splitlines()
    first = next(i for i, line in enumerate(lines) if "TTFT p50" in line)
    rows = lines[first : first + 2] + [re.sub(r"[\d.,]+", "#", line) for line in lines[first + 2 : first + 5]]
    return [re.sub(r"[*!\s]+|\b(ms|s)\b", " ", row).strip() for row in rows]


def _is_of(process: psutil.Process, data_home: str) -> bool:
    try:
        return bool(process.environ().get("XDG_DATA_HOME") == data_home)
    except psutil.Error:
        return False
