"""FOR EACH on one machine: the cases, by the chosen engine and by the general one."""

from __future__ import annotations

import pytest
from cases_io import Case, load_cases, load_refused
from engines import engines, interpreted, only_query
from parameters import matches_for_each
from places import CASES
from reference import difference

import celc
from celc.diagnostics.errors import CelError
from celc.options import Options

FOLDER = CASES / "parameters"


def _by_query() -> dict[tuple[str, Options], list[Case]]:
    found: dict[tuple[str, Options], list[Case]] = {}
    for case in load_cases(folder=FOLDER):
        options = Options(case.order_by, ties=case.ties, at_end=case.at_end)
        found.setdefault((case.query, options), []).append(case)
    return found


def test_cases() -> None:
    problems = []
    with interpreted():
        for (text, options), cases in _by_query().items():
            for name, matcher in engines(text, options).items():
                query = only_query(matcher)
                for case in cases:
                    answer = matches_for_each(query, case.events, case.parameters["rule"])
                    told = difference(answer, case.expected)
                    problems += [f"{case.name} ({name}): {told}"] if told else []
    assert not problems, "\n".join(problems)


def test_one_case_with_machine_code() -> None:
    case = next(case for case in load_cases(folder=FOLDER) if case.name == "30-parameters/001")
    matcher = celc.compile(case.query, order_by=case.order_by)
    answer = matches_for_each(only_query(matcher), case.events, case.parameters["rule"])
    assert not difference(answer, case.expected)


_INSTANTS = """CREATE STREAM S {
  EVENT B { src: INT, v: INT, ts: LONG },
  EVENT C { dst: INT, v: INT, ts: LONG }
}
PARAMETERS rule { v: INT }
"""


@pytest.mark.parametrize("keys", ["", "PARTITION BY [src, dst]"])
@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        ("*", [(1, 0, 2), (1, 3, 5), (2, 6, 6)]),
        ("COLLAPSED *", [(1, 0, 2), (1, 3, 5), (2, 6, 6)]),
        ("TOTAL COUNT(*) AS n", [(1, None, 2), (1, None, 5), (2, None, 6)]),
    ],
)
def test_bounds_of_matches_are_those_of_whole_instants(
    select: str, wanted: list[tuple[int, int | None, int]], keys: str
) -> None:
    text = f"{_INSTANTS}SELECT {select} FROM S FOR EACH rule WHERE C AS x FILTER x.v = rule.v\n"
    with interpreted():
        query = only_query(celc.compile(text + keys, order_by="ts", ties="simultaneous"))
    # The events with v = 0 concern no rule, and are the first and the last of their instants.
    events = {
        "type": list("BCBBCCC"),
        "src": [7, None, 7, 7, None, None, None],
        "dst": [None, 7, None, None, 7, 7, 7],
        "v": [0, 1, 0, 0, 1, 0, 2],
        "ts": [0, 0, 0, 1, 1, 1, 2],
    }
    rows = query.match_table(events, rule={"v": [1, 2]}).to_pylist()
    found = [(row["rule"]["v"], row.get("start_pos"), row["end_pos"]) for row in rows]
    assert sorted(found) == wanted


@pytest.mark.parametrize("positions", [True, False])
def test_rows_come_by_ends_in_each_part_and_then_by_the_table(positions: bool) -> None:
    text = """CREATE STREAM S { EVENT A { id: INT, v: INT, ts: LONG } }
PARAMETERS rule { nr: INT, v: INT }
SELECT x[v] FROM S FOR EACH rule WHERE A AS x FILTER x.v = rule.v OR rule.nr > 5 PARTITION BY id
"""
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts")).with_options(positions=positions)
    events = {"id": [2, 1, 2, 1], "v": [1, 3, 2, 1], "ts": [0, 1, 2, 3]}
    rules = {"nr": [2, 7, 1, 0, 7], "v": [3, 0, 1, 2, 0]}
    rows = query.match_table(events, rule=rules).to_pylist()
    found = [(row["id"], row["end_time"], row["rule"]["nr"]) for row in rows]
    of_parts = [(1, 1, 2), (1, 1, 7), (1, 3, 7), (1, 3, 1), (2, 0, 7), (2, 0, 1), (2, 2, 7)]
    assert found == [*of_parts, (2, 2, 0)]
    # Those of the first row, and one of the second, in the order of all.
    first = query.match_table(events, rule=rules, max_matches=2).to_pylist()
    found = [(row["id"], row["end_time"], row["rule"]["nr"]) for row in first]
    assert found == [(1, 1, 2), (1, 1, 7)]
    for most in range(1, len(rows) + 1):
        first = query.match_table(events, rule=rules, max_matches=most).to_pylist()
        assert len(first) == most
        assert [row for row in rows if row in first] == first


@pytest.mark.parametrize("case", load_refused(FOLDER), ids=lambda case: str(case.name))
def test_refused(case: Case) -> None:
    with pytest.raises(CelError):
        celc.compile(case.query, order_by=case.order_by)
