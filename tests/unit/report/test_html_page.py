"""The page as a file: parts, policy, size, and that no text of a server becomes part of it. A browser: tests/web."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from itertools import pairwise
from random import Random

import pytest
from tests.unit.metrics.made import answered, failed, phases

from nilometer.core.record import Record
from nilometer.core.run import Run
from nilometer.report.html_page import page
from nilometer.report.whole import Shown, report_document
from nilometer.text.i18n import LANGUAGES, Catalogue

from .parsed import Parsed
from .reported import HOSTILE, hostile, hostile_records, run_of, shown, steady

MOST_BYTES = 300_000
VENDORED = {
    "uPlot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""uPlot 1.6.32 as published."""


def html(of: Shown, languages: Sequence[str] = LANGUAGES) -> str:
    return page([report_document(of, Catalogue(lang)) for lang in languages], of.drawn.plots, "0.1.0")


@pytest.fixture(scope="module")
def single() -> str:
    records, borders = steady()
    return html(shown((run_of(records, borders), records)))


def asset(name: str) -> bytes:
    return resources.files("nilometer.report").joinpath("page", name).read_bytes()


@pytest.mark.parametrize("name", VENDORED)
def test_what_is_not_ours_is_as_it_was_published(name: str) -> None:
    assert hashlib.sha256(asset(name)).hexdigest() == VENDORED[name]


@pytest.mark.parametrize("name", ["page.css", "page.js", *VENDORED])
def test_no_part_of_the_page_ends_the_element_it_stands_in(name: str) -> None:
    assert b"</" not in asset(name)
    assert b"http:" not in asset(name).replace(b"http://www.w3.org", b"")


def test_the_page_nests_and_holds_both_languages_with_one_first(single: str) -> None:
    parsed = Parsed(single)
    mains = parsed.of("main")
    assert [(main.attributes["lang"], "hidden" in main.attributes) for main in mains] == [
        ("en", False),
        ("zh-Hans", True),
    ]
    assert parsed.of("html")[0].attributes["lang"] == "en"
    ids = [element.attributes["id"] for element in parsed.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = [link.attributes["href"] for link in parsed.of("a")]
    assert {str(target).removeprefix("#") for target in targets} <= set(ids)
    assert parsed.text_of("title") == parsed.text_of("h1")[:1]


def test_the_license_of_what_is_inlined_goes_with_it(single: str) -> None:
    assert "Copyright (c) 2022 Leon Sorokin" in single
    assert "THE SOFTWARE IS PROVIDED" in single


def test_headings_go_down_by_one(single: str) -> None:
    levels = [int(element.name[1]) for element in Parsed(single).elements if re.fullmatch("h[1-6]", element.name)]
    assert levels.count(1) == 2
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_chart_has_a_name_and_its_figures(single: str) -> None:
    parsed = Parsed(single)
    charts = [figure for figure in parsed.of("figure") if "data-plot" in figure.attributes]
    assert len(charts) == 2 * 7
    plots = [element for element in parsed.of("div") if element.attributes.get("class") == "plot"]
    assert len(plots) == len(charts)
    assert all(plot.attributes["role"] == "img" and plot.attributes["aria-label"] for plot in plots)
    assert len(parsed.of("details")) == len(charts)
    assert all(head.attributes.get("scope") in ("col", "row") for head in parsed.of("th"))


def test_the_policy_allows_this_style_and_these_scripts_and_nothing_else(single: str) -> None:
    (policy,) = (
        str(meta.attributes["content"]) for meta in Parsed(single).of("meta") if "http-equiv" in meta.attributes
    )
    contents = re.findall(r"<style>(.*?)</style>", single, re.DOTALL)
    contents += re.findall(r"<script>(.*?)</script>", single, re.DOTALL)
    assert len(contents) == 3
    style, *scripts = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in contents)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == f"'sha256-{style}'"
    assert rules["script-src"].split() == [f"'sha256-{script}'" for script in scripts]
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy


def test_nothing_carries_style_or_script_of_its_own_or_leads_elsewhere(single: str) -> None:
    for element in Parsed(single).elements:
        assert not {name for name in element.attributes if name.startswith("on") or name in ("style", "src")}
        assert not re.match(r"(?!data:,$|#)", str(element.attributes.get("href", "#")))


def test_a_report_of_long_and_many_requests_stays_small() -> None:
    """A 3-minute run of 100,000 requests, with failures of as many kinds as are shown."""
    draw = Random(2)
    records: list[Record] = []
    for i in range(100_000):
        sent = i * 239 / 100_000
        first = sent + draw.lognormvariate(-1.5, 0.6)
        last = first + draw.uniform(0.5, 3)
        records.append(answered(sent, [first, last], prompt_tokens=draw.randrange(10, 8_000), output_tokens=64))
    records += [failed(70 + i, 71 + i, status=503, error_detail=f"{i}: {'no slot ' * 24}"[:200]) for i in range(60)]
    run = run_of(records, phases(60, 240, 245))
    told = html(shown((run, records)))
    size = len(told.encode())
    assert 200_000 < size < MOST_BYTES, size


def spoilt(run: Run, records: Sequence[Record]) -> tuple[Run, list[Record]]:
    return hostile(run), hostile_records(records)


def test_no_text_of_a_server_becomes_markup() -> None:
    records, borders = steady(60)
    clean = run_of(records, borders)
    pair = spoilt(clean, records)
    assert pair[0].spec.target == pair[0].environment.model.id == HOSTILE
    told, parsed = html(shown(pair, pair)), Parsed(html(shown(pair, pair)))
    assert "<img" not in told
    assert "onload='" not in told
    assert not [element for element in parsed.elements if element.name in ("img", "iframe", "object", "a:")]
    assert len(parsed.of("script")) == 3
    shown_texts = " ".join(text for _, text in parsed.texts)
    assert "<img src=x onerror=" in shown_texts
    assert "\u202e" not in told
    (numbers,) = re.findall(r'<script type="application/json" id="numbers">(.*?)</script>', told, re.DOTALL)
    assert not set("<>&\u2028\u2029") & set(numbers)
    assert json.loads(numbers)["words"].keys() == {"en", "zh"}


@pytest.mark.parametrize("first", LANGUAGES)
def test_the_language_asked_for_stands_first(first: str) -> None:
    records, borders = steady(60)
    languages = sorted(LANGUAGES, key=lambda lang: lang != first)
    mains = Parsed(html(shown((run_of(records, borders), records)), languages)).of("main")
    assert [main.attributes["id"] for main in mains if "hidden" not in main.attributes] == [first]
