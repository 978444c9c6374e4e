"""The scripts of the schema as text: numbered, cut into statements, every column explained."""

from __future__ import annotations

import re

import pytest

from nilometer.archive import migrate


def test_statements_are_cut_where_they_end_and_nowhere_else() -> None:
    script = "-- one; two\nCREATE TABLE a (\n  b TEXT, -- c; d\n  e TEXT DEFAULT ';'\n);\nCREATE INDEX f ON a (b);\n"
    first, second = migrate.statements(script)
    assert first.endswith(");")
    assert "CREATE TABLE a" in first
    assert second == "CREATE INDEX f ON a (b);"


def test_a_script_that_ends_inside_a_statement_is_refused() -> None:
    with pytest.raises(RuntimeError, match="CREATE TABLE"):
        migrate.statements("CREATE TABLE a (\n")


def test_every_column_of_the_schema_has_a_comment() -> None:
    for script in migrate.migrations():
        columns = re.findall(r"^    ([a-z_]+) +(?:TEXT|INTEGER|REAL|BLOB)\b(.*)$", script, re.MULTILINE)
        assert columns
        assert [name for name, rest in columns if not re.search(r"-- \w", rest)] == []


def test_the_history_names_every_version() -> None:
    newest = migrate.migrations()[-1]
    assert re.findall(r"^-- (\d+)  ", newest, re.MULTILINE) == [str(i + 1) for i in range(len(migrate.migrations()))]
