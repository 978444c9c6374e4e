"""An HTML page taken apart by the standard parser: its elements, that they nest, its text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"meta", "link", "br", "rect"}


class Element(NamedTuple):
    name: str
    attributes: dict[str, str | None]
    path: tuple[str, ...]


class Parsed(HTMLParser):
    """Feeds a page; `elements` in order, `text` by element name; raises where an end tag does not fit."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append(Element(tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1], data))

    def of(self, name: str) -> list[Element]:
        return [element for element in self.elements if element.name == name]

    def text_of(self, name: str) -> list[str]:
        return [text for where, text in self.texts if where == name]
