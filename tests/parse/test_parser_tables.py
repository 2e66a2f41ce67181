"""The tables that the parser reads are those of the grammar."""

from __future__ import annotations

from parser_tables import tables_text

from celc.parse.tables import TABLES


def test_the_tables_are_those_of_the_grammar() -> None:
    same = TABLES.read_text("utf-8") == tables_text()
    assert same, "after a change to grammar.lark: python tools/parser_tables.py"
