"""The cases of the language as tests: what `--write` records passes, whatever the query is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from places import CASES

from celc.interfaces.cli import main


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("folder", ["language", "parameters", "queries", "totals", "uncertain"])
def test_recorded_answers_pass(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = 0
    for path in sorted((CASES / folder).glob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines()[::9]):
            case = json.loads(line)
            if "error" in case or "run_error" in case or "functions" in case:
                continue
            options = {"order_by": ["ts"]} | case.get("options", {})
            if "LASTING" in case["query"] or "UNCERTAIN" in case["query"]:
                options.pop("order_by")
            queries = re.findall(r"QUERY (\w+):", case["query"]) or [None]
            cases += len(queries)
            name = f"{path.stem}-{number}"
            (tmp_path / f"{name}.cel").write_text(case["query"])
            text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
            for query in queries:
                text += "[[case]]\n" if query is None else f"[[case]]\nquery = '{query}'\n"
                text += f"given = '''\n{_lines(case['events'])}'''\n"
                of_query = case["query"].split(f"QUERY {query}:")[-1].split("QUERY ")[0]
                for set, rows in case.get("parameters", {}).items():
                    if f"FOR EACH {set}" in of_query:
                        text += f"parameters.{set} = '''\n{_lines(rows)}'''\n"
            (tmp_path / f"{name}.test.toml").write_text(text)
    assert main(["test", str(tmp_path), "--write"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    code = main(["test", str(tmp_path)])
    told = capsys.readouterr()
    assert code == 0, (told.out[-3000:], told.err[-3000:])
    assert told.out == f"{cases} cases passed\n"
    assert cases > 1
