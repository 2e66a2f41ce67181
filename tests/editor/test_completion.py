"""Completion and hover: pure functions of a text and a place in it.

`|` is the place. What is found depends on the text before it and on the rest, which may be broken.
"""

from __future__ import annotations

import pytest

from celc.editor.completion import Completion, complete
from celc.editor.hover import hover
from celc.editor.row_patterns.row_completion import complete_rows
from celc.editor.row_patterns.row_hover import hover_rows

DECLARED = """\
CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { id: LONG, humidity: DOUBLE, ts: TIMESTAMP }
}
CREATE STREAM Doors { EVENT Open { door: LONG, `opened at`: TIMESTAMP } }
PARAMETERS rule { id: LONG, most: DOUBLE }
AGGREGATE net(a: DOUBLE): DOUBLE STATE s: DOUBLE = 0 STEP s = s + a RESULT s
FUNCTION near(DOUBLE[], DOUBLE[]): BOOLEAN
QUERY other: SELECT * FROM Farm WHERE T
"""


def _place(text: str) -> tuple[str, int]:
    assert text.count("|") == 1
    return text.replace("|", ""), text.index("|")


def _found(query: str) -> tuple[Completion, ...]:
    return complete(*_place(DECLARED + query))


def _names(query: str, *kinds: str) -> list[str]:
    return [one.name for one in _found(query) if one.kind in kinds or not kinds]


Q = "QUERY q: SELECT * FROM Farm WHERE "

NAMES = [
    # where, kinds, names
    ("QUERY q: SELECT | FROM Farm WHERE (T AS hot ; H AS dry)", "label", ["hot", "dry", "T", "H"]),
    ("QUERY q: SELECT hot[|] FROM Farm WHERE T AS hot", "attribute", ["id", "value", "ts"]),
    ("QUERY q: SELECT * FROM | WHERE T", "stream", ["Farm", "Doors"]),
    ("QUERY q: SELECT * FROM Farm, | WHERE T", "query", ["other", "q"]),
    ("QUERY q: SELECT * FROM Farm FOR EACH |", "parameters", ["rule"]),
    (Q + "|", "type", ["T", "H"]),
    (Q + "T ; |", "type", ["T", "H"]),
    (Q + "T ; H FILTER T IS |", "type", ["T", "H"]),
    ("QUERY q: SELECT * WHERE |", "type", ["T", "H", "Open"]),
    (Q + "T AS hot FILTER |", "label", ["hot", "T", "H"]),
    (Q + "T AS hot FILTER hot.|", "attribute", ["id", "value", "ts"]),
    (Q + "T AS hot FILTER hot.val|", "attribute", ["value"]),
    (Q + "(T OR H) AS any FILTER any.|", "attribute", ["id", "value", "ts", "humidity"]),
    (Q + "(T ; !H) AS some FILTER some.|", "attribute", ["id", "value", "ts"]),
    (Q + "(T FILTER T.value > 3)+ AS x FILTER x.|", "attribute", ["id", "value", "ts"]),
    (Q + "(T AS y)[y -> x] FILTER x.|", "attribute", ["id", "value", "ts"]),
    (Q + "(T AS x){2,3} FILTER x[|]", "attribute", ["id", "value", "ts"]),
    (Q + "T FILTER T.value > |", "function", None),
    (
        Q + "T FILTER T.value + |",
        "keyword",
        ["CASE", "CAST", "DATE", "FALSE", "IF", "NULL", "PREV", "TIMESTAMP", "TRY_CAST"],
    ),
    (Q + "T FILTER HO|", "", ["HOUR"]),
    (Q + "T PARTITION BY |", "attribute", ["id", "value", "ts", "humidity"]),
    (Q + "T WITHIN 3 HOURS [|", "attribute", ["id", "value", "ts", "humidity"]),
    (Q + "T WITHIN 3 |", "keyword", ["EVENTS"]),
    (
        "QUERY q: SELECT * FROM Farm FOR EACH rule WHERE T FILTER rule.|",
        "attribute",
        ["id", "most"],
    ),
    ("QUERY q: SELECT * FROM Doors WHERE Open FILTER Open.|", "attribute", ["door", "opened at"]),
    ("AGGREGATE low(a: INT): INT STATE s: INT = 0 STEP s = |", "variable", ["a", "s"]),
    ("AGGREGATE low(a: INT): INT STATE s: INT = 0 STEP s = LE|", "", ["LEAST"]),
    ("AGGREGATE low(a: INT): DOU|", "", ["DOUBLE"]),
    ("FUNCTION low(DOU|", "", ["DOUBLE"]),
    ("FUNCTION low(DOUBLE[], TIME|", "", ["TIMESTAMP"]),
    ("FUNCTION low(DOUBLE[]): BOO|", "", ["BOOLEAN"]),
    ("CREATE STREAM X UNCERTAIN [|] BY 1 { EVENT A { low: INT } }", "attribute", ["low"]),
    (
        "CREATE STREAM X UNCERTAIN [low, low] BY 1 WEIGHTED | { EVENT A { low: INT } }",
        "attribute",
        ["low"],
    ),
    (
        "PARAMETERS p { id: INT, since: INT, until: INT } VALID [|",
        "attribute",
        ["id", "since", "until"],
    ),
    ("CREATE STREAM X LASTING [|] { EVENT A { start: INT } }", "attribute", ["start"]),
    (Q + "T WITHIN 3 [ts] WITH |", "", ["CONFIDENCE"]),
    ("CREATE STREAM X { |", "", ["EVENT"]),
    ("CREATE STREAM X { EVENT |", "", []),
    (Q + "T AS |", "", []),
    (Q + "T -- in a comment |", "", []),
    (Q + "T /* in a comment |", "", []),
    (Q + "T FILTER T.name = 'in a text |", "", []),
    (Q + "T AS x WITHI|", "", ["WITHIN"]),
    # The text before is broken, which says nothing of what could stand here.
    (Q + "T ) ( ) WITHI|", "", ["WITHIN"]),
    (Q + "T AS hot ) FILTER ) hot.v|", "attribute", ["value"]),
]


