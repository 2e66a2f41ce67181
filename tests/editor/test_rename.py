"""Renaming: all names of one thing change, and nothing else, or the text stays.

`|` is the place.
"""

from __future__ import annotations

import random
from dataclasses import fields

import pytest
from all_queries import queries_of_the_repository

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.editor.languages import LANGUAGES, Dialect
from celc.editor.places import Places
from celc.editor.rename import RenameProblem, rename
from celc.editor.symbols import Occurrence
from celc.parse import syntax
from celc.parse.parser import parse
from celc.parse.trees import nodes_of
from celc.row_pattern import syntax as row_syntax
from celc.row_pattern.parser import parse as parse_rows

DECLARED = """\
CREATE STREAM S { EVENT A { x: INT, ts: LONG }, EVENT B { x: INT, ts: LONG } }
CREATE STREAM Other { EVENT C { x: INT } }
PARAMETERS rule { id: LONG, most: INT }
AGGREGATE net(a: INT): INT STATE s: INT = 0 STEP s = s + a RESULT s
"""


def _renamed(text: str, name: str, dialect: Dialect = "cel") -> str:
    source = Source("q.cel", text.replace("|", "", 1))
    fixes = rename(source, text.index("|"), name, LANGUAGES[dialect])
    changed = source.text
    for fix in reversed(fixes):
        changed = changed[: fix.span.start] + fix.text + changed[fix.span.end :]
    return changed


RENAMED = [
    # a label, wherever it is named
    (
        "QUERY q: SELECT |a, a[x], MAX(a.x) AS m FROM S WHERE (A AS a ; B AS b) FILTER a.x > b.x",
        "first",
        "QUERY q: SELECT `first`, `first`[x], MAX(`first`.x) AS m FROM S "
        "WHERE (A AS `first` ; B AS b) FILTER `first`.x > b.x",
    ),
    (
        "QUERY q: SELECT * FROM S WHERE PROJECT[y]((A AS |a)[a -> y] ; B) FILTER y IS A",
        "z",
        "QUERY q: SELECT * FROM S WHERE PROJECT[y]((A AS z)[z -> y] ; B) FILTER y IS A",
    ),
    (
        "QUERY q: SELECT * FROM S WHERE (A AS a ; B) FILTER |a[x > 3] AND COUNT(a) > 1",
        "z",
        "QUERY q: SELECT * FROM S WHERE (A AS z ; B) FILTER z[x > 3] AND COUNT(z) > 1",
    ),
    # of one query only
    (
        "QUERY q: SELECT * FROM S WHERE A AS |a QUERY r: SELECT * FROM S WHERE A AS a",
        "z",
        "QUERY q: SELECT * FROM S WHERE A AS z QUERY r: SELECT * FROM S WHERE A AS a",
    ),
    # a query and its reader
    (
        "QUERY |q: SELECT A FROM S WHERE A WITHIN 3 [ts] QUERY r: SELECT q FROM q WHERE q",
        "z",
        "QUERY z: SELECT A FROM S WHERE A WITHIN 3 [ts] QUERY r: SELECT z FROM z WHERE z",
    ),
    (
        "QUERY q: SELECT MAX(A.x) AS |m FROM S WHERE A WITHIN 3 [ts] "
        "QUERY r: SELECT * FROM q WHERE q FILTER q.m > 3",
        "z",
        "QUERY q: SELECT MAX(A.x) AS z FROM S WHERE A WITHIN 3 [ts] "
        "QUERY r: SELECT * FROM q WHERE q FILTER q.z > 3",
    ),
    # the times of a stream
    (
        "CREATE STREAM U UNCERTAIN [|low, high] BY 1 { EVENT D { low: INT, high: INT } } D",
        "least",
        "CREATE STREAM U UNCERTAIN [least, high] BY 1 { EVENT D { least: INT, high: INT } } D",
    ),
    (
        "CREATE STREAM U UNCERTAIN [low, high] BY 1 WEIGHTED |w "
        "{ EVENT D { low: INT, high: INT, w: ARRAY<DOUBLE> } } D",
        "shares",
        "CREATE STREAM U UNCERTAIN [low, high] BY 1 WEIGHTED shares "
        "{ EVENT D { low: INT, high: INT, shares: ARRAY<DOUBLE> } } D",
    ),
    # a name of TOTAL and its HAVING
    (
        "QUERY q: SELECT TOTAL COUNT(*) AS |n FROM S WHERE A PER END HAVING n > 1",
        "many",
        "QUERY q: SELECT TOTAL COUNT(*) AS many FROM S WHERE A PER END HAVING many > 1",
    ),
]


