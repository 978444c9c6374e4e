"""The colours of the page: text reads at 4.5:1 and marks at 3:1 on what they stand on, in the light and in the dark.

Contrast as in WCAG 2.2, success criteria 1.4.3 and 1.4.11.
"""

from __future__ import annotations

import re
from importlib import resources

import pytest

from nilometer.report.looks import LOOKS, look

CSS = resources.files("nilometer.report").joinpath("page", "page.css").read_text("utf-8")
TEXT = [
    ("ink", "paper"),
    ("ink", "panel"),
    ("ink", "trouble-ground"),
    ("ink", "good-ground"),
    ("muted", "paper"),
    ("muted", "band"),
    ("link", "paper"),
    ("trouble", "paper"),
    ("paper", "ink"),
    ("paper", "trouble"),
]
MARKS = ["c1", "c2", "c3", "c4", "c5", "muted", "trouble", "lag", "connect", "first", "decode", "rest"]


def themes() -> dict[str, dict[str, str]]:
    """Name of the theme -> its variables."""
    blocks = re.findall(r"(:root[^{]*)\{([^}]*)\}", CSS)
    found = {}
    for selector, body in blocks:
        variables = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", body))
        found[selector.strip()] = variables
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_reckoned_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_each_theme_has_the_same_colours_by_name_and_the_dark_one_is_the_same_both_ways() -> None:
    light, dark, system = themes().values()
    assert light.keys() == dark.keys()
    assert dark == system


@pytest.mark.parametrize("theme", [0, 1])
def test_text_and_marks_stand_out(theme: int) -> None:
    colours = list(themes().values())[theme]
    faint = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in TEXT}
    assert {pair: ratio for pair, ratio in faint.items() if ratio < 4.5} == {}
    marks = {(mark, ground): contrast(colours[mark], colours[ground]) for mark in MARKS for ground in ("paper", "band")}
    assert {pair: ratio for pair, ratio in marks.items() if ratio < 3} == {}


def test_every_mark_has_its_colour_and_no_two_lines_look_alike() -> None:
    light = next(iter(themes().values()))
    assert {one.colour for one in LOOKS.values()} - {"whole"} <= light.keys()
    lines = [look(f"run{i}") for i in range(6)]
    assert len({line.dash for line in lines}) == len(lines)
