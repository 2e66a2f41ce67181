"""`celc fmt` and `celc.format_text`: only the layout changes, and a second run changes nothing.

That the words, the comments and the tree stay is asserted by the formatter itself, for every text.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from all_queries import Query, queries_of_the_repository

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.editor.formatting import cel, chains, documents, row_patterns, text
from celc.interfaces.cli import main

ALL = list(queries_of_the_repository())
# Cases of one file are alike: every fifteenth, and all that is no case.
FEW = [query for number, query in enumerate(ALL) if number % 40 == 0 or "." in query[0]]


def _formats(queries: list[Query]) -> int:
    """Format queries twice; the number of those that are in the language."""
    fine = 0
    for name, dialect, query in queries:
        try:
            once = celc.format_text(query, dialect=dialect)
        except CelError:
            continue
        fine += 1
        assert celc.format_text(once, dialect=dialect) == once, name
    return fine


def test_queries_of_the_repository_keep_their_meaning_and_a_second_run_changes_nothing() -> None:
    assert _formats(FEW) > 200


@pytest.mark.long
def test_every_query_of_the_repository() -> None:
    assert _formats(ALL) > 2000


_COMMENTS = ("-- {}\n", "/* {} */", "/* {}\n  more */", "\n-- {}\n", "\n\n-- {}\n\n-- more\n")
_COMMENTS += ("\n/* {} */\n", " -- {}\n\n", "/* {} *//* and */")


def _with_comments(query: str, dialect: str, chosen: random.Random) -> str:
    """The query with comments at random places, and other white space."""
    words_of = row_patterns.words_of if dialect == "match_recognize" else cel.words_of
    _, words = words_of(Source("query", query))
    parts, place = [], 0
    for number, word in enumerate(words):
        gap = query[place : word.start]
        if chosen.random() < 0.15:
            gap = f" {chosen.choice(_COMMENTS).format(number)} "
        elif gap and not gap.strip():
            gap = chosen.choice((gap, " ", "\n", "\r\n", "\n\n  ", "\t"))
        parts += [gap, query[word.start : word.end]]
        place = word.end
    return "".join(parts)


@pytest.mark.each(2)
@pytest.mark.parametrize("dialect", ["cel", "match_recognize"])
def test_comments_stay_at_their_words_wherever_they_stand(dialect: str) -> None:
    chosen = random.Random(29)
    of_dialect = [query for query in ALL if query[1] == dialect]
    tried = 0
    for name, _, query in of_dialect[:: len(of_dialect) // 45]:
        try:
            mixed = _with_comments(query, dialect, chosen)
            once = celc.format_text(mixed, dialect=dialect)
        except CelError:
            continue  # RUNNING, TIMESTAMP and others must stand directly before what they belong to
        tried += 1
        assert celc.format_text(once, dialect=dialect) == once, name
    assert tried > 30


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("words_of", "words"),
        ("attach_comments", "comment"),
        ("same_tree", "formula"),
    ],
)
def test_a_layout_that_says_something_else_is_not_given(
    broken: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "words_of":
        monkeypatch.setattr(text, "lines_of", lambda _: "SELECT * FROM S WHERE B")
    elif broken == "attach_comments":
        monkeypatch.setattr(cel, "attach_comments", lambda *_: None)
    else:
        monkeypatch.setattr(text, "same_tree", lambda *_: False)
    with pytest.raises(AssertionError, match=message):
        celc.format_text("SELECT * FROM S WHERE A -- why")


# --- the layout -----------------------------------------------------------------------------------

LAYOUTS = {
    "clauses stand on lines of their own": (
        "select x from S where A as x within 10 events",
        "SELECT x\nFROM S\nWHERE A AS x\nWITHIN 10 EVENTS\n",
    ),
    "names that are spelled like keywords stay": (
        "select first, step from s where last as step filter step.select > 1",
        "SELECT first, step\nFROM s\nWHERE last AS step FILTER step.select > 1\n",
    ),
    "an operator begins its line": (
        "SELECT * FROM S WHERE (Failed AS first ; Failed AS again ; Passed AS entry) "
        "FILTER first.address NOT LIKE '10.%' AND again.attempt BETWEEN 2 AND 20",
        """\
SELECT *
FROM S
WHERE (Failed AS first ; Failed AS again ; Passed AS entry)
  FILTER first.address NOT LIKE '10.%' AND again.attempt BETWEEN 2 AND 20
""",
    ),
    "parentheses that do not fit hold lines of their own": (
        "SELECT * FROM Quotes WHERE ((Quote AS lowest ; Quote AS middle) OR (Quote AS first ; "
        "Quote AS second)) FILTER lowest.price < middle.price",
        """\
SELECT *
FROM Quotes
WHERE ((Quote AS lowest ; Quote AS middle) OR (Quote AS first ; Quote AS second))
  FILTER lowest.price < middle.price
