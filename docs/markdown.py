"""A row of a table as Markdown has it."""

from __future__ import annotations


def row_of(*cells: str) -> str:
    """One line; a bar within a cell is escaped."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
