"""`nilo scrape URL|FILE`: what a server's metrics page says, in terms that are the same for every engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nilometer.core.errors import DataError, SpecError

from .session import Session, shared_options
from .spec_options import INSECURE, headers_given, resolve
from .values import HEADER, WAIT

if TYPE_CHECKING:
    from nilometer.metrics.server_figures import ServerFigures
    from nilometer.sources.metrics_page import Found


@click.command()
@click.argument("place", metavar="URL|FILE")
@click.option("--before", metavar="FILE", help="An earlier page of the same server: figures are of the time between.")
@click.option("--elapsed", type=WAIT, help="How long before: 60s, 5m. Without it every rate is unknown.")
@click.option("--header", "headers", type=HEADER, multiple=True, help="Header K:V; may repeat.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the API key.")
@click.option("--proxy", metavar="URL", help="HTTP proxy; proxy variables are ignored unless given.")
@INSECURE
@click.option("--patience", type=WAIT, default="10s", show_default=True, help="Longest wait for one answer.")
@shared_options
def command(place: str, session: Session, before: str | None, elapsed: float | None, **given: Any) -> None:
    """A server's metrics page in common terms: requests, KV cache, tokens, latencies; what a page does not tell is `-`.

    Known are the pages of vLLM, SGLang, TGI, llama.cpp, TensorRT-LLM (its own server, and Triton) and what Ollama
    tells. URL is a server's address, with or without /v1, or that of the page itself; FILE a page that was kept.
    Counts and latencies are those since the server's start; with --before those since that page.
    """
    from nilometer.report.scrape import scrape_document

    from .scrape_machine import scrape_object

    if elapsed is not None and before is None:
        raise SpecError("elapsed_alone")
    earlier = None if before is None else _file(before)
    found = _found(place, session, given)
    figures = _figures(found, earlier, elapsed)
    session.emit(scrape_object(figures), lambda: session.render(scrape_document(figures, found.place, session.words)))


def _found(place: str, session: Session, given: dict[str, Any]) -> Found:
    """The page at an address; what is none is a file."""
    patience_s: float = given.pop("patience")
    if "://" not in place:
        return _file(place)
    from nilometer.core.mask import Mask
    from nilometer.core.spec import secrets_of
    from nilometer.sources.metrics_page import read_url

    spec = resolve(place, given)
    headers = headers_given(spec, given, os.environ)
    session.mask = Mask(secrets_of(spec, headers))
    return read_url(
        place, headers=dict(headers), insecure=spec.http.insecure, proxy=spec.http.proxy, timeout_s=patience_s
    )


def _file(name: str) -> Found:
    from nilometer.sources.metrics_page import read_file

    return read_file(Path(name).expanduser())


def _figures(found: Found, earlier: Found | None, elapsed_s: float | None) -> ServerFigures:
    from nilometer.metrics.server_figures import figures

    if earlier is None:
        return found.beside(figures(found.page))
    before, after = earlier.beside(figures(earlier.page)), found.beside(figures(found.page))
    if before.engine != after.engine or len({before.dialect, after.dialect} - {None}) > 1:
        engine, other = (
            " ".join(dict.fromkeys(filter(None, (one.engine, one.dialect)))) or "-" for one in (before, after)
        )
        raise DataError("metrics_pages_differ", before=earlier.place, engine=engine, after=found.place, other=other)
    return found.beside(figures(found.page, earlier.page, elapsed_s))
