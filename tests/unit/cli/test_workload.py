"""`nilo workload` as a user calls it: screens, machine form, exit codes, what is written and what is not."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.sources.files import EXAMPLES, write

from nilometer.cli.root import nilo
from nilometer.sources.workload_file import read_workload
from nilometer.text.i18n import Catalogue

SOURCES = Path(__file__).parents[3] / "src" / "nilometer" / "sources"
SECRET = "My secret"


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(nilo, ["workload", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def told(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def prompts(folder: Path, rows: int = 600) -> Path:
    """A log with texts, of mixed lengths, behind three system prompts."""
    draw = random.Random(2)
    path = folder / "log.jsonl"
    with path.open("w") as file:
        for n in range(rows):
            asked, system = draw.randrange(1, 400), f"{SECRET} {draw.randrange(3)} " + "rule " * 100
            messages = [{"role": "system", "content": system}, {"role": "user", "content": f"{n} " + "why " * asked}]
            row = {"startTime": 1.7e9 + n, "call_type": "completion", "messages": messages, "trace_id": f"{SECRET} {n}"}
            counts = {"prompt_tokens": asked + 130, "completion_tokens": draw.randrange(1, 90)}
            file.write(json.dumps({**row, **counts}) + "\n")
    return path


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", list(EXAMPLES))
def test_inspect_shows_every_format(name: str, lang: str, tmp_path: Path) -> None:
    result = call("inspect", write(tmp_path, name), "--lang", lang)
    assert result.exit_code == 0
    assert result.stdout.startswith(name)
    assert "nilo workload sample" in result.stdout
    assert result.stderr == ""


def test_the_machine_form_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    found = told("inspect", write(tmp_path, "burstgpt"))
    assert (found["kind"], found["format"], found["records"], found["usable"]) == ("workload", "burstgpt", 3, 2)
    assert found["first"][1] == {"offset_s": 113.25, "input_tokens": 417, "output_tokens": 276, "turns": 1}
    assert found["skipped"] == {"failed_call": 1}
    assert found["problems"] == found["quirks"] == []
    assert found["input_tokens"] == {"mean": 444.5, "p50": 444.5, "p95": 469.25, "max": 472}
    assert found["arrivals"]["rate_per_s"] == pytest.approx(1 / 113.25)
    assert found["token_source"] == {"input": "stated", "output": "stated"}
    assert found["joint"] == [
        {"input_up_to": 512, "output_up_to": 32, "n": 1},
        {"input_up_to": 512, "output_up_to": 512, "n": 1},
    ]


def test_estimates_are_marked(tmp_path: Path) -> None:
    path = write(tmp_path, "text")
    assert told("inspect", path)["token_source"] == {"input": "estimated", "output": None}
    assert "~" in call("inspect", path).stdout


def test_rows_that_cannot_be_read_are_told_and_end_with_2(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt": \n{"prompt": 3}\n')
    found = told("inspect", path, code=2)
    assert [(each["line"], each["slug"]) for each in found["problems"]] == [(2, "json_broken"), (3, "field_wrong")]
    assert (found["records"], found["usable"], found["problems_total"]) == (3, 1, 2)
    assert told("inspect", path, "--skip-bad") == found
    screen = call("inspect", path, "--lang", "en")
    assert (screen.exit_code, "line 2 of" in screen.stdout) == (2, True)


@pytest.mark.parametrize("command", ["sample", "make"])
def test_nothing_is_written_of_a_file_with_broken_rows_unless_told_to(command: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"prompt": "a"}\n' + "{\n" * 9)
    out = tmp_path / "out.toml"
    refused = call(command, path, "-o", out, "--lang", "en")
    assert (refused.exit_code, out.exists(), refused.stdout) == (2, False, "")
    assert refused.stderr.count("json_broken") == 5
    assert "4 more rows" in refused.stderr
    assert call(command, path, "-o", out, "--skip-bad").exit_code == 0
    assert len(read_workload(out).rows) == 1


@pytest.mark.parametrize("command", ["sample", "make"])
def test_a_file_with_nothing_to_send_is_refused(command: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"prompt": ""}\n')
    assert told("inspect", path)["skipped"] == {"empty_prompt": 1}
    refused = call(command, path, "-o", tmp_path / "out.toml", "--lang", "en")
    assert (refused.exit_code, "nothing_usable" in refused.stderr) == (2, True)


def test_a_sample_of_a_log_is_representative_and_holds_no_text(tmp_path: Path) -> None:
    log, out = prompts(tmp_path), tmp_path / "mix.toml"
    found = told("sample", log, "-n", 200, "-o", out)
    assert found["representative"] is True
    assert set(found["ks"]) == {"input", "output", "turns", "prefix"}
    assert max(found["ks"].values()) <= 0.05
    assert found["findings"] == []
    written = out.read_text() + (tmp_path / "mix.jsonl").read_text()
    assert SECRET not in written
    assert "why" not in written
    workload = read_workload(out)
    assert (len(workload.rows), workload.hash) == (200, found["written"]["sha256"])
    assert workload.rows[0].offset_s == 0
    assert [row.offset_s for row in workload.rows] == sorted(row.offset_s or 0 for row in workload.rows)
    assert [part.role for part in workload.rows[0].parts] == ["system", "user"]


def test_texts_are_kept_where_asked_for_and_lengths_alone_too(tmp_path: Path) -> None:
    log, out = prompts(tmp_path), tmp_path / "mix.toml"
    told("sample", log, "-o", out, "--keep-text")
    assert all((row.parts[0].text or "").startswith(SECRET) for row in read_workload(out).rows)
    told("sample", log, "-o", out, "--lengths-only")
    rows = read_workload(out).rows
    assert all(row.parts == () and row.session is None and row.hash_ids and row.input_tokens for row in rows)


def test_a_sample_that_is_too_small_is_written_marked_and_ends_with_4(tmp_path: Path) -> None:
    log, out = prompts(tmp_path), tmp_path / "mix.toml"
    found = told("sample", log, "-n", 5, "-o", out, code=4)
    assert [each["slug"] for each in found["findings"]] == ["sample_not_representative"]
    assert read_workload(out).head.representative is False
    assert call("sample", log, "-n", 5, "-o", out, "--lang", "zh").exit_code == 4


def test_the_same_seed_makes_the_same_sample(tmp_path: Path) -> None:
    log = prompts(tmp_path)
    hashes = [told("sample", log, "-o", tmp_path / "a.toml", "--seed", seed)["written"]["sha256"] for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_make_puts_rows_in_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"startTime": 1.7e9 + at, "call_type": "completion", "prompt_tokens": at} for at in (5, 3, 9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert told("inspect", path)["first"][0]["offset_s"] == 2
    told("make", path, "-o", tmp_path / "out.toml")
    found = read_workload(tmp_path / "out.toml").rows
    assert [(row.offset_s, row.input_tokens) for row in found] == [(0, 3), (2, 5), (6, 9)]


def test_several_requests_of_one_line_are_sampled_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "otel-genai")
    told("sample", path, "-n", 1, "-o", tmp_path / "out.toml", code=4)
    assert read_workload(tmp_path / "out.toml").rows[0].input_tokens in (30, 31)


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "burstgpt")
    for arguments, slug in (
        (("inspect", tmp_path / "none"), "file_unreadable"),
        (("inspect", path, "--format", "mooncake"), "format_other"),
        (("inspect", path, "--map", "x"), "map_wrong"),
        (("make", path, "-o", tmp_path / "out.json"), "workload_name"),
        (("make", path, "-o", tmp_path / "no" / "out.toml"), "file_unwritable"),
    ):
        result = call(*arguments, "--lang", "en")
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert f"({slug})" in result.stderr


def test_progress_is_told_on_stderr_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nilometer.cli.workload.TOLD_EVERY_S", 0)
    path = write(tmp_path, "burstgpt")
    result = call("inspect", path, "--json", "--lang", "en")
    assert "requests read" in result.stderr
    json.loads(result.stdout)
    assert call("inspect", path, "-q").stderr == ""


def _texts_of(name: str) -> set[str]:
    """The first argument of every call of this name in the room."""
    found = set()
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name and node.args:
                found |= {
                    each.value
                    for each in ast.walk(node.args[0])
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_reason_and_every_problem_has_its_words(lang: str) -> None:
    keys = set(Catalogue(lang).keys())
    reasons, slugs = _texts_of("Skipped"), _texts_of("Broken")
    assert len(reasons) > 8
    assert len(slugs) > 6
    shown = {key.rpartition(".")[2] for key in keys if key.startswith("screen.workload.skipped.")}
    assert shown == reasons
    assert {slug for slug in slugs if f"error.{slug}.what" not in keys} == set()


def test_rows_without_a_stamp_do_not_move_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"type": "single_turn", "text": "a"{at}}}\n' for at in ("", ', "timestamp": 7000', "")))
    for command in ("sample", "make"):
        told(command, path, "-o", tmp_path / "out.toml")
        found = read_workload(tmp_path / "out.toml")
        assert sorted((row.offset_s for row in found.rows), key=str) == [0.0, None, None]
        assert (found.head.source_stamps, found.head.source_rows) == ("ms", 3)


def _holds(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _refused(folder: Path, slug: str, *arguments: object) -> None:
    """In one line, with nothing written."""
    before = _holds(folder)
    refused = call(*arguments, "--lang", "en")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused.output
    assert f"({slug})" in refused.stderr
    assert _holds(folder) == before


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A workload, and beside it a source that is also known by another name."""
    told("make", write(tmp_path, "burstgpt"), "-o", tmp_path / "own.toml")
    (tmp_path / "prod.jsonl").write_text('{"prompt": "mine"}\n')
    (tmp_path / "linked.jsonl").symlink_to("prod.jsonl")
    return tmp_path


