"""FOR EACH on one machine: the cases, by the chosen engine and by the general one."""

from __future__ import annotations

import pickle
from collections import Counter

import pyarrow as pa
import pytest
from cases_io import Case, load_cases, load_refused
from celc_runtime import CompiledQuery, EventError, expand
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.run.feeding import read_all
from engines import engines, interpreted, only_query, table_of
from parameters import matches_for_each, rows_table
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


def _routes(query: CompiledQuery, table: pa.Table, rules: pa.Table) -> dict[str, pa.Table]:
    """The rows of each way to run a query on this machine, in the order in which they come."""
    ordered = sorted_for(query.plan, table)[0].to_batches(max_chunksize=2)
    bound = query.with_parameters(rule=rules)
    schema = query.output_schema
    found = {
        "match_arrow": pa.Table.from_batches(query.match_arrow(ordered, rule=rules), schema),
        "bound": pa.Table.from_batches(bound.match_arrow(ordered), schema),
        "sent": pickle.loads(pickle.dumps(bound)).match_table(table),
    }
    if why_not(query.program, Route.COMPACT) is None:
        found["match_compact"] = expand(query.match_compact(table, rule=rules)).read_all()
    return found


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
def test_cases_by_every_route(each: int) -> None:
    """The cases by `match_table` agree with the reference (`test_cases`)."""
    routes: Counter[str] = Counter()
    with interpreted():
        for (text, options), cases in [*_by_query().items()][::each]:
            matcher = celc.compile(
                text, order_by=options.order_by, ties=options.ties, at_end=options.at_end
            )
            query = only_query(matcher)
            for case in cases:
                table, rules = table_of(query.plan, case.events), case.parameters["rule"]
                given = rows_table(query, rules)
                wanted = query.match_table(table, rule=given)
                together = matcher.match_all_table(table, rule=given)[query.name]
                assert together.equals(wanted), case.name
                ordered = sorted_for(query.plan, table)[0].to_batches()
                run = list(read_all(query.run(rule=given), ordered))
                found = _routes(query, table, given)
                for route, rows in found.items():
                    assert rows.schema.equals(wanted.schema), (case.name, route)
                    assert rows.to_pylist() == wanted.to_pylist(), (case.name, route)
                row_by_row = [row for batch in run for row in batch.to_pylist()]
                assert sorted(map(repr, row_by_row)) == sorted(map(repr, wanted.to_pylist()))
                routes.update(found.keys())
    assert routes["match_compact"] >= 10 // each, routes


def test_a_frame_of_pandas_and_the_table_of_its_set() -> None:
    query, events = _plain(), {"id": [1, 2, 1], "v": [1, 2, 3], "ts": [0, 1, 2]}
    rules = {"id": [1, 2]}
    wanted = query.match_table(events, rule=rules).to_pandas()
    frame = pa.table(events).to_pandas()
    for found in (
        query.match_pandas(frame, rule=rules),
        query.with_parameters(rule=pa.table(rules).to_pandas()).match_pandas(frame),
    ):
        assert found.to_dict("records") == wanted.to_dict("records")


_PLAIN = """CREATE STREAM S { EVENT A { id: INT, v: INT, ts: LONG } }
PARAMETERS rule { id: INT }
PARAMETERS other { v: INT }
QUERY first: SELECT x[v] FROM S FOR EACH rule WHERE A AS x FILTER x.id = rule.id
QUERY again: SELECT x[v] FROM S FOR EACH rule WHERE (A AS x ; A) FILTER x.id = rule.id
QUERY third: SELECT x[v] FROM S FOR EACH other WHERE A AS x FILTER x.v = other.v
QUERY plain: SELECT x[v] FROM S WHERE A AS x FILTER x.v > 1
"""


def _plain() -> CompiledQuery:
    with interpreted():
        query: CompiledQuery = celc.compile(_PLAIN, order_by="ts").queries["first"]
    return query


