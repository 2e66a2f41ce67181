"""`celc check` of several files, folders and standard input, its formats, and shell completion."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from celc.interfaces.cli.arguments import parser
from celc.interfaces.cli.command import main
from celc.interfaces.cli.completion import SHELLS, script

STREAM = "CREATE STREAM S { EVENT A { id: INT }, EVENT B { id: INT } }\n"
FINE = f"{STREAM}SELECT * FROM S WHERE A ; B\n"
WRONG = f"{STREAM}SELECT * FROM S WHERE A AS x ; B AS y FILTER x.idd = 1\n"
WARNED = f"{STREAM}SELECT * FROM S WHERE A AS x ; B AS x\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query that is fine, one that is wrong and one with a warning."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries" / "more ones").mkdir(parents=True)
    (tmp_path / "queries" / "fine.cel").write_text(FINE, encoding="utf-8")
    (tmp_path / "queries" / "wrong.cel").write_text(WRONG, encoding="utf-8")
    (tmp_path / "queries" / "more ones" / "warned.cel").write_text(WARNED, encoding="utf-8")
    (tmp_path / "queries" / "notes.txt").write_text("no query", encoding="utf-8")
    return tmp_path


def test_a_folder_is_checked_with_all_below_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "queries"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "queries/fine.cel: fine: fine",
        "queries/more ones/warned.cel: warned: fine, 1 warning",
    ]
    assert "queries/wrong.cel:2:" in shown.err
    assert "queries/more ones/warned.cel:2:" in shown.err
    assert shown.err.endswith("1 error in 1 of 3 files\n")


def test_one_file_is_shown_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "queries/fine.cel"]) == 0
    assert capsys.readouterr().out == "fine: fine\n"
    assert main(["check", "queries/wrong.cel"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("wrong.cel:2:")
    assert shown.err.endswith("\n\n1 error\n")


def test_a_file_is_checked_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "queries/fine.cel", "queries", "queries/fine.cel"]) == 1
    assert capsys.readouterr().out.count("fine.cel") == 1


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["queries/none.cel", "queries/fine.cel"], "queries/none.cel: there is no such file"),
        (["empty", "queries/fine.cel"], "empty: there is no .cel or .sql file in this folder"),
        (["latin.cel", "queries/fine.cel"], "latin.cel is not UTF-8 text: byte 3 is 0xe4"),
    ],
)
def test_what_cannot_be_read_does_not_hide_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str], paths: list[str], said: str
) -> None:
    (folder / "empty").mkdir()
    (folder / "latin.cel").write_bytes("-- ä".encode("latin-1"))
    assert main(["check", *paths]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"celc: {said}\n"
    assert "fine: fine" in shown.out


def read_from(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_from(monkeypatch, FINE.encode())
    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out == "stdin: fine\n"
    read_from(monkeypatch, WRONG.encode())
    assert main(["check", "-"]) == 1
    assert capsys.readouterr().err.startswith("stdin.cel:2:")
    read_from(monkeypatch, b"A \xff")
    assert main(["check", "-"]) == 2
    assert "standard input is not UTF-8 text: byte 2 is 0xff" in capsys.readouterr().err


# --- formats --------------------------------------------------------------------------------------


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "queries", "--format", "json"]) == 1
    shown = capsys.readouterr()
    assert not shown.err
    warned, wrong = json.loads(shown.out)
    assert (warned["code"], warned["severity"]) == ("unsafe-label", "warning")
    assert warned["file"] == "queries/more ones/warned.cel"
    assert [one["message"] for one in warned["related"]] == ["also bound here"]
    column = WRONG.splitlines()[1].index("idd") + 1
    assert wrong == {
        "code": "unknown-attribute",
        "severity": "error",
        "file": "queries/wrong.cel",
        "line": 2,
        "column": column,
        "end": {"line": 2, "column": column + 3},
        "message": "events of type 'A' have no attribute 'idd'",
        "help": ["did you mean 'id'?", "attributes of 'A': 'id'"],
        "related": [],
        "fixes": [
            {
                "line": 2,
                "column": column,
                "end": {"line": 2, "column": column + 3},
                "text": "id",
            }
        ],
    }


def test_json_of_what_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "queries/fine.cel", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def assert_region(region: dict[str, Any]) -> None:
    """What the standard asks of a region of text: 1-based, the end not before the start."""
    assert {*region} == {"startLine", "startColumn", "endLine", "endColumn"}
    assert all(isinstance(value, int) and value >= 1 for value in region.values())
    start = (region["startLine"], region["startColumn"])
    assert start <= (region["endLine"], region["endColumn"])


def test_sarif(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that SARIF 2.1.0 requires of what is written is there, in its form."""
    assert main(["check", "queries", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "celc"
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == sorted(set(ids)) == ["unknown-attribute", "unsafe-label"]
    assert run["columnKind"] == "unicodeCodePoints"
    warned, wrong = run["results"]
    for result in (warned, wrong):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"]
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            physical = place["physicalLocation"]
            assert_region(physical["region"])
            assert not {*physical["artifactLocation"]["uri"]} & set(" \\%") - {"%"}
        for fix in result.get("fixes", ()):
            for change in fix["artifactChanges"]:
                assert change["artifactLocation"]["uri"]
                for replacement in change["replacements"]:
                    assert_region(replacement["deletedRegion"])
                    assert isinstance(replacement["insertedContent"]["text"], str)
    place = warned["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "queries/more%20ones/warned.cel"
    assert warned["relatedLocations"][0]["message"]["text"] == "also bound here"
    assert wrong["message"]["text"].splitlines()[1] == "help: did you mean 'id'?"
    (fix,) = wrong["fixes"]
    assert fix["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "id"}


def test_sarif_of_nothing_wrong_has_no_results(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "queries/fine.cel", "--format", "sarif"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["results"] == run["tool"]["driver"]["rules"] == []


# --- completion -----------------------------------------------------------------------------------


def completed(words: list[str], folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"{script(parser(), 'bash')}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
        '_shtab_celc; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert not done.stderr
    return sorted(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["celc", "c"], ["check", "compile", "completion"]),
        (["celc", "check", "--fo"], ["--format"]),
        (["celc", "check", "--format", ""], ["json", "sarif", "text"]),
        (["celc", "explain", "--stage", "t"], ["tables"]),
        (["celc", "run", "--output", "f"], ["fine.cel"]),
        (["celc", "check", "f"], ["fine.cel"]),
        (["celc", "run", "--max-work", ""], []),
    ],
)
def test_bash_completes(words: list[str], offered: list[str], folder: Path) -> None:
    assert completed(words, folder / "queries") == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    dashes = {"fish": "-l ", "tcsh": ""}.get(shell, "--")
    for name in ("format", "order-by", "max-states", "first-order", "standalone", "stage"):
        assert f"{dashes}{name}" in text
    assert all(f"{word}" in text for word in ("check", "completion", "sarif", "parquet"))


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_accept_their_script(shell: str, tmp_path: Path) -> None:
    program = None if shell == "powershell" else shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    path = tmp_path / "script"
    path.write_text(script(parser(), shell), encoding="utf-8")
    assert subprocess.run([program, "-n", path], check=False).returncode == 0