@pytest.mark.parametrize(("query", "name", "expected"), RENAMED, ids=[one[0] for one in RENAMED])
def test_what_a_query_names(query: str, name: str, expected: str) -> None:
    assert _renamed(DECLARED + query, name) == DECLARED + expected


@pytest.mark.parametrize(
    ("at", "new", "old", "changes"),
    [
        ("EVENT A { |x", "y", "x", 7),  # an attribute: of all types of the stream
        ("EVENT C { |x", "y", "x", 1),  # but not of a stream that no query reads together with it
        ("EVENT |A", "D", "A", 2),
        ("STREAM |S ", "T", "S", 2),
        ("PARAMETERS |rule", "row", "rule", 3),
        ("rule { id: LONG, |most", "top", "most", 2),
        ("AGGREGATE |net", "gross", "net", 2),
        ("net(|a", "z", "a", 2),
        ("STATE |s", "z", "s", 4),
    ],
)
def test_what_a_file_declares(at: str, new: str, old: str, changes: int) -> None:
    query = "QUERY q: SELECT a[x] FROM S FOR EACH rule WHERE (A AS a ; B) FILTER a[x > 3] "
    query += "AND B.x > rule.most AND net(a.x) > 1 PARTITION BY x"
    text = DECLARED + query
    marked = text.replace(at.replace("|", ""), at, 1)
    source = Source("q.cel", text)
    fixes = rename(source, marked.index("|"), new, LANGUAGES["cel"])
    assert [source.slice(fix.span) for fix in fixes] == [old] * changes
    assert {fix.text for fix in fixes} == {new}


@pytest.mark.parametrize(
    ("query", "name", "why"),
    [
        ("QUERY q: SELECT * FROM S WHERE A AS |a ; B AS b", "b", "'b' is taken"),
        ("QUERY q: SELECT * FROM S WHERE A AS |a ; B", "B", "is an event type"),
        ("QUERY q: SELECT * FROM S WHERE A AS |a", "", "not empty"),
        ("QUERY q: SELECT * FROM S WHERE |A", "B", "'B' is taken"),
        ("QUERY q: SELECT * FROM S WHERE A AS a FILTER a.|x > 1", "ts", "'ts' is taken"),
        ("QUERY q: SELECT * FROM S WHERE A AS a FILTER a.|x > 1", "pos", "cannot stand here"),
        ("QUERY q: SELECT * |FROM S WHERE A", "z", "there is no name here"),
        ("QUERY q: SELECT * FROM S WHERE A AS a FILTER |", "z", "the text has an error"),
        ("QUERY q: SELECT * FROM S WHERE A FILTER |nobody.x > 1", "z", "is not declared"),
        (
            "QUERY q: SELECT * FROM S WHERE A AS |a ; B AS first QUERY r: SELECT * FROM S WHERE A",
            "first",
            "'first' is taken",
        ),
    ],
)
def test_refused(query: str, name: str, why: str) -> None:
    with pytest.raises(RenameProblem, match=why):
        _renamed(DECLARED + query, name)


TABLE = "CREATE TABLE t (x INT, ts INT);\n"


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [
        (
            "SELECT m FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(a.x) AS m "
            "AFTER MATCH SKIP TO LAST a PATTERN (|A+ B) SUBSET u = (A, B) "
            "DEFINE a AS x > COUNT(A.*) AND CLASSIFIER(A) = 'A')",
            "v",
            "SELECT m FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(v.x) AS m "
            "AFTER MATCH SKIP TO LAST v PATTERN (v+ B) SUBSET u = (v, B) "
            "DEFINE v AS x > COUNT(v.*) AND CLASSIFIER(v) = 'A')",
        ),
        (
            "SELECT |m FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(x) AS M PATTERN (A) "
            "DEFINE A AS x > 1)",
            "top",
            "SELECT top FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(x) AS top PATTERN (A) "
            "DEFINE A AS x > 1)",
        ),
        (
            "SELECT * FROM |t MATCH_RECOGNIZE (ORDER BY ts MEASURES 1 AS m PATTERN (A) "
            "DEFINE A AS x > 1)",
            "select",
            "SELECT * FROM `select` MATCH_RECOGNIZE (ORDER BY ts MEASURES 1 AS m PATTERN (A) "
            "DEFINE A AS x > 1)",
        ),
    ],
)
def test_match_recognize(query: str, name: str, expected: str) -> None:
    table = TABLE.replace(" t ", " `select` ") if name == "select" else TABLE
    assert _renamed(TABLE + query, name, "match_recognize") == table + expected


