"""The cases of the language as tests: what `--write` records passes, whatever the query is, and
what `--mutate` tells notices the change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from places import CASES

from celc.compare import Difference
from celc.interfaces.cli import main
from celc.interfaces.cli.testing import mutation
from celc.interfaces.cli.testing.files import read_tests
from celc.interfaces.cli.testing.running import Runner


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)


def _write(folder: str, every: int, to: Path) -> int:
    """Write cases as test files without answers; returns how many cases they have."""
    written = 0
    for path in sorted((CASES / folder).glob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines()[::every]):
            case = json.loads(line)
            if "error" in case or "run_error" in case or "functions" in case:
                continue
            options = {"order_by": ["ts"]} | case.get("options", {})
            if "LASTING" in case["query"] or "UNCERTAIN" in case["query"]:
                options.pop("order_by")
            queries = re.findall(r"QUERY (\w+):", case["query"]) or [None]
            written += len(queries)
            name = f"{path.stem}-{number}"
            (to / f"{name}.cel").write_text(case["query"])
            text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
            for query in queries:
                text += "[[case]]\n" if query is None else f"[[case]]\nquery = '{query}'\n"
                text += f"given = '''\n{_lines(case['events'])}'''\n"
                of_query = case["query"].split(f"QUERY {query}:")[-1].split("QUERY ")[0]
                for set, rows in case.get("parameters", {}).items():
                    if f"FOR EACH {set}" in of_query:
                        text += f"parameters.{set} = '''\n{_lines(rows)}'''\n"
            (to / f"{name}.test.toml").write_text(text)
    return written


_FOLDERS = ["language", "parameters", "queries", "totals", "uncertain"]


@pytest.mark.long
@pytest.mark.parametrize("folder", _FOLDERS)
def test_recorded_answers_pass(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = _write(folder, 9, tmp_path)
    assert main(["test", str(tmp_path), "--write"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    code = main(["test", str(tmp_path)])
    told = capsys.readouterr()
    assert code == 0, (told.out[-3000:], told.err[-3000:])
    assert told.out == f"{cases} cases passed\n"
    assert cases > 1


@pytest.mark.long
@pytest.mark.parametrize("folder", _FOLDERS[:4])
def test_a_case_that_is_told_for_a_change_notices_it(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passes with the query, and not with its mutant."""
    monkeypatch.setattr(mutation, "SECONDS", 1.0)
    _write(folder, 40, tmp_path)
    assert main(["test", str(tmp_path), "--write"]) == 0
    shown = 0
    for path in sorted(tmp_path.glob("*.test.toml")):
        runner = Runner(read_tests(path))
        found = mutation.tried([runner])
        found = mutation.Tried(found.source, found.made, found.unnoticed[:3])
        options = path.read_text().split("[[case]]")[0]
        for one in mutation.with_streams([runner], found):
            if isinstance(one.shown, Difference):
                lines = mutation.case_lines(runner, one.mutant, one.query, one.shown)
                path.write_text("\n".join([options, *lines, ""]))
                tests = read_tests(path)
                changed = Runner(tests, one.mutant.of(runner.source))
                assert all(outcome.passed for outcome in Runner(tests).all()), path.read_text()
                assert not all(outcome.passed for outcome in changed.all()), path.read_text()
                shown += 1
    assert shown
