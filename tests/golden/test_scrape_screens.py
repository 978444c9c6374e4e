"""The screen of a metrics page in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.test_screens import hold

from nilometer.metrics.engine_pages import FAMILIES
from nilometer.metrics.pages import Page, read
from nilometer.metrics.server_figures import Loaded, ServerFigures, figures
from nilometer.report.scrape import scrape_document
from nilometer.text.i18n import LANGUAGES, Catalogue

CASES = Path(__file__).parents[1] / "cases" / "metrics"


def page(name: str) -> Page:
    return read((CASES / f"{name}.prom").read_text("utf-8"), FAMILIES)


SHOWN = {
    "scrape_vllm_two_engines": figures(page("m02_vllm_v1_two_engines")),
    "scrape_tgi": figures(page("m06_tgi")),
    "scrape_llamacpp": figures(page("m07_llamacpp")),
    "scrape_between": figures(page("m03_delta_after"), page("m03_delta_before"), 60.0),
    "scrape_ollama": ServerFigures(
        engine="ollama", dialect="api/ps", engines=1, loaded=[Loaded(model="qwen2.5:7b", bytes=5_137_025_024)]
    ),
    "scrape_unknown": figures(read("go_goroutines 7\nenvoy_requests_total 3\n", FAMILIES)),
}


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", SHOWN)
def test_a_page(name: str, lang: str) -> None:
    hold(name, scrape_document(SHOWN[name], "page.prom", Catalogue(lang)))
