"""Texts that nobody would write by hand: each gets an answer or a CelError, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.parse import syntax
from celc.parse.machine import Machine
from celc.parse.mistakes.tokens import MAX_ERRORS
from celc.parse.parser import MAX_DEPTH, parse
from celc.parse.queries import QueryBuilder
from celc.parse.tables import END, grammar
from celc.parse.tokens import MAX_TOKENS, Token, tokenize

CPU_LIMIT = 60.0
"""Seconds. Each text here takes up to five; work that grows with the square would take minutes or
hours, so a busy machine fails no test."""

MEGABYTE = 1_000_000
GARBAGE = 100_000


def outcome(text: str) -> syntax.File | list[str]:
    """The tree, or the codes of what is wrong; renders the messages as well."""
    try:
        return parse(Source("q.cel", text))
    except CelError as problem:
        str(problem)
        return [diagnostic.code for diagnostic in problem.diagnostics]


def in_time(text: str) -> syntax.File | list[str]:
    grammar()
    start = time.process_time()
    result = outcome(text)
    assert time.process_time() - start < CPU_LIMIT
    return result


def formula_of(result: syntax.File | list[str]) -> syntax.Formula:
    assert isinstance(result, syntax.File), result
    return result.queries[0].formula


def condition_of(result: syntax.File | list[str]) -> syntax.Condition:
    tree = formula_of(result)
    assert isinstance(tree, syntax.Filter)
    return tree.condition


# --- large and right ------------------------------------------------------------------------------


def test_ten_thousand_parentheses() -> None:
    tree = formula_of(in_time("(" * 10_000 + "A" + ")" * 10_000))
    assert isinstance(tree, syntax.EventAtom)
    assert (tree.span.start, tree.span.end) == (0, 20_001)


def test_parentheses_around_values() -> None:
    tree = condition_of(in_time("A FILTER " + "(" * 9_999 + "A.x" + ")" * 9_999 + " > 1"))
    assert isinstance(tree, syntax.Comparison)
    assert isinstance(tree.left, syntax.Attribute)


def test_long_sequence() -> None:
    tree = formula_of(in_time(" ; ".join(["A"] * 5_001)))
    assert isinstance(tree, syntax.Sequence)
    assert len(tree.links) == 5_000


def test_long_disjunction() -> None:
    tree = formula_of(in_time(" OR ".join(["A"] * 5_001)))
    assert isinstance(tree, syntax.Disjunction)
    assert len(tree.operands) == 5_001


def test_long_conjunction() -> None:
    tree = formula_of(in_time(" ALL ".join(["A"] * 5_001)))
    assert isinstance(tree, syntax.Conjunction)
    assert len(tree.joints) == 5_000


@pytest.mark.parametrize(
    ("operator", "kind"), [("OR", syntax.OrCondition), ("AND", syntax.AndCondition)]
)
def test_long_condition(
    operator: str, kind: type[syntax.OrCondition] | type[syntax.AndCondition]
) -> None:
    text = f" {operator} ".join(["A.x = 1"] * 5_001)
    tree = condition_of(in_time("A FILTER " + text))
    assert isinstance(tree, kind)
    assert len(tree.operands) == 5_001


def test_long_list() -> None:
    text = "A FILTER A.x IN (" + ", ".join(map(str, range(100_000))) + ")"
    tree = condition_of(in_time(text))
    assert isinstance(tree, syntax.InList)
    assert [item.value for item in tree.items if isinstance(item, syntax.IntegerLiteral)] == list(
        range(100_000)
    )


def test_megabyte_of_one_name() -> None:
    assert formula_of(in_time("A" * MEGABYTE)) == formula_of(outcome("A" * MEGABYTE))


def test_megabyte_of_space_and_comments() -> None:
    assert formula_of(in_time("A" + " " * MEGABYTE))
    assert formula_of(in_time("A" + "/**/" * (MEGABYTE // 4)))
    assert formula_of(in_time("A" + "--\n" * (MEGABYTE // 3)))


def test_megabyte_of_text() -> None:
    tree = condition_of(in_time("A FILTER A.x = '" + "''" * (MEGABYTE // 2) + "'"))
    assert isinstance(tree, syntax.Comparison)
    assert isinstance(tree.right, syntax.TextLiteral)
    assert tree.right.value == "'" * (MEGABYTE // 2)


# --- large and wrong ------------------------------------------------------------------------------


def test_megabyte_of_a_chain() -> None:
    assert in_time("A;" * (MEGABYTE // 2)) == ["too-long"]


@pytest.mark.long
def test_the_longest_text() -> None:
    links = MAX_TOKENS // 2 - 1
    tree = formula_of(in_time("A" + ";A" * links))
    assert isinstance(tree, syntax.Sequence)
    assert len(tree.links) == links
    assert in_time("A" + ";A" * (links + 1)) == ["too-long"]


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("(" * 10_000 + "A", ["unclosed-bracket"]),
        ("A" + ")" * 10_000, ["unopened-bracket"]),
        ("(" * MEGABYTE, ["too-long"]),
        ("A FILTER A.x = " + "1" * MEGABYTE, ["long-number"]),
        ("'" * (MEGABYTE + 1), ["unclosed-text"]),
        ("`" * (MEGABYTE + 1), ["unclosed-name"]),
        ("A /*" + "/" * MEGABYTE, ["unclosed-comment"]),
        ("A /*" + "*" * MEGABYTE, ["unclosed-comment"]),
        ("!" * 5_000 + "A", ["negation-at-end", "negation-twice"]),
        ("A FILTER " + "NOT " * 5_000 + "A.x = 1", ["too-deep"]),
        ("A FILTER " + "- " * 5_000 + "A.x = 1", ["too-deep"]),
        ("A" + "+" * 5_000, ["too-deep"]),
        ("NXT(" * 5_000 + "A" + ")" * 5_000, ["too-deep"]),
        ("A FILTER " + "+".join(["A.x"] * 5_000) + " = 1", ["too-deep"]),
        ("A FILTER " + "ABS(" * 5_000 + "A.x" + ")" * 5_000 + " = 1", ["too-deep"]),
        ("SELECT " + "-" + "+x.a" * 5_000 + " AS b WHERE A", ["too-deep"]),
        ("é" * MEGABYTE + "\u200b", ["bad-character"]),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_large_and_wrong(text: str, codes: list[str]) -> None:
    assert in_time(text) == codes


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "text",
    [
        "#$%^&" * (GARBAGE // 5),
        '"' * (GARBAGE + 1),
        "".join(chr(33 + i * 7_919 % 94) for i in range(GARBAGE)),
        "".join(chr(i * 7_919 % 0xD000) for i in range(GARBAGE)),
        "QUERY a: " * (GARBAGE // 9),
        "SELECT * WHERE A ; ( " * (GARBAGE // 21),
        "A FILTER a = 1" + " OR a = 1" * (GARBAGE // 9),
        "1a " * (GARBAGE // 3),
        "SELECT * WHERE A WITHIN " + "5 apples " * (GARBAGE // 9),
    ],
    ids=lambda value: value[:12].encode("unicode_escape").decode(),
)
def test_garbage(text: str) -> None:
    result = in_time(text)
    assert isinstance(result, list)
    # One more says that the text is too long.
    assert 1 <= len(result) <= MAX_ERRORS + 1


@pytest.mark.parametrize(
    "nested",
    [
        lambda levels: "A" + "+" * levels,
        lambda levels: "NXT(" * levels + "A" + ")" * levels,
        lambda levels: "(A ; " * levels + "A" + ")" * levels,
        lambda levels: "A FILTER " + "NOT " * (levels - 2) + "A.x = 1",
        lambda levels: "A FILTER A.x" + "+1" * (levels - 2) + " = 1",
    ],
)
def test_depth(nested: Callable[[int], str]) -> None:
    assert isinstance(outcome(nested(MAX_DEPTH)), syntax.File)
    assert outcome(nested(MAX_DEPTH + 1)) == ["too-deep"]


# --- strange characters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "character",
    ["\0", "\x1b", "\x7f", "\u202e", "\u200b", "\ud800", "$", "\\", "²", "🔥"],
    ids=ascii,
)
def test_characters_outside_quotes(character: str) -> None:
    for text in (f"A {character} ; B", f"A{character} ; B", f"A ; {character}B", character):
        with pytest.raises(CelError) as caught:
            parse(Source("q.cel", text))
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "bad-character"
        assert diagnostic.span.start == text.index(character)
        assert character.isprintable() or character not in str(caught.value)


def test_surrogates_are_errors_in_quotes_too() -> None:
    assert outcome("A AS `\ud800`") == ["bad-character"]
    assert outcome("A FILTER A.x = '\udc00'") == ["bad-character"]


# --- anything at all ------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=()))
SIGNS = [
    *(";", ":", ":+", ",", ".", "!", "(", ")", "[", "]", "{", "}", "->", "+", "-", "*", "/", "%"),
    *("=", "==", "!=", "<>", "<", "<=", ">", ">="),
]
VALUES = ["A", "B", "x", "`a b`", "1", "1.5", "'text'", "MINUTES", "COUNT", "INT"]
BROKEN = ['"x"', "&&", "#", "'", "`", "/*", "--", "1x", "\n", "é", "\u200b"]
WORDS = sorted(grammar().keywords)
# Pieces that belong together, so that soup gets further than a few tokens.
PIECES = [
    "CREATE STREAM S { EVENT A { id: INT } }",
    "QUERY q:",
    "SELECT * FROM S WHERE",
    "SELECT x[a], MAX(x.a) AS m WHERE",
    "A AS x",
    "(A ; !B ; C)+",
    "FILTER x.a > 1",
    "x[a = 1 OR",
    "WITHIN 3 EVENTS",
    "PARTITION BY a",
]
SOUP = st.lists(st.sampled_from([*SIGNS, *VALUES, *WORDS, *PIECES]), max_size=30)
BROKEN_SOUP = st.lists(st.sampled_from([*SIGNS, *VALUES, *WORDS, *PIECES, *BROKEN]), max_size=30)


@given(ANY_TEXT)
def test_any_text(text: str) -> None:
    outcome(text)


@given(BROKEN_SOUP, st.sampled_from(["", " ", "\n"]))
def test_token_soup(pieces: list[str], between: str) -> None:
    outcome(between.join(pieces))


TERMINALS = sorted(
    {*grammar().keywords.values(), *grammar().patterns, "ATTRIBUTE", END}
    - grammar().ignored
    # Where OR can stand, it is meant.
    - {"JOIN"}
)


@given(SOUP)
def test_what_is_expected_could_have_followed(pieces: list[str]) -> None:
    diagnostics = Diagnostics(Source("q.cel", " ".join(pieces)))
    tokens = tokenize(diagnostics.source, diagnostics)
    failed = Machine(QueryBuilder(diagnostics)).run(tokens, 0)
    if failed is None:
        return
    machine = Machine(QueryBuilder(diagnostics))
    machine.run(tokens, 0, failed)
    accepted = machine.accepted()
    before = tokens[:failed]
    for token in before:
        # Names are to stay names, whatever follows them.
        token.text = "A" if token.type == "NAME" else token.text
    for terminal in TERMINALS:
        again = Machine(QueryBuilder(diagnostics))
        tried = [*before, Token(terminal, "1", 0, 0), Token(END, "", 0, 0)]
        fits = again.run(tried, 0, len(before) + 1) is None
        assert fits == (terminal in accepted), terminal
