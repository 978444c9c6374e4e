"""Runs in, screens out. NILO_UPDATE_GOLDEN=1 writes the screens anew; the difference is to be reviewed as a user would.

The runs are hand-made: what is expected of a screen is judged by eye once, and kept.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.golden.services import SERVICES

from nilometer.core.finding import Evidence, Finding
from nilometer.core.run import Run
from nilometer.report.build import group_document, run_document
from nilometer.report.document import Document
from nilometer.report.terminal import render
from nilometer.text.i18n import LANGUAGES, Catalogue
from nilometer.text.width import columns

HERE = Path(__file__).parent
SINGLE = sorted(path.stem for path in (HERE / "runs").glob("*.json") if not path.stem.startswith("quickstart"))
QUEUE = Finding(
    slug="queue",
    kind="cause",
    severity="high",
    confidence="likely",
    metric="ttft",
    level="8",
    params={"slots": 4, "concurrency": 8, "wait": 0.966},
    evidence=[
        Evidence(name="wait_share", value=0.966, unit="share", n=18, level="1 -> 8"),
        Evidence(name="decoding", value=3.79, n=72, level="4"),
        Evidence(name="decoding", value=3.98, n=41, level="8"),
    ],
)


def stored(name: str) -> Run:
    return msgspec.json.decode((HERE / "runs" / f"{name}.json").read_bytes(), type=Run)


def hold(name: str, document: Document, width: int = 80) -> None:
    """The screen is the one kept, and within its width."""
    shown = render(document, width) + "\n"
    file = HERE / "screens" / f"{name}.{document.lang}.txt"
    if os.environ.get("NILO_UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")
    assert max(columns(line) for line in shown.splitlines()) <= width


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", SINGLE)
def test_the_screen_after_a_run(name: str, lang: str) -> None:
    hold(name, run_document(stored(name), Catalogue(lang)))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_wide_screen_has_the_facts_at_the_side(lang: str) -> None:
    hold("admissible_wide", run_document(stored("admissible"), Catalogue(lang)), width=120)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_run_from_the_archive_says_what_it_was_and_all_there_is_to_note(lang: str) -> None:
    hold("interrupted_shown", run_document(stored("interrupted"), Catalogue(lang), conditions=True))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_run_that_was_not_archived(lang: str) -> None:
    hold("no_answer_not_archived", run_document(stored("no_answer"), Catalogue(lang), archived=False))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("name", "finding"), [("quickstart", QUEUE), ("quickstart_unknown", None)])
def test_the_screen_of_a_quickstart(name: str, finding: Finding | None, lang: str) -> None:
    runs = [stored(f"quickstart_{load}") for load in (1, 4, 8)]
    hold(name, group_document(runs, "n5ra2zmc6xkf", finding, Catalogue(lang)))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_quickstart_with_a_run_that_is_not_admissible_says_so_first(lang: str) -> None:
    runs = [stored("quickstart_1"), stored("errors_over_limit")]
    hold("quickstart_refused", group_document(runs, "n5ra2zmc6xkf", QUEUE, Catalogue(lang)))


def test_no_screen_is_kept_that_no_test_shows() -> None:
    shown = {*SINGLE, "admissible_wide", "interrupted_shown", "no_answer_not_archived"}
    shown |= {"quickstart", "quickstart_unknown", "quickstart_refused"}
    shown |= {f"workload_{name}" for name in ("trace", "sharegpt", "broken", "sample", "sample_off")}
    shown |= {f"plan_{name}" for name in ("fits", "too_large", "too_many", "model_alone", "two_devices", "explained")}
    shown |= {f"scrape_{name}" for name in ("vllm_two_engines", "tgi", "llamacpp", "between", "ollama", "unknown")}
    shown |= {f"diagnosis_{name}" for name in (*SERVICES, "experiment")}
    kept = {path.name for path in (HERE / "screens").iterdir()}
    assert kept == {f"{name}.{lang}.txt" for name in shown for lang in LANGUAGES}
