"""Random queries of MATCH_RECOGNIZE, and small tables for them."""

from __future__ import annotations

import math
import random
from typing import Any

SCHEMA = {
    "g": "STRING",
    "id": "INT",
    "ts": "TIMESTAMP",
    "v": "INT",
    "w": "DOUBLE",
    "s": "STRING",
    "d": "DATE",
    "ok": "BOOLEAN",
    "px": "DECIMAL(10, 2)",
    "q": "DECIMAL(18, 4)",
    "big": "DECIMAL(38, 10)",
    "took": "INTERVAL",
}

_VARIABLES = ("A", "B", "C")

_LOCAL = (
    "{o}v > {n}",
    "{o}v <= {n}",
    "{o}s = '{t}'",
    "{o}s LIKE '%{t}%'",
    "{o}v < PREV({o}v)",
    "v > PREV(v, 2) OR PREV(v, 2) IS NULL",
    "NEXT(v) IS NULL OR NEXT(v) >= {n}",
    "{o}w IS NOT NULL",
    "v IN ({n}, {m})",
    "v + w > {n}",
    "ABS(v - PREV(v)) <= {m}",
    "v BETWEEN {m} AND {n}",
    "COALESCE(v, {n}) % 2 = 1",
    "CASE WHEN s = '{t}' THEN v > {m} ELSE v < {n} END",
    "ts <= PREV(ts) + INTERVAL '{n}' MINUTE",
    "NOT ({o}v > {n} AND ({o}s = '{t}' OR {o}w IS NULL))",
    "({o}v > {n}) = ({o}s = '{t}')",
    "NOT COALESCE({o}v > {n}, {o}s LIKE '{t}%', FALSE)",
    "{o}v NOT IN ({n}, w, {m})",
    "{o}v NOT BETWEEN {m} AND w",
    "CASE {o}v WHEN {n} THEN s = '{t}' WHEN {m} THEN NOT s <> '{t}' ELSE NULL END",
    "(NOT ({o}v > {n} OR {o}s = '{t}')) IS NOT NULL",
    "UPPER({o}s) = 'A' OR LENGTH({o}s) = 2",
    "{o}ok",
    "NOT {o}ok OR {o}s IS NOT DISTINCT FROM PREV({o}s)",
    "LOWER(PREV({o}s)) || '{t}' = {o}s || '{t}'",
    "MINUTE(ts) % {n} < {m} OR HOUR(PREV(ts, {m})) = 0",
    "COALESCE(PREV(s || '!', {m}), '-') <> '{t}!'",
    "COALESCE(UPPER(PREV({o}s)), 'A') = 'A'",
    "LEAST(v, PREV(v), {n}) < {m} OR GREATEST({o}w, NEXT({o}w)) > {n}.5",
    "SQRT(v * v - PREV(v)) > {m}",
    "IF({o}ok, {o}v, PREV(v)) >= {m}",
    "NULLIF({o}v, {n}) IS NULL OR NULLIF(PREV(s), '{t}') = s",
    "CAST({o}v AS STRING) = '{n}' OR CAST({o}ok AS INT) = 1",
    "STARTSWITH({o}s, '{t}') OR POSITION('b', {o}s) > 1",
    "CASE WHEN LENGTH({o}s) = 1 THEN {o}v WHEN {o}ok THEN 1 END IN ({m}, {n})",
    "d IS DISTINCT FROM PREV(d) AND CAST(ts AS DATE) > d",
    "({o}s IS DISTINCT FROM PREV(s)) = {o}ok",
    "DATE_TRUNC('HOUR', ts) = ts OR YEAR({o}d) = 2026",
    "{o}px > 1.5",
    "{o}px <= PREV({o}px) + {n}.25",
    "px * {n} > q OR q / 3 <> px",
    "{o}big - px < {m} OR {o}big IS NULL",
    "big + PREV(big) IS NOT NULL AND px % 0.7 < 0.5",
    "{o}px + w > {n}.5 OR {o}px = v",
    "-{o}q < PREV(-q) OR ABS({o}px - {n}.5) > {m}",
    "{o}px BETWEEN {m} AND {n}.75 OR {o}px IN (1.5, q, {n})",
    "COALESCE({o}px, PREV(q), {n}.125) >= {m}.5",
    "CASE WHEN {o}ok THEN px WHEN v > {m} THEN q ELSE {n} END > {m}.1",
)
_OF_START = (
    "FIRST(v) <= v",
    "COUNT(*) <= {n}",
    "SUM(v) < 4 * {n}",
    "LAST(v, 1) IS NULL OR v > LAST(v, 1)",
    "FIRST(v, 1) IS NULL OR FIRST(v, 1) >= {m}",
    "MATCH_NUMBER() % 2 = 1 OR v > {m}",
    "TIMESTAMPDIFF(MINUTE, FIRST(ts), ts) < {n}",
    "AVG(v) > {m}",
    "MAX(s) <> '{t}'",
    "SUM(px) < {n}{m}.5",
    "AVG(q) > {m}.25 OR MIN(big) < {n}",
    "SUM(big) IS NULL OR SUM(big) > {n}",
    "COUNT(UPPER(s)) < {n} OR MAX(LENGTH(s)) = 1",
    "FIRST(LOWER(s)) = s OR FIRST(px, 1) < px",
    "SQRT(COUNT(*)) < {m}.5",
    "HOUR(FIRST(ts)) = HOUR(ts)",
    "ts <= FIRST(ts) + INTERVAL '{n}' MINUTE",
    "LAST(ts) - FIRST(ts) < INTERVAL '{n}' MINUTE",
    "ts - INTERVAL '{n}' MINUTE <= FIRST(ts)",
    "TIMESTAMPDIFF(MINUTE, FIRST(ts), ts) <= {m}",
    "{n} > TIMESTAMPDIFF(MINUTE, FIRST(ts), ts)",
    "ts BETWEEN FIRST(ts) AND FIRST(ts) + INTERVAL '{n}' MINUTE",
    "FIRST(ts) + INTERVAL '{n}' MINUTE = ts",
    "d <= FIRST(d) + INTERVAL '{m}' DAY",
    "SUM(took) < INTERVAL '{n}' MINUTE",
    "AVG(took) >= INTERVAL '0' SECOND",
    "AVG(took) > INTERVAL '{m}' SECOND OR SUM(took) IS NULL",
    "SUM(ts - TIMESTAMP '2026-03-01 00:00:00') <= INTERVAL '{n}{m}' MINUTE",
)
_OF_PATH = (
    "{x}.v < {y}.v",
    "{x}.v IS NULL OR v > {x}.v",
    "COUNT({x}.*) >= COUNT({y}.*) - 1",
    "SUM({x}.v) < 3 * {n}",
    "AVG({x}.w) > {m} OR {x}.w IS NULL",
    "LAST({x}.v, 1) <> v",
    "FIRST({x}.v) >= {m}",
    "CLASSIFIER({x}) IS NULL OR CLASSIFIER({x}) <> '{y}'",
    "LAST(CLASSIFIER(), 1) = '{x}' OR COUNT(*) < {n}",
    "PREV(CLASSIFIER()) IS NULL OR PREV(CLASSIFIER(), 1) <> '{y}'",
    "PREV({x}.v, 1) < v",
    "MIN({x}.v) < v OR COUNT({x}.v) = 0",
    "COUNT(CLASSIFIER({x})) < {n}",
    "FIRST({x}.s || '') IS NULL OR v > {m}",
    "FIRST({x}.s) IS NULL OR v > {m}",
    "COALESCE(MAX(U.v), 0) <= v",
    "LAST(U.s) = s OR SUM(U.v * 2) > {n}",
    "UPPER({x}.s) = UPPER(s) OR LENGTH({y}.s) = 2",
    "{x}.s || s = 'a{t}' OR {x}.s || '-' || {y}.s > s || '{t}'",
    "({x}.s || {y}.s) IS NULL OR PREV(s) || {x}.v IN ('a{n}', {y}.s)",
    "{x}.s || CLASSIFIER({y}) < 'b{y}' OR NOT ({y}.s || s <> LOWER(s) || {x}.s)",
    "COALESCE(LENGTH({x}.s), {m}) < {n}",
    "LAST({x}.s || '-', 1) <> '{t}-' OR LAST(LENGTH({x}.s), 1) IS NULL",
    "SUM({x}.px) < {n}.5 OR {x}.px IS NULL",
    "AVG({x}.q) < px OR AVG(U.px) > {m}.5",
    "MAX({x}.big) >= MIN({y}.big)",
    "{x}.px < {y}.q + {m}.05 OR {x}.big > {y}.px",
    "SUM({x}.big) + 1 > {n} OR SUM(LENGTH(U.s)) > {m}",
    "GREATEST({x}.px, {y}.px, 1.5) > {m}",
    "{x}.ok",
    "IF({x}.ok, {y}.v, {x}.v) > {m} OR {x}.s IS NOT DISTINCT FROM {y}.s",
    "MIN(CASE WHEN CLASSIFIER() = '{x}' THEN LENGTH(s) END) = 1",
    "ts <= {x}.ts + INTERVAL '{n}' MINUTE",
    "ts - {x}.ts < INTERVAL '{n}' MINUTE",
    "LAST({y}.ts) <= FIRST({x}.ts) + INTERVAL '{n}' MINUTE",
    "TIMESTAMPDIFF(MINUTE, FIRST({x}.ts), {y}.ts) < {n}",
    "SUM({x}.took) >= took OR took IS NULL",
    "SUM({x}.took) IS NOT NULL OR {x}.took IS NULL",
    "AVG({x}.took) >= INTERVAL '0' SECOND",
    "AVG({x}.took) < INTERVAL '{n}' SECOND OR SUM({y}.took) IS NULL",
    "SUM(U.took) - AVG({x}.took) > {y}.took",
    "SUM({x}.ts - TIMESTAMP '2026-03-01 00:00:00') < INTERVAL '{n}{m}' MINUTE",
    "AVG({x}.took) FILTER (WHERE {x}.v > {m}) <= SUM({x}.took) FILTER (WHERE {x}.ok)",
)
_INTERVALS = (
    "LAST({x}.ts) - FIRST(ts)",
    "MAX({x}.ts - TIMESTAMP '2026-01-01 00:00:00') + INTERVAL '{n}' MINUTE",
    "ARRAY_AGG({x}.d - DATE '2026-01-01')",
    "COUNT({x}.ts - TIMESTAMP '2026-01-01 00:00:00')",
    "{x}.took + MIN(took)",
    "SUM({x}.took)",
    "AVG(took)",
    "FINAL SUM(took)",
    "FINAL AVG({x}.took)",
    "RUNNING SUM(took) - {x}.took",
    "SUM(DISTINCT took)",
    "FINAL AVG(DISTINCT {x}.took) FILTER (WHERE {x}.v > {m})",
    "SUM({x}.took) FILTER (WHERE {x}.ok)",
    "AVG({x}.ts - TIMESTAMP '2026-01-01 00:00:00')",
    "SUM(({x}.d - DATE '2026-01-01') * {n}00000)",
    "AVG(IF(CLASSIFIER() = '{x}', took, NULL))",
)
_MEASURES = (
    "FIRST(id)",
    "LAST(id)",
    "ARRAY_AGG(CLASSIFIER())",
    "CLASSIFIER()",
    "MATCH_NUMBER()",
    "COUNT(*)",
    "COUNT({x}.v)",
    "SUM({x}.v)",
    "SUM({x}.w)",
    "FINAL SUM({x}.v * {x}.v)",
    "AVG({x}.v)",
    "MIN({x}.s)",
    "MAX(ts)",
    "FINAL LAST({x}.v)",
    "FIRST({x}.v, 1)",
    "LAST({x}.s, 1)",
    "PREV({x}.v)",
    "NEXT(FIRST({x}.v), 2)",
    "PREV(CLASSIFIER({x}), 1)",
    "NEXT(LAST(CLASSIFIER()), 1)",
    "ARRAY_AGG({x}.s)",
    "ARRAY_AGG(U.v + 1)",
    "U.v",
    "COALESCE({x}.s, '-')",
    "{x}.v > 2",
    "RUNNING LAST(v) - RUNNING FIRST(v)",
    "CASE WHEN COUNT({x}.*) > 1 THEN 'many' ELSE {x}.s END",
    "RUNNING SUM(v) % 3",
    "TIMESTAMPDIFF(SECOND, FIRST(ts), LAST({x}.ts))",
    "LAST(COALESCE({x}.v, 7), 1)",
    "MIN({x}.w) * 2.5",
    "NOT ({x}.v > {n} OR {x}.s NOT LIKE '%{t}')",
    "{x}.v > {n} AND NOT {x}.s = '{t}' AND {x}.w IS NOT NULL",
    "({x}.v > {n}) <> ({x}.w > 1)",
    "CASE {x}.s WHEN 'a' THEN {x}.v WHEN 'b' THEN -{x}.v WHEN NULL THEN 9 END",
    "MAX({x}.v > {n} OR {x}.s = '{t}')",
    "COUNT({x}.v IN ({n}, {m}))",
    "-({x}.w - 1) / {x}.v",
    "UPPER({x}.s)",
    "LOWER(CLASSIFIER()) || '-' || {x}.s",
    "LENGTH(LAST({x}.s, 1))",
    "MINUTE(FIRST(ts)) + HOUR(LAST({x}.ts))",
    "DATE_TRUNC('HOUR', FIRST({x}.ts))",
    "CAST(LAST(ts) AS DATE)",
    "CAST({x}.v AS STRING) || COALESCE({x}.s, '?')",
    "CAST(COUNT({x}.*) AS STRING)",
    "ROUND(AVG({x}.v), 1)",
    "FLOOR({x}.w * {n})",
    "IF({x}.v > {n}, {x}.s, UPPER(LAST(s)))",
    "GREATEST({x}.v, SUM({x}.v), {n})",
    "LEAST({x}.s, LAST(s), '{t}')",
    "NULLIF({x}.v, {n})",
    "{x}.s IS DISTINCT FROM LAST(s)",
    "SUBSTR({x}.s, {m})",
    "ARRAY_AGG(UPPER({x}.s))",
    "SUM(LENGTH({x}.s))",
    "MAX(UPPER(s) || CLASSIFIER())",
    "REPLACE({x}.s, '{t}', 'z')",
    "SQRT(SUM({x}.v)) > {n}",
    "{x}.ok AND NOT LAST(ok)",
    "{x}.d",
    "{x}.px",
    "SUM({x}.px)",
    "FINAL AVG({x}.px)",
    "MIN({x}.q) + MAX({x}.big)",
    "SUM({x}.big)",
    "AVG(big)",
    "{x}.px * {x}.q",
    "LAST(big) / {x}.px",
    "ARRAY_AGG({x}.px)",
    "{x}.px - 1.005",
    "{x}.px > {n}.5",
    "SUM({x}.px * 2.5)",
    "SUM(px * w)",
    "COALESCE({x}.px, {x}.v)",
    "CASE WHEN {x}.ok THEN {x}.px ELSE {n}.125 END",
    "ABS(-{x}.big) % 0.3",
    "PREV({x}.px) + {x}.w",
    "LAST(TIMESTAMPDIFF(MINUTE, {x}.ts, {x}.ts + INTERVAL '{n}' MINUTE))",
    "COUNT(*) FILTER (WHERE v > {n} OR CLASSIFIER() = '{x}')",
    "SUM({x}.v) FILTER (WHERE {x}.ok)",
    "FINAL MAX({x}.s) FILTER (WHERE {x}.v < {n} AND NOT {x}.ok)",
    "ARRAY_AGG({x}.s) FILTER (WHERE {x}.v > {m})",
    "COUNT(DISTINCT {x}.v)",
    "SUM(DISTINCT {x}.v) FILTER (WHERE {x}.s <> '{t}')",
    "AVG(DISTINCT {x}.w)",
    "FINAL SUM(DISTINCT {x}.px)",
    "AVG(DISTINCT big)",
    "MIN(DISTINCT {x}.s)",
    "ARRAY_AGG(DISTINCT {x}.s)",
    "ARRAY_AGG(DISTINCT {x}.px ORDER BY {x}.px DESC NULLS LAST)",
    "ARRAY_AGG({x}.s ORDER BY {x}.v DESC NULLS FIRST, {x}.w NULLS LAST)",
    "FINAL ARRAY_AGG(v ORDER BY s NULLS LAST) FILTER (WHERE ok)",
    "ARRAY_AGG(CLASSIFIER() ORDER BY CLASSIFIER() DESC, id)",
    "ARRAY_AGG({x}.v ORDER BY {x}.px NULLS FIRST, {x}.big DESC NULLS FIRST)",
)
_PARTITIONS = (
    "g",
    "g",
    "UPPER(s) AS g2",
    "ok",
    "px",
    "LENGTH(s)",
    "g, v % 2 AS g2",
    "CAST(ts AS DATE)",
    "d, COALESCE(s, 'none') AS k",
    "IF(ok, 1, 0)",
)
_ORDERS = (
    "LENGTH(s) NULLS LAST, id",
    "v % 2 AS odd DESC NULLS FIRST, id",
    "px NULLS FIRST, id DESC",
    "ok DESC NULLS LAST, DATE_TRUNC('HOUR', ts) AS h, id",
    "big NULLS LAST, id",
    "-px DESC NULLS FIRST, id",
)


