"""Random queries with TOTAL and COLLAPSED: the compiled answers against the reference's, which
lists all matches.

A random query of another test is asked for all its matches, and then for totals of random functions
of its labels, or for their unions. By hand:

    python tests/seeds/test_random_totals.py 0 200                 # seeds 0 to 199, and the counts
    python tests/seeds/test_random_totals.py 17 18 --numba         # seed 17, as users run it
    python tests/seeds/test_random_totals.py 0 50 --stream         # as streams
"""

from __future__ import annotations

import argparse
import contextlib
import random
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Counted
from engines import (
    batches_of,
    engines,
    in_parts,
    interpreted,
    only_query,
    plain_totals,
    table_of,
    union_rows,
)
from reference import (
    RunError,
    WorkLimitError,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from strategies import ACROSS, EVERYTHING, LOOKING_BACK, OF_TIMES, SHORTER, Feature
from streams_by_hand import EVENT_TIME, instant, streamed, timed
from test_random import TOO_LARGE, Tally, cramped
from test_random_across import Drawn, Events, Language, drawn, stream_for

import celc
from celc import CelError, Matcher
from celc.options import Options

WORK_LIMIT = 100_000

_REGULAR = (EVERYTHING | SHORTER) - {Feature.STREAM_ATOM, Feature.LIMIT}
_LANGUAGES = tuple(
    Language(features, frozenset())
    for features in (
        _REGULAR,
        _REGULAR,
        LOOKING_BACK,
        ACROSS,
        OF_TIMES | {Feature.NOT_BEFORE, Feature.LOCAL_WINDOW},
    )
)
_ON_STREAMS = _REGULAR - {Feature.WITHIN_ATTRIBUTE}

_NUMBERS = ("INT", "LONG", "FLOAT", "DOUBLE", "INTERVAL")
_COUNTED_TYPES = ("INT", "LONG", "DECIMAL")


# --- what is drawn --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A query with TOTAL or COLLAPSED, and how it is called."""

    text: str
    order_by: str | None

    @property
    def is_total(self) -> bool:
        """Whether it asks for totals, and not for unions."""
        return "SELECT TOTAL" in self.text


def asked_of(rng: random.Random, query: Drawn, *, streams: bool = False) -> Asked | None:
    """The query with totals or unions in place of its items; None where it cannot be compiled."""
    lines = [line for line in query.text.splitlines() if not line.startswith(("SELECT", "LIMIT"))]
    place = next(n for n, line in enumerate(lines) if line.startswith(("FROM", "WHERE")))
    order_by = query.order_by
    if "clock: TIMESTAMP" in query.text and rng.random() < 0.4:
        order_by = "clock"

    def text_of(select: str, *more: str) -> str:
        return "\n".join([*lines[:place], select, *lines[place:], *more]) + "\n"

    try:
        with interpreted():
            plan = only_query(matcher_of(text_of("SELECT *"), order_by)).plan
    except CelError:
        return None
    if rng.random() < 0.25:
        labels = [f"`{label.name}`" for label in plan.answer.labels if rng.random() < 0.6]
        chosen = rng.choice(("*", "NONE", ", ".join(labels) or "*"))
        return Asked(text_of(f"SELECT COLLAPSED {chosen}"), order_by)
    items = [_item(rng, plan) for _ in range(rng.randint(1, 3))]
    select = ", ".join(f"{text} AS item_{number}" for number, (text, _) in enumerate(items))
    more = []
    spans = order_by == "clock" and not streams
    groups = ["", "", "", "PER END", "PER PARTITION"]
    if spans:
        groups += ["PER 2 SECONDS", "PER 1 SECOND", "PER 3 SECONDS 500 MILLISECONDS"]
    if streams:
        groups += [f"PER {rng.choice((1, 2, 5, 1000))} MILLISECONDS"]
    per = rng.choice(groups)
    more += [per] if per else []
    if rng.random() < 0.3:
        more.append(f"HAVING {_having(rng, [type for _, type in items])}")
    return Asked(text_of(f"SELECT TOTAL {select}", *more), order_by)


def matcher_of(text: str, order_by: str | None) -> Matcher:
    """The query compiled by the chosen engine."""
    return celc.compile(text, order_by=order_by)


def _item(rng: random.Random, plan: Plan) -> tuple[str, str]:
    """An item of TOTAL, and its type."""
    text, type = _function(rng, plan)
    for _ in range(rng.choice((0, 0, 1, 2))):
        other, other_type = _function(rng, plan)
        if type not in (*_COUNTED_TYPES, "DOUBLE", "FLOAT") or other_type not in (
            *_COUNTED_TYPES,
            *("DOUBLE", "FLOAT"),
        ):
            break
        if rng.random() < 0.3:
            other, other_type = rng.choice((("2", "INT"), ("0.5", "DOUBLE"), ("-3", "INT")))
        operator = rng.choice("+-*/%")
        if operator == "%" and (_is_rounded(text, type) or _is_rounded(other, other_type)):
            operator = "-"  # a remainder can jump where a number is another by its last digit
        if rng.random() < 0.2:
            other = f"ABS({other})"
        text = f"({text}) {operator} {other}"
        if operator == "/" or "DOUBLE" in (type, other_type) or "FLOAT" in (type, other_type):
            type = "DOUBLE"
        else:
            type = "DECIMAL"
    if type in (*_NUMBERS, "DECIMAL") and rng.random() < 0.2:
        text = rng.choice((f"-({text})", f"ABS({text})", f"ABS({text} - {text})"))
    return text, type


def _is_rounded(text: str, type: str) -> bool:
    """Whether an item is known to some digits alone."""
    sums = any(name in text for name in ("SUM(", "AVG(", "APPROX_COUNT("))
    return sums and type in ("DOUBLE", "FLOAT")


def _function(rng: random.Random, plan: Plan) -> tuple[str, str]:
    chance = rng.random()
    if chance < 0.3 or not plan.answer.labels:
        return "COUNT(*)", "DECIMAL"
    label = rng.choice(plan.answer.labels)
    if chance < 0.35:
        return "APPROX_COUNT(*)", "DOUBLE"
    if chance < 0.5:
        return f"COUNT(`{label.name}`)", "DECIMAL"
    usable = [name for name in label.attributes if plan.source.type_of(name) != "STRING"]
    if not usable:
        return f"COUNT(`{label.name}`)", "DECIMAL"
    attribute = rng.choice(usable)
    type = plan.source.type_of(attribute)
    argument = f"`{label.name}`.`{attribute}`"
    if type in _NUMBERS and rng.random() < 0.6:
        if rng.random() < 0.5:
            return f"AVG({argument})", "INTERVAL" if type == "INTERVAL" else "DOUBLE"
        of_sum = {"INT": "DECIMAL", "LONG": "DECIMAL", "INTERVAL": "INTERVAL"}.get(type, "DOUBLE")
        return f"SUM({argument})", of_sum
    return f"{rng.choice(('MIN', 'MAX'))}({argument})", type


def _having(rng: random.Random, types: list[str]) -> str:
    parts = []
    for _ in range(rng.randint(1, 2)):
        number = rng.randrange(len(types))
        name, type = f"item_{number}", types[number]
        if type not in (*_COUNTED_TYPES, "DOUBLE", "FLOAT") or rng.random() < 0.2:
            parts.append(f"{name} IS {rng.choice(('', 'NOT '))}NULL")
            continue
        parts.append(
            rng.choice(
                (
                    f"{name} {rng.choice(('>', '<', '=', '!=', '>=', '<='))} {rng.randint(-1, 6)}",
                    f"{name} {rng.choice(('>', '<'))} 2.5",
                    f"{name} IN (1, 2, 3)",
                    f"{name} NOT BETWEEN 2 AND 5",
                    f"ABS({name} - 3) * 2 < 5",
                )
            )
        )
    return rng.choice((" AND ", " OR ")).join(parts)


# --- comparing ------------------------------------------------------------------------------------


def wanted_of(query: Asked, events: Events) -> list[Any] | None:
    """The reference's answer, RunError as its one row; None where it takes too long."""
    try:
        if query.is_total:
            rows: list[Any] = evaluate_totals(
                query.text, events, order_by=query.order_by, work_limit=WORK_LIMIT
            )
            return rows
        return list(evaluate(query.text, events, order_by=query.order_by, work_limit=WORK_LIMIT))
    except RunError as error:
        return [error]
    except WorkLimitError:
        return None


def told(query: Asked, one: CompiledQuery, rows: Any, wanted: list[Any]) -> str:
    """What tells rows from the wanted ones; rows may be the error of the run."""
    failed = bool(wanted) and isinstance(wanted[0], RunError)
    if failed or isinstance(rows, TotalError):
        return "" if failed and isinstance(rows, TotalError) else f"{rows} and not {wanted}"
    if query.is_total:
        return totals_difference(rows, wanted)
    return difference(union_rows(one, rows), wanted)


def answered(one: CompiledQuery, events: Events, rng: random.Random) -> dict[str, Any]:
    """The rows by each way to run a query on one machine, or the error."""
    plan, table = one.plan, table_of(one.plan, events)
    one_part = not plan.source.partition_by or plan.interleaves
    ordered = table if one_part else table_of(plan, in_parts(plan, events))

    def by_batches() -> list[dict[str, Any]]:
        batches = list(one.match_arrow(batches_of(ordered, rng)))
        return [row for batch in batches for row in batch.to_pylist()]

    found: dict[str, Any] = {}
    for route, run in (
        ("match_table", lambda: one.match_table(table).to_pylist()),
        ("match_arrow", by_batches),
    ):
        try:
            found[route] = run()
        except TotalError as error:
            found[route] = error
    return found


@dataclass
class Counts(Tally):
    """What has been compared; counted: queries whose matches were not listed."""

    counted: int = 0
    errors: int = 0


def check(seed: int, tally: Counts, *, streams: int = 4, by_numba: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    plain = drawn(rng, rng.choice(_LANGUAGES), 2 + seed % 2)
    query = asked_of(rng, plain)
    tally.drawn += 1
    if query is None:
        return
    try:
        if by_numba:
            matchers: Mapping[str, Matcher] = {"chosen": matcher_of(query.text, query.order_by)}
        else:
            with interpreted():
                order = None if query.order_by is None else (query.order_by,)
                matchers = engines(query.text, Options(order))
    except CelError as problem:
        if {d.code for d in problem.diagnostics if d.severity == "error"} - TOO_LARGE:
            raise
        tally.too_large += 1
        return
    counted = any(isinstance(only_query(m).program.listing, Counted) for m in matchers.values())
    for _ in range(streams):
        events = stream_for(rng, replace(plain, text=query.text))
        if query.order_by == "clock":
            events.sort(key=lambda event: event["clock"])
        wanted = wanted_of(query, events)
        if wanted is None:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.errors += bool(wanted) and isinstance(wanted[0], RunError)
        tally.texts.add(query.text)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            with cramped(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                for route, rows in answered(one, events, rng).items():
                    differs = told(query, one, rows, wanted)
                    where = f"seed {seed}: {engine} engine, {route}, order {query.order_by}"
                    assert not differs, f"{where}: {differs}\n{query.text}{events}"
    tally.counted += counted and query.text in tally.texts


def check_as_stream(seed: int, tally: Counts) -> None:
    """Compare what streams of some micro-batches answer."""
    rng = random.Random(seed)
    plain = drawn(rng, Language(_ON_STREAMS, frozenset()), 2)
    asked = asked_of(rng, replace(plain, order_by=None), streams=True)
    tally.drawn += 1
    if asked is None:
        return
    query = Asked(timed(asked.text), EVENT_TIME)
    if "CONSUME BY ANY" in query.text and "PARTITION BY" in query.text:
        return
    with interpreted():
        try:
            matchers = engines(query.text, Options((EVENT_TIME,)))
        except CelError as problem:
            if {d.code for d in problem.diagnostics if d.severity == "error"} - TOO_LARGE:
                raise
            return
    for _ in range(3):
        events = stream_for(rng, plain)
        for number, event in enumerate(events):
            event[EVENT_TIME] = instant(1 + number)
        wanted = wanted_of(query, events)
        if wanted is None or (wanted and isinstance(wanted[0], RunError)):
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.texts.add(query.text)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                rows = list(streamed(one, events, rng))
            differs = told(query, one, rows, wanted)
            where = f"seed {seed}: {engine} engine, as a stream"
            assert not differs, f"{where}: {differs}\n{query.text}{events}"


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [3, pytest.param(16, marks=pytest.mark.long)])
def test_random_totals(seeds: int) -> None:
    """Dozens of queries on some streams, by every engine."""
    tally = Counts()
    for seed in range(seeds):
        with plain_totals(wavering=random.Random(seed) if seed % 2 else None):
            check(seed, tally)
    assert len(tally.texts) >= 9 * seeds // 16, tally
    assert tally.pairs_with_matches >= 12 * seeds // 16, tally
    assert tally.counted >= 2 * seeds // 16, tally


@pytest.mark.parametrize("seeds", [3, pytest.param(8, marks=pytest.mark.long)])
def test_random_totals_on_streams(seeds: int) -> None:
    tally = Counts()
    with plain_totals(wavering=random.Random(1)):
        for seed in range(seeds):
            check_as_stream(seed, tally)
    assert tally.pairs_with_matches >= 4 * seeds // 8, tally


@pytest.mark.parametrize("condition", ["", "FILTER x.n = y.n", "FILTER x.v < y.v"])
def test_no_sum_is_negative_zero(condition: str) -> None:
    """The signs of 0.0 are one number: counted, of unions and of lists, at once and as a stream."""
    attributes = f"v: DOUBLE, n: INT, {EVENT_TIME}: TIMESTAMP"
    text = f"""CREATE STREAM S {{ EVENT A {{ {attributes} }}, EVENT B {{ {attributes} }} }}
SELECT TOTAL SUM(x.v) AS s, AVG(x.v) AS a WHERE (A AS x ; B AS y) {condition}"""
    with interpreted(), plain_totals():
        query = only_query(matcher_of(text, EVENT_TIME))
        events = [
            {"type": type, "v": value, "n": 1, EVENT_TIME: instant(1 + number)}
            for number, (type, value) in enumerate(zip("ABAB", (-0.0, 1.0) * 2, strict=True))
        ]
        routes = answered(query, events, random.Random(1))
        routes["stream"] = list(streamed(query, events, random.Random(1)))
    for rows in routes.values():
        assert [repr(row[name]) for row in rows for name in ("s", "a")] == ["0.0"] * 4


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2400, 100))
def test_many_random_totals(first: int) -> None:
    tally = Counts()
    for seed in range(first, first + 100):
        with plain_totals(wavering=random.Random(seed) if seed % 2 else None):
            check(seed, tally, streams=8)
    print(f"random totals of seeds {first}…: {tally}")
    assert tally.counted >= 15, tally


@pytest.mark.long
def test_many_random_totals_by_numba() -> None:
    tally = Counts()
    for seed in range(5000, 5040):
        check(seed, tally, by_numba=True)


def main() -> None:
    """Run seeds by hand; stop at the first difference."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--numba", action="store_true")
    parser.add_argument("--stream", action="store_true")
    asked = parser.parse_args()
    tally = Counts()
    for seed in range(asked.first, asked.end):
        with contextlib.nullcontext() if asked.numba else plain_totals():
            if asked.stream:
                check_as_stream(seed, tally)
            else:
                check(seed, tally, by_numba=asked.numba)
    print(tally, f"counted {tally.counted}, errors {tally.errors}")


if __name__ == "__main__":
    main()
