"""A Document in each language and the numbers of its charts as one self-contained HTML page.

Nothing is loaded: style, scripts and numbers stand in the file, and its policy allows nothing else. The language that
was asked for shows also where no script runs.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from nilometer.text.i18n import Catalogue

from .charts import Plot
from .document import Charts, Document, Heading
from .html_blocks import body, label
from .looks import look, patterns
from .markup import Html, element, join, text

HTML_LANG = {"en": "en", "zh": "zh-Hans"}
_ESCAPED = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_NO_CODE = re.compile("[<>&\u2028\u2029]")


def page(documents: Sequence[Document], plots: Mapping[str, Plot], version: str) -> str:
    """The whole file. The first document shows at first; each is there in its own language.

    `plots` are what the charts of the documents name; others are left out.
    """
    first = documents[0]
    catalogues = {document.lang: Catalogue(document.lang) for document in documents}
    style = join(*map(_asset, ("uPlot.css", "page.css")))
    scripts = [Html(f"/*\n{_asset('uPlot.LICENSE')}\n*/\n{_asset('uPlot.js')}"), _asset("page.js")]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, scripts)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content=f"nilometer {version}"),
        element("link", rel="icon", href="data:,"),
        element("title", text(_title(first))),
        element("style", style),
    )
    mains = [_main(document, catalogues[document.lang], document is not first, version) for document in documents]
    whole = element(
        "body",
        _header(documents, catalogues[first.lang]),
        patterns(),
        *mains,
        element("script", _numbers(documents, catalogues, plots), type="application/json", id="numbers"),
        *(element("script", script) for script in scripts),
    )
    return f"<!doctype html>\n{element('html', head, whole, lang=HTML_LANG[first.lang])}\n"


def _policy(style: Html, scripts: Sequence[Html]) -> str:
    """Only this style and these scripts, by their hashes; no connection of any kind."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> Html:
    """A file of the page that is part of this package; it holds no `</`, which would end the element around it."""
    return Html(resources.files(__package__).joinpath("page", name).read_text("utf-8").strip())


def _header(documents: Sequence[Document], words: Catalogue) -> Html:
    """What the page itself can do; hidden until its script runs."""
    languages = [
        element(
            "button",
            text(Catalogue(document.lang).say("screen.page.language")),
            type="button",
            lang=HTML_LANG[document.lang],
            data_language=document.lang,
            aria_pressed="true" if i == 0 else "false",
        )
        for i, document in enumerate(documents)
    ]
    theme = element("button", text(words.say("screen.page.dark")), type="button", id="theme")
    group = element("div", *languages, role="group", id="languages", aria_label=words.say("screen.page.languages"))
    return element(
        "header",
        element("a", text(words.say("screen.page.skip")), href=f"#{documents[0].lang}", class_="skip", id="skip"),
        element("span", text("nilometer"), class_="brand"),
        element("div", group, theme, class_="controls", id="controls", hidden=True),
    )


def _main(document: Document, words: Catalogue, is_hidden: bool, version: str) -> Html:
    made = element("p", text(words.say("screen.page.made", version=version)), class_="made")
    return element(
        "main",
        body(document, words),
        made,
        lang=HTML_LANG[document.lang],
        id=document.lang,
        tabindex="-1",
        hidden=is_hidden,
    )


def _title(document: Document) -> str:
    return next((block.text for block in document.blocks if isinstance(block, Heading)), "nilometer")


def _numbers(documents: Sequence[Document], catalogues: Mapping[str, Catalogue], plots: Mapping[str, Plot]) -> Html:
    """What the script draws from, as JSON in which nothing can end the element around it."""
    named = {chart.plot for block in documents[0].blocks if isinstance(block, Charts) for chart in block.rows}
    used = {name: plot for name, plot in plots.items() if name in named}
    marks = {one.look for plot in used.values() for part in (plot.series, plot.levels, plot.bands) for one in part}
    numbers = {
        "plots": used,
        "looks": {name: look(name)._asdict() for name in sorted(marks)},
        "words": {document.lang: _words(document, catalogues[document.lang]) for document in documents},
    }
    return Html(_NO_CODE.sub(lambda found: _ESCAPED[found.group()], msgspec.json.encode(numbers).decode()))


def _words(document: Document, words: Catalogue) -> dict[str, object]:
    """What the script says: titles, axes, names of marks."""
    charts = [chart for block in document.blocks if isinstance(block, Charts) for chart in block.rows]
    return {
        "lang": HTML_LANG[document.lang],
        "title": _title(document),
        **{name: words.say(f"screen.page.{name}") for name in ("dark", "light", "skip", "languages")},
        "charts": {
            chart.plot: {
                "x": label(chart.x, words),
                "y": label(chart.y, words),
                "units": [chart.x.unit, chart.y.unit],
                "names": {key.look: key.name for key in chart.keys},
            }
            for chart in charts
            if chart.plot is not None
        },
    }
