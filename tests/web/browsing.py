"""A real Chromium for the tests of pages: no network, every request, error and hit of the page noted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
)
WIDE, NARROW = 1280, 390


def chromium() -> str:
    """Where it is. Missing it fails in CI and skips elsewhere."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        told = "no Chromium on PATH: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser of its own, ended with the block."""
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=list(_QUIET))
        try:
            yield started
        finally:
            started.close()


class Visit:
    """One page opened from a file, and what it did: `requests` beyond itself, `errors` of scripts and of its policy."""

    def __init__(self, started: Browser, file: Path, *, width: int = WIDE, **settings: Any) -> None:
        self._context = started.new_context(viewport={"width": width, "height": 900}, **settings)
        self.page: Page = self._context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))
        self.page.goto(file.as_uri())
        self.requests.remove(file.as_uri())

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._context.close()

    def show(self, lang: str, width: int = WIDE) -> Visit:
        """This page in one language at one width, drawn."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.click(f"[data-language={lang}]")
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self

    def ask(self, script: str, argument: object = None) -> Any:
        """The value of an expression in the page."""
        return self.page.evaluate(script, argument)
