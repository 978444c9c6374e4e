"""The doctor on the embedded real engine: started, walked through and stopped, within its time."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("engine")]


def test_the_embedded_engine_is_walked_through_and_honours_ignore_eos() -> None:
    command = [sys.executable, "-m", "nilometer", "doctor", "embedded", "--json"]
    start_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    took_s = time.monotonic() - start_s
    checks = {check["slug"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stderr
    assert checks["engine"]["state"] == checks["request"]["state"] == checks["stream"]["state"] == "ok"
    assert checks["length_fields"]["value"] == "ignore_eos"
    assert checks["template"]["value"] > 0
    assert took_s < 10
