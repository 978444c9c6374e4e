"""`nilo sweep` on the embedded real engine: searched levels, true lengths, the curve of a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]

OPTIONS = ("--input-tokens", "32", "--output-tokens", "12", "--warmup", "1s", "--duration", "3s", "--ramp", "0s")


def test_the_curve_of_a_real_engine(tmp_path: Path) -> None:
    """Two levels are searched: 1 keeps an SLO that every engine keeps, so it is doubled, up to the most."""
    command = [sys.executable, "-m", "nilometer", "sweep", "embedded", *OPTIONS, "--most", "2"]
    command += ["--slo", "tpot_p95<=10s", "--max-error-rate", "0%", "-q", "--json"]
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "NILO_LANG": "en"}
    done = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 4), done.stderr  # 4: a busy machine may make both levels inadmissible
    told = json.loads(done.stdout)
    assert [run["level"] for run in told["runs"]] == ["1", "2"]
    assert told["greatest_load"] == {"level": 2.0, "lo": 2.0, "hi": None}
    for run in told["runs"]:
        assert run["requests"]["ok"] >= 2
        assert run["lengths"]["token_source"] == {"usage": run["requests"]["ok"]}
        assert run["lengths"]["output"]["mean"] == 12
        assert run["lengths"]["input"]["mean"] == pytest.approx(32, abs=1)
        assert 0 < run["latency_ms"]["tpot"]["p50"] < 10_000
        assert run["efficiency"]["tokens_per_core_s"] > 0
        assert run["environment"]["engine"]["name"]
    one, two = told["runs"]
    assert one["environment"]["model"]["file_sha256"] == two["environment"]["model"]["file_sha256"]
