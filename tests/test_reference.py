"""The reference evaluator gives the exact answers of all conformance cases.

What the cases leave out (other types than theirs, several streams, expressions, choices) is held
against answers worked out by hand.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases
from reference import (
    CelError,
    Match,
    check_answer,
    choice_per_end,
    difference,
    evaluate,
    same_answer,
)
from reference import nodes as n
from reference.conditions import Row
from reference.names import Schema
from reference.parser import parse
from reference.semantics import Environment, Evaluator, Labelling, Matches, positions_of
from reference.values import Kind, datum_of
from strategies import DECLARATION, EVERYTHING, random_query, random_stream

# --- the cases ----------------------------------------------------------------------------------


def _answer(case: Case) -> list[Match]:
    return evaluate(
        case.query, case.events, order_by=case.order_by, ties=case.ties, at_end=case.at_end
    )


@pytest.mark.parametrize("stem", case_stems())
def test_cases(stem: str) -> None:
    failing = {
        case.name: told
        for case in load_cases(stem)
        if (told := difference(_answer(case), case.expected))
    }
    assert not failing


def test_there_are_cases() -> None:
    assert len(case_stems()) >= 21
    assert len(load_cases()) >= 896


def test_cases_with_one_name_are_rejected(tmp_path: Path) -> None:
    line = '{"name": "a/1", "query": "", "events": [], "expected": []}\n'
    (tmp_path / "a.jsonl").write_text(line, encoding="utf-8")
    assert len(load_cases(folder=tmp_path)) == 1
    (tmp_path / "b.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(ValueError, match="two cases are called a/1"):
        load_cases(folder=tmp_path)


# --- environments -------------------------------------------------------------------------------


class _ToTheLetter(Evaluator):
    """⟦φ⟧*ν as it is written: each thinkable match is looked for in its own environment."""

    def __init__(self, rows: Sequence[Row], kinds: dict[str, Kind]) -> None:
        super().__init__(rows, kinds)
        self._thinkable: dict[n.Formula, Matches] = {}
        self._found: dict[tuple[n.Formula, frozenset[tuple[str, object]]], Matches] = {}

    def scope(self, formula: n.Formula, nu: Environment) -> Matches:
        if formula not in self._thinkable:
            self._thinkable[formula] = self.matches(_without_conditions(formula), {})
        return frozenset(
            match
            for match in self._thinkable[formula]
            if match in self.matches(formula, {**nu, **positions_of(match[2], formula.labels)})
        )

    def matches(self, formula: n.Formula, nu: Environment) -> Matches:
        key = (formula, frozenset(nu.items()))
        if key not in self._found:
            self._found[key] = frozenset(self._matches(formula, nu))
        return self._found[key]

    def _absent(
        self, formula: n.Formula, nu: Environment, mu: Labelling, labels: n.Labels
    ) -> Matches:
        return self.scope(formula, {**nu, **positions_of(mu, labels)})


def _without_conditions(formula: Any) -> Any:
    """The formula without all that only takes matches away: it has at least the same matches."""
    if isinstance(formula, n.Filter | n.Within | n.Selector):
        return _without_conditions(formula.body)
    if isinstance(formula, n.Unless):
        return _without_conditions(formula.left)
    if isinstance(formula, n.NotBetween):
        return n.Then(_without_conditions(formula.left), _without_conditions(formula.right))
    if isinstance(formula, n.Formula):
        parts = {field.name: getattr(formula, field.name) for field in fields(formula)}
        return type(formula)(**{name: _without_conditions(part) for name, part in parts.items()})
    return formula


def _agree(query: str, events: list[dict[str, Any]]) -> bool:
    """Assert that both ways to evaluate a formula agree; whether they found anything."""
    file = parse(query)
    formula = file.queries[0].formula
    rows, kinds = _rows(file, events)
    answer = Evaluator(rows, kinds).answer(formula)
    assert answer == _ToTheLetter(rows, kinds).answer(formula)
    return bool(answer)


@pytest.mark.parametrize(
    ("formula", "types"),
    [
        ("(A AS x)+ ; (B AS y FILTER y.value > x.value)", "AABAB"),
        ("((A FILTER A.id = y.id) ; B AS y)+", "ABABB"),
        ("(A AS x ; (B AS y FILTER y.id = x.id)) ALL (C AS z FILTER z.id = y.id)", "ACBBC"),
        ("(A AS x OR B AS y)+ ; (C FILTER C.value >= x.value AND COUNT(y) > 1)", "ABBAC"),
        ("MAX((A AS x)+ ; LAST(A AS x ; (B AS y FILTER y.id = x.id)))", "AAAAB"),
        ("A AS x ; NXT((B AS y)+ ; (C FILTER C.value > SUM(y.value) OR C.id = x.id))", "ABABC"),
        ("NXT(A AS x ; MAX((B FILTER B.id = y.id)+ ; C)) ; A AS y", "ABBCA"),
        ("A AS y ; MAX((B FILTER B.id = y.id)+ ; (C AS z FILTER z.value > B.value))", "ABBCC"),
        ("LAST((B FILTER B.id = y.id)+ ; C) ; (A AS y FILTER y.value > C.value)", "BBCCA"),
        ("A AS x ; !(B AS y FILTER y.id = z.id) ; C ; (A AS z FILTER z.id = x.id)", "ABCAA"),
        ("A AS x ; ((B ; C) UNLESS (A FILTER A.id = x.id))", "ABACC"),
        ("(A AS x ; A) UNLESS (B AS x ; (C FILTER C.id = x.id OR x.value > 2))", "ABCAA"),
    ],
)
def test_environments_are_those_of_the_definition(formula: str, types: str) -> None:
    rng = random.Random(formula)
    matching = 0
    for _ in range(25):
        events = random_stream(rng, len(types), nulls=0.0)
        events = [event | {"type": name} for event, name in zip(events, types, strict=True)]
        matching += _agree(DECLARATION + formula, events)
    assert matching >= 2


def test_environments_of_random_queries() -> None:
    matching = 0
    for seed in range(600):
        rng = random.Random(seed)
        query = random_query(rng, EVERYTHING)
        matching += _agree(query, random_stream(rng, 6))
    assert matching >= 150


def _rows(file: n.File, events: Sequence[dict[str, Any]]) -> tuple[list[Row], dict[str, Kind]]:
    schema = Schema(file, None)
    rows = [
        Row(
            "S",
            event["type"],
            {name: datum_of(kind, event[name]) for name, kind in schema.kinds.items()},
        )
        for event in events
    ]
    return rows, schema.kinds


# --- values -------------------------------------------------------------------------------------

_TYPED = """CREATE STREAM T { EVENT E {
    b: BOOLEAN, i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, t: TIMESTAMP, y: DATE,
    v: INTERVAL
} }
"""


@pytest.mark.parametrize(
    ("condition", "event", "truth"),
    [
        # Whole numbers wrap; a whole number with LONG is LONG.
        ("x.i + 1 < 0", {"i": 2**31 - 1}, True),
        ("x.i + 1 < 0", {"i": 2**31 - 2}, False),
        ("x.i + x.l > 0", {"i": 2**31 - 1, "l": 1}, True),
        ("x.l + 1 < 0", {"l": 2**63 - 1}, True),
        ("x.i + 2147483648 > 0", {"i": 2**31 - 1}, True),
        ("ABS(x.i) < 0", {"i": -(2**31)}, True),
        ("SUM(x.i) + 1 > 0", {"i": 2**31 - 1}, True),
        # Division, remainder.
        ("x.i / 2 = 1.5", {"i": 3}, True),
        ("x.i / 0 = 1", {"i": 3}, None),
        ("x.i % 0 = 1", {"i": 3}, None),
        ("x.d % 0 = 1", {"d": 3.0}, None),
        ("x.i % 3 = -1", {"i": -7}, True),
        ("x.i % -3 = 1", {"i": 7}, True),
        ("x.d % 2.5 = -0.5", {"d": -3.0}, True),
        # Infinities, NaN and zeros.
        ("x.d * 10 > x.d", {"d": 1e308}, True),
        ("x.d = x.d AND x.d > 1e308 * 10", {"d": float("nan")}, True),
        ("x.d < 1", {"d": float("nan")}, False),
        ("MAX(x.d) > 5", {"d": float("nan")}, True),
        ("x.d = 0", {"d": -0.0}, True),
        # Single precision.
        ("x.f = 0.1", {"f": 0.1}, False),
        ("x.f + 1 = x.f", {"f": 2.0**24}, True),
        ("x.f + x.i = x.f", {"f": 2.0**24, "i": 1}, True),
        ("x.f + 1.0 = x.f", {"f": 2.0**24}, False),
        ("x.l = x.f", {"f": 2.0**24, "l": 2**24 + 1}, True),
        ("x.l = x.d", {"d": 2.0**53, "l": 2**53 + 1}, True),
        # NULL.
        ("x.i = NULL", {"i": 1}, None),
        ("x.i IN (1, NULL)", {"i": 1}, True),
        ("x.i IN (1, NULL)", {"i": 2}, None),
        ("x.i NOT IN (1, NULL)", {"i": 2}, None),
        ("x.i NOT IN (1, 3)", {"i": 2}, True),
        ("x.i BETWEEN NULL AND 1", {"i": 2}, False),
        ("x.i BETWEEN NULL AND 3", {"i": 2}, None),
        ("x.i NOT BETWEEN 2 AND 3", {"i": 1}, True),
        ("x.s LIKE '%'", {}, None),
        ("x.s IS NULL", {}, True),
        ("x.i > 1 OR x.s = 'a'", {"s": "a"}, True),
        ("x.i + 1 = 2", {}, None),
        # Text.
        ("x.s LIKE 'a_c%'", {"s": "abc\nd"}, True),
        ("x.s LIKE 'b'", {"s": "abc"}, False),
        ("x.s LIKE 'a\\_c'", {"s": "abc"}, False),
        ("x.s LIKE 'a\\_c'", {"s": "a_c"}, True),
        ("x.s RLIKE 'b.'", {"s": "abc"}, True),
        ("x.s NOT RLIKE '^b'", {"s": "abc"}, True),
        ("x.s = 'it''s'", {"s": "it's"}, True),
        ("x.s < 'b'", {"s": "a"}, True),
        # Other types.
        ("x.b > FALSE", {"b": True}, True),
        ("x.t > TIMESTAMP '2024-02-01 10:00:00'", {"t": "2024-02-01T10:00:01"}, True),
        ("x.t > DATE '2024-02-01'", {"t": "2024-02-01T00:00:00"}, False),
        ("x.y = DATE '2024-02-01'", {"y": "2024-02-01"}, True),
        # Durations.
        ("x.v > 1 MINUTE 30 SECONDS", {"v": 90_000_001}, True),
        ("x.v = 1.5 MILLISECONDS", {"v": 1500}, True),
        ("-x.v * 2 = -(3 SECONDS)", {"v": 1_500_000}, True),
        ("ABS(x.v - 5 SECONDS) <= 1 SECOND", {"v": 6_000_000}, True),
        ("x.v + 1 SECOND > 0 SECONDS", {"v": 2**63 - 1}, None),
        ("x.v * 2 < 0 SECONDS", {"v": 2**62}, None),
        ("-x.v > 0 SECONDS", {"v": -(2**63)}, None),
        ("(x.v - 1 DAY) IS NULL", {"v": -(2**63)}, True),
        ("SUM(x.v) = AVG(x.v)", {"v": -7}, True),
        ("x.t - TIMESTAMP '2024-02-01 10:00:00' = 1 SECOND", {"t": "2024-02-01T10:00:01"}, True),
        ("x.t + 1 DAY > DATE '2024-02-02'", {"t": "2024-02-01T00:00:00"}, False),
        ("x.y - DATE '2024-02-01' = 28 DAYS", {"y": "2024-02-29"}, True),
        ("x.y + 106751991 DAYS > x.t", {"y": "2024-02-29", "t": "2024-02-01"}, None),
        ("x.y + 100000000 DAYS > x.t", {"y": "2024-02-29", "t": "2024-02-01"}, True),
        ("x.t + NULL > x.t", {"t": "2024-02-01"}, None),
        # The forms of CEQL.
        ("x[i > 1 AND s IN {'a', 'b'}]", {"i": 2, "s": "b"}, True),
        ("x[`i` == 2 OR d != 2]", {"i": 3, "d": 2.0}, False),
    ],
)
def test_conditions_in_three_valued_logic(
    condition: str, event: dict[str, Any], truth: bool | None
) -> None:
    def holds(text: str) -> bool:
        return bool(evaluate(f"{_TYPED} E AS x FILTER {text}", [{"type": "E", **event}]))

    assert (holds(condition), holds(f"NOT ({condition})")) == (truth is True, truth is False)


# --- the rest of the language -------------------------------------------------------------------


def _event(type_name: str, value: float | None = None, ts: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": type_name, "id": 1, "value": value, "name": "p", "ts": ts, **more}


def _labels(matches: list[Match]) -> list[dict[str, tuple[int, ...]]]:
    return [dict(match.labels) for match in matches]


def test_projection_keeps_start_and_end() -> None:
    events = [_event(name) for name in "ABCD"]
    query = DECLARATION + "SELECT * WHERE PROJECT[x](A ; B AS x ; C) ; D"
    assert evaluate(query, events) == [Match((), 0, 3, (("x", (1,)), ("D", (3,))))]


def test_an_empty_support_is_an_interval() -> None:
    query = DECLARATION + "SELECT * WHERE STRICT(PROJECT[x](A ; (B AS x OR C)))"
    assert _labels(evaluate(query, [_event(name) for name in "ADC"])) == [{"x": ()}]


@pytest.mark.parametrize(
    ("formula", "labels"),
    [
        ("A AS x ; B", ("x", "B")),
        ("B ; (A ; C AS x) AS y", ("B", "x", "y")),
        ("(A ; B)[A -> x]", ("B", "x")),
        ("PROJECT[B, x](A AS x ; B ; C)", ("B", "x")),
        ("PROJECT[A](A AS x)", ("A",)),
        ("A ; !(B AS x) ; C", ("A", "C")),
        ("(A ; C) UNLESS (B AS x)", ("A", "C")),
        ("(A AS x ; A)", ("x", "A")),
    ],
)
def test_star(formula: str, labels: tuple[str, ...]) -> None:
    query = DECLARATION + f"SELECT * WHERE {formula}"
    matches = evaluate(query, [_event(name) for name in "AACABAC"])
    assert matches
    assert {tuple(label for label, _ in match.labels) for match in matches} == {labels}


def test_a_type_that_streams_share_is_told_apart_by_the_stream() -> None:
    query = (
        "CREATE STREAM S { EVENT A { v: INT }, EVENT B { v: INT } }"
        "CREATE STREAM T { EVENT A { v: INT } }"
        "QUERY both: SELECT * FROM S, T WHERE A "
        "QUERY one: SELECT * FROM S, T WHERE T>A "
        "QUERY narrow: SELECT * FROM T WHERE A"
    )
    events = [
        {"type": "A", "stream": "S", "v": 1},
        {"type": "B", "stream": "S", "v": 1},
        {"type": "A", "stream": "T", "v": 1},
    ]
    found = {name: evaluate(query, events, query=name) for name in ("both", "one", "narrow")}
    assert [match.start for match in found["both"]] == [0, 2]
    assert [match.start for match in found["one"]] == [2]
    assert [match.start for match in found["narrow"]] == [0]


def test_events_of_other_types_have_no_position() -> None:
    events = [_event("A"), _event("Stranger"), _event("B")]
    query = DECLARATION + "SELECT * WHERE A : B"
    assert evaluate(query, events) == [Match((), 0, 1, (("A", (0,)), ("B", (1,))))]


def test_an_attribute_that_the_type_lacks_is_null() -> None:
    query = (
        "CREATE STREAM S { EVENT A { v: INT }, EVENT B { w: INT } }"
        "SELECT x WHERE (A OR B) AS x FILTER x.v IS NULL"
    )
    assert _labels(evaluate(query, [{"type": "A", "v": 1}, {"type": "B", "v": 1, "w": 1}])) == [
        {"x": (1,)}
    ]


def test_windows_of_time() -> None:
    declaration = "CREATE STREAM S { EVENT A { t: TIMESTAMP }, EVENT B { t: TIMESTAMP } }"
    times = ["2024-01-01 00:00:00", "2024-01-01 01:30:00", "2024-01-01 01:30:01"]
    events = [{"type": name, "t": time} for name, time in zip("ABB", times, strict=True)]
    query = f"{declaration} SELECT * WHERE A ; B WITHIN 1 HOUR 30 MINUTES"
    assert [match.end for match in evaluate(query, events, order_by="t")] == [1]
    assert [match.end for match in evaluate(f"{query} [t]", events)] == [1]
    with pytest.raises(CelError, match="no attribute"):
        evaluate(query, events)
    with pytest.raises(CelError, match="decreases"):
        evaluate(f"{query} [t]", list(reversed(events)))


def test_order_by_sorts_and_keeps_equal_events_as_they_are() -> None:
    events = [_event("B", ts=2), _event("C", ts=1), _event("A", ts=1)]
    query = DECLARATION + "SELECT * WHERE C : A : B"
    assert [match.start for match in evaluate(query, events, order_by="ts")] == [0]
    assert not evaluate(query, events)


def test_parts_of_null_and_nan() -> None:
    events = [_event("A", value) for value in (None, float("nan"), 0.0, 1.0)]
    events += [_event("B", value) for value in (-0.0, float("nan"), None)]
    matches = evaluate(DECLARATION + "SELECT NONE WHERE A ; B PARTITION BY value", events)
    assert sorted(str(dict(match.partition)["value"]) for match in matches) == [
        "0.0",
        "None",
        "nan",
    ]


def test_consuming_begins_anew_after_output() -> None:
    events = [_event(name, id=id_) for name, id_ in (("A", 1), ("A", 2), ("B", 1), ("B", 2))]
    query = DECLARATION + "SELECT NONE WHERE A ; B PARTITION BY id CONSUME BY "
    ends = {
        how: [match.partition[0][1] for match in evaluate(query + how, events)]
        for how in ("NONE", "ANY", "PARTITION")
    }
    assert ends == {"NONE": [1, 2], "ANY": [1], "PARTITION": [1, 2]}


def test_expressions_have_one_row_for_each_projected_match() -> None:
    events = [_event("A", 2.0), _event("A", 2.0), _event("B", None)]
    query = DECLARATION + (
        "SELECT y, SUM(x.value) / COUNT(x) AS mean, COLLECT(y.value) AS seen, x.value AS same "
        "WHERE A AS x ; B AS y"
    )
    matches = evaluate(query, events)
    assert [match.values for match in matches] == [
        (("mean", 2.0), ("seen", (None,)), ("same", 2.0)) for _ in range(2)
    ]
    assert _labels(matches) == [{"y": (2,)}] * 2
    assert not same_answer(matches, matches[:1])


def test_a_choice_is_checked_for_each_end_position() -> None:
    events = [_event("A"), _event("A"), _event("A"), _event("B")]
    query = DECLARATION + "SELECT * WHERE A ; B LIMIT 2"
    everything = evaluate(query, events)
    assert len(everything) == 3
    assert choice_per_end(query) == 2
    for answer in itertools.combinations(everything, 2):
        check_answer(query, everything, answer)
    stranger = Match((), 0, 3, (("A", (0, 1)), ("B", (3,))))
    for wrong in (
        everything,
        everything[:1],
        [everything[0], everything[0]],
        [everything[0], stranger],
    ):
        with pytest.raises(AssertionError):
            check_answer(query, everything, wrong)
    any_query = query.replace("SELECT", "SELECT ANY")
    assert choice_per_end(any_query) == 1
    check_answer(any_query, everything, everything[1:2])
    with pytest.raises(AssertionError):
        check_answer(any_query, everything, everything[:2])


def test_words_comments_and_quotes() -> None:
    query = (
        "create stream S { event `select` { `by`: bigint, within: int } } -- a comment\n"
        "/* another\none */ select `or`[within] where `select` as `or` "
        "filter `or`.by > 1 and `or`[within = 2]"
    )
    assert _labels(evaluate(query, [{"type": "select", "by": 2, "within": 2}])) == [{"or": (0,)}]


@pytest.mark.parametrize(
    "formula",
    [
        "A ; !B",
        "!A ; B",
        "A ; !B ; !C ; D",
        "A : !B ; C",
        "A FILTER A.id = 1 FILTER A.id = 1",
        "A UNLESS B UNLESS C",
        "(A FILTER A.id = 1) ; E",
        "A FILTER x.id = 1",
        "A FILTER A.size = 1",
        "(A AS x)[x -> y] FILTER x.id = 1",
        "PROJECT[A](A ; B AS x) FILTER x.id = 1",
        "(A UNLESS B AS x) FILTER x.id = 1",
        "A AS B",
        "A AS select",
        "A FILTER A.id",
        "A FILTER A[COUNT(A) = 1]",
        "A FILTER A.id = 'p'",
        "A FILTER A.name LIKE 'a\\b'",
    ],
)
def test_what_has_no_meaning_is_rejected(formula: str) -> None:
    with pytest.raises(CelError):
        evaluate(DECLARATION + formula, [_event("A"), _event("B")])
