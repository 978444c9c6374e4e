"""The house rules that a machine can hold: layers, sizes, purity, a light start, a word on every module."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nilometer"
FILES = sorted(SOURCE.rglob("*.py"))

PURE_PACKAGES = {"workload", "wire", "metrics", "plan", "compare", "sim", "diagnose", "report"}
READS_A_CLOCK = {"nilometer.core.clock"}
"""The one module of core that may: it is the clock."""

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 80
FUNCTION_LINES_P90 = 32
TOO_LONG: frozenset[str] = frozenset()
"""What is over a limit and not yet mended, as `path` or `path:function`. Entries are only ever taken out."""


class Function(NamedTuple):
    where: str
    lines: int


def _named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _functions() -> Iterator[Function]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield Function(f"{_named(path)}:{node.name}", node.end_lineno - node.lineno + 1)


def _pure_contract() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return set(parser["importlinter:contract:pure"]["source_modules"].split())


def _imported_by(*arguments: str) -> set[str]:
    """Every module that a start with these arguments imports, as the interpreter itself tells it."""
    started = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nilometer", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = (line for line in started.stderr.splitlines() if line.startswith("import time:"))
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def test_the_layers_hold() -> None:
    checked = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


def test_every_pure_package_is_held_to_its_purity() -> None:
    there = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {f"nilometer.{name}" for name in PURE_PACKAGES & there} - _pure_contract() == set()


def test_every_module_of_core_but_the_clock_is_held_to_its_purity() -> None:
    modules = {f"nilometer.core.{path.stem}" for path in (SOURCE / "core").glob("*.py") if path.stem != "__init__"}
    assert modules - _pure_contract() == READS_A_CLOCK


def test_no_file_is_too_long_to_read() -> None:
    long = {_named(path) for path in FILES if len(path.read_text().splitlines()) > FILE_LINES_MAX}
    assert long == {name for name in TOO_LONG if ":" not in name}, "split it, or take the mended entry out"


def test_no_function_is_too_long_to_read() -> None:
    long = {function.where for function in _functions() if function.lines > FUNCTION_LINES_MAX}
    assert long == {name for name in TOO_LONG if ":" in name}, "split it, or take the mended entry out"


def test_nine_functions_in_ten_fit_half_a_screen() -> None:
    functions = list(_functions())
    p90 = quantiles((function.lines for function in functions), n=10)[-1]
    assert p90 <= FUNCTION_LINES_P90, sorted(functions, key=lambda function: -function.lines)[: len(functions) // 10]


@pytest.mark.parametrize("arguments", [("--help",), ("measure", "--help")], ids=" ".join)
def test_help_comes_without_the_heavy_libraries(arguments: tuple[str, ...]) -> None:
    imported = _imported_by(*arguments)
    assert {"click", "nilometer.cli"} <= imported
    assert {name.partition(".")[0] for name in imported} & {"numpy", "rich", "uvloop", "psutil"} == set()


def _installed_with(name: str, found: set[str]) -> set[str]:
    """The distributions that a plain install of `name` brings on this platform, extras left out."""
    if name not in found:
        found.add(name)
        for line in requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                _installed_with(canonicalize_name(needed.name), found)
    return found


def test_a_plain_install_is_small_and_brings_no_model_library() -> None:
    brought = _installed_with("nilometer", set())
    assert {"click", "msgspec", "numpy"} <= brought  # the walk goes somewhere
    assert len(brought) <= 20
    assert brought.isdisjoint({"torch", "transformers", "tokenizers", "huggingface-hub", "tiktoken", "vllm"})


def test_every_module_says_what_it_is() -> None:
    silent = [_named(path) for path in FILES if not _documented(path)]
    assert silent == []


def _documented(path: Path) -> bool:
    """An empty `__init__.py` has nothing to say: its package's modules speak for themselves."""
    text = path.read_text()
    if path.name == "__init__.py" and not text.strip():
        return True
    return bool(ast.get_docstring(ast.parse(text)))
