"""Several files that become one module: on the command line, and what cannot be one."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from engines import interpreted

from celc import Matcher
from celc.diagnostics import deadline
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver import pipeline
from celc.driver.pipeline import compile_files
from celc.interfaces.cli import main
from celc.interfaces.cli.reading.origins import Origin
from celc.options import Options
from celc.parse import syntax
from celc.parse.parser import parse as parse_file

_STREAM = """CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }
"""


def _files(folder: Path, **bodies: str) -> list[str]:
    paths = []
    for name, text in bodies.items():
        paths.append(folder / f"{name}.cel")
        paths[-1].write_text(text)
    return list(map(str, paths))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_become_one_module(folder: Path, capsys: Any) -> None:
    one = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B"
    two = f"{_STREAM}-- the same stream\nQUERY two: SELECT * FROM S WHERE B ; A"
    files = _files(folder, a=one, b=two)
    assert main(["compile", *files]) == 2
    assert "2 files become one module: name it with -o" in capsys.readouterr().err
    assert main(["compile", *files, "-o", "all_udf.py"]) == 0
    assert "celc compile a.cel b.cel -o all_udf.py" in (folder / "all_udf.py").read_text()
    of_files = (folder / "all_udf.py").read_text().split("QUERY =")[1]
    (folder / "rules").mkdir()
    _files(folder / "rules", a=one, b=two)
    assert main(["compile", "rules", "-o", "rules_udf.py"]) == 0
    assert (folder / "rules_udf.py").read_text().split("QUERY =")[1] == of_files


def test_the_name_of_a_file_ends_no_comment(folder: Path) -> None:
    one, two = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B", "QUERY two: SELECT * WHERE B ; A"
    files = _files(folder, **{"a\nb": one, "c\u2028d": _STREAM + two})
    assert main(["compile", *files, "-o", "all_udf.py"]) == 0
    text = Matcher((folder / "all_udf.py").read_text()).QUERY
    assert f"-- a\\nb.cel\n{_STREAM}" in text
    assert f"-- c\\u2028d.cel\n{_STREAM}" in text


def test_files_are_run_together(folder: Path, capsys: Any) -> None:
    one, two = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B", "QUERY two: SELECT * WHERE B ; A"
    files = _files(folder, a=one, b=_STREAM + two)
    (folder / "events.csv").write_text("type,id\nA,1\nB,2\nA,3\n")
    assert main(["run", *files, "events.csv", "--format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["query"], line["start"], line["end"]) for line in lines] == [
        ("one", 0, 1),
        ("two", 1, 2),
    ]
    assert main(["run", *files, "events.csv", "--query", "two", "--format", "json"]) == 0
    assert '"query": "two"' in capsys.readouterr().out
    assert main(["run", *files, "events.csv", "--query", "three"]) == 2
    assert "there is no query 'three' in the files" in capsys.readouterr().err


def test_files_that_do_not_go_together(folder: Path, capsys: Any) -> None:
    one = f"{_STREAM}QUERY one: SELECT * FROM S WHERE A ; B"
    other = _STREAM.replace("EVENT B { id: INT }", "EVENT B { id: LONG, v: INT }").replace(
        "A { id: INT", "A { id: LONG"
    )
    files = _files(folder, a=one, b=other + one.removeprefix(_STREAM))
    assert main(["compile", *files, "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    said = (
        f"/b.cel:1:15: error[declared-otherwise]: stream 'S' is declared otherwise in {files[0]}:1"
    )
    assert said in told
    assert f"error[query-of-two-files]: a query called 'one' stands in {files[0]}:2" in told
    assert told.rstrip().endswith("2 errors")
    assert not (folder / "all_udf.py").exists()


def test_errors_of_several_files_are_all_told(folder: Path, capsys: Any) -> None:
    files = _files(
        folder, a=f"{_STREAM}SELECT x FROM S WHERE A", b=f"{_STREAM}SELECT y FROM S WHERE A"
    )
    assert main(["compile", *files, "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    assert "a.cel:2:8: error" in told
    assert "b.cel:2:8: error" in told
    assert "2 errors" in told


@pytest.mark.parametrize("query", ["QUERY one: SELECT * FROM S WHERE A ; B", "A ; B"])
def test_files_of_one_name_in_two_folders_are_two(query: str, folder: Path, capsys: Any) -> None:
    for name in "ab":
        (folder / name).mkdir()
        _files(folder / name, one=_STREAM + query)
    assert main(["compile", "a/one.cel", "b/one.cel", "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("b/one.cel:2:")
    assert "error[query-of-two-files]: a query called 'one' stands in a/one.cel:2 as well" in told


def test_a_file_that_is_named_twice_counts_once(folder: Path, capsys: Any) -> None:
    (folder / "a").mkdir()
    _files(folder / "a", one=f"{_STREAM}A ; B", two=f"{_STREAM}B ; A")
    assert main(["compile", "a/one.cel", "./a", "a/../a/two.cel", "-o", "all_udf.py"]) == 0
    text = (folder / "all_udf.py").read_text()
    assert list(Matcher(text).QUERIES) == ["one", "two"]
    assert main(["check", "a/one.cel", "a/../a/one.cel"]) == 0
    assert capsys.readouterr().out.count("fine") == 1


def test_all_files_that_cannot_be_read_are_told(folder: Path, capsys: Any) -> None:
    (file,) = _files(folder, a=f"{_STREAM}A ; B")
    (folder / "latin.cel").write_bytes("-- ä".encode("latin-1"))
    assert main(["compile", "nothing.cel", file, "latin.cel", "-o", "all_udf.py"]) == 2
    assert capsys.readouterr().err == (
        "celc: nothing.cel: there is no such file; latin.cel is not UTF-8 text: byte 3 is 0xe4\n"
    )
    assert main(["compile", "-"]) == 2
    assert "only check and fmt read a query from standard input" in capsys.readouterr().err


def test_an_empty_file_among_others_is_an_error_of_its_own(folder: Path, capsys: Any) -> None:
    files = _files(folder, a=f"{_STREAM}A ; B", b="", c=f"{_STREAM}A ; C")
    assert main(["compile", *files, "-o", "all_udf.py"]) == 1
    told = capsys.readouterr().err
    assert f"{files[1]}:1:1: error[no-query]: the file is empty" in told
    assert f"{files[2]}:2:5: error[unknown-event-type]" in told
    assert told.endswith("\n2 errors\n")


def test_files_have_one_deadline_and_each_is_parsed_once(
    folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(source: Source) -> syntax.File:
        parsed.append(source.name)
        return parse_file(source)

    monkeypatch.setattr(pipeline, "parse", parse)
    files = _files(folder, a=f"{_STREAM}A ; B", b=f"{_STREAM}B ; A", c=f"{_STREAM}B ; B")
    assert main(["compile", *files, "-o", "all_udf.py"]) == 0
    assert parsed == files
    # One look at the clock is one second: each file alone has time enough.
    looks = itertools.count()
    monkeypatch.setattr(deadline, "clock", lambda: next(looks))
    for file in files:
        assert main(["check", file, "--max-compile-seconds", "200"]) == 0
    assert main(["check", *files, "--max-compile-seconds", "200"]) == 0
    assert main(["compile", *files, "-o", "b_udf.py", "--max-compile-seconds", "200"]) == 1
    assert capsys.readouterr().err.count("error[too-slow-to-compile]") == 1


def test_an_ended_compilation_says_where_in_which_file(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()
    monkeypatch.setattr(deadline, "clock", lambda: next(looks))
    sources = [
        Source(name, "\n" * line + _STREAM + query)
        for line, (name, query) in enumerate({"a": "A ; B", "b": "B ; A", "c": "B ; B"}.items())
    ]
    found = {}
    for seconds in itertools.count(1, 3):
        try:
            compile_files(sources, Options(max_compile_seconds=seconds)).module_parts("test")
        except CelError as problem:
            (one,) = problem.diagnostics
            where, slice = problem.source, problem.source.slice(one.span)
            assert where in sources
            found[where.name, one.message.split("celc was ")[1].split()[0]] = slice
        else:
            break
    for source, slice in zip(sources, ("A ; B", "B ; A", "B ; B"), strict=True):
        parts = {slice, *slice.split(" ; ")}
        assert {found[source.name, "building"], found[source.name, "writing"]} <= parts


def test_with_a_query_the_warnings_are_about_it(folder: Path, capsys: Any) -> None:
    likes = [f"QUERY {n}: SELECT x FROM S WHERE A AS x FILTER x.s LIKE '.*{n}.*'" for n in "abc"]
    reader = "QUERY d: SELECT * FROM b WHERE b AS y ; b"
    streams = "CREATE STREAM S { EVENT A { s: STRING, ts: TIMESTAMP } }"
    (file,) = _files(folder, some="\n".join((streams, *likes, reader)))
    (folder / "events.csv").write_text("type,s,ts\nA,x,2026-07-01 00:00:00\n")
    for query, told in {"b": "b", "d": "b", "a": "a"}.items():
        assert main(["run", file, "events.csv", "--query", query, "--order-by", "ts"]) == 0
        said = capsys.readouterr().err
        assert [n for n in "abc" if f"'.*{n}.*'" in said] == [told], said


# --- a file of output for each query --------------------------------------------------------------

TWO_QUERIES = """\
CREATE STREAM S { EVENT A { id: LONG }, EVENT B { id: LONG } }
QUERY firsts:
SELECT a[id] FROM S WHERE A AS a
QUERY pairs:
SELECT a[id], b[id] FROM S WHERE A AS a ; B AS b
"""


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "txt", "html", "jsonl"])
def test_each_query_writes_its_file_as_if_it_ran_alone(ending: str, tmp_path: Path) -> None:
    (tmp_path / "two.cel").write_text(TWO_QUERIES)
    (tmp_path / "e.csv").write_text("type,id\nA,1\nB,2\nA,3\nB,4\n")
    run = ["run", str(tmp_path / "two.cel"), str(tmp_path / "e.csv")]
    more = ["--format", "rows"] if ending == "jsonl" else []
    with interpreted():
        assert main([*run, *more, "-o", str(tmp_path / ("{query}." + ending))]) == 0
        for name in ("firsts", "pairs"):
            alone = tmp_path / f"alone.{ending}"
            assert main([*run, *more, "--query", name, "-o", str(alone), "--force"]) == 0
            assert (tmp_path / f"{name}.{ending}").read_bytes() == alone.read_bytes()


MANY_QUERIES = """\
CREATE STREAM S {
  EVENT A { id: LONG, v: LONG, at: TIMESTAMP, hour: INT = HOUR(at) },
  EVENT B { id: LONG, v: LONG, at: TIMESTAMP, hour: INT = HOUR(at) }
}
QUERY plain: SELECT a[id] FROM S WHERE A AS a FILTER a.v > 5
QUERY window: SELECT FLAT a, b FROM S WHERE A AS a ; B AS b WITHIN 5 MINUTES [at]
QUERY neighbours: SELECT * FROM S WHERE A : B WITHIN 4 EVENTS
QUERY parts: SELECT * FROM S WHERE A AS a ; B AS b FILTER a.v < b.v PARTITION BY id WITHIN 9 [at]
QUERY others: SELECT a[hour] FROM S WHERE A AS a ; A PARTITION BY v
QUERY silence: SELECT * FROM S WHERE A AS a ; !B FOR 2 MINUTES [at]
QUERY late: SELECT * FROM S WHERE (A AS a ; !B FOR 2 MINUTES [at]) OR B PARTITION BY id
QUERY total: SELECT TOTAL COUNT(*) AS n FROM S WHERE A+ ; B WITHIN 3 EVENTS
QUERY chain: SELECT * FROM plain, S WHERE plain ; B
"""


@pytest.mark.each(2)
@pytest.mark.parametrize("order", ["sorted", "sorted for all", "by id", "mixed"])
def test_several_queries_read_their_events_once(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{'AB'[n % 5 > 2]},{n % 3},{n * 7 % 11},2026-07-01 12:{n // 2:02}:{n % 2 * 30:02}"
        for n in range(60)
    ]
    if order == "by id":
        rows.sort(key=lambda row: row.split(",")[1])
    if order == "mixed":
        random.Random(1).shuffle(rows)
    Path("e.csv").write_text("\n".join(["type,id,v,at", *rows, ""]))
    text = MANY_QUERIES.replace("WITHIN 9 [at]", "WITHIN 9 MINUTES [at]")
    if order == "sorted for all":
        text = "".join(line for line in text.splitlines(True) if "PARTITION" not in line)
    Path("many.cel").write_text(text)
    run = ["run", "many.cel", "e.csv", "--order-by", "at"]
    opened: list[str] = []
    whole = Origin.opened

    def counted(origin: Origin) -> Any:
        opened.append(origin.name)
        return whole(origin)

    names = re.findall(r"QUERY (\w+):", text)
    for name in names:
        assert main([*run, "--query", name, "-o", f"alone-{name}.json"]) == 0
    monkeypatch.setattr(Origin, "opened", counted)
    assert main([*run, "-o", "{query}.json"]) == 0
    for name in names:
        assert Path(f"{name}.json").read_bytes() == Path(f"alone-{name}.json").read_bytes(), name
    # A reading opens a file twice, for the names of its columns too. Two of them see whether the
    # events are sorted, and the query over a query reads them alone.
    assert len(opened) <= 2 * 5


def test_files_of_several_queries_appear_together_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.cel").write_text(TWO_QUERIES.replace("b[id]", "b[id] -- B lacks it\n"))
    (tmp_path / "e.csv").write_text("type,id\nA,1\nB,x\n")
    run = ["run", str(tmp_path / "two.cel"), str(tmp_path / "e.csv")]
    with interpreted():
        assert main([*run, "-o", str(tmp_path / "{query}.csv")]) == 2
        assert not [*tmp_path.glob("*s.csv")]
        assert main([*run, "-o", str(tmp_path / "all.parquet")]) == 2
    assert "write a file for each with -o '{query}.parquet'" in capsys.readouterr().err
    (tmp_path / "pairs.csv").write_text("old")
    with interpreted():
        assert main([*run, "--on-bad-row", "skip", "-o", str(tmp_path / "{query}.csv")]) == 2
    assert "pairs.csv exists" in capsys.readouterr().err
    assert (tmp_path / "pairs.csv").read_text() == "old"
    assert not (tmp_path / "firsts.csv").exists()


def test_options_stand_before_and_between_events(folder: Path, capsys: Any) -> None:
    (query,) = _files(folder, q=f"{_STREAM}QUERY q: SELECT * FROM S WHERE A ; B")
    (folder / "one.csv").write_text("type,id\nA,1\n")
    (folder / "two.csv").write_text("type,id\nB,2\n")
    assert main(["run", query, "one.csv", "two.csv", "--format", "json", "--order-by", "id"]) == 0
    found = capsys.readouterr().out
    assert '"end": 1' in found
    for words in (
        [query, "--format", "json", "one.csv", "two.csv", "--order-by", "id"],
        [query, "--format", "json", "one.csv", "--order-by", "id", "two.csv"],
    ):
        assert main(["run", *words]) == 0
        assert capsys.readouterr().out == found
    with pytest.raises(SystemExit):
        main(["run", query, "--format", "json", "one.csv", "--no-such"])
    assert "unrecognized arguments" in capsys.readouterr().err


def test_a_query_that_another_reads_warns_once(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    """It is run for its own answer, and for that of its reader."""
    monkeypatch.chdir(tmp_path)
    declared = "CREATE STREAM S { EVENT A { v: INT, ts: PRIMARY_TIME } }\n"
    one = "QUERY one: SELECT a.v AS v FROM S WHERE A AS a\n"
    two = "QUERY two: SELECT x.v AS v FROM one WHERE one AS x ; one WITHIN 1 HOUR\n"
    Path("q.cel").write_text(declared + one + two)
    Path("e.csv").write_text("type,v,ts\nA,1,2026-07-01 12:00:00\nB,2,2026-07-01 12:01:00\n")
    assert main(["run", "q.cel", "e.csv", "--format", "json"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len({*told})
    assert sum("a type that none of its streams declares" in line for line in told) == 1