def test_columns_of_a_table_that_is_not_declared_keep_their_names() -> None:
    query = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES |x AS m PATTERN (A) DEFINE A AS x > 1)"
    with pytest.raises(RenameProblem, match="not declared in this text"):
        _renamed(query, "y", "match_recognize")
    with pytest.raises(RenameProblem, match="'b' is taken"):
        _renamed("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (|A b))", "b", "match_recognize")


def test_names_of_queries_of_the_repository_can_be_changed_and_keep_what_they_are() -> None:
    chosen = random.Random(29)
    tried = 0
    queries = list(queries_of_the_repository())
    for name, dialect, query in queries[::60]:
        language = LANGUAGES["cel" if dialect == "cel" else "match_recognize"]
        source = Source("q.cel", query)
        try:
            found = language.occurrences(source)
        except CelError:
            continue
        declared = [one for one in found if one.declares]
        if not declared:
            continue
        one: Occurrence = chosen.choice(declared)
        try:
            fixes = rename(source, one.span.start, "Unheard_of", language)
        except RenameProblem as problem:
            raise AssertionError(f"{name}: {one}: {problem}") from None
        changed = query
        for fix in reversed(fixes):
            changed = changed[: fix.span.start] + fix.text + changed[fix.span.end :]
        after = language.occurrences(Source("q.cel", changed))
        assert [each.symbol.kind for each in after] == [each.symbol.kind for each in found], name
        tried += 1
    assert tried > 20


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 10), ("utf-16", 6), ("utf-32", 5)])
def test_characters_are_counted_as_the_editor_counts_them(encoding: str, character: int) -> None:
    text = "one\r\n'é😀é' x\rthree\u2028four\n"
    place = text.index(" x")
    places = Places(text, encoding)
    assert places.position(place) == (1, character)
    assert places.offset(1, character) == place
    assert places.position(text.index("four")) == (
        2,
        len("three\u2028") + 2 * (encoding == "utf-8"),
    )


def test_every_offset_has_a_place_of_its_own() -> None:
    text = "a\n\nb😀c\r\n"
    for encoding in ("utf-8", "utf-16", "utf-32"):
        places = Places(text, encoding)
        for offset in range(len(text)):
            assert places.offset(*places.position(offset)) == offset or text[offset] == "\n"
        assert places.offset(0, 99) == 1
        assert places.offset(99, 0) == len(text)


# Names that mean something of the language, and no thing of the text.
_OF_THE_LANGUAGE = {
    ("AttributeDeclaration", "type"),
    ("AggregateDeclaration", "type"),
    ("ColumnDeclaration", "type"),
    ("DurationPart", "unit"),
    ("Interval", "unit"),
    ("Call", "function"),
    ("CallOfAll", "function"),
    ("WrittenType", "name"),
    ("TypeField", "name"),
    ("Call", "semantics"),
}


_UNITS = ("hour", "minute", "second")
"""The units of TIMESTAMPDIFF."""


def test_no_name_of_a_query_is_overlooked_and_none_is_taken_for_two_things() -> None:
    undeclared = 0
    for name, dialect, query in list(queries_of_the_repository())[::5]:
        language = LANGUAGES["cel" if dialect == "cel" else "match_recognize"]
        source = Source("q.cel", query)
        try:
            found = language.occurrences(source)
        except CelError:
            continue
        places = {one.span for one in found}
        assert len(places) == len(found), name
        tree = parse(source) if dialect == "cel" else parse_rows(source)
        for node in nodes_of(tree):
            for field in fields(node):
                value = getattr(node, field.name)
                for one in value if isinstance(value, tuple) else (value,):
                    is_name = isinstance(one, syntax.Name | row_syntax.Name)
                    if is_name and (type(node).__name__, field.name) not in _OF_THE_LANGUAGE:
                        is_unit = isinstance(node, row_syntax.Column) and one.key in _UNITS
                        is_text = isinstance(node, row_syntax.Key) and one is not node.column
                        assert one.span in places or is_unit or is_text, (name, one)
        undeclared += any(one.symbol.kind == "unknown" for one in found)
    # Queries that name what there is not, and those of the documents without their declarations.
    assert undeclared < 60