def row_query(rng: random.Random) -> str:
    """A query on the table of `SCHEMA`."""
    pattern = _pattern(rng, rng.choice((1, 2, 2, 3)))
    used = [name for name in _VARIABLES if name in pattern]
    if not used:
        return row_query(rng)
    kinds = rng.choice(((_LOCAL,), (_LOCAL,), (_LOCAL, _OF_START), (_LOCAL, _OF_START, _OF_PATH)))
    defined = []
    for name in used:
        if rng.random() < 0.75:
            parts = [_condition(rng, name, used, kinds) for _ in range(rng.choice((1, 1, 2)))]
            defined.append(f"{name} AS {rng.choice((' AND ', ' OR ')).join(parts)}")
    order = rng.choice(("id", "ts", "ts", "id DESC", rng.choice(_ORDERS)))
    rows = rng.choice(("", "ONE ROW PER MATCH", *_all_rows("{-" in pattern)))
    measures = [_filled(rng, rng.choice(_MEASURES), used) for _ in range(rng.choice((2, 3, 4)))]
    if rng.random() < 0.2 and "ARRAY" not in measures[0]:
        measures.append("COALESCE(CAST(m0 AS STRING), '-') || CLASSIFIER()")
    if rng.random() < 0.3:
        measures.append(_filled(rng, rng.choice(_INTERVALS), used))
    named = ", ".join(f"{measure} AS m{n}" for n, measure in enumerate(measures))
    subset = f"SUBSET U = ({', '.join(rng.sample(used, rng.randint(1, len(used))))})"
    within = f"WITHIN INTERVAL '{rng.randint(1, 9)}' MINUTE" if order == "ts" else ""
    lines = [
        f"CREATE TABLE t ({', '.join(f'{n} {t}' for n, t in SCHEMA.items())});",
        "SELECT * FROM t MATCH_RECOGNIZE (",
        rng.choice(("", f"PARTITION BY {_partition(rng, order)}")),
        f"ORDER BY {order}",
        f"MEASURES {named}",
        rows,
        _skip(rng, used),
        f"PATTERN ({pattern}) {within if rng.random() < 0.4 else ''}",
        subset,
        f"DEFINE {', '.join(defined)}" if defined else "",
        ")",
    ]
    return "\n".join(line for line in lines if line)


