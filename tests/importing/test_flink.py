"""FlinkCEP's rules in JSON: random patterns by runs in plain Python, and what is refused."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import celc
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.interfaces.cli.command import main
from celc.interfaces.importing.files import imported
from celc.interfaces.importing.languages import COLUMNS

_STRICT, _NEXT, _ANY, _ABSENT = "STRICT", "SKIP_TILL_NEXT", "SKIP_TILL_ANY", "NOT_FOLLOW"


def _text(rule: Any) -> str:
    source = Source("rule.json", rule if isinstance(rule, str) else json.dumps(rule, indent=1))
    ((_, found),) = imported("flink", [source], COLUMNS["flink"])
    if isinstance(found, CelError):
        raise found
    return found.text


def _node(name: str, value: int, times: tuple[int, int | None], strategy: str, **more: Any) -> Any:
    least, most = times
    single = times == (1, 1)
    properties = ["SINGLE"] if single else ["LOOPING"] if most is None else ["TIMES"]
    if more.get("optional"):
        properties.append("OPTIONAL")
    counted = None if single else {"from": least, "to": most or least, "windowTime": None}
    return {
        "name": name,
        "type": "ATOMIC",
        "quantifier": {
            "consumingStrategy": strategy,
            "times": counted,
            "properties": properties,
            "untilCondition": None,
        },
        "condition": {"type": "AVIATOR", "expression": f"v == {value}"},
    }


def _rule(nodes: list[Any], edges: list[str], window: int | None = None) -> Any:
    names = [one["name"] for one in nodes]
    joined = zip(names, names[1:], edges, strict=False)
    return {
        "name": "rule",
        "type": "COMPOSITE",
        "nodes": list(reversed(nodes)),
        "edges": [{"source": a, "target": b, "type": kind} for a, b, kind in joined],
        "window": window
        and {"type": "FIRST_AND_LAST", "time": {"unit": "SECONDS", "size": window}},
        "afterMatchStrategy": {"type": "NO_SKIP", "patternName": None},
        "version": 1,
    }


class _Runs:
    """The runs of a pattern: each way in which an event is taken after the one before."""

    def __init__(self, rule: Any, values: list[int]) -> None:
        order = {one["source"]: one for one in rule["edges"]}
        nodes = {one["name"]: one for one in rule["nodes"]}
        name = next(name for name in nodes if name not in {one["target"] for one in rule["edges"]})
        self.values = values
        self.steps: list[tuple[Any, str | None]] = [(nodes[name], None)]
        while name in order:
            edge = order[name]
            name = edge["target"]
            self.steps.append((nodes[name], edge["type"]))

    def _fits(self, step: int, position: int) -> bool:
        return self.values[position] == int(self.steps[step][0]["condition"]["expression"][5:])

    def _taken(self, step: int, after: int, strategy: str, absent: list[int]) -> Iterator[int]:
        """The positions at which a run behind `after` takes an event of a step."""
        for position in range(after + 1, len(self.values)):
            if self._fits(step, position):
                yield position
                if strategy == _NEXT:
                    return
            if strategy == _STRICT or any(self._fits(one, position) for one in absent):
                return

    def _times(self, step: int) -> tuple[int, int]:
        quantifier = self.steps[step][0]["quantifier"]
        if quantifier["times"] is None:
            return 1, 1 if "LOOPING" not in quantifier["properties"] else len(self.values)
        looping = "LOOPING" in quantifier["properties"]
        return quantifier["times"]["from"], (
            len(self.values) if looping else quantifier["times"]["to"]
        )

    def _from(self, step: int, count: int, found: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        least, most = self._times(step)
        if count < most:
            strategy = self.steps[step][0]["quantifier"]["consumingStrategy"]
            for position in self._taken(step, found[-1], strategy, []):
                yield from self._from(step, count + 1, (*found, position))
        if count >= least:
            yield from self._behind(step, found)

    def _behind(self, step: int, found: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        following, absent, edge = step + 1, [], None
        while following < len(self.steps):
            node, edge = self.steps[following]
            if edge == _ABSENT:
                absent.append(following)
            else:
                for position in self._taken(following, found[-1], str(edge), absent):
                    yield from self._from(following, 1, (*found, position))
                if "OPTIONAL" not in node["quantifier"]["properties"]:
                    return
            following += 1
        yield found

    def matches(self) -> list[tuple[int, ...]]:
        """The positions of all matches."""
        starts = [place for place in range(len(self.values)) if self._fits(0, place)]
        return [found for place in starts for found in self._from(0, 1, (place,))]


def _drawn(draw: random.Random) -> Any:
    nodes, edges = [], []
    for number in range(draw.choice([2, 3, 3, 4])):
        name, value = f"n{number}", draw.randint(0, 2)
        strategy = draw.choice([_STRICT, _NEXT, _NEXT, _ANY])
        times: tuple[int, int | None] = draw.choice(
            [(1, 1), (1, 1), (2, 2), (1, 3), (1, None), (2, None)]
        )
        more = {}
        if number:
            edge = strategy
            if times == (1, 1):
                edge = draw.choice([_STRICT, _NEXT, _ANY])
                # What is optional or absent has something behind it.
                if number == 1 and draw.random() < 0.3:
                    nodes.append(_node("gone", draw.randint(0, 2), (1, 1), _NEXT))
                    edges.append(_ABSENT)
                    edge = draw.choice([_NEXT, _ANY])
            edges.append(edge)
        nodes.append(_node(name, value, times, strategy, **more))
    if draw.random() < 0.2 and edges[0] != _ABSENT:
        nodes.insert(1, _node("maybe", draw.randint(0, 2), (1, 1), _NEXT, optional=True))
        edges = [_NEXT, _NEXT, *edges[1:]]
        if nodes[2]["quantifier"]["times"] is not None:
            nodes[2]["quantifier"]["consumingStrategy"] = _NEXT
    return _rule(nodes, edges)


def _disagreement(seed: int) -> str | None:
    draw = random.Random(seed)
    rule = _drawn(draw)
    values = [draw.randint(0, 3) for _ in range(draw.choice([5, 7, 9]))]
    text = _text(rule)
    table = pa.table({"v": values, "ts": pa.array(range(len(values)), pa.timestamp("us", "UTC"))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = celc.compile(text, order_by=["ts"]).match_table(table)
    labels = [name for name in answer.column_names if not name.startswith(("start_", "end_"))]
    found = sorted(
        tuple(sorted({one["pos"] for label in labels for one in row[label] or ()}))
        for row in answer.to_pylist()
    )
    expected = sorted(_Runs(rule, values).matches())
    if found == expected:
        return None
    return f"seed {seed}\n{text}\n{values}\nfound {found}\nexpected {expected}"


def test_patterns_match_what_runs_match() -> None:
    assert list(filter(None, map(_disagreement, range(6)))) == []


@pytest.mark.long
def test_many_patterns_match_what_runs_match() -> None:
    assert list(filter(None, map(_disagreement, range(6, 406)))) == []


def test_a_rule_as_its_documents_have_it() -> None:
    start = _node("start", 0, (3, 3), _NEXT)
    end = _node("end", 1, (1, 1), _NEXT)
    end["condition"]["expression"] = "v != 1 && string.startsWith(user, 'x')"
    rule = _rule([start, end], [_STRICT], window=600)
    rule["afterMatchStrategy"]["type"] = "SKIP_PAST_LAST_EVENT"
    assert _text(rule).partition("QUERY")[2] == """ rule:
SELECT FIRST DISJOINT *
FROM events
WHERE (event AS start FILTER start[v = 0])
  ; (FIRST (event AS start FILTER start[v = 0])){2}
  : (event AS end FILTER end[v <> 1 AND STARTSWITH(user, 'x')])
WITHIN 599999 MILLISECONDS [ts]
"""


def test_no_kind_of_event_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "flink", "rule.json", "--kind-column", "kind"]) == 2
    assert "leave out --kind-column" in capsys.readouterr().err
