"""The tables that the parsers read are those of the grammars."""

from __future__ import annotations

from pathlib import Path

import pytest
from parser_tables import LANGUAGES, tables_text


@pytest.mark.parametrize("path", LANGUAGES, ids=lambda path: path.parent.name)
def test_the_tables_are_those_of_the_grammar(path: Path) -> None:
    same = path.read_text("utf-8") == tables_text(path)
    assert same, "after a change to grammar.lark: python tools/parser_tables.py"
