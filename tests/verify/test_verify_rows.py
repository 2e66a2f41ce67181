"""Each invariant of a plan of MATCH_RECOGNIZE fails where it is broken, and holds on the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from celc_runtime.plan.expressions import (
    LabelOfRow,
    NumberOfMatch,
    Tree,
    ValueOfAggregate,
    ValueOfRow,
)
from celc_runtime.plan.row_pattern import (
    Measure,
    MoveCondition,
    RowAggregate,
    RowColumn,
    RowMove,
    RowNavigation,
    RowOrder,
    RowOutput,
    RowPlan,
    RowState,
)
from verified import invariants_of

from celc import verify
from celc.diagnostics.source import Source
from celc.row_pattern import module
from celc.row_pattern.compiler import compile_rows
from celc.verify import rows as invariants

_QUERY = """CREATE TABLE t (k INT, ts TIMESTAMP, v INT);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts, ROUND(v)
  MEASURES A.v AS first_v, SUM(B.v + 1) AS total, A.v + 1 AS next_v, COUNT(*) AS n
  PATTERN (A B+) WITHIN INTERVAL 1 HOUR
  DEFINE A AS A.v > 1, B AS B.v < 9 AND {condition}
)
"""
_LOCAL, _SEARCHING = "B.v > PREV(B.v)", "B.v > SUM(A.v)"


def _plan(condition: str, monkeypatch: pytest.MonkeyPatch) -> RowPlan:
    """The plan of a query, as the module's writer gives it to the verifier."""
    found: list[RowPlan] = []
    monkeypatch.setattr(module, "row_plan", lambda plan: iter(found.append(plan) or ()))
    compile_rows(Source("q.sql", _QUERY.format(condition=condition)), "q").module_parts("test")
    (plan,) = found
    return plan


def _of(**changes: Any) -> Callable[[RowPlan], RowPlan]:
    return lambda plan: replace(plan, **changes)


def _move(*move: int) -> Callable[[RowPlan], RowPlan]:
    """The plan with one move in its first state."""
    state = RowState((RowMove(move[0], move[2], condition=move[1]),))
    return lambda plan: replace(plan, states=(state, *plan.states[1:]))


def _aggregate(**changes: Any) -> Callable[[RowPlan], RowPlan]:
    def change(plan: RowPlan) -> RowPlan:
        first, *others = plan.aggregates
        return replace(plan, aggregates=(replace(first, **changes), *others))

    return change


def _measures(value: Tree) -> Callable[[RowPlan], RowPlan]:
    return _of(measures=(Measure("m", "INT", value),) * 4)


def _derived(**changes: Any) -> Callable[[RowPlan], RowPlan]:
    return lambda plan: replace(plan, derived=(replace(plan.derived[0], **changes),))


@pytest.mark.parametrize("condition", [_LOCAL, _SEARCHING])
def test_what_the_compiler_makes_breaks_none(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(condition, monkeypatch)
    assert plan.searches == (condition == _SEARCHING)
    assert not invariants_of(invariants.row_plan(plan))


_BROKEN: list[tuple[str, Callable[[RowPlan], RowPlan], str]] = [
    (_LOCAL, lambda p: replace(p, columns=(*p.columns, RowColumn("K", "INT"))), invariants.ONCE),
    (_LOCAL, lambda p: replace(p, outputs=p.outputs * 2), invariants.ONCE),
    (_LOCAL, _of(variables=("A", "A")), invariants.ONCE),
    (_LOCAL, _of(partition_by=(4,)), invariants.NUMBERS),
    (_LOCAL, lambda p: replace(p, order_by=(*p.order_by, RowOrder(-1))), invariants.NUMBERS),
    (_LOCAL, _of(read=(4,)), invariants.NUMBERS),
    (_LOCAL, _of(outputs=(RowOutput("k", 4),)), invariants.NUMBERS),
    (_LOCAL, _of(outputs=(RowOutput("k", 4, measure=True),)), invariants.NUMBERS),
    (_LOCAL, _measures(ValueOfRow(column=4, row=0)), invariants.NUMBERS),
    (_LOCAL, _measures(ValueOfRow(column=2, row=9)), invariants.NUMBERS),
    (_LOCAL, _measures(LabelOfRow(row=9)), invariants.NUMBERS),
    (_LOCAL, _measures(ValueOfAggregate(aggregate=2)), invariants.NUMBERS),
    (_LOCAL, _of(navigations=(RowNavigation((2,)),) * 2), invariants.NUMBERS),
    (_LOCAL, _aggregate(argument=ValueOfRow(column=4, row=None)), invariants.NUMBERS),
    (_LOCAL, _aggregate(variables=(2,)), invariants.NUMBERS),
    (_LOCAL, _of(skip="TO LAST", targets=(2,)), invariants.NUMBERS),
    (_LOCAL, _of(first=99), invariants.STATES),
    (_LOCAL, _of(start=-1), invariants.STATES),
    (_LOCAL, _move(0, -1, 99), invariants.STATES),
    (_LOCAL, _move(2, -1, 0), invariants.STATES),
    (_LOCAL, _move(0, 99, 0), invariants.STATES),
    (_LOCAL, _of(conditions=(MoveCondition(0), MoveCondition(7))), invariants.FOUND_BEFORE),
    (
        _LOCAL,
        lambda p: replace(p, local_conditions=p.local_conditions + 1),
        invariants.FOUND_BEFORE,
    ),
    (_LOCAL, _derived(name="v"), invariants.DERIVED),
    (_LOCAL, _derived(reads=(("w", "INT"),)), invariants.DERIVED),
    (_LOCAL, _aggregate(argument=None), invariants.ONE_ARGUMENT),
    (_LOCAL, _aggregate(read=""), invariants.ONE_ARGUMENT),
    (_LOCAL, _of(aggregates=(RowAggregate("SUM", None, "LONG"),) * 2), invariants.ONE_ARGUMENT),
    (_SEARCHING, _of(live=()), invariants.MEMORY),
    (_SEARCHING, _of(registers=()), invariants.MEMORY),
    (_LOCAL, _of(live=((),)), invariants.MEMORY),
    (_LOCAL, _of(skip="TO FIRST"), invariants.TARGETS),
    (_LOCAL, _of(targets=(0,)), invariants.TARGETS),
    (_LOCAL, _of(order_by=()), invariants.TIME),
    (_LOCAL, _of(order_by=(RowOrder(0),)), invariants.TIME),
    (_LOCAL, _of(order_by=(RowOrder(1, descending=True),)), invariants.TIME),
]


@pytest.mark.parametrize(("condition", "broken", "invariant"), _BROKEN)
def test_what_is_broken_is_found(
    condition: str,
    broken: Callable[[RowPlan], RowPlan],
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = broken(_plan(condition, monkeypatch))
    assert invariant in invariants_of(invariants.row_plan(wrong))


def test_a_module_with_a_wrong_plan_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    made = module._Writer._plan
    monkeypatch.setattr(
        module._Writer,
        "_plan",
        lambda *given: replace(made(*given), measures=(Measure("m", "LONG", NumberOfMatch()),)),
    )
    source = Source("q.sql", _QUERY.format(condition=_LOCAL))
    with pytest.raises(verify.VerificationError, match="'lower', plan: columns, variables, rows"):
        compile_rows(source, "q").module_parts("test")