@pytest.mark.parametrize(("query", "kind", "names"), NAMES, ids=[one[0] for one in NAMES])
def test_names(query: str, kind: str, names: list[str] | None) -> None:
    found = _names(query, *filter(None, [kind]))
    if names is None:
        assert {"MAX", "COUNT", "PREV", "net"} <= set(found)
        assert "COLLECT" not in found  # of SELECT only
    elif "keyword" in kind and kind and len(names) > 1:
        assert set(found) <= set(names) | {"TRUE"}
        assert {"NULL", "DATE"} <= set(found)
    else:
        assert found == names


@pytest.mark.parametrize(
    ("query", "keywords"),
    [
        ("|", "AGGREGATE CREATE FUNCTION PARAMETERS QUERY SELECT"),
        (Q + "T |", "ALL AND AS CONSUME FILTER IN LIMIT OR PARTITION QUERY SELECT UNLESS WITHIN"),
        (Q + "T PARTITION |", "BY"),
        (Q + "T CONSUME BY |", "ANY NONE PARTITION"),
        (Q + "T ; |", "FIRST LAST MAX NEXT NOT NXT PROJECT STRICT WITHIN"),
        (Q + "T FILTER T.id |", "BETWEEN IN IS LIKE NOT RLIKE"),
        (
            "PARAMETERS p { id: BOOLEAN } " + Q + "T FILTER T.id |",
            "AND BETWEEN IS LIMIT OR WITHIN QUERY",
        ),
        ("QUERY q: SELECT TOTAL COUNT(*) AS n FROM Farm WHERE T PER |", "END PARTITION"),
    ],
)
def test_keywords_are_those_of_the_place(query: str, keywords: str) -> None:
    text, place = _place(query if query == "|" else DECLARED + query)
    found = [one.name for one in complete(text, place) if one.kind == "keyword"]
    assert [word for word in keywords.split() if word not in found] == []
    if len(keywords.split()) < 7:
        starts = {"LAST", "MAX", "NEXT", "NOT", "NXT", "PROJECT", "STRICT", "WITHIN"}
        assert set(found) - set(keywords.split()) <= (starts if query == "|" else set())


def test_names_that_are_no_words_are_written_in_backquotes() -> None:
    found = _found("QUERY q: SELECT * FROM Doors WHERE Open FILTER Open.op|")
    assert [(one.name, one.text, one.detail) for one in found] == [
        ("opened at", "`opened at`", "TIMESTAMP, of Open")
    ]


def test_an_empty_text_and_any_cut_of_a_query_have_completions_or_none_but_no_error() -> None:
    text = (
        DECLARED + "QUERY q: SELECT x[id], COUNT(x) AS n FROM Farm WHERE ((T AS x)+ ; !H) FILTER x"
    )
    text += ".value BETWEEN 1 AND 3 AND x[id IN {1..}] PARTITION BY id WITHIN 1 HOUR 3 MINUTES [ts]"
    for place in range(0, len(text), 2):
        complete(text[:place], place)
        hover(text[:place], place)
        complete(text, place)


# --- hover ----------------------------------------------------------------------------------------

