"""What a diagnosis can name has its words: causes, the figures they stand on, the remedies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from nilometer.diagnose.group import FIGURES
from nilometer.diagnose.level import FEATURES
from nilometer.text.i18n import LANGUAGES, Catalogue

ROOT = Path(__file__).parents[2]
CAUSES = ROOT / "src" / "nilometer" / "diagnose" / "causes"
MOST = {"en": 48, "zh": 26}
"""Characters of a figure's name: three of them stand in a line."""


def _made() -> set[str]:
    """The figures that rules make of others."""
    calls = (
        node
        for path in CAUSES.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    return {
        call.args[0].value
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in ("made", "Look")
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_figure_of_a_diagnosis_has_its_words(lang: str) -> None:
    words = Catalogue(lang)
    made = _made()
    assert {"lost_share", "queue_over_wait"} <= made
    names = {feature.name for feature in FEATURES} | set(FIGURES) | {"line_slope", "line_r"} | made
    assert sorted(name for name in names if f"evidence.{name}" not in words) == []
    assert [name for name in names if len(words.say(f"evidence.{name}")) > MOST[lang]] == []
