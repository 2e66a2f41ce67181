"""How a query and its matches look in a shell and in a notebook."""

from __future__ import annotations

import pickle
import rlcompleter
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import as_html, with_integers
from engines import interpreted

import celc

STREAM = """CREATE STREAM S {
  EVENT A { id: LONG, name: STRING, ts: TIMESTAMP },
  EVENT B { id: LONG, name: STRING, ts: TIMESTAMP }
}
"""
ONE = f"""{STREAM}QUERY fire: SELECT x[name], COUNT(x) AS n FROM S WHERE (A AS x)+ ; B
PARTITION BY id WITHIN 90 MINUTES [ts] LIMIT 3"""


def _compiled(text: str, **options: Any) -> celc.Matcher:
    with interpreted():
        return celc.compile(text, **options)


def test_a_matcher_tells_its_query_its_columns_and_its_order() -> None:
    matcher = _compiled(ONE, tiebreak="row")
    assert repr(matcher) == (
        "query fire\n"
        "  reads      type STRING, id LONG, name STRING, ts TIMESTAMP\n"
        "  order      ts, then row\n"
        "  partitions id\n"
        "  window     90 MINUTES [ts]\n"
        "  limit      3 for each event that ends a match\n"
        "  returns    id, start_pos, end_pos, start_time, end_time, x[], n"
    )
    assert repr(matcher.queries["fire"]) == repr(matcher)
    assert repr(matcher.match_arrow) == "<match_arrow of query 'fire'>"


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("WITHIN 5 EVENTS", "window     5 EVENTS"),
        ("WITHIN 1 HOUR [ts]", "window     1 HOUR [ts]"),
        ("WITHIN 1500 MILLISECONDS [ts]", "window     1,500 MILLISECONDS [ts]"),
        ("WITHIN 7 [id]", "window     7 [id]"),
        ("CONSUME BY ANY", "consumes   by ANY"),
        ("", "order      as the events come"),
    ],
)
def test_clauses_in_a_repr(clauses: str, said: str) -> None:
    text = f"{STREAM}SELECT x FROM S WHERE A AS x ; B {clauses}"
    assert f"\n  {said}\n" in repr(_compiled(text))


def test_a_repr_fits_on_a_screen() -> None:
    attributes = ", ".join(f"a{number}: LONG" for number in range(100))
    queries = "\n".join(f"QUERY q{number}: SELECT x FROM S WHERE A AS x" for number in range(40))
    wide = f"CREATE STREAM S {{ EVENT A {{ {attributes} }} }} "
    for text in (f"{wide} SELECT x FROM S WHERE A AS x", wide + queries):
        lines = repr(_compiled(text)).splitlines()
        assert len(lines) < 24
        assert max(map(len, lines)) <= 104
    assert lines[0] == "40 queries"
    assert lines[1].startswith("  q0: start_pos, end_pos, x")
    assert lines[-1] == "  … and 28 more"


def test_names_with_control_characters_are_quoted() -> None:
    name = "`a\x1b[2J`"
    text = f"CREATE STREAM S {{ EVENT A {{ {name}: LONG }} }} SELECT x FROM S WHERE A AS x"
    shown = repr(_compiled(f"{text} FILTER x.{name} > 1"))
    assert "\x1b" not in shown
    assert r"'a\x1b[2J' LONG" in shown


def test_tab_completion_shows_the_methods_of_the_only_query() -> None:
    matcher = _compiled(ONE)
    assert {"match_table", "match", "with_options", "queries", "warnings", "fire"} <= {
        *dir(matcher)
    }
    found = rlcompleter.Completer({"matcher": matcher})
    assert found.complete("matcher.match_t", 0) == "matcher.match_table("
    for name in dir(matcher):
        getattr(matcher, name)


def test_a_file_of_several_queries_shows_their_names() -> None:
    text = STREAM + "".join(f"QUERY q{n}: SELECT x FROM S WHERE A AS x\n" for n in (1, 2))
    matcher = _compiled(text)
    assert {"q1", "q2"} <= {*dir(matcher)}
    assert "match_table" not in dir(matcher)
    assert repr(matcher) == "2 queries\n  q1: start_pos, end_pos, x\n  q2: start_pos, end_pos, x"


