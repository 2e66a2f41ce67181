"""Files that declare the same streams in the same words are parsed as if each were alone."""

from __future__ import annotations

import pytest
from cases_io import case_stems, load_cases
from places import TESTS

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.parse.parser import KnownStreams, parse, parse_with_tokens
from celc.parse.trees import nodes_of

_EVENTS = "EVENT A { x: INT, u: INT = x + 1, ts: TIMESTAMP }, EVENT B { y: INT }"
_STREAM = f"CREATE STREAM S {{ {_EVENTS} }}\n"
_QUERIES = [
    "SELECT * FROM S WHERE A ; B",
    "QUERY q: SELECT * FROM S WHERE A AS a FILTER a.x > 1",
    # In front of the query stand other declarations, or a stream more.
    "CREATE STREAM T { EVENT C { } }\nSELECT * FROM T WHERE C",
    "FUNCTION f(INT[]): INT\nSELECT * FROM S WHERE A AS a FILTER f(a.x) > 1",
    "PARAMETERS p { x: INT }\nSELECT * FROM S FOR EACH p WHERE A AS a FILTER a.x = p.x",
    # Messages name what the stream declares, and what could have stood there.
    "SELECT * FROM S WHERE A AS a ; B AS b FILTER x > 1",
    "SELECT * FROM S WHERE A FILTER A.x = z",
    "SELECT * FROM S WHERE A ; FILTER",
    "SELECT * FROM S",
    "CREATE STREAM",
    "",
]


def _told(text: str, known: KnownStreams | None = None) -> object:
    source = Source("q.cel", text)
    try:
        tree = parse_with_tokens(source, known)[0] if known else parse(source)
        return tree, [getattr(node, "span", None) for node in nodes_of(tree)]
    except CelError as problem:
        return str(problem)


@pytest.mark.parametrize("begin", ["", "-- A rule.\n"])
def test_a_text_is_read_as_if_it_were_alone(begin: str) -> None:
    known = KnownStreams()
    for text in [f"{begin}{_STREAM}{query}" for query in _QUERIES + _QUERIES[::-1]]:
        assert _told(text, known) == _told(text), text


def test_streams_of_other_files_are_not_parsed_again() -> None:
    known = KnownStreams()
    first, moved, second = (
        parse_with_tokens(Source("q.cel", text), known)[0].streams
        for text in (
            _STREAM + _QUERIES[0],
            "-- Its places are others.\n" + _STREAM + _QUERIES[1],
            _STREAM + _QUERIES[1],
        )
    )
    assert second[0] is first[0]
    assert moved[0] is not first[0]


@pytest.mark.each(4)
@pytest.mark.parametrize("stem", case_stems())
def test_cases(stem: str) -> None:
    texts = {case.query for case in load_cases(stem)}
    known = KnownStreams()
    for text in [*texts, *texts]:
        assert _told(text, known) == _told(text)


def test_mistakes() -> None:
    known = KnownStreams()
    for path in sorted((TESTS / "errors").rglob("*.cel")):
        text = path.read_bytes().decode()
        assert [_told(text, known) for _ in range(2)] == [_told(text)] * 2
