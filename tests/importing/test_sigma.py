"""Sigma: detections by what Python says of the same rows, correlations by counting, and errors."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.interfaces.cli.command import main
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import COLUMNS

_RULE = """
title: {title}
logsource: {{category: {category}}}
detection:
{detection}
---
"""

_ROWS: list[dict[str, Any]] = [
    {"Image": r"C:\Windows\cmd.exe", "Cmd": "cmd -x /c", "ip": "10.2.3.4", "n": 5, "ok": True},
    {"Image": "C:\\PS.EXE", "Cmd": "a*b? 100%", "ip": "192.168.1.9", "n": 4625, "ok": False},
    {"Image": "", "Cmd": "whoami", "ip": "::1", "n": -3, "ok": None},
    {"Image": None, "Cmd": None, "ip": None, "n": None, "ok": None},
    {"Image": "it's", "Cmd": "IT'S", "ip": "10.2.3.44", "n": 0, "ok": True},
]

_Test = Callable[[Mapping[str, Any]], bool]


def _low(e: Mapping[str, Any], name: str) -> str:
    """A text in small letters; of NULL a text that is in none."""
    return "\0" if e[name] is None else str(e[name]).lower()


_DETECTIONS: dict[str, _Test] = {
    "s: {Image: 'c:\\windows\\CMD.exe'}; s": lambda e: _low(e, "Image") == r"c:\windows\cmd.exe",
    "s: {Image|endswith: ['\\cmd.exe', '\\ps.exe']}; s": lambda e: _low(e, "Image").endswith(
        ("\\cmd.exe", "\\ps.exe")
    ),
    "s: {Image|startswith: 'C:'}; s": lambda e: _low(e, "Image").startswith("c:"),
    "s: {Cmd|contains|all: [cmd, '/C']}; s": lambda e: "cmd" in _low(e, "Cmd")
    and "/c" in _low(e, "Cmd"),
    "s: {Cmd: 'wh?a*'}; s": lambda e: _low(e, "Cmd") == "whoami",
    "s: {Cmd: 'a\\*b\\? 100%'}; s": lambda e: _low(e, "Cmd") == "a*b? 100%",
    's: {Cmd|cased: "IT\'S"}; s': lambda e: e["Cmd"] == "IT'S",
    "s: {Cmd|cased|contains: wHo}; s": lambda e: False,
    "s: {Cmd|re: '^[a-c].*c$'}; s": lambda e: e["Cmd"] == "cmd -x /c",
    "s: {Cmd|re|i: '^it'}; s": lambda e: e["Cmd"] == "IT'S",
    "s: {Cmd|windash|contains: ' -x'}; s": lambda e: e["Cmd"] == "cmd -x /c",
    "s: {Image: ''}; s": lambda e: e["Image"] == "",
    "s: {Image: null}; s": lambda e: e["Image"] is None,
    "s: {Image: '*'}; s": lambda e: e["Image"] is not None,
    "s: {Image|exists: true}; s": lambda e: e["Image"] is not None,
    "s: {Image|exists: false}; s": lambda e: e["Image"] is None,
    "s: {n: 4625}; s": lambda e: e["n"] == 4625,
    "s: {n: [5, 0, 7]}; s": lambda e: e["n"] in (5, 0),
    "s: {n|gte: 5}; s": lambda e: e["n"] is not None and e["n"] >= 5,
    "s: {n|lt: 0}; s": lambda e: e["n"] == -3,
    "s: {ok: true}; s": lambda e: e["ok"] is True,
    "s: {ok: false}; s": lambda e: e["ok"] is False,
    "s: {ip|cidr: [10.2.3.0/26, 192.168.0.0/16]}; s": lambda e: e["ip"]
    in ("10.2.3.4", "192.168.1.9", "10.2.3.44"),
    "s: {Image|fieldref: Cmd}; s": lambda e: _low(e, "Image") == _low(e, "Cmd") != "\0",
    "s: {n: 5}; not s": lambda e: e["n"] != 5,
    "s: {n|gt: 4, ok: true}; not s": lambda e: not (e["n"] in (5, 4625) and e["ok"] is True),
    "s: {Image|contains: exe}\nf: {Cmd|contains: x, n: 5}; s and not f": lambda e: e["n"] == 4625,
    's: [{n: 5}, {Image: "it\'s"}]; s': lambda e: e["n"] in (5, 0),
    "sa: {n: 5}\nsb: {n: 0}\nf: {ok: true}; 1 of s* and f": lambda e: e["n"] in (5, 0),
    "sa: {n|gte: 0}\nsb: {ok: true}; all of them": lambda e: e["n"] in (5, 0),
    "sa: {n: 5}\nsb: {n: 0}; not 1 of s*": lambda e: e["n"] not in (5, 0),
    "s: {Image: null}; not s": lambda e: e["Image"] is not None,
}


def _texts(text: str, name: str = "rules.yml") -> str:
    ((_, found),) = imported("sigma", [Source(name, text)], COLUMNS["sigma"])
    if isinstance(found, CelError):
        raise found
    return found.text


def test_detections_find_what_python_finds() -> None:
    rules = []
    for number, text in enumerate(_DETECTIONS):
        selections, condition = text.rsplit(";", 1)
        lines = [*selections.splitlines(), f"condition:{condition}"]
        detection = "\n".join(f"  {line}" for line in lines)
        rules.append(_RULE.format(title=f"q{number}", category="start", detection=detection))
    kinds = {"Image": pa.string(), "Cmd": pa.string(), "ip": pa.string(), "n": pa.int64()}
    kinds |= {"ok": pa.bool_()}
    table = pa.table(
        {name: pa.array([row[name] for row in _ROWS], kind) for name, kind in kinds.items()}
        | {"timestamp": pa.array(range(len(_ROWS)), pa.timestamp("us", "UTC"))}
    )
    found = celc.compile(_texts("".join(rules)), order_by=["timestamp"]).match_all_table(table)
    wrong = {}
    for number, (text, test) in enumerate(_DETECTIONS.items()):
        rows = sorted(found[f"q{number}"]["start_pos"].to_pylist())
        if rows != [place for place, row in enumerate(_ROWS) if test(row)]:
            wrong[text] = rows
    assert wrong == {}


def test_values_that_modifiers_make() -> None:
    text = _texts(
        _RULE.format(
            title="x",
            category="start",
            detection="  s: {Cmd|base64offset|contains: foo}\n  condition: s",
        )
    )
    assert base64.b64encode(b"foo").decode().lower() in text


_BASE = """
title: Failed
name: failed
logsource: {category: logon}
detection: {s: {ok: false}, condition: s}
---
title: Passed
name: passed
logsource: {category: logon}
detection: {s: {ok: true}, condition: s}
---
"""

_CORRELATION = """
title: Alarm
name: alarm
correlation:
  type: {type}
  rules: {rules}
  group-by: [user]
  timespan: 10s
  condition: {{{condition}}}