def test_a_table_that_is_not_there_or_too_much() -> None:
    query, events = _plain(), {"id": [1], "v": [1], "ts": [0]}
    lacking = (
        r"'first' is FOR EACH rule: give a table of its rows, as in match_table\(events, rule="
    )
    for run in (
        lambda: query.match_table(events),
        lambda: query.match_compact(events),
        lambda: list(query.match_arrow(events)),
        lambda: query.match_pandas(pa.table(events).to_pandas()),
        query.run,
    ):
        with pytest.raises(TypeError, match=lacking):
            run()
    for take in (query.with_parameters, query.run):
        with pytest.raises(TypeError, match="no argument 'rules': its parameter set is 'rule'"):
            take(rules={"id": [1]})
    with pytest.raises(EventError, match=r"parameters 'rule': .*'id'"):
        query.with_parameters(rule={"nr": [1]})


_VALID = """CREATE STREAM S { EVENT A { ts: LONG, day: LONG } }
PARAMETERS rule { id: INT, since: LONG, until: LONG } VALID [since, until]
QUERY q: SELECT x[ts], rule[id] FOR EACH rule WHERE A AS x
"""


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([(1, 3, 2)], r"row \{id: 1, since: 3, until: 2\}: it is valid until 2, before .* at 3"),
        ([(1, 2, None), (1, 2, 5)], r"rows \{.*until: NULL\} and .* one 'id' and begin at 2, but"),
        ([(None, None, None), (None, None, 5)], "one 'id' and begin at NULL, but they differ"),
    ],
)
def test_rows_that_are_wrong_in_their_times(rows: list[tuple[object, ...]], wanted: str) -> None:
    with interpreted():
        query = only_query(celc.compile(_VALID, order_by="ts"))
    names = ("id", "since", "until")
    given = rows_table(query, [dict(zip(names, row, strict=True)) for row in rows])
    with pytest.raises(EventError, match=f"parameters 'rule': .*{wanted}"):
        query.with_parameters(rule=given)


@pytest.mark.parametrize(
    ("type", "lowest", "greatest"),
    [("BYTE", -128, 127), ("LONG", -(2**63), 2**63 - 1), ("DOUBLE", float("-inf"), float("inf"))],
)
def test_times_at_the_ends_of_their_type(type: str, lowest: float, greatest: float) -> None:
    with interpreted():
        query = only_query(celc.compile(_VALID.replace("LONG", type), order_by="ts"))
    rules = {
        "id": [1, 2, 3, 4, 5],
        "since": [None, None, lowest, lowest, 5],
        "until": [None, lowest, lowest, 5, None],
    }
    given = rows_table(
        query, [dict(zip(rules, row, strict=True)) for row in zip(*rules.values(), strict=True)]
    )
    events = table_of(query.plan, [{"type": "A", "ts": ts} for ts in (lowest, 4, 5, greatest)])
    found = query.match_table(events, rule=given).to_pylist()
    ends = [(row["end_pos"], row["rule"]["id"]) for row in found]
    assert ends == [(0, 1), (0, 4), (1, 1), (1, 4), (2, 1), (2, 5), (3, 1), (3, 5)]


def test_times_of_rows_are_compared_with_one_order() -> None:
    with interpreted():
        query = only_query(celc.compile(_VALID, order_by="ts"))
    assert query.with_options(order_by=("ts", "day")).plan.source.order_by == ("ts", "day")
    with pytest.raises(ValueError, match=r"compares 'ts' .*'rule' \(VALID\)"):
        query.with_options(order_by="day")


def test_all_queries_of_a_file_share_the_tables_of_their_sets() -> None:
    with interpreted():
        module = celc.compile(_PLAIN, order_by="ts")
    events = {"id": [1, 2, 1], "v": [1, 2, 3], "ts": [0, 1, 2]}
    rules, others = {"id": [2, 1]}, {"v": [3, 3]}
    given = {"first": {"rule": rules}, "again": {"rule": rules}, "third": {"other": others}}
    found = module.match_all_table(events, rule=rules, other=others)
    for name, query in module.queries.items():
        assert found[name].equals(query.match_table(events, **given.get(name, {})))
        assert len(found[name])
    with pytest.raises(TypeError, match="'third' is FOR EACH other"):
        module.match_all_table(events, rule=rules)
    with pytest.raises(TypeError, match="FOR EACH rules: their parameter sets are 'rule', 'other'"):
        module.match_all_table(events, rule=rules, other=others, rules=rules)


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
