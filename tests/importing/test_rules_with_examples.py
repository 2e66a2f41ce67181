"""`celc import sigma` writes the examples of rules into a test file, whose cases pass. It warns of
each example that it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from celc.interfaces.cli.command import main

_RULES = r"""
title: Tool
name: tool
logsource: {category: start}
detection: {s: {Image|endswith: '\tool.exe', Pid|gte: 4}, condition: s}
regression_tests_path: data/info.yml
custom_attributes:
  rsigma.exemplars:
    - {name: "it's '''quoted'''", expect: match, event: {Image: "'''\\tool.exe", Pid: "7"}}
    - {expect: no-match, event: {Image: '\tool.exe', Pid: 3, Other: 1}}
    - {name: a list, expect: match, event: {Image: ['\tool.exe'], Pid: 4}}
    - {name: unclear, expect: maybe}
---
title: Net
name: net
logsource: {category: connection}
detection: {s: {Port: 443}, condition: s}
rsigma.exemplars: [{expect: match, event: {Port: 443}}]
---
title: Both
correlation: {type: temporal_ordered, rules: [tool, net], group-by: [User], timespan: 5m}
rsigma.exemplars:
  - name: in time
    expect: match
    events:
      - {offset: 0s, event: {User: a, Image: '\tool.exe', Pid: 9}}
      - {offset: 5m, event: {User: a, Port: 443}}
  - name: late
    expect: no-match
    events:
      - {offset: 0, event: {User: a, Image: '\tool.exe', Pid: 9}}
      - {offset: 301s, event: {User: a, Port: 443, logsource: connection}}
  - {name: nowhere, expect: no-match, events: [{offset: 0, event: {User: a}}]}
""".replace("timespan: 5m}", "timespan: 5m, generate: true}")
_INFO = """
regression_tests_info:
  - {type: evtx, path: data/a.evtx}
  - {name: an event of Windows, type: json, path: data/a.json}
  - {name: two lines, type: ndjson, match_count: 1, path: data/a.ndjson}
  - {name: uncounted, type: jsonl, path: data/a.ndjson}
  - {name: lost, type: json, path: data/b.json}
"""
# Part of the warning about each example that cannot be read.
_TOLD = {
    "unclear": "it says 'expect: match' or 'expect: no-match'",
    "a list": "'Image' is a list, and a field has one value",
    "data/a.evtx": "files of the type evtx are not; json, ndjson and jsonl are",
    "data/a.ndjson": "it does not say how many of its events match: match_count",
    "data/b.json": "there is no file data/b.json",
    "nowhere": "an event of it says not which log source it has: a field 'logsource' with one of",
}


def test_examples_become_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "rules" / "both.yml").write_text(_RULES)
    (tmp_path / "data" / "info.yml").write_text(_INFO)
    event = '{"Event": {"System": {"Pid": 12}, "EventData": {"Image": "\\\\TOOL.exe"}}}'
    (tmp_path / "data" / "a.json").write_text(event)
    (tmp_path / "data" / "a.ndjson").write_text(f'{event}\n{{"Image": "x"}}\n')
    command = ["import", "sigma", str(tmp_path / "rules"), "-o", str(tmp_path / "both.cel")]
    assert main(command) == 0
    told = capsys.readouterr().err
    assert told.count("warning[import-example]") == len(_TOLD)
    assert all(one in told for one in _TOLD.values())
    assert told.endswith("1 file translated, 1 with tests\n")
    tests = tmp_path / "both.test.toml"
    assert main(["test", str(tests)]) == 0
    assert "7 cases passed" in capsys.readouterr().out
    tests.write_text(tests.read_text().replace("expected = 1", "expected = 0"))
    (tmp_path / "both.cel").unlink()
    assert main(command) == 2
    assert "both.test.toml exists; use --force" in capsys.readouterr().err
