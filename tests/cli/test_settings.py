"""Settings of a project: `celc.toml`, or `[tool.celc]` of pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from celc.interfaces.cli.command import main
from celc.interfaces.cli.declaring.schemas import SchemaOfFiles
from celc.interfaces.cli.settings.files import SettingsError
from celc.interfaces.cli.settings.project import choices_for

QUERY = """\
CREATE STREAM S {
  EVENT A { ts: TIMESTAMP, v: INT },
  EVENT B { ts: TIMESTAMP, v: INT }
}

QUERY q:
SELECT *
FROM S
WHERE A ; B
WITHIN 10 MINUTES [ts]
"""
ROWS = (
    "CREATE TABLE t (x INT);\n"
    "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES COUNT(*) AS n PATTERN (A+) "
    "DEFINE A AS x > 1)\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with queries in a folder below it, and no settings."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "q.cel").write_text(QUERY, encoding="utf-8")
    (tmp_path / "rules" / "rows.sql").write_text(ROWS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _compiled_by(path: Path) -> str:
    (found,) = re.findall(r"^ *(celc compile .*)$", path.read_text("utf-8"), re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("name", ["celc.toml", "pyproject.toml"])
def test_settings_are_options_and_an_option_that_is_given_wins(project: Path, name: str) -> None:
    head = "[tool.celc]\n" if name == "pyproject.toml" else ""
    (project / name).write_text(f'{head}ties = "simultaneous"\nmax_work = 500\n', encoding="utf-8")
    assert main(["compile", "rules/q.cel", "-o", "one_udf.py"]) == 0
    assert _compiled_by(project / "one_udf.py").endswith("--ties simultaneous --max-work 500")
    assert main(["compile", "rules/q.cel", "-o", "two_udf.py", "--max-work", "7"]) == 0
    assert _compiled_by(project / "two_udf.py").endswith("--ties simultaneous --max-work 7")


def test_the_nearest_folder_counts_and_a_row_pattern_takes_what_it_has(project: Path) -> None:
    (project / "celc.toml").write_text("max_work = 1\n", encoding="utf-8")
    (project / "rules" / "celc.toml").write_text(
        'order_by = ["ts", "v"]\nmax_work = 9\n', encoding="utf-8"
    )
    assert main(["compile", "rules/q.cel", "-o", "q_udf.py"]) == 0
    assert _compiled_by(project / "q_udf.py").endswith("--order-by ts,v --max-work 9")
    assert main(["compile", "rules/rows.sql", "-o", "rows_udf.py"]) == 0
    assert _compiled_by(project / "rows_udf.py").endswith("rows_udf.py --max-work 9")


def test_events_are_run_where_none_are_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "rules/q.cel"]) == 2
    assert "name the files of events" in capsys.readouterr().err
    (project / "data").mkdir()
    (project / "data" / "s.csv").write_text(
        "type,ts,v\nA,2026-07-01 12:00:00,1\nB,2026-07-01 12:01:00,2\n"
    )
    (project / "celc.toml").write_text('events = ["data"]\n', encoding="utf-8")
    assert main(["run", "rules/q.cel", "--format", "json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["run", "rules/q.cel", "none.csv"]) == 2


def test_paths_are_checked_where_no_file_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == 2
    assert "the files of the setting paths are taken, and there is none" in capsys.readouterr().err
    (project / "celc.toml").write_text('paths = ["rules"]\n', encoding="utf-8")
    assert main(["check"]) == 0
    assert capsys.readouterr().out == "rules/q.cel: q: fine\nrules/rows.sql: rows: fine\n"
    assert main(["fmt", "--check"]) == 1
    assert "rules/rows.sql" in capsys.readouterr().err


def test_all_that_is_wrong_in_a_file_is_told_with_places(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(
        "[project]\nties = 1\n[tool.celc]\n"
        'ties = "equal"\nmax_wrk = 5\nfunctions = "f.py"\npaths = "rules"\norder_by = 3\n'
        'max_work = 0\n"max_states" = "x"\n[tool.other]\nschema = 1\n',
        encoding="utf-8",
    )
    for command in (["check", "rules"], ["check"], ["run", "rules/q.cel", "none.csv"]):
        assert main(command) == 2
        told = re.findall(r"^(pyproject.*)$", capsys.readouterr().err, re.MULTILINE)
        assert told == [
            "pyproject.toml:4:1: error[settings]: ties: it cannot be 'equal'; it can be "
            "'simultaneous'",
            "pyproject.toml:5:1: error[settings]: there is no setting 'max_wrk'",
            "pyproject.toml:6:1: error[settings]: functions is no setting",
            "pyproject.toml:7:1: error[settings]: paths is a list of files and folders, from the "
            "folder of this one, and this is 'rules'",
            "pyproject.toml:8:1: error[settings]: order_by is a column, or a list of columns, and "
            "this is 3",
            "pyproject.toml:9:1: error[settings]: max_work: 0 is no number of steps: give a whole "
            "number from 1 to 9223372036854775807",
            "pyproject.toml:10:1: error[settings]: max_states is a number, and this is 'x'",
        ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max_work = 1\nties == 2\n", "celc.toml:2:7: error[settings]: this is no TOML: Invalid"),
        ("ties = 'simul", "celc.toml:1:14: error[settings]: this is no TOML: Expected"),
    ],
)
def test_what_is_no_toml_has_its_place(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    (project / "celc.toml").write_text(text, encoding="utf-8")
    assert main(["check", "rules"]) == 2
    assert capsys.readouterr().err.startswith(told)


def test_two_files_and_two_projects_are_errors(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "celc.toml").write_text("", encoding="utf-8")
    (project / "pyproject.toml").write_text("[tool.celc]\n", encoding="utf-8")
    assert main(["check", "rules"]) == 2
    assert "[tool.celc] of pyproject.toml in this folder has settings as well: keep one of" in (
        capsys.readouterr().err
    )
    (project / "pyproject.toml").write_text("[tool]\ncelc = 3\n", encoding="utf-8")
    (project / "celc.toml").unlink()
    assert main(["check", "rules"]) == 2
    assert "tool.celc is a table of settings" in capsys.readouterr().err
    (project / "pyproject.toml").unlink()
    (project / "other").mkdir()
    (project / "other" / "celc.toml").write_text("", encoding="utf-8")
    (project / "other" / "q.cel").write_text(QUERY, encoding="utf-8")
    assert main(["check", "rules/q.cel", "other/q.cel"]) == 2
    assert "the files are of projects with other settings (no settings and " in (
        capsys.readouterr().err
    )


def test_the_language_server_takes_the_settings_of_each_file(project: Path) -> None:
    (project / "rules" / "celc.toml").write_text(
        'ties = "simultaneous"\nschema = "s.csv"\n', encoding="utf-8"
    )
    query, other = project / "rules" / "q.cel", project / "other.cel"
    (project / "rules" / "s.csv").write_text("type,x\nA,1\n", encoding="utf-8")
    options, schema = choices_for(["lsp"], query)
    assert options.ties == "simultaneous"
    assert isinstance(schema, SchemaOfFiles)
    assert schema.schema.names == ["type", "x"]
    options, schema = choices_for(["lsp"], other)
    assert (options.ties, schema) == (None, None)
    (project / "rules" / "s.csv").unlink()
    with pytest.raises(SettingsError, match=r"celc\.toml:2:1: error\[settings\]: schema: .*s\.csv"):
        choices_for(["lsp"], query)


def test_tests_of_queries_take_them(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rules" / "q.test.toml").write_text(
        '[[case]]\ngiven = """\ntype, v, ts\nA, 1, 2026-07-01 12:00:00\n'
        'B, 1, 2026-07-01 12:00:00\n"""\nexpected = []\n',
        encoding="utf-8",
    )
    (project / "celc.toml").write_text('ties = "simultaneous"\n', encoding="utf-8")
    assert main(["test", "rules"]) == 0
    (project / "celc.toml").write_text("", encoding="utf-8")
    assert main(["test", "rules"]) == 1
    (project / "celc.toml").write_text("tis = 1\n", encoding="utf-8")
    assert main(["test", "rules"]) == 2
    assert "celc.toml:1:1: error[settings]: there is no setting 'tis'" in capsys.readouterr().err