"""


def _logons(draw: random.Random) -> list[dict[str, Any]]:
    time, events = 0, []
    for _ in range(60):
        time += draw.choice([1, 1, 2, 5, 11])
        user, ok = draw.choice(["a", "b", None]), draw.random() < 0.3
        events.append(
            {"user": user, "ok": ok, "ip": draw.choice("xyz"), "n": draw.randint(0, 9), "t": time}
        )
    return events


def _at_most_once(times: list[int]) -> list[int]:
    """Those of which none of the 10 seconds before is kept."""
    kept: list[int] = []
    for time in times:
        if not kept or time - kept[-1] >= 10:
            kept.append(time)
    return kept


def _last_ten(
    events: list[dict[str, Any]], at: dict[str, Any], *, ok: bool
) -> list[dict[str, Any]]:
    same = [one for one in events if one["user"] == at["user"] and one["ok"] is ok]
    return [one for one in same if 0 <= at["t"] - one["t"] <= 10]


_VALUES: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "event_count": len,
    "value_count": lambda events: len({one["ip"] for one in events}),
    "value_sum": lambda events: sum(one["n"] for one in events),
    "value_avg": lambda events: sum(one["n"] for one in events) / len(events),
    "value_median": lambda events: median(one["n"] for one in events),
}

_CORRELATIONS = [
    ("event_count", "gte: 3", lambda v: v >= 3),
    ("event_count", "gt: 1", lambda v: v > 1),
    ("value_count", "field: ip, gte: 3", lambda v: v >= 3),
    ("value_sum", "field: n, gt: 14", lambda v: v > 14),
    ("value_avg", "field: n, lt: 3", lambda v: v < 3),
    ("value_median", "field: n, gte: 7", lambda v: v >= 7),
]


def _rows(text: str, events: list[dict[str, Any]]) -> Any:
    table = pa.table(
        {name: [one[name] for one in events] for name in ("user", "ok", "ip", "n")}
        | {"timestamp": pa.array([one["t"] * 10**6 for one in events], pa.timestamp("us", "UTC"))}
    )
    return celc.compile(text, order_by=["timestamp"]).match_all_table(table)["alarm"].to_pylist()


def _ends(text: str, events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    rows = _rows(text, events)
    return sorted((row["user"], int(row["end_time"].timestamp())) for row in rows)


@pytest.mark.parametrize(("kind", "condition", "test"), _CORRELATIONS)
def test_a_correlation_is_a_value_of_the_last_span(
    kind: str, condition: str, test: Callable[[float], bool]
) -> None:
    correlation = _CORRELATION.format(type=kind, rules="failed", condition=condition)
    text = _texts(_BASE + correlation)
    events = _logons(random.Random(7))
    expected = []
    for user in ("a", "b"):
        hits = [one for one in events if one["user"] == user and not one["ok"]]
        alarms = [one["t"] for one in hits if test(_VALUES[kind](_last_ten(events, one, ok=False)))]
        expected += [(user, time) for time in _at_most_once(alarms)]
    assert _ends(text, events) == expected != []


def test_few_events_are_counted_span_by_span() -> None:
    events = _logons(random.Random(3))
    correlation = _CORRELATION.format(type="event_count", rules="failed", condition="lte: 1")
    rows = _rows(_texts(_BASE + correlation), events)
    spans: dict[tuple[str, int], int] = {}
    for one in events:
        if one["user"] is not None and not one["ok"]:
            key = (one["user"], one["t"] // 10 * 10)
            spans[key] = spans.get(key, 0) + 1
    found = sorted((row["user"], int(row["span_start"].timestamp())) for row in rows)
    assert found == sorted(key for key, count in spans.items() if count <= 1) != []


@pytest.mark.parametrize("kind", ["temporal", "temporal_ordered"])
def test_a_correlation_in_time(kind: str) -> None:
    events = _logons(random.Random(5))
    correlation = _CORRELATION.format(type=kind, rules="[failed, passed]", condition="")
    text = _texts(_BASE + correlation.replace("  condition: {}\n", ""))
    expected = []
    for user in ("a", "b"):
        own = [one for one in events if one["user"] == user]
        ends = set()
        for fail, passed in product(own, own):
            if fail["ok"] or not passed["ok"] or abs(fail["t"] - passed["t"]) > 10:
                continue
            if kind == "temporal":
                ends.add(max(fail["t"], passed["t"]))
            elif fail["t"] < passed["t"]:
                between = [one for one in own if fail["t"] < one["t"] < passed["t"] and one["ok"]]
                if not between:
                    ends.add(passed["t"])
        expected += [(user, time) for time in _at_most_once(sorted(ends))]
    assert _ends(text, events) == expected != []


def test_a_correlation_of_a_correlation() -> None:
    events = _logons(random.Random(11))
    many = _CORRELATION.format(type="event_count", rules="failed", condition="gte: 2")
    both = _CORRELATION.format(type="temporal_ordered", rules="[many, passed]", condition="")
    text = _texts(
        _BASE
        + many.replace("Alarm", "Many").replace("alarm", "many")
        + "---"
        + both.replace("  condition: {}\n", "")
    )
    assert "FROM many, logs" in text
    expected = []
    for user in ("a", "b"):
        own = [one for one in events if one["user"] == user]
        hits = [one for one in own if not one["ok"]]
        alarms = _at_most_once(
            [one["t"] for one in hits if len(_last_ten(events, one, ok=False)) >= 2]
        )
        ends = set()
        for alarm in alarms:
            later = [one["t"] for one in own if one["ok"] and one["t"] > alarm]
            start = min(one["t"] for one in hits if 0 <= alarm - one["t"] <= 10)
            if later and later[0] - max(one["t"] for one in hits if one["t"] < alarm) <= 10:
                ends.add(later[0])
            assert start <= alarm
        expected += [(user, time) for time in _at_most_once(sorted(ends))]
    assert _ends(text, events) == expected


def test_an_alias_is_a_key_of_two_log_sources() -> None:
    text = _texts("""
title: One
name: one
logsource: {category: file}
detection: {s: {a: 1}, condition: s}
---
title: Two
name: two
logsource: {category: network}
detection: {s: {b: 2}, condition: s}
---
title: Both
correlation:
  type: temporal
  rules: [one, two]
  aliases: {host: {one: machine, two: computer}}
  group-by: [host]
  timespan: 5m
""")
    assert "host: STRING = machine" in text
    assert "host: STRING = computer" in text
    assert "PARTITION BY host\n" in text
    assert text.startswith("-- compile with: --type-column logsource\n")


def test_the_command_reads_rules_of_several_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "base.yml").write_text(_BASE)
    alarm = _CORRELATION.format(type="event_count", rules="failed", condition="gte: 2")
    (rules / "alarm.yml").write_text(alarm)
    assert main(["import", "sigma", str(rules), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == "2 files translated\n"
    assert "QUERY passed:" in (tmp_path / "out" / "base.cel").read_text()
    assert "QUERY failed:" not in (tmp_path / "out" / "base.cel").read_text()
    assert "FIRST (logon AS more" in (tmp_path / "out" / "alarm.cel").read_text()
