"""Which words are keywords and which are names, and what may stand between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import (
    XA,
    A,
    B,
    S,
    attribute,
    called,
    codes,
    compared,
    computed,
    condition,
    either,
    event,
    formula,
    integer,
    labelled,
    name,
    names,
    parsed,
    query,
    repeated,
    sequence,
    text_literal,
    value,
)

from celc.editor.trees import same_tree
from celc.parse import syntax
from celc.parse.tables import grammar

# --- words and names ------------------------------------------------------------------------------

KEYWORDS = sorted(grammar().keywords)
RESERVED = sorted(grammar().reserved)
FREE = sorted(set(KEYWORDS) - set(RESERVED))


def test_the_reserved_words_are_those_that_the_grammar_file_lists() -> None:
    path = Path(syntax.__file__).with_name("grammar.lark")
    listed = path.read_text(encoding="utf-8").split("Reserved:")[1].split("(the terminals")[0]
    assert sorted(listed.replace("//", " ").split()) == RESERVED


@pytest.mark.parametrize("word", [*FREE, "first", "Count", "minutes", "type", "abs", "int"])
def test_other_words_are_labels_and_types(word: str) -> None:
    assert formula(f"A AS {word}") == labelled(A, word)
    assert formula(f"{word} ; {word} : {word}+") == sequence(
        event(word), (";", event(word)), (":", repeated(event(word)))
    )
    assert condition(f"{word}.a = 1") == compared(attribute(word, "a"), "=", integer(1))
    assert query(f"SELECT x, {word} FROM {word} WHERE A").streams == names(word)
    assert parsed(f"QUERY {word}: SELECT * WHERE A").queries[0].name == name(word)


@pytest.mark.parametrize("word", RESERVED)
def test_reserved_words_need_backquotes(word: str) -> None:
    assert codes(f"A ; B AS {word}") == ["reserved-word"]
    assert formula(f"A ; B AS `{word}`") == sequence(A, (";", labelled(B, word)))
    assert formula(f"A ; `{word}`") == sequence(A, (";", event(word)))


@pytest.mark.parametrize("word", KEYWORDS)
def test_any_word_is_an_attribute(word: str) -> None:
    assert value(f"x.{word}") == attribute("x", word)
    tree = query(
        f"CREATE STREAM S {{ EVENT A {{ {word}: INT, a: INT }} }}"
        f"SELECT x[{word}, a] WHERE A AS x PARTITION BY {word}, a WITHIN 3 [{word}]"
    )
    assert tree.select is not None
    assert tree.select.items == (syntax.LabelItem(name("x"), names(word, "a"), S),)
    assert tree.partition_by == names(word, "a")
    assert tree.window == syntax.ValueWindow(integer(3), name(word), S)


@pytest.mark.parametrize("word", sorted(set(KEYWORDS) - {"TRUE", "FALSE", "NULL"}))
def test_any_word_is_an_attribute_in_brackets(word: str) -> None:
    tree = compared(attribute(None, word), "=", integer(1))
    both = syntax.AndCondition((tree, tree), S)
    assert condition(f"x[{word} = 1 AND {word} = 1]") == syntax.EventCondition(name("x"), both, S)


def test_words_with_a_meaning_in_brackets() -> None:
    tree = condition("x[NOT date > DATE 'd' OR abs(timestamp) = 1 AND flag = TRUE]")
    time = syntax.TimeLiteral("DATE", text_literal("d"), S)
    assert isinstance(tree, syntax.EventCondition)
    assert tree.condition == syntax.OrCondition(
        (
            syntax.NotCondition(compared(attribute(None, "date"), ">", time), S),
            syntax.AndCondition(
                (
                    compared(called("abs", attribute(None, "timestamp")), "=", integer(1)),
                    compared(attribute(None, "flag"), "=", syntax.BooleanLiteral(True, S)),
                ),
                S,
            ),
        ),
        S,
    )


def test_keywords_in_any_case_but_names_as_written() -> None:
    assert formula("a As X oR A") == either(labelled(event("a"), "X"), A)
    # upper() makes an S of this letter; it is no keyword for that.
    assert formula("A AS ſtrict") == labelled(A, "ſtrict")


@pytest.mark.parametrize(
    "text",
    [
        "_",
        "x1",
        "größe",
        "Ω",
        "变量",
        "naı̈ve",
        "x́",
        "ℯ",
        "class",
        "def",
        "None",
        "lambda",
        "A" * 1000,
    ],
)
def test_plain_names(text: str) -> None:
    assert text.isidentifier()
    assert formula(f"{text} AS {text}") == labelled(event(text), text)


@pytest.mark.parametrize(
    "text",
    [
        "any text",
        "1st",
        "a-b",
        "a.b",
        "it's",
        'say "hi"',
        "back\\slash\\",
        "two\nlines",
        "{{ jinja }}{% raw %}",
        "-- no comment",
        "/* nor this */",
        "$x",
        " ",
        "\u202e",
        "🔥",
    ],
)
def test_quoted_names(text: str) -> None:
    assert formula(f"A AS `{text}`") == labelled(A, text)
    assert value(f"`{text}`.`{text}`") == attribute(text, text)


def test_doubled_backquote_in_a_name() -> None:
    assert formula("A AS `a``b`") == labelled(A, "a`b")


# --- the space between ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "A;B",
        "  A\t;\n\rB  ",
        "A\f;\vB",
        "A\u00a0;\u2003B",
        "\ufeffA ; B",
        "A -- first\n; B -- last",
        "A /* one */ ; /* * / ** */ B /**/",
        "A ; /* -- */ B",
        "A ; -- /*\nB",
        "/* two\nlines */A ; B",
    ],
)
def test_space_and_comments(text: str) -> None:
    assert formula(text) == sequence(A, (";", B))


def test_signs_that_begin_alike() -> None:
    assert value("1 - - 2") == computed(integer(1), "-", syntax.Negation(integer(2), S))
    assert condition("x.a<-1") == compared(XA, "<", syntax.Negation(integer(1), S))
    assert formula("A[x->y]") == syntax.Rename(A, name("x"), name("y"), S)
    # As in SQL, two minus signs begin a comment.
    assert condition("1--2\n=x.a") == compared(integer(1), "=", XA)


# --- FIRST, LONGEST and DISJOINT ------------------------------------------------------------------


@pytest.mark.parametrize("word", ["FIRST", "LONGEST", "first"])
def test_first_and_longest_choose_where_items_follow(word: str) -> None:
    for disjoint in ("", "DISJOINT "):
        for items in ("*", "NONE", "x", "x, y", "x[a]", "FIRST(x.a) AS v", "`first`"):
            select = query(f"SELECT {word} {disjoint}{items} WHERE A AS x").select
            assert select is not None
            chosen = syntax.PerStart(word.upper(), bool(disjoint), S)  # type: ignore[arg-type]
            assert select.per_start == chosen
            assert select.items == query(f"SELECT {items} WHERE A AS x").select.items


@pytest.mark.parametrize("word", ["FIRST", "LONGEST", "DISJOINT", "first"])
def test_they_are_names_where_none_follow(word: str) -> None:
    for items in (word, f"{word}, last", f"{word}[a]", f"x, {word}", f"{word}.a AS v"):
        select = query(f"SELECT {items} WHERE A AS x").select
        assert select is not None
        assert select.per_start is None
    chosen = query("SELECT FIRST disjoint, y WHERE A AS x").select
    assert chosen is not None
    assert chosen.items == query("SELECT disjoint, y WHERE A AS x").select.items
    called_first = query("SELECT FIRST(x.a) AS v WHERE A AS x").select
    assert called_first is not None
    assert called_first.per_start is None


@pytest.mark.parametrize(
    "result", ["s", "5", "s * 2", "(s)", "ABS(s)", "IF(s > 1, 2, s)", "s -- n"]
)
@pytest.mark.parametrize(
    "items",
    [
        *("-x.v AS n", "- (x.v) AS n", "+x.v AS n", "-SUM(x.v) AS n, x", "ANY -x.v AS n"),
        *("LONGEST DISJOINT -x.v AS n", "TOTAL -COUNT(*) AS n", "(-x.v) AS n", "*", "x", "`x`"),
        *("1.5 AS n", "5 MINUTES AS n", "'a' AS n", "TRUE AS n", "DATE '2024-01-31' AS n", "NONE"),
    ],
)
def test_a_query_ends_the_expression_of_result(result: str, items: str) -> None:
    declared = f"AGGREGATE f(a: INT): INT STATE s: INT = 0 STEP s = a RESULT {result}\n"
    text = f"SELECT {items} WHERE A AS x"
    (alone,) = parsed(text).queries
    behind = parsed(declared + text)
    assert [one.name.text for one in behind.aggregates] == ["f"]
    (found,) = behind.queries
    assert same_tree(found, alone)


_TRUE, _FALSE = (syntax.BooleanLiteral(one, S) for one in (True, False))


@pytest.mark.parametrize("text", ["TRUE", "true", "(TRUE)", "((True))"])
def test_true_is_a_condition(text: str) -> None:
    true, false = syntax.Holds(_TRUE, S), syntax.Holds(_FALSE, S)
    assert condition(text) == true
    assert condition(f"{text} OR FALSE") == syntax.OrCondition((true, false), S)
    assert condition(f"x[{text}]") == condition("x[TRUE]")


@pytest.mark.parametrize("text", ["x.a", "(x.a)", "((x.a))", "FIRST(x.a)", "PREV(x.a)"])
def test_a_value_is_a_condition(text: str) -> None:
    one = condition(text)
    assert isinstance(one, syntax.Holds)
    assert condition(f"{text} AND NOT ({text})") == syntax.AndCondition(
        (one, syntax.NotCondition(one, S)), S
    )
    assert condition(f"({text} OR x.b = 1)") == condition(f"{text} OR x.b = 1")
    assert isinstance(condition(f"{text} = TRUE"), syntax.Comparison)


@pytest.mark.parametrize("end", ["", " WITHIN 5 EVENTS", " PARTITION BY id LIMIT 2"])
def test_a_value_is_a_condition_before_what_follows(end: str) -> None:
    (query,) = parsed(
        f"SELECT * FROM S WHERE (A FILTER (x.a)) IN y ; B FILTER y[a OR (b)]{end}"
    ).queries
    assert isinstance(query.formula, syntax.Filter)
    assert isinstance(query.formula.condition, syntax.EventCondition)
    assert isinstance(query.formula.condition.condition, syntax.OrCondition)


def test_a_name_of_items_is_a_condition() -> None:
    (query,) = parsed("SELECT TOTAL MAX(x.a) AS any FROM S WHERE A HAVING any LIMIT 2").queries
    assert query.having is not None
    assert isinstance(query.having.condition, syntax.Holds)


@pytest.mark.parametrize("text", ["TRUE", "(TRUE)", "((TRUE))"])
def test_true_is_a_value_where_it_is_compared(text: str) -> None:
    assert condition(f"{text} = x.a") == compared(_TRUE, "=", attribute("x", "a"))
    assert condition(f"x.a = {text}") == compared(attribute("x", "a"), "=", _TRUE)
    assert isinstance(condition(f"{text} IS NULL"), syntax.NullTest)
    assert isinstance(condition(f"{text} IN ({text}, FALSE)"), syntax.InList)
    assert isinstance(condition(f"{text} NOT IN (FALSE)"), syntax.InList)
    assert isinstance(condition(f"x.a BETWEEN FALSE AND {text}"), syntax.Between)
