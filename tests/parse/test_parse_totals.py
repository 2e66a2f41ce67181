"""SELECT TOTAL and SELECT COLLAPSED as syntax trees, and their words as plain names."""

from __future__ import annotations

import pytest
from cases_io import load_cases, load_refused
from places import CASES

from celc.diagnostics.source import Source
from celc.parse import syntax
from celc.parse.parser import parse
from celc.verify.texts import syntax_tree

FOLDER = CASES / "totals"


def query_of(text: str) -> syntax.Query:
    source = Source("q.cel", text)
    file = parse(source)
    assert not list(syntax_tree(file, source))
    (query,) = file.queries
    return query


def select_of(text: str) -> syntax.SelectClause:
    select = query_of(text).select
    assert select is not None
    return select


@pytest.mark.parametrize("stem", ["28-totals", "29-collapsed"])
def test_cases_parse(stem: str) -> None:
    for case in load_cases(stem, FOLDER):
        select = select_of(case.query)
        assert select.together is not None
        assert select.together.kind == ("TOTAL" if stem == "28-totals" else "COLLAPSED")


def test_refused_cases_are_refused_by_the_resolver_but_one() -> None:
    """So that all mistakes of a file are found together; PER without TOTAL is no clause at all."""
    for case in load_refused(FOLDER):
        if case.name != "28-totals/085":
            assert query_of(case.query)


def test_total_with_all_clauses() -> None:
    text = (
        "SELECT TOTAL COUNT(*) AS n, 2 * SUM(x.a) AS s FROM S WHERE A AS x PARTITION BY id "
        "WITHIN 5 MINUTES CONSUME BY ANY PER 1 HOUR 30 MINUTES HAVING n > 1 AND s IS NULL LIMIT 3"
    )
    query = query_of(text)
    select = query.select
    assert select is not None
    assert (select.together, select.strategy) == (
        syntax.Together("TOTAL", select.span),
        None,
    )
    assert isinstance(select.items, tuple)
    first = select.items[0]
    assert isinstance(first, syntax.ExpressionItem)
    assert isinstance(first.expression, syntax.CallOfAll)
    assert query.window is not None
    assert query.consume is not None
    assert query.limit is not None
    assert query.per is not None
    assert isinstance(query.per.group, syntax.DurationWindow)
    assert query.having is not None
    slice_of = Source("q.cel", text).slice
    written = [slice_of(one.span) for one in (first.expression, query.per, query.having)]
    assert written == [
        "COUNT(*)",
        "PER 1 HOUR 30 MINUTES",
        "HAVING n > 1 AND s IS NULL",
    ]


@pytest.mark.parametrize("group", ["END", "PARTITION"])
def test_groups(group: str) -> None:
    per = query_of(f"SELECT TOTAL COUNT(*) AS n WHERE A per {group.lower()}").per
    assert per is not None
    assert per.group == group


@pytest.mark.parametrize(
    ("text", "strategy", "per_start"),
    [
        ("SELECT NXT TOTAL COUNT(*) AS n WHERE A", "NXT", None),
        ("SELECT TOTAL LAST COUNT(*) AS n WHERE A", "LAST", None),
        ("SELECT COLLAPSED NEXT * WHERE A", "NXT", None),
        ("SELECT ANY COLLAPSED NONE WHERE A", "ANY", None),
        ("SELECT COLLAPSED FIRST DISJOINT A WHERE A", None, "FIRST"),
        ("SELECT LONGEST TOTAL COUNT(*) AS n WHERE A", None, "LONGEST"),
    ],
)
def test_choices_beside_them_are_read(
    text: str, strategy: str | None, per_start: str | None
) -> None:
    select = select_of(text)
    assert select.together is not None
    assert select.strategy == strategy
    assert (select.per_start and select.per_start.end) == per_start


@pytest.mark.parametrize(
    "items",
    [
        *("TOTAL", "total, x", "TOTAL[a]", "TOTAL.a AS b", "COLLAPSED", "collapsed, TOTAL"),
        *("x, total, collapsed", "NXT total", "first, TOTAL", "`TOTAL`"),
    ],
)
@pytest.mark.parametrize("rest", ["WHERE A", "FROM S WHERE A"])
def test_the_words_stay_names(items: str, rest: str) -> None:
    assert select_of(f"SELECT {items} {rest}").together is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOTAL FIRST(x.a) AS f WHERE A AS x",
        "SELECT TOTAL MAX(x.a) AS f WHERE A AS x",
        "SELECT TOTAL (COUNT(*) + 1) / 2 AS f WHERE A AS x",
        "SELECT TOTAL -COUNT(*) AS f WHERE A AS x",
        "SELECT COLLAPSED last, max WHERE A AS last ; B AS max",
        "SELECT COLLAPSED any WHERE A AS any",
    ],
)
def test_items_that_begin_like_choices(text: str) -> None:
    select = select_of(text)
    assert select.together is not None
    assert select.strategy is None
    assert select.per_start is None


@pytest.mark.parametrize("word", ["PER", "HAVING", "END", "TOTAL", "COLLAPSED"])
def test_the_words_are_names_in_formulas(word: str) -> None:
    query = query_of(f"SELECT {word}[{word}] FROM {word} WHERE {word} AS x FILTER x.{word} > 1")
    assert isinstance(query.formula, syntax.Filter)
    total = query_of(f"SELECT TOTAL COUNT({word}) AS {word} WHERE {word} PER END HAVING {word} > 1")
    assert total.having is not None


def test_names_in_having_need_no_label() -> None:
    text = (
        "QUERY q: SELECT TOTAL COUNT(*) AS n WHERE A AS x FILTER x.a > 1 HAVING n > 1 OR NOT n < 2 "
        "QUERY r: SELECT * WHERE A"
    )
    assert len(parse(Source("q.cel", text)).queries) == 2
