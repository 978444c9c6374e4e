"""The report in a real browser: it draws, loads nothing, runs nothing foreign, serves eyes, keys, readers, paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.unit.metrics.made import spec
from tests.unit.report.reported import HOSTILE, hostile, hostile_records, run_of, shown, steady

from nilometer.report.html_page import page
from nilometer.report.sweep import sweep_document
from nilometer.report.whole import Shown, report_document
from nilometer.text.i18n import LANGUAGES, Catalogue

from .browsing import NARROW, WIDE, Visit, browser

pytestmark = pytest.mark.xdist_group("chromium")

KINDS = ("one", "two", "group", "hostile")
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


def _of(kind: str) -> tuple[Shown, str | None]:
    records, borders = steady()
    run = run_of(records, borders)
    if kind == "two":
        slower, _ = steady(seed=2)
        return shown((run, records), (run_of(slower, borders, spec(concurrency=2), id="w3ye7uaaaaaa"), slower)), None
    if kind == "group":
        levels = [
            (run_of(records, borders, spec(concurrency=n), id=f"sw{n}aaaaaaaaa", group="g2xw", level=str(n)), records)
            for n in (1, 4, 8)
        ]
        return shown(*levels), "g2xw"
    if kind == "hostile":
        return shown((hostile(run), hostile_records(records)), (hostile(run), hostile_records(records))), None
    return shown((run, records)), None


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind, English first."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for kind in KINDS:
        of, group = _of(kind)
        catalogues = [Catalogue(lang) for lang in LANGUAGES]
        screens = [None if group is None else sweep_document(of.runs, group, words) for words in catalogues]
        documents = [report_document(of, words, screen) for words, screen in zip(catalogues, screens, strict=True)]
        made[kind] = folder / f"{kind}.html"
        made[kind].write_text(page(documents, of.drawn.plots, "0.1.0"), "utf-8")
    return made


@pytest.fixture(scope="module")
def opened(chrome: Browser, files: dict[str, Path]) -> Iterator[dict[str, Visit]]:
    """A visit of each page that several tests share; each test says what it wants to be shown."""
    visits = {kind: Visit(chrome, file) for kind, file in files.items()}
    yield visits
    for visit in visits.values():
        visit.close()


@pytest.mark.parametrize("kind", KINDS)
def test_it_loads_nothing_and_nothing_foreign_runs(opened: dict[str, Visit], kind: str) -> None:
    visit = opened[kind]
    visit.show("zh")
    visit.show("en")
    visit.page.hover("main:not([hidden]) .plot")
    visit.page.wait_for_timeout(50)
    assert (visit.requests, visit.errors) == ([], [])
    assert visit.ask("window.hit === undefined")
    assert visit.ask("document.querySelectorAll('img, iframe, object, embed').length") == 0
    if kind == "hostile":
        assert HOSTILE[:60] in visit.page.inner_text("main:not([hidden])")


def test_its_policy_stops_what_would_run_or_be_fetched(chrome: Browser, files: dict[str, Path]) -> None:
    with Visit(chrome, files["one"]) as visit:
        ran = visit.ask(
            """async () => {
              const script = document.createElement("script");
              script.textContent = "window.hit = 1";
              document.body.append(script);
              document.body.insertAdjacentHTML("beforeend", "<p id=p onclick='window.hit=2'>x</p>");
              document.getElementById("p").click();
              const reached = await fetch("http://127.0.0.1:9/").then(() => "reached", () => "refused");
              return [window.hit ?? null, reached];
            }"""
        )
        assert ran == [None, "refused"]
        assert len([error for error in visit.errors if "Content Security Policy" in error]) >= 3


@pytest.mark.parametrize(("kind", "charts"), [("one", 7), ("two", 12), ("group", 17)])
def test_every_chart_is_drawn(opened: dict[str, Visit], kind: str, charts: int) -> None:
    """More colours stand on each canvas than axes alone have."""
    drawn = (
        opened[kind]
        .show("zh")
        .ask(
            """() => [...document.querySelectorAll("main:not([hidden]) [data-plot]")].map((figure) => {
          const canvas = figure.querySelector("canvas");
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          const colours = new Set();
          for (let i = 0; i < pixels.length; i += 4)
            if (pixels[i + 3] > 200) colours.add(pixels[i] * 256 + pixels[i + 1]);
          return colours.size;
        })"""
        )
    )
    assert len(drawn) == charts
    assert min(drawn) > 3


def test_the_language_is_switched_by_pointer_and_by_keys(chrome: Browser, files: dict[str, Path]) -> None:
    with Visit(chrome, files["one"]) as visit:
        state = "() => [document.documentElement.lang, document.title, document.querySelector('main:not([hidden])').id]"
        assert visit.ask(state)[::2] == ["en", "en"]
        visit.page.click("text=中文")
        lang, title, main = visit.ask(state)
        assert (lang, main, title.startswith("压测报告")) == ("zh-Hans", "zh", True)
        assert visit.ask("document.querySelector('[data-language=zh]').getAttribute('aria-pressed')") == "true"
        visit.page.focus("[data-language=en]")
        visit.page.keyboard.press("Enter")
        assert visit.ask(state)[0] == "en"


def test_the_theme_follows_the_system_until_it_is_chosen(chrome: Browser, files: dict[str, Path]) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    with Visit(chrome, files["one"], color_scheme="dark") as visit:
        assert visit.ask(ground) == "rgb(20, 24, 29)"
        visit.page.click("#theme")
        assert visit.ask(ground) == "rgb(255, 255, 255)"
        assert visit.page.inner_text("#theme") == "Dark"


def test_a_chart_is_read_and_zoomed_by_keys(chrome: Browser, files: dict[str, Path]) -> None:
    with Visit(chrome, files["one"]) as visit:
        plot = visit.page.locator("main:not([hidden]) [data-plot=ttft-0]")
        plot.locator(".plot").focus()
        visit.page.keyboard.press("End")
        last = plot.locator(".readout").inner_text()
        visit.page.keyboard.press("Home")
        first = plot.locator(".readout").inner_text()
        assert first.startswith("-9.9") and " ms" in first
        assert last != first
        visit.page.keyboard.press("ArrowRight")
        assert plot.locator(".readout").inner_text() not in ("", first)
        whole = plot.locator("canvas").screenshot()
        visit.page.keyboard.press("+")
        visit.page.wait_for_timeout(50)
        assert plot.locator("canvas").screenshot() != whole
        visit.page.keyboard.press("0")
        visit.page.keyboard.press("Tab")
        assert visit.ask("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_screen_reader_finds_names_headings_and_tables(opened: dict[str, Visit], lang: str) -> None:
    for kind in ("one", "two", "group"):
        visit = opened[kind].show(lang)
        nameless = visit.ask(
            """() => [...document.querySelectorAll("a, button, summary, nav, [role=img], [role=region], [tabindex]")]
              .filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim()))
              .map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert nameless == []
        levels = visit.ask(
            """() => [...document.querySelectorAll("h1, h2, h3, h4")].filter((e) => e.checkVisibility())
              .map((e) => +e.tagName[1])"""
        )
        assert (levels[0], levels.count(1)) == (1, 1)
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert visit.ask("document.querySelectorAll('main:not([hidden]) table').length") > 5
        assert visit.ask("document.querySelectorAll('main:not([hidden])').length") == 1


CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor, alpha = parts(colour)[3] ?? 1;
      if (alpha === 1) return colour;
      if (alpha > 0) return "rgb(127, 127, 127)"; // half seen through: to be looked at
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("svg")) continue;
    const [high, low] = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.textContent.slice(0, 40)}`);
  }
  return faint;
}"""


@pytest.mark.parametrize("theme", THEMES)
def test_all_text_stands_out_from_its_ground(chrome: Browser, files: dict[str, Path], theme: str) -> None:
    with Visit(chrome, files["two"], color_scheme=theme) as visit:
        visit.ask("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert visit.ask(CONTRAST) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wider_than_the_screen(opened: dict[str, Visit], kind: str) -> None:
    for width, lang in product((NARROW, 700, WIDE), LANGUAGES):
        visit = opened[kind].show(lang, width)
        wide = visit.ask(
            """() => [...document.querySelectorAll("main:not([hidden]) *")]
              .filter((e) => e.checkVisibility())
              .filter((e) => !e.parentElement.closest(".scrolls, .uplot"))
              .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
              .map((e) => `${e.tagName}.${e.getAttribute("class")} ${e.textContent.slice(0, 40)}`)"""
        )
        over = visit.ask("document.documentElement.scrollWidth - innerWidth")
        assert (width, lang, over, wide) == (width, lang, 0, [])


def test_without_scripts_the_first_language_is_there_with_its_figures(chrome: Browser, files: dict[str, Path]) -> None:
    with Visit(chrome, files["one"], java_script_enabled=False) as visit:
        assert visit.page.is_visible("main#en")
        assert not visit.page.is_visible("main#zh")
        assert not visit.page.is_visible("#controls")
        assert visit.page.is_visible("text=" + Catalogue("en").say("screen.page.unscripted"))
        visit.page.click("main#en [data-plot=ttft-0] summary")
        assert visit.page.is_visible("main#en [data-plot=ttft-0] table")


def test_paper_is_light_and_the_charts_fit_it(chrome: Browser, files: dict[str, Path]) -> None:
    with Visit(chrome, files["one"], color_scheme="dark") as visit:
        width = (
            "() => Math.max(...[...document.querySelectorAll('main:not([hidden]) .uplot')].map((e) => e.clientWidth))"
        )
        before = visit.ask(width)
        visit.ask("dispatchEvent(new Event('beforeprint'))")
        visit.page.emulate_media(media="print", color_scheme="dark")
        visit.page.wait_for_timeout(100)
        assert visit.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert visit.ask(width) <= 680
        assert not visit.page.is_visible("#controls")
        visit.page.emulate_media(media="screen", color_scheme="dark")
        visit.ask("dispatchEvent(new Event('afterprint'))")
        visit.page.wait_for_timeout(100)
        assert (visit.ask(width), visit.errors) == (before, [])
        assert visit.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
