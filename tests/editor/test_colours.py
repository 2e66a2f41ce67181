"""Colours: the Pygments lexers and the TextMate grammars know every word of the languages."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from all_queries import queries_of_the_repository
from golden_files import compare
from places import ROOT
from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token

from celc.editor import words
from celc.editor.languages import Dialect
from celc.editor.pygments_lexer import CelLexer, MatchRecognizeLexer
from celc.editor.textmate import grammar_path, grammar_text
from celc.parse.tables import grammar
from celc.resolve.types.own_aggregates import IN_AGGREGATES
from celc.row_pattern.expressions import FUNCTIONS as ROW_FUNCTIONS
from celc.row_pattern.parser import keywords

DIALECTS: tuple[Dialect, ...] = ("cel", "match_recognize")
KEYWORDS = {"cel": frozenset(grammar().keywords), "match_recognize": keywords()}
LEXERS: dict[str, Lexer] = {"cel": CelLexer(), "match_recognize": MatchRecognizeLexer()}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_grammars_have_the_keywords_that_the_tests_think(dialect: Dialect) -> None:
    assert len(KEYWORDS[dialect]) > 55
    assert {"SELECT", "AND", "NULL"} <= KEYWORDS[dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_keyword_has_a_sentence_that_says_what_it_means(dialect: Dialect) -> None:
    said = words.OF_CEL if dialect == "cel" else words.OF_ROW_PATTERNS
    assert said.keys() == KEYWORDS[dialect]
    assert all(text.endswith((".", ")")) for text in said.values())


def test_each_function_has_a_sentence() -> None:
    from celc.diagnostics.messages.functions import FUNCTIONS

    assert words.FUNCTIONS.keys() == set(FUNCTIONS)
    assert words.IN_AGGREGATES.keys() == set(IN_AGGREGATES)
    assert words.ROW_FUNCTIONS.keys() == set(ROW_FUNCTIONS)


# --- Pygments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("spelled", [str.upper, str.lower])
def test_pygments_knows_every_keyword(dialect: Dialect, spelled: Any) -> None:
    for word in KEYWORDS[dialect]:
        ((kind, text),) = [
            one for one in LEXERS[dialect].get_tokens(spelled(word)) if one[1].strip()
        ]
        assert text == spelled(word)
        assert kind in Keyword or kind in Operator, word


def test_the_entry_points_lead_to_the_lexers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {}
    for name, value in project["entry-points"]["pygments.lexers"].items():
        module, _, attribute = value.partition(":")
        found[name] = getattr(importlib.import_module(module), attribute)
    assert found == {"celc": CelLexer, "match_recognize": MatchRecognizeLexer}


def test_a_text_of_the_other_language_with_this_ending_is_not_taken_for_cel() -> None:
    declared = "CREATE STREAM S { EVENT A { x: INT } }\nSELECT * FROM S WHERE A"
    assert CelLexer.analyse_text(declared) == 0.9
    assert CelLexer.analyse_text("a.b == 'c' && d") == 0.0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pygments_colours_every_query_without_an_error_and_without_a_change(
    dialect: Dialect,
) -> None:
    texts = [text for _, one, text in queries_of_the_repository() if one == dialect]
    for text in texts[::12]:
        tokens = list(LEXERS[dialect].get_tokens_unprocessed(text))
        assert "".join(part for _, _, part in tokens) == text
        assert not [part for _, kind, part in tokens if kind is Token.Error], text


def test_pygments_tells_words_apart_by_their_place() -> None:
    text = "SELECT first[a] WHERE A AS last FILTER last.to > MAX(x.limit)"
    text += " AND x = DATE '2026-01-01' -- c"
    kinds = {part: kind for kind, part in CelLexer().get_tokens(text)}
    assert kinds["first"] is kinds["last"] is kinds["A"] is Name
    assert kinds["to"] is kinds["limit"] is Name.Attribute
    assert kinds["MAX"] is Name.Builtin
    assert kinds["DATE"] is Keyword
    assert kinds["'2026-01-01'"] is String.Single
    assert kinds["-- c"] is Comment.Single
    window = {part: kind for kind, part in CelLexer().get_tokens("WITHIN 10 MINUTES [ts]")}
    assert window["10"] is Number.Integer
    assert window["MINUTES"] is Keyword.Constant
    declared = {part: kind for kind, part in CelLexer().get_tokens("EVENT A { d: DATE }")}
    assert declared["DATE"] is Keyword.Type


# --- TextMate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_golden_textmate_grammars_are_made_of_the_grammars(dialect: Dialect, update: bool) -> None:
    compare(grammar_path(dialect), grammar_text(dialect), update)


def _scopes(dialect: Dialect, text: str) -> Iterator[tuple[str, str]]:
    """The words of a line and their scopes: at each place the first pattern that matches there."""
    patterns = json.loads(grammar_path(dialect).read_text("utf-8"))["patterns"]
    place = 0
    while place < len(text):
        for pattern in patterns:
            found = re.compile(pattern.get("match", pattern.get("begin"))).match(text, place)
            if found and found.group():
                end = found.end()
                if "end" in pattern:
                    end = re.compile(pattern["end"]).search(text, end).end()  # type: ignore[union-attr]
                yield text[place:end], pattern["name"].rpartition(".")[0]
                place = end
                break
        else:
            word = re.compile(r"\w+|.").match(text, place)
            assert word is not None
            place = word.end()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_textmate_grammars_know_every_keyword(dialect: Dialect) -> None:
    for word in KEYWORDS[dialect]:
        for spelled in (word, word.lower()):
            ((text, scope),) = _scopes(dialect, spelled)
            assert text == spelled
            assert scope.startswith(("keyword.", "constant.", "storage.")), word


def test_textmate_grammars_tell_words_apart_by_their_place() -> None:
    text = "WHERE A AS x FILTER x.limit > COUNT(x) AND x.d = DATE '2026' WITHIN 10 MINUTES -- DATE"
    scopes = dict(_scopes("cel", text))
    assert scopes["limit"] == "variable.other.member"
    assert scopes["COUNT"] == "support.function"
    assert scopes["DATE"] == "keyword.control"
    assert scopes["'2026'"] == "string.quoted.single"
    assert scopes["MINUTES"] == "keyword.other.unit"
    assert scopes["-- DATE"] == "comment.line.double-dash"
    assert dict(_scopes("cel", "EVENT A { d: DATE }"))["DATE"] == "storage.type"
    rows = dict(_scopes("match_recognize", "PATTERN (A B+) WITHIN INTERVAL '2' HOURS"))
    assert rows["PATTERN"] == rows["INTERVAL"] == "keyword.control"
    assert rows["HOURS"] == "keyword.other.unit"
