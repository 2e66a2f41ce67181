"""`celc.compile_files`, and what it shares with `celc.compile` and the command line."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import celc
from celc.diagnostics.source import Source
from celc.driver import pipeline
from celc.editor.languages import CEL, ROW_PATTERNS, language_of
from celc.interfaces.cli import main
from celc.interfaces.cli.arguments import parser
from celc.interfaces.cli.queries import options_of
from celc.parse import syntax
from celc.parse.parser import parse as parse_file

_STREAM = "CREATE STREAM S { EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG } }\n"
_ROWS = """SELECT * FROM t MATCH_RECOGNIZE
(ORDER BY ts MEASURES FIRST(x) AS m PATTERN (A B) DEFINE B AS x > 1)"""
_COLUMNS = {"x": "INT", "ts": "LONG"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two queries, in folders of their own, and a text with MATCH_RECOGNIZE."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules" / "more").mkdir(parents=True)
    (tmp_path / "rules" / "one.cel").write_text(f"{_STREAM}A ; B")
    (tmp_path / "rules" / "more" / "two.cel").write_text(f"{_STREAM}QUERY second: SELECT * WHERE B")
    (tmp_path / "rows.sql").write_text(_ROWS)
    return tmp_path


@pytest.mark.parametrize(
    "paths",
    [
        "rules",
        Path("rules"),
        ["rules/more/two.cel", Path("rules/one.cel")],
        ["rules/more", "rules/one.cel", "rules/more/../one.cel"],
    ],
)
def test_files_become_one_module(paths: str | Path | list[str | Path], folder: Path) -> None:
    made = celc.compile_files(paths)
    assert list(made.queries) == ["second", "one"]
    assert "celc.compile_files(['two.cel', 'one.cel'])" in made.source
    given = list(map(str, paths)) if isinstance(paths, list) else [str(paths)]
    assert main(["compile", *given, "-o", "all_udf.py"]) == 0
    of_command = Path("all_udf.py").read_text()
    assert made.source.split("QUERY =")[1] == of_command.split("QUERY =")[1]


def test_one_file_is_what_its_text_is(folder: Path) -> None:
    text = Path("rules/one.cel").read_text()
    of_text = celc.compile(text, name="one.cel", order_by="ts", positions=True).source
    of_file = celc.compile_files("rules/one.cel", order_by="ts", positions=True).source
    assert of_text.split("QUERY =")[1] == of_file.split("QUERY =")[1]
    assert "celc.compile_files(['one.cel'], positions=True)" in of_file


def test_each_file_is_parsed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(source: Source) -> syntax.File:
        parsed.append(source.name)
        return parse_file(source)

    monkeypatch.setattr(pipeline, "parse", parse)
    celc.compile_files("rules")
    assert parsed == ["rules/more/two.cel", "rules/one.cel"]
    celc.compile(f"{_STREAM}A ; B")
    assert parsed[2:] == ["query.cel"]


def test_all_errors_of_all_files_are_told(folder: Path) -> None:
    Path("rules/one.cel").write_text(f"{_STREAM}A ; C\n")
    Path("rules/more/two.cel").write_text("A ;")
    with pytest.raises(celc.CelError) as raised:
        celc.compile_files("rules")
    told = str(raised.value)
    assert "rules/more/two.cel:1:4: error" in told
    assert "rules/one.cel:2:5: error[unknown-event-type]" in told
    assert [one.source.name for one in raised.value.problems] == [
        "rules/more/two.cel",
        "rules/one.cel",
    ]
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), type(again)) == (told, type(raised.value))


def test_what_is_warned_of_names_the_file_and_the_caller(folder: Path) -> None:
    Path("rules/one.cel").write_text(f"{_STREAM}SELECT * FROM S WHERE A AS x ; B AS x\n")
    with pytest.warns(celc.CelWarning, match=r"^rules/one\.cel:2:.*unsafe-label") as warned:
        made = celc.compile_files("rules")
    assert [one.filename for one in warned] == [__file__]
    assert [one.code for one in made.warnings] == ["unsafe-label"]


def test_other_options_compile_the_files_anew(folder: Path) -> None:
    made = celc.compile_files("rules/one.cel", order_by="ts")
    changed = pickle.loads(pickle.dumps(made)).with_options(ties="simultaneous")
    assert (changed.plan.source.ties, changed.plan.source.order_by) == ("simultaneous", ("ts",))


def test_a_file_with_match_recognize_is_a_module_of_its_own(folder: Path) -> None:
    rows = celc.compile_files("rows.sql", schema=_COLUMNS)
    assert list(rows.queries) == ["rows"]
    of_text = celc.compile(_ROWS, dialect="match_recognize", name="rows.sql", schema=_COLUMNS)
    assert rows.source.split("QUERY =")[1] == of_text.source.split("QUERY =")[1]
    for paths in (["rules", "rows.sql"], ["rows.sql", "rules/one.cel"]):
        with pytest.raises(ValueError, match=r"rows\.sql: a file with MATCH_RECOGNIZE becomes a "):
            celc.compile_files(paths)


def test_what_cannot_be_read_is_an_error_of_the_file(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.cel"):
        celc.compile_files(["rules/one.cel", "nothing.cel"])
    (folder / "latin.cel").write_bytes("-- ä".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.cel is not UTF-8 text: byte 3 is 0xe4"):
        celc.compile_files("latin.cel")
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: there is no \.cel file in this folder"):
        celc.compile_files(["rules", "empty"])
    with pytest.raises(ValueError, match="there is no file to compile"):
        celc.compile_files([])


def test_the_name_of_a_file_says_its_language() -> None:
    assert language_of("a.cel") is language_of("a", Path("b.cel")) is CEL
    assert language_of(Path("folder.cel") / "a.sql") is ROW_PATTERNS


@pytest.mark.parametrize(
    "arguments",
    [["compile", "q.sql"], ["check", "q.sql"], ["explain", "q.sql"], ["run", "q.sql", "t.csv"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_a_command_without_options_gives_none_that_are_of_cel(arguments: list[str]) -> None:
    assert ROW_PATTERNS.foreign(options_of(parser().parse_args(arguments))) == []


@pytest.mark.parametrize(
    "option",
    [
        {"order_by": "ts"},
        {"tiebreak": "ts"},
        {"ties": "simultaneous"},
        {"at_end": "closed"},
        {"positions": True},
        {"match_id": True},
        {"max_states": 3},
        {"first_order": True},
        {"max_compile_seconds": 3},
    ],
    ids=str,
)
def test_options_of_cel_are_refused_where_they_mean_nothing(
    option: dict[str, object], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ((name, value),) = option.items()
    with pytest.raises(ValueError, match=f"MATCH_RECOGNIZE has no option {name}"):
        celc.compile_files("rows.sql", schema=_COLUMNS, **option)
    given = f"--{name.replace('_', '-')}"
    arguments = [given] if value is True else [f"{given}={value}"]
    assert main(["compile", "rows.sql", *arguments]) == 2
    told = "with_options(match_id=True)" if name == "match_id" else f"{given} is for CEL"
    assert told in capsys.readouterr().err