def _partition(rng: random.Random, order: str) -> str:
    """The keys; none is also one of the order."""
    keys = [one for one in _PARTITIONS if one.split(",")[0] != order.split()[0]]
    return rng.choice(keys)


def _all_rows(excludes: bool) -> list[str]:
    shown = ["", " SHOW EMPTY MATCHES", " OMIT EMPTY MATCHES"]
    shown += [] if excludes else [" WITH UNMATCHED ROWS"]
    return [f"ALL ROWS PER MATCH{one}" for one in shown]


def _skip(rng: random.Random, used: list[str]) -> str:
    target = rng.choice((*used, "U"))
    return rng.choice(
        (
            *("", "", "AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW"),
            f"AFTER MATCH SKIP TO FIRST {target}",
            f"AFTER MATCH SKIP TO LAST {target}",
        )
    )


def _filled(rng: random.Random, text: str, used: list[str]) -> str:
    return text.format(
        x=rng.choice(used),
        y=rng.choice(used),
        n=rng.randint(2, 5),
        m=rng.randint(1, 3),
        t=rng.choice("abc"),
        o="",
    )


def _condition(
    rng: random.Random, name: str, used: list[str], kinds: tuple[tuple[str, ...], ...]
) -> str:
    text = rng.choice(rng.choice(kinds))
    filled = text.replace("{o}", rng.choice(("", f"{name}.")))
    negated = "NOT " if rng.random() < 0.1 else ""
    return f"{negated}({_filled(rng, filled, used)})"