class _Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


_EVIL = "<script>alert('&')</script>"
_TAGS = {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "br"}


def _matches() -> pa.Table:
    text = f"CREATE STREAM S {{ EVENT A {{ `{_EVIL}`: STRING, k: STRING, ts: TIMESTAMP }} }} "
    matcher = _compiled(
        f"{text} SELECT x, COLLECT(x.k) AS ks FROM S WHERE (A AS x)+ PARTITION BY k", order_by="ts"
    )
    times = pa.array([0, 2**62, 1], pa.timestamp("us", "UTC"))
    return matcher.match_table({_EVIL: [_EVIL] * 3, "k": [_EVIL, _EVIL, None], "ts": times})


def test_matches_in_html_escape_all_that_comes_from_data() -> None:
    matches = _matches()
    page = _Tags(as_html(matches))
    assert {*page.tags} <= _TAGS
    assert f"#0 {_EVIL}={_EVIL} k={_EVIL}" in page.text
    assert "NULL" in page.text
    assert page.text.endswith("4 matches")
    assert page.tags.count("tr") == 1 + 4


def test_a_query_in_html_escapes_its_text_and_names() -> None:
    text = f"CREATE STREAM S {{ EVENT A {{ `{_EVIL}`: STRING }} }} -- <b>\n"
    matcher = _compiled(f"{text} SELECT x FROM S WHERE A AS x FILTER x.`{_EVIL}` = '<i>'")
    for shown in (matcher, matcher.queries["query"]):
        page = _Tags(shown._repr_html_())
        assert {*page.tags} <= {"div", "b", "table", "tr", "th", "td", "details", "summary", "pre"}
        assert page.tags.count("b") == 1
        assert f"{_EVIL} STRING" in page.text
        assert matcher.QUERY in page.text


def test_html_shows_a_few_of_many_matches() -> None:
    matches = pa.concat_tables([_matches()] * 10)
    page = as_html(matches, rows=3)
    assert page._repr_html_() == page
    assert _Tags(page).tags.count("tr") == 1 + 3
    assert _Tags(page).text.endswith("40 matches, the first 3 shown")
    assert as_html(matches.to_batches()[0]).endswith("<p>4 matches</p></div>")
    assert as_html(matches[:1]).endswith("<p>1 match</p></div>")


def test_html_shows_a_few_events_of_a_long_label() -> None:
    events = pa.array([[{"pos": n} for n in range(60)]])
    text = _Tags(as_html(pa.table({"x": events}))).text
    assert "#49… and 10 more" in text
    assert "#50" not in text


def test_a_terminal_of_ipython_shows_matches_as_a_text() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty", reason="the extra `dev` has it").pretty
    events = pa.array([[{"pos": 0, "v": 41.5}, {"pos": 10, "v": 40.0}], []])
    page = as_html(pa.table({"id": ["a", "b\x1b[2J"], "long name": events}))
    assert pretty(page).split("\n") == [
        "id          long name",
        "a           #0 v=41.5, #10 v=40.0",
        "'b\\x1b[2J'",
        "2 matches",
    ]
    assert pretty(pickle.loads(pickle.dumps(page))) == pretty(page)


def test_what_is_no_table_of_matches_is_refused() -> None:
    with pytest.raises(TypeError, match="pyarrow Table, and no list"):
        as_html([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rows must be a whole number"):
        as_html(pa.table({}), rows=-1)


def test_whole_numbers_are_integers_where_they_fit() -> None:
    whole, cents = pa.decimal128(38, 0), pa.decimal128(38, 2)
    fits, long = [Decimal(2**63 - 1), None], [Decimal(2**63), Decimal(1)]
    table = pa.table(
        {"n": pa.array(fits, whole), "m": pa.array(long, whole), "c": pa.array(fits, cents)}
    )
    found = with_integers(table)
    assert found.schema.types == [pa.int64(), whole, cents]
    assert found.to_pylist()[0] == {"n": 2**63 - 1, "m": Decimal(2**63), "c": Decimal(2**63 - 1)}
