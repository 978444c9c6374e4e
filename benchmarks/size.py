"""What an installation weighs: megabytes, distributions, and how long `nilo --help` takes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from . import rig
from .result import Row, exact, judged

NOT_OURS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources")


def size() -> list[Row]:
    """A fresh environment with nothing but nilometer (without extras) in it; needs a package index."""
    with rig.scratch() as folder:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        python = folder / "venv" / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", str(rig.HERE.parent)]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        megabytes = sum(path.stat().st_size for path in _files(site)) / 1e6
        names = [path.name for path in site.glob("*.dist-info") if not path.name.startswith(NOT_OURS)]
        help_ms = _help_ms(folder / "venv" / "bin" / "nilo")
        heavy = _heavy_imports(python)
    return [
        judged("core install", megabytes, absolute=110, unit="MB"),
        judged("distributions, nilometer included", len(names), absolute=20, unit=""),
        judged("nilo --help, best of 5", help_ms, absolute=150),
        exact("heavy modules loaded by nilo --help", heavy, []),
    ]


def _files(site: Path) -> list[Path]:
    return [
        path
        for path in site.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.relative_to(site).parts[0].startswith(NOT_OURS)
    ]


def _help_ms(program: Path) -> float:
    subprocess.run([str(program), "--help"], check=True, stdout=subprocess.DEVNULL)  # writes the bytecode
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([str(program), "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


def _heavy_imports(python: Path) -> list[str]:
    code = (
        "import sys\nsys.argv = ['nilo', '--help']\nfrom nilometer.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('HEAVY', *[m for m in ('numpy', 'rich', 'uvloop', 'psutil') if m in sys.modules])"
    )
    done = subprocess.run([str(python), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.rpartition("HEAVY")[2].split()
