"""What a person reads after each kind of syntax error: a file for each, its messages beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import TESTS

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.parse.parser import parse
from celc.parse.tables import grammar

FOLDER = TESTS / "errors" / "syntax"
FILES = sorted(FOLDER.glob("*.cel"))


def rendered(path: Path) -> str:
    # Not read_text, which would make "\n" of a "\r".
    text = path.read_bytes().decode()
    with pytest.raises(CelError) as caught:
        parse(Source(path.name, text))
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message(path: Path, request: pytest.FixtureRequest) -> None:
    found = rendered(path)
    golden = path.with_suffix(".expected")
    if request.config.getoption("--update-golden"):
        golden.write_text(found, encoding="utf-8", newline="\n")
    assert golden.exists(), "no golden file: look at the message, then run with --update-golden"
    assert found == golden.read_text(encoding="utf-8")


def test_no_golden_without_its_file() -> None:
    assert FILES
    assert {path.stem for path in FOLDER.glob("*.expected")} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_terminals_of_the_grammar_never_show(path: Path) -> None:
    terminals = {*grammar().patterns, "ATTRIBUTE", "BAD", "$END"} - set(grammar().keywords)
    # What the message itself says, without the lines that it quotes and the names of characters.
    said = re.sub(r"(?m)^ *\d+ \|.*$|\(U\+.*\)", "", rendered(path))
    source = path.read_bytes().decode()
    assert not {word for word in re.findall(r"[A-Z_$]+", said) if word not in source} & terminals


# Mistakes that are the same wherever they stand: text, code, and the column where it is shown.
@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("A FILTER A.x > 1 ; B", "operator-after-filter", 18),
        ("(A FILTER A.x > 1 ; B) ; C", "operator-after-filter", 19),
        ("A UNLESS B AND C", "operator-after-filter", 12),
        ("A UNLESS B : C", "operator-after-filter", 12),
        ("A FILTER A.x > 1 :+", "operator-after-filter", 18),
        ("A FILTER A.x > 1 [A -> B]", "operator-after-filter", 18),
        ("A FILTER A.x > 1 ALL B", "operator-after-filter", 18),
        ("A OR !B", "negation-at-end", 6),
        ("(!A)", "negation-at-end", 2),
        ("A ; !B : C", "negation-contiguous", 5),
        ("A ; !B ; !C ; D", "negation-twice", 10),
        ("A FILTER A.x > 1 OR A", "bare-condition", 21),
        ("A FILTER 1 = 2 AND A.x + 1", "bare-condition", 20),
        ("A FILTER B[1]", "bare-condition", 12),
        ("A FILTER y = 1", "bare-attribute", 10),
        ("A FILTER A.x = 1 AND MAX(y + 1) = 2", "bare-attribute", 26),
        ("SELECT * WHERE A WITHIN - 3 EVENTS", "bad-size", 25),
        ("SELECT * WHERE A WITHIN 'a' EVENTS", "bad-size", 25),
        ("SELECT * WHERE A LIMIT LIMIT", "bad-size", 24),
        ("SELECT * WHERE A WITHIN 3 MINUTES 4", "unexpected-end", 36),
        ("SELECT x, FROM S WHERE A", "unexpected", 11),
        ("SELECT * FROM S WHERE A, B", "misplaced-sign", 24),
        ("A ; B LIMIT 3", "missing-select", 7),
        ("SELECT * WHERE (A ; B LIMIT 3", "unclosed-bracket", 16),
        ("SELECT * WHERE A FILTER A.x IN (1, 2 LIMIT 3", "unclosed-bracket", 32),
        ("A ; B)", "unopened-bracket", 6),
        ("A ; B]", "unopened-bracket", 6),
        ("A AS 'x'", "missing-word", 6),
        ("A AS", "missing-word", 5),
        ("A +:", "unexpected-end", 5),
    ],
)
def test_code_and_place(text: str, code: str, column: int) -> None:
    with pytest.raises(CelError) as caught:
        parse(caught_source := Source("q.cel", text))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert caught_source.line_and_column(diagnostic.span.start) == (1, column)


# --- the mended texts that messages offer ---------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "A FILTER A.x > 1 ; B",
        "A ; B FILTER A.x > 1 UNLESS C",
        "A UNLESS B OR C",
        "A UNLESS B FILTER A.x > 1",
        "A FILTER A.x > 1 FILTER A.x < 3",
        "A FILTER A.x > 1 + ; B",
        "A FILTER A.x > 1 AND B",
        "A FILTER A.x > 1 [A -> B]",
    ],
)
def test_offered_parentheses_parse(text: str) -> None:
    with pytest.raises(CelError) as caught:
        parse(Source("q.cel", text))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help
    for line in diagnostic.help:
        assert parse(Source("q.cel", line.split(": ", 1)[1])).queries


def test_each_statement_is_reported() -> None:
    text = (
        "CREATE STREAM S { EVENT A { x INT } }\n"
        "CREATE STREAM T { EVENT B { x: } }\n"
        "QUERY one: SELECT * WHERE A ; ; B\n"
        "QUERY two: SELECT * WHERE A ; B\n"
        "QUERY three: SELECT * WHERE A WITHIN x\n"
    )
    with pytest.raises(CelError) as caught:
        parse(source := Source("q.cel", text))
    lines = [source.line_and_column(item.span.start)[0] for item in caught.value.diagnostics]
    assert lines == [1, 2, 3, 5]