""",
    ),
    "signs": (
        "S > A as a{ 2 , 3 } : B +;C:+ ; D ? ; !E for 10 minutes",
        "S>A AS a{2,3} : B+ ; C:+ ; D? ; !E FOR 10 MINUTES\n",
    ),
    "declarations": (
        "create stream S{event A{x:INT,y:INT},event B{}} parameters r{a:INT,b:INT,c:INT}valid[b,c] "
        "select * from S for each r where A",
        """\
CREATE STREAM S {
  EVENT A { x: INT, y: INT },
  EVENT B {}
}

PARAMETERS r { a: INT, b: INT, c: INT } VALID [b, c]

SELECT *
FROM S
FOR EACH r
WHERE A
""",
    ),
    "uncertain time": (
        "create stream S uncertain[low,high]by 1 second weighted w{event A{low:TIMESTAMP,"
        "high:TIMESTAMP,w:ARRAY<DOUBLE>}} "
        "select * from S where A within 3 seconds with confidence>=0.5",
        """\
CREATE STREAM S UNCERTAIN [low, high] BY 1 SECOND WEIGHTED w {
  EVENT A { low: TIMESTAMP, high: TIMESTAMP, w: ARRAY<DOUBLE> }
}

SELECT *
FROM S
WHERE A
WITHIN 3 SECONDS
WITH CONFIDENCE >= 0.5
""",
    ),
    "events that last": (
        "create stream J lasting[start,end]{event A{start:LONG,end:LONG}} A;first A",
        """\
CREATE STREAM J LASTING [start, end] {
  EVENT A { start: LONG, end: LONG }
}

A ; FIRST A
""",
    ),
    "aggregates": (
        "aggregate net(a:INT):LONG state t:LONG=0 step t=t+IF(a>0,a,- a) result t A",
        """\
AGGREGATE net(a: INT): LONG
  STATE t: LONG = 0
  STEP t = t + IF(a > 0, a, -a)
  RESULT t

A
""",
    ),
    "comments": (
        "-- of the file\n\n\n-- of the query\nSELECT * -- all\nFROM S WHERE -- a first\n"
        "  A ; -- then\n  -- more of it\n  B -- the end",
        """\
-- of the file

-- of the query
SELECT * -- all
FROM S
WHERE -- a first
  A -- then
  -- more of it
  ; B -- the end
""",
    ),
    "two signs in a row are no comment": (
        "A AS a FILTER a.x > - - 1",
        "A AS a FILTER a.x > - -1\n",
    ),
}


@pytest.mark.parametrize("what", LAYOUTS)
def test_layout(what: str) -> None:
    query, expected = LAYOUTS[what]
    assert celc.format_text(query) == expected


def test_layout_of_match_recognize() -> None:
    query = (
        "select m.a from t match_recognize(partition by k order by ts desc nulls last measures "
        "case when a.x>1 then 'some text' when a.x between 2 and 3 then 'another text' else "
        "'the last text' end as c, count(*) as n all rows per match after match skip to next row "
        "pattern(^ a{2,3}? (b|c)*{-d-}permute(e,f)$)within interval '1' hour subset u=(a,b) "
        "define a as running last(x)>1 and x not in(1,2))as m;"
    )
    assert celc.format_text(query, dialect="match_recognize") == """\
SELECT m.a
FROM t MATCH_RECOGNIZE (
  PARTITION BY k
  ORDER BY ts DESC NULLS LAST
  MEASURES
    CASE
      WHEN a.x > 1 THEN 'some text'
      WHEN a.x BETWEEN 2 AND 3 THEN 'another text'
      ELSE 'the last text'
    END AS c,
    count(*) AS n
  ALL ROWS PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (^ a{2,3}? (b | c)* {- d -} PERMUTE(e, f) $)
  WITHIN INTERVAL '1' hour
  SUBSET u = (a, b)
  DEFINE a AS RUNNING last(x) > 1 AND x NOT IN (1, 2)
) AS m;
"""


def test_lines_are_broken_where_they_can_be() -> None:
    names = [f"label{number}" for number in range(40)]
    query = f"SELECT {', '.join(names)} FROM S WHERE {' ; '.join(f'A AS {n}' for n in names)}"
    lines = celc.format_text(query).splitlines()
    assert max(map(len, lines)) <= documents.WIDTH
    assert "  ; A AS label39" in lines
    # Single words fill their lines.
    assert len(lines) < 40 + 10


def test_texts_that_nest_deeply_and_long_lists_are_formatted_without_recursion() -> None:
    deep = f"{'(' * 3000}A{')' * 3000} ; B"
    assert celc.format_text(deep).replace("\n", "").replace(" ", "") == deep.replace(" ", "")
    long = f"A AS a FILTER a.x IN ({', '.join(map(str, range(5000)))})"
    assert len(celc.format_text(long).splitlines()) > 200
    assert chains.COMMA == 0


def test_a_text_with_errors_is_refused_with_all_of_them() -> None:
    with pytest.raises(CelError) as raised:
        celc.format_text("QUERY a: SELECT * FROM S WHERE ; QUERY b: SELECT * FROM S WHERE A FILTER")
    assert len(raised.value.diagnostics) == 2
    with pytest.raises(ValueError, match="dialect must be"):
        celc.format_text("A", dialect="sql")


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query that is formatted, two that are not, and one with an error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fine.cel").write_text("SELECT *\nFROM S\nWHERE A\n")
    (tmp_path / "other.cel").write_text("select * from S where A")
    (tmp_path / "rows.sql").write_text("select * from t match_recognize(pattern(a)define a as x>1)")
    return tmp_path


def test_a_folder_is_formatted_in_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.cel").chmod(0o640)
    assert main(["fmt", "."]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == ["changed other.cel", "changed rows.sql", "2 files changed, 1 file unchanged"]
    assert (folder / "other.cel").read_text() == (folder / "fine.cel").read_text()
    assert (folder / "other.cel").stat().st_mode & 0o777 == 0o640
    assert main(["fmt", ".", "--check"]) == 0
    assert capsys.readouterr().err.splitlines() == ["3 files unchanged"]


def test_check_and_diff_change_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["fmt", "--check", "."]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "would change other.cel",
        "would change rows.sql",
        "2 files would change, 1 file unchanged",
    ]
    assert main(["fmt", "--diff", "other.cel"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "--- other.cel",
        "+++ other.cel (formatted)",
        "@@ -1 +1,3 @@",
        "-select * from S where A",
        "\\ No newline at end of file",
        "+SELECT *",
        "+FROM S",
        "+WHERE A",
    ]
    assert main(["fmt", "--diff", "--check", "other.cel"]) == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_difference_has_the_lines_of_the_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As other programs see them, which apply it."""
    (folder / "signs.cel").write_text("-- a\f b\u2028c\nselect * from S where A\n")
    assert main(["fmt", "--diff", "signs.cel"]) == 0
    assert "No newline" not in capsys.readouterr().out