@pytest.mark.parametrize("command", ["sample", "make"])
@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("prod.jsonl", "prod.toml"),
        ("prod.jsonl", "linked.toml"),
        ("linked.jsonl", "prod.toml"),
        ("own.toml", "own.toml"),
    ],
)
def test_a_source_is_never_written_over(command: str, name: str, output: str, own: Path) -> None:
    _refused(own, "workload_over_source", command, own / name, "-o", own / output)


@pytest.mark.parametrize("command", ["sample", "make"])
def test_only_a_workload_is_replaced(command: str, own: Path) -> None:
    source = write(own, "text")
    (own / "spec.toml").write_text('target = "http://127.0.0.1:1"\n')
    _refused(own, "workload_taken", command, source, "-o", own / "prod.toml")
    _refused(own, "workload_taken", command, source, "-o", own / "spec.toml")
    assert call(command, source, "-o", own / "own.toml").exit_code in (0, 4)
    (own / "own.jsonl").write_text("mine now\n")
    _refused(own, "workload_taken", command, source, "-o", own / "own.toml")
    (own / "own.jsonl").unlink()
    assert call(command, source, "-o", own / "own.toml").exit_code in (0, 4)
    (own / "own.toml").rename(own / "prod.toml")
    _refused(own, "workload_taken", command, source, "-o", own / "prod.toml")


def test_a_part_of_another_file_stays(own: Path) -> None:
    (own / "new.jsonl.part").write_text("mine")
    told("make", own / "linked.jsonl", "-o", own / "new.toml")
    assert (own / "new.jsonl.part").read_text() == "mine"
