"""Features of conditions, put around the formula with FILTER."""

from __future__ import annotations

from collections.abc import Callable

from strategies_own_functions import DECLARATIONS

from .drafts import Draft, Feature

_OWN = """AGGREGATE spread(a: DOUBLE): DOUBLE
  STATE low: DOUBLE = NULL, high: DOUBLE = NULL
  STEP low = LEAST(low, a), high = GREATEST(high, a)
  RESULT high - low
AGGREGATE turns(a: DOUBLE, t: STRING): LONG
  STATE n: LONG = 0, b: DOUBLE = NULL
  STEP n = IF(a <> b OR t = 'p', n + 1, n), b = a
  RESULT n
"""


def _filter(make: Callable[[Draft], str]) -> Callable[[Draft], None]:
    """A feature of the conditions that `make` draws."""

    def apply(draft: Draft) -> None:
        condition = make(draft)
        draft.around(f"φ FILTER {condition}")

    return apply


def _of_one(draft: Draft) -> str:
    x, rng = draft.label(), draft.rng
    return rng.choice(
        (
            f"{x}.value > {rng.choice((0, 1, 2))}",
            f"{x}.id = 1 OR {x}.name LIKE 'p%'",
            f"NOT ({x}.value > 2 AND {x}.id = 1)",
            f"{x}.name IN ('p', 'q', NULL)",
            f"{x}[value > 1 OR name RLIKE '^p']",
            f"{x}.id BETWEEN 1 AND 2",
        )
    )


def _nulls(draft: Draft) -> str:
    x, rng = draft.label(), draft.rng
    draft.traits.add("nulls")
    word = rng.choice(("", "NOT "))
    return rng.choice((f"{x}.value IS {word}NULL", f"{x}.name IS {word}NULL OR {x}.id = 2"))


def _pair(draft: Draft) -> tuple[str, str]:
    one, other = draft.label(), draft.label()
    return one, other


def _correlation(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    return rng.choice(
        (
            f"{x}.id = {y}.id",
            f"{x}.id = {y}.id AND {x}.value <= {y}.value",
            f"{x}.key = {y}.key",
            f"{x}.value < {y}.value OR {x}.id = {y}.id",
            f"{x}.name <> {y}.name",
            f"{x}.value * 2 >= {y}.value + {y}.id",
            f"NOT {x}.value > {y}.value",
        )
    )


def _times(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    return rng.choice(
        (
            f"{y}.ts - {x}.ts <= 2 MILLISECONDS",
            f"{x}.ts + {x}.took > {y}.ts",
            f"ABS({x}.took - {y}.took) <= 1 MILLISECONDS",
            f"{x}.took * 2 < 3 MILLISECONDS",
        )
    )


def _previous(draft: Draft) -> str:
    x, rng = draft.label(), draft.rng
    return rng.choice(
        (
            f"{x}.value > PREV({x}.value)",
            f"{x}.id = PREV({x}.id, 2)",
            f"NOT {x}.name = PREV({x}.name)",
            f"{x}.value >= MAX(PRIOR {x}.value)",
            f"{x}.value <> AVG(PRIOR {x}.value)",
            f"COUNT(PRIOR {x}) < 2",
        )
    )


def _aggregate(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    return rng.choice(
        (
            f"SUM({x}.value) > {rng.randint(1, 5)}",
            f"AVG({x}.value) <= {y}.value",
            f"COUNT({x}) >= {rng.randint(1, 3)}",
            f"COUNT({x}) = COUNT({y})",
            f"MAX({x}.value) >= 3",
            f"MIN({x}.id) < {y}.id",
            f"FIRST({x}.value) < LAST({x}.value)",
            f"{x}.value = MAX({x}.value)",
            f"SUM({x}.id) = {y}.id",
        )
    )


def _distinct(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    name = rng.choice(("name", "id", "key", "value"))
    return rng.choice(
        (
            f"COUNT(DISTINCT {x}.{name}) >= 2",
            f"COUNT(DISTINCT {x}.{name}) = 1",
            f"COUNT(DISTINCT {x}.{name}) <= {y}.id",
            f"COUNT(DISTINCT PRIOR {x}.{name}) < 2",
            f"COUNT(DISTINCT {x}.{name}) >= 2 AND COUNT({x}) < 4",
        )
    )


def _own(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    draft.declared.append(_OWN)
    return rng.choice(
        (
            f"spread({x}.value) < 2",
            f"turns({x}.value, {x}.name) >= {y}.id",
            f"{x}.value > spread(PRIOR {x}.value)",
            f"MEDIAN({x}.value) >= {y}.value",
            f"STDDEV({x}.value) < 2",
        )
    )


def _own_function(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    draft.declared.append(DECLARATIONS)
    return rng.choice(
        (
            f"fn_near({x}.value, {y}.id)",
            f"fn_near({x}.value, {x}.id)",
            f"NOT fn_rising({x}.value)",
            f"fn_rising(PRIOR {x}.value)",
            f"fn_days({x}.ts, {y}.num) > {x}.id",
        )
    )


def _functions(draft: Draft) -> str:
    """Functions of one event, which become attributes of it."""
    (x, y), rng = _pair(draft), draft.rng
    return rng.choice(
        (
            f"UPPER({x}.name) LIKE 'P%' OR LENGTH({x}.name) = 2",
            f"UPPER({x}.name) = UPPER({y}.name)",
            f"COALESCE({x}.name, 'p') || 'q' IN ('pq', 'qq')",
            f"CASE WHEN {x}.id = 1 THEN {x}.value ELSE 2e0 END >= FLOOR({y}.value)",
            f"SECOND({x}.ts) = 0 AND HASH({x}.id, {x}.name) % 3 <> 1",
            f"SUBSTR(PREV({x}.name), 1, 1) <> {y}.name",
            f"TO_DATE(CAST({x}.ts AS STRING), 'yyyy-MM-dd HH:mm:ss') IS NULL OR {x}.id > 1",
            f"ROUND(MAX({x}.value)) >= {y}.id",
        )
    )


def _functions_between(draft: Draft) -> str:
    (x, y), rng = _pair(draft), draft.rng
    return rng.choice(
        (
            f"ROUND({x}.value - {y}.value, 0) <= 1",
            f"GREATEST({x}.value, {y}.value) >= 2",
            f"IF({x}.id = {y}.id, {x}.value, {y}.value) > 1",
            f"{x}.name || {y}.name <> 'pp'",
            f"{x}.name || {y}.id < {y}.name || '2'",
            f"COALESCE({x}.value, {y}.value) IS NOT NULL",
            f"CAST({x}.value + {y}.value AS INT) % 2 = 0",
        )
    )


CONDITIONS = (
    Feature("condition on one label", 2, _filter(_of_one)),
    Feature("NULLs", 2, _filter(_nulls)),
    Feature("correlation", 2, _filter(_correlation)),
    Feature("correlation again", 2, _filter(_correlation)),
    Feature("times", 2, _filter(_times)),
    Feature("PREV and PRIOR", 2, _filter(_previous)),
    Feature("aggregate", 2, _filter(_aggregate)),
    Feature("COUNT(DISTINCT)", 2, _filter(_distinct)),
    Feature("own aggregate", 2, _filter(_own)),
    Feature("own function", 2, _filter(_own_function)),
    Feature("functions", 2, _filter(_functions)),
    Feature("functions between events", 2, _filter(_functions_between)),
    Feature("condition around", 4, _filter(_of_one)),
    Feature("correlation around", 4, _filter(_correlation)),
)