def _pattern(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.15:
        name = rng.choice(_VARIABLES)
        if rng.random() < 0.1:  # rounds that are counted together
            return f"({name}{_quantifier(rng, 0.9)}){_quantifier(rng, 0.9)} {name}"
        return name + _quantifier(rng, 0.35)
    count = rng.choice((2, 2, 3))
    parts = [_pattern(rng, depth - 1) for _ in range(count)]
    match rng.random():
        case chance if chance < 0.5:
            text = " ".join(parts)
        case chance if chance < 0.8:
            text = " | ".join(parts)
        case chance if chance < 0.88 and depth == 1:
            text = f"PERMUTE({', '.join(parts)})"
            return text + _quantifier(rng, 0.2)
        case chance if chance < 0.92:
            return "{- " + parts[0] + " -} " + parts[1]
        case chance if chance < 0.95:
            text = f"{parts[0]} | ()"
        case chance if chance < 0.975:
            text = f"^ {parts[0]}"
        case _:
            text = f"{parts[0]} ($ | {parts[1]})"
    return f"({text})" + _quantifier(rng, 0.4)


def _quantifier(rng: random.Random, chance: float) -> str:
    if rng.random() > chance:
        return ""
    sign = rng.choice(("*", "+", "?", "{2}", "{2,}", "{1,2}", "{,2}", "{,}", "{0,3}"))
    return sign + rng.choice(("", "", "?"))


_LARGEST = "9999999999999999999999999999.9999999999"
_LONGEST = (2**63 - 1, 10**9 - 2**63)  # Arrow takes no shorter ones from Python


def row_table(rng: random.Random) -> list[dict[str, Any]]:
    """A few rows, in any order; `id` and `ts` never tie."""
    rows = []
    minute = 0
    for number in range(rng.randint(0, 9)):
        minute += rng.randint(1, 3)
        rows.append(
            {
                "g": rng.choice(("x", "x", "y", None)),
                "id": number + 1,
                "ts": f"2026-03-01 00:{minute:02}:00",
                "v": rng.choice((None, 1, 2, 3, 4, 5)),
                "w": rng.choice((None, 0.5, 1.0, 2.5, 4.0)),
                "s": rng.choice((None, "a", "b", "c", "ab")),
                "d": rng.choice((None, "2026-02-28", "2026-03-01", "2025-03-01")),
                "ok": rng.choice((None, True, True, False)),
                "px": rng.choice((None, "1.50", "0.05", "2.00", "-3.25", "99999999.99")),
                "q": rng.choice((None, "1.5000", "0.0333", "2.0000", "-99999999999999.9999")),
                "big": rng.choice((None, "1.5", "3", "-0.0000000001", _LARGEST, f"-{_LARGEST}")),
                "took": rng.choice((None, 1, -2, 1, -2, 1_500_000, -61_000_000, *_LONGEST)),
            }
        )
    rng.shuffle(rows)
    return rows


def with_real_groups(
    text: str, rows: list[dict[str, Any]]
) -> tuple[str, dict[str, str], list[dict[str, Any]]]:
    """A query and its rows, with real numbers for what some queries partition by: NaN, 0.0 and −0.0
    among them. Also the columns. It is drawn from the text itself, as in `strategies_keys`."""
    rng = random.Random(text)
    if "PARTITION BY g\n" not in text or rng.random() < 0.5:
        return text, SCHEMA, rows
    type_ = rng.choice(("DOUBLE", "FLOAT"))
    forms = {"x": (0.0, -0.0), "y": (math.nan, -math.nan), None: (None,)}
    changed = [{**row, "g": rng.choice(forms[row["g"]])} for row in rows]
    return text.replace("g STRING", f"g {type_}"), SCHEMA | {"g": type_}, changed