def test_a_file_with_errors_stays_and_the_others_are_formatted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.cel").write_text("select * from S where")
    assert main(["fmt", "."]) == 1
    told = capsys.readouterr().err
    assert "broken.cel:1:22: error[" in told
    assert told.splitlines()[-1] == "2 files changed, 1 file unchanged, 1 file with errors"
    assert (folder / "broken.cel").read_text() == "select * from S where"
    assert main(["fmt", "missing.cel"]) == 2


@pytest.mark.parametrize(
    ("options", "query", "expected"),
    [
        ([], "select * from S where A", "SELECT *\nFROM S\nWHERE A\n"),
        (
            ["--dialect", "match_recognize"],
            "select * from t match_recognize(pattern(a)define a as x>1)",
            "SELECT *\nFROM t MATCH_RECOGNIZE (\n  PATTERN (a)\n  DEFINE a AS x > 1\n)\n",
        ),
    ],
)
def test_standard_input_goes_to_standard_output(
    options: list[str],
    query: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(query.encode())))
    assert main(["fmt", "-", *options]) == 0
    assert capsys.readouterr() == (expected, "")


def test_other_sql_in_a_folder_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.sql").write_text("select 1")
    assert main(["fmt", "."]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "2 files changed, 1 file unchanged"
    assert main(["fmt", "other.sql"]) == 1


def test_windows_line_ends_and_a_byte_order_mark_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.cel"
    path.write_bytes("\ufeffSELECT *\r\nFROM S -- c\r\nWHERE A\r\n".encode())
    assert main(["fmt", str(path)]) == 0
    assert path.read_bytes() == b"SELECT *\nFROM S -- c\nWHERE A\n"


def test_the_dialect_of_a_file_is_that_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "a.cel", "--dialect", "cel"]) == 2
    assert "--dialect is of standard input" in capsys.readouterr().err


_TYPES = """CREATE STREAM S {
  EVENT A {
    price: DECIMAL(12, 4),
    name: STRING,
    rows: ARRAY<ARRAY<INT>>,
    place: STRUCT<x: INT, more: MAP<STRING, STRING>>,
    local: TIMESTAMP_NTZ,
    share: DOUBLE,
    kept: STRING( /* length */ 20)
  }
}

PARAMETERS rule { id: LONG }

AGGREGATE least(a: LONG): FLOAT
  STATE n: INT = 0
  STEP n = IF(a < 3, n, 4)
  RESULT n

SELECT *
FROM S
WHERE A
"""


def test_types_have_the_words_of_the_language() -> None:
    written = (
        "CREATE STREAM S { EVENT A { price: numeric(12,4), name: VARCHAR( 20 ), "
        "rows: LIST < ARRAY<Integer> >, place: STRUCT<x: INT32, more:MAP<text ,STRING>>, "
        "local: TIMESTAMP without time zone, share: double precision, "
        "kept: VARCHAR(/* length */ 20) } } PARAMETERS rule { id: BIGINT } "
        "AGGREGATE least(a: int64): real STATE n: Integer = 0 STEP n = IF(a < 3, n, 4) RESULT n "
        "SELECT * FROM S WHERE A"
    )
    assert celc.format_text(written) == _TYPES
    assert celc.format_text(_TYPES) == _TYPES
