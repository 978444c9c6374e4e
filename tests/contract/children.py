"""Processes of our own with an archive and the samples at hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRELUDE = r'''
import json, os, sys, traceback
from pathlib import Path
from nilometer.archive.store import open_archive
from tests.unit.archive.samples import *

def start(work, *args):
    """A process of this one's own, and what it prints."""
    out, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        return pid, open(out)
    os.dup2(into, 1)
    code = 1
    try:
        work(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)
'''


def command_of(script: str, *args: object) -> list[str]:
    """Python that runs the script."""
    return [sys.executable, "-c", PRELUDE + script, *map(str, args)]


def child(script: str, *args: object) -> subprocess.Popen[str]:
    """The script, begun; its output and its errors together."""
    return subprocess.Popen(
        command_of(script, *args), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
