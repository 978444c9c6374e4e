"""The reference pages are those that the code makes: `make docs` writes them anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", ""), "run `make docs` and commit"


def test_every_page_has_its_twin_in_the_other_language() -> None:
    names = {path.name for path in (ROOT / "docs" / "reference").glob("*.md")}
    english = {name for name in names if not name.endswith(".zh-CN.md")}
    assert names == english | {name.replace(".md", ".zh-CN.md") for name in english}
    assert len(english) >= 6
