"""The engine table: which programs are found, which can run on a processor, what they say of themselves."""

import importlib.metadata
import os
import stat
import sys
from pathlib import Path

import pytest

from nilometer.core.errors import EngineError, SpecError
from nilometer.engines import catalogue
from nilometer.engines.catalogue import ENGINES, Engine, Program

AVX2 = frozenset(["avx2", "fma"])
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}

SAYS = "version: 6210 (2e2b22ba9)\nbuilt with cc for Linux\n"
HELP = "-np,  --parallel N   slots\n--no-webui, --webui  page (see --foo-bar=1)\n  -nocb   no a-b\n"


def program(path: Path, version: str = SAYS, told_help: str = HELP) -> str:
    """An executable that answers --version on stderr, as llama-server does, and --help on stdout."""
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"sys.stderr.write({version!r}) if sys.argv[1] == '--version' else sys.stdout.write({told_help!r})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both wheels there, nothing on PATH."""
    rows = [
        ENGINES["llama-server"]._replace(find=lambda: None),
        ENGINES["skulk-llama-server"]._replace(find=lambda: Program("skulk-llama-server", ("skulk",))),
        ENGINES["xllamacpp"]._replace(find=lambda: Program("xllamacpp", ("xllama",))),
    ]
    monkeypatch.setattr(catalogue, "ENGINES", {row.name: row for row in rows})


def names(flags: frozenset[str] | None) -> list[str]:
    return [found.engine for found in catalogue.candidates(flags)]


@pytest.mark.usefixtures("installed")
def test_the_fast_wheel_is_first_only_where_the_processor_can_execute_it() -> None:
    assert names(AVX512) == ["skulk-llama-server", "xllamacpp"]
    assert names(AVX2) == ["xllamacpp"]
    assert names(None) == ["skulk-llama-server", "xllamacpp"]


@pytest.mark.usefixtures("installed")
def test_no_engine_is_an_error_with_the_command_that_installs_one() -> None:
    with pytest.raises(EngineError) as caught:
        catalogue.candidates(frozenset(["sse2"]))
    assert caught.value.slug == "engine_missing"
    assert caught.value.params["command"] == 'pip install "nilometer[embedded]"'


def test_lacking_names_the_instruction_sets() -> None:
    row = Engine("x", "MIT", lambda: None, ("avx2", "avx512f"))
    assert catalogue.lacking(row, AVX2) == ["avx512f"]
    assert catalogue.lacking(row, None) == []


def test_a_llama_server_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "llama-server")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(catalogue.NAMED_BY_USER, raising=False)
    assert catalogue.candidates(AVX2)[0] == Program("llama-server", (path,))


def test_one_named_by_the_user_comes_before_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "llama-server")
    mine = program(tmp_path / "mine")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(catalogue.NAMED_BY_USER, mine)
    assert catalogue.candidates(AVX2)[0].argv == (mine,)
    monkeypatch.setenv(catalogue.NAMED_BY_USER, str(tmp_path / "gone"))
    with pytest.raises(EngineError) as caught:
        catalogue.candidates(AVX2)
    assert caught.value.slug == "engine_program_missing"
    assert caught.value.params == {"variable": "NILO_LLAMA_SERVER", "program": str(tmp_path / "gone")}


def test_names_of_engine_specs(tmp_path: Path) -> None:
    path = program(tmp_path / "my-server")
    assert catalogue.named(path) == [Program("llama-server", (path,))]
    for name in ("vllm", "my-server", str(tmp_path / "none")):
        with pytest.raises(SpecError) as caught:
            catalogue.named(name)
        assert caught.value.slug == "engine_unknown"


@pytest.mark.usefixtures("installed")
def test_a_row_that_is_named_but_not_installed_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [found.engine for found in catalogue.named("xllamacpp")] == ["xllamacpp"]
    monkeypatch.setitem(catalogue.ENGINES, "xllamacpp", ENGINES["xllamacpp"]._replace(find=lambda: None))
    with pytest.raises(EngineError) as caught:
        catalogue.named("xllamacpp")
    assert caught.value.slug == "engine_missing"


def test_processor_flags_are_read_as_the_kernel_lists_them(tmp_path: Path) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nflags\t\t: fpu avx2 sse\nbugs\t: x\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert catalogue.cpu_flags(str(listing)) == frozenset(["fpu", "avx2", "sse"])
    listing.write_text("processor : 0\nFeatures : fp asimd\n")
    assert catalogue.cpu_flags(str(listing)) is None
    assert catalogue.cpu_flags(str(tmp_path / "none")) is None


def test_version_of_a_program_on_path_is_what_it_says(tmp_path: Path) -> None:
    found = Program("llama-server", (program(tmp_path / "s"),))
    assert catalogue.version(found) == ("6210 (2e2b22ba9)", "6210 (2e2b22ba9)")
    silent = Program("llama-server", (program(tmp_path / "t", version="oops\n"),))
    assert catalogue.version(silent) == (None, None)


def test_version_of_a_wheel_is_the_wheels_with_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"some-wheel": "0.10434.0"}.__getitem__)
    path = program(tmp_path / "s", version="version: 0.1.0-dev (build 1, commit 7e4c0a9)\n")
    found = Program("skulk-llama-server", (path,), distribution="some-wheel")
    assert catalogue.version(found) == ("0.10434.0+7e4c0a9", "0.1.0-dev (build 1, commit 7e4c0a9)")
    plain = found._replace(argv=(program(tmp_path / "t", version="version: 1 (build 0, commit unknown)\n"),))
    assert catalogue.version(plain) == ("0.10434.0", "1 (build 0, commit unknown)")


def test_known_flags_are_those_of_its_help(tmp_path: Path) -> None:
    found = Program("llama-server", (program(tmp_path / "s"),))
    assert {"-np", "--parallel", "--no-webui", "--webui", "-nocb"} <= catalogue.known_flags(found)
    assert "-b" not in catalogue.known_flags(found)


def test_a_program_that_cannot_be_executed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no program")
    path.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        catalogue.version(Program("llama-server", (str(path),)))
    assert caught.value.slug == "engine_unstartable"


def test_every_row_can_be_looked_for_here() -> None:
    for row in ENGINES.values():
        found = row.find()
        assert found is None or (found.engine == row.name and os.access(found.argv[0], os.X_OK))