SHOWN = [
    (Q + "T AS h|ot FILTER hot.value > 3", "label `hot` of events of `T`"),
    (Q + "(T OR H) AS x FILTER |x.id > 3", "label `x` of events of `T`, `H`"),
    (Q + "T AS hot FILTER hot.val|ue > 3", "`value: DOUBLE`, of `T`"),
    (Q + "T AS x FILTER x[val|ue > 3]", "`value: DOUBLE`, of `T`"),
    (Q + "T PARTITION BY |id", "`id: LONG`, of `T`, `H`"),
    (Q + "|T", "EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP }  -- of Farm"),
    ("QUERY q: SELECT * FROM Fa|rm WHERE T", "stream `Farm`"),
    ("QUERY q: SELECT * FROM oth|er WHERE other", "query `other`"),
    (
        "QUERY q: SELECT * FROM Farm FOR EACH ru|le WHERE T FILTER T.id = rule.id",
        "PARAMETERS rule {",
    ),
    (
        "QUERY q: SELECT * FROM Farm FOR EACH rule WHERE T FILTER T.value > rule.mo|st",
        "`most: DOUBLE`, of `rule`",
    ),
    (Q + "T FILTER ne|t(T.value) > 3", "aggregate `net` of this file"),
    (Q + "T AS x ; H AS y FILTER ne|ar(x.value, y.value)", "function `near` of this file"),
    (Q + "T WIT|HIN 3 EVENTS", "How far apart the first and the last event of a match may be."),
    (Q + "T FILTER COU|NT(T) > 3", "COUNT(x): the number of events of x."),
    (Q + "T FILTER SQ|RT(T.value) > 3", "SQRT(9): the square root; NaN of a negative number."),
    (Q + "T AS first FILTER fir|st.id > 3", "label `first` of events of `T`"),
    # Broken texts
    (Q + "T AS hot FILTER hot.val|ue > ", "`value: DOUBLE`, of `T`"),
    (Q + "T AS h|ot FILTER ", "label `hot` of events of `T`"),
    (Q + "T FIL|TER ", "Keeps the matches to the left for which the condition holds."),
]


@pytest.mark.parametrize(("query", "shown"), SHOWN, ids=[one[0] for one in SHOWN])
def test_hover(query: str, shown: str) -> None:
    found = hover(*_place(DECLARED + query))
    assert found is not None
    assert shown in found.text


def test_nothing_is_said_of_numbers_and_signs() -> None:
    assert hover(*_place(DECLARED + Q + "T FILTER T.value > 1|0 + 3")) is None
    assert hover(*_place(DECLARED + Q + "T FILTER T.value > 10 |+ 3")) is None


# --- MATCH_RECOGNIZE ------------------------------------------------------------------------------

TABLE = "CREATE TABLE quotes (symbol STRING, ts TIMESTAMP, price DOUBLE);\n"
ROWS = (
    TABLE + "SELECT {a} FROM quotes MATCH_RECOGNIZE (PARTITION BY {b} ORDER BY ts {c} "
    "MEASURES FIRST(S.{d}) AS top AFTER MATCH SKIP TO {e} PATTERN ({f} DOWN+ UP+) "
    "SUBSET U = ({g}) DEFINE {h} AS {i})"
)
WHOLE = {"a": "top", "b": "symbol", "c": "", "d": "price", "e": "LAST UP", "f": "S"}
WHOLE |= {"g": "UP, S", "h": "UP", "i": "price > 3"}


@pytest.mark.parametrize(
    ("at", "text", "kind", "names"),
    [
        ("a", "|", "column", ["top", "symbol", "ts", "price"]),
        ("b", "|", "column", ["symbol", "ts", "price"]),
        ("b", "up|", "function", ["UPPER"]),
        ("b", "ma|", "function", []),
        (
            "c",
            "|",
            "keyword",
            [
                *("AFTER", "ALL", "AND", "AS", "ASC", "BETWEEN", "DESC", "IN", "IS", "LIKE"),
                *("MEASURES", "NOT", "NULLS", "ONE", "OR", "PATTERN", "RLIKE"),
            ],
        ),
        ("d", "p|", "column", ["price"]),
        ("e", "|", "variable", ["S", "DOWN", "UP", "U"]),
        ("f", "|", "variable", ["DOWN", "UP", "U"]),
        ("g", "UP, |", "variable", ["S", "DOWN", "UP", "U"]),
        ("h", "|", "variable", ["S", "DOWN", "UP", "U"]),
        ("i", "price > PR|", "function", ["PREV"]),
        ("i", "UP|", "function", ["UPPER"]),
        ("i", "price > 3 |", "keyword", ["AND", "OR"]),
        ("i", "price > 3 ) ) OR UP.|", "column", ["symbol", "ts", "price"]),
        ("i", "symbol = 'in a text |'", "", []),
    ],
)
def test_completion_of_match_recognize(at: str, text: str, kind: str, names: list[str]) -> None:
    found = complete_rows(*_place(ROWS.format(**(WHOLE | {at: text}))))
    assert [one.name for one in found if one.kind == kind or not kind] == names


@pytest.mark.parametrize(
    ("at", "text", "shown"),
    [
        ("a", "to|p", "measure `top`"),
        ("b", "sym|bol", "column `symbol STRING`"),
        ("d", "pri|ce", "column `price DOUBLE`"),
        ("e", "LAST U|P", "variable `UP` of the pattern"),
        ("i", "pr|ev(price) > 3", "PREV(v.x): x of the row before the last row of v"),
        ("i", "U|.price > 3", "`U`: a subset, of the variables UP, S"),
        ("i", "price > 3 A|ND price < 9", "Both conditions hold."),
    ],
)
def test_hover_over_match_recognize(at: str, text: str, shown: str) -> None:
    found = hover_rows(*_place(ROWS.format(**(WHOLE | {at: text}))))
    assert found is not None
    assert shown in found.text


def test_any_cut_of_a_text_with_match_recognize_has_completions_or_none_but_no_error() -> None:
    text = ROWS.format(**WHOLE)
    for place in range(0, len(text), 3):
        complete_rows(text[:place], place)
        hover_rows(text[:place], place)
