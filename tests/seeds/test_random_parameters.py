"""Random queries FOR EACH row of a random table: the compiled answers against the reference's,
which runs the query once for each row with its values as literals.

A random query of another test is given a parameter set with the attributes of its events; some of
the values that its conditions read become values of the set, and further conditions of all forms
are put around its formula. By hand:

    python tests/seeds/test_random_parameters.py 0 200             # seeds 0 to 199, and the counts
    python tests/seeds/test_random_parameters.py 17 18 --numba     # seed 17, as users run it
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventWarning
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.errors import WorkLimitError as RunWorkLimitError
from celc_runtime.plan.plan import Plan
from celc_runtime.rules import run as rules_run
from celc_runtime.rules.courses import Follower
from celc_runtime.run.feeding import read_all
from engines import (
    answer_of,
    batches_of,
    engines,
    in_parts,
    interpreted,
    only_query,
    table_of,
    union_rows,
)
from parameters import rows_table
from reference import (
    RunError,
    WorkLimitError,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from strategies import EVERYTHING, LOOKING_BACK, OF_TIMES, SHORTER, Feature
from test_random import TOO_LARGE, Tally, cramped
from test_random_across import Drawn, Events, Language, drawn, stream_for
from test_random_compact import answers_differ
from test_random_instants import SELECTORS, order_free_query, simultaneous_stream
from test_random_totals import WORK_LIMIT, asked_of, matcher_of

import celc
from celc import CelError, Matcher
from celc.core.limits import SIMULTANEOUS
from celc.options import Options

_REGULAR = (EVERYTHING | SHORTER) - {Feature.STREAM_ATOM, Feature.LIMIT, Feature.ANY}
_LANGUAGES = tuple(
    Language(features, frozenset())
    for features in (
        _REGULAR,
        _REGULAR,
        LOOKING_BACK - {Feature.LIMIT, Feature.ANY},
        (OF_TIMES | {Feature.NOT_BEFORE, Feature.LOCAL_WINDOW}) - {Feature.LIMIT, Feature.ANY},
    )
)

_NUMBER = "nr"
"""An attribute of the set that tells rows apart."""

_VERSION = "version"
"""An attribute of the set that versions of one row share."""

_NOT_YET = {"parameter-without-event", "computed-pattern", "function-of-set"}
"""What cannot be compiled yet."""

_MEANINGLESS = {"compared-types", "parameters-as-label", "call-arguments", "constant-in-total"}
"""What the changes of a text can lead to."""


# --- what is drawn --------------------------------------------------------------------------------


def for_each(rng: random.Random, text: str, plan: Plan, time: str | None = None) -> str:
    """A query with a parameter set `rule`, and conditions that read it.

    plan: of the query without the set. time: the order column in which rows of the set are valid
    for a time (VALID), and have versions; None: they are always valid.
    """
    event = re.search(r"EVENT \w+ \{ (.*?) \}", text)
    assert event is not None
    start = text.index("SELECT ")
    declared, lines = text[:start], text[start:].splitlines()
    where = next(n for n, line in enumerate(lines) if line.startswith("WHERE "))
    formula = lines[where].removeprefix("WHERE ")
    formula = _with_values(rng, formula)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        condition = _condition(rng, plan)
        if condition:
            formula = f"({formula}) FILTER {condition}"
    key = re.search(r"PARTITION BY (\w+)", text)
    if key and plan.answer.labels and rng.random() < 0.4:
        label = rng.choice(plan.answer.labels).name
        formula = f"({formula}) FILTER `{label}`.{key[1]} = rule.{key[1]}"
    lines[where] = f"WHERE {formula}"
    has_labels = not any(word in lines[0] for word in ("SELECT TOTAL", "COLLAPSED"))
    numeric = [name for name in ("value", "ratio", "id", "number") if f"{name}: " in event[1]]
    if has_labels and plan.answer.labels and rng.random() < 0.4 and "value_" in lines[0]:
        label, name = rng.choice(plan.answer.labels).name, rng.choice(numeric)
        item = f"LAST(`{label}`.{name}) {rng.choice('+-*')} rule.{rng.choice(numeric)}"
        lines[0] += f", {item} AS each_0"
    lines[where - 1] += " FOR EACH rule"
    declared += f"PARAMETERS rule {{ {_VERSION}: INT, " if time else "PARAMETERS rule { "
    declared += f"{_NUMBER}: INT, {event[1]}"
    found = re.search(rf"\b{time}: (\w+)", event[1])
    if time is not None and found is not None:
        declared += f", since: {found[1]}, until: {found[1]} }} VALID [since, until]\n"
    else:
        declared += " }\n"
    return declared + "\n".join(lines) + "\n"


_VALUE = re.compile(r"(?<![A-Z(] )(?<![A-Z]\()(?<!PRIOR )\b[a-zA-Z]\w*\.([a-z]\w*)\b(?!\()")


def _with_values(rng: random.Random, formula: str) -> str:
    """A few attributes of labels as attributes of the set."""

    def changed(found: re.Match[str]) -> str:
        return f"rule.{found[1]}" if rng.random() < 0.15 else found[0]

    return _VALUE.sub(changed, formula)


def _condition(rng: random.Random, plan: Plan) -> str:
    """A condition with values of the set, on a label of the formula."""
    if not plan.answer.labels:
        return "rule.id >= 1"
    label = rng.choice(plan.answer.labels).name
    x, compared = f"`{label}`", rng.choice(("=", "=", "<", "<=", ">", ">=", "!="))
    return rng.choice(
        (
            f"{x}.id = rule.id",
            f"{x}.name = rule.name",
            f"{x}.id {compared} rule.id",
            f"{x}.value {compared} rule.value",
            f"{x}.value {compared} rule.id",
            f"{x}.name {compared} rule.name",
            f"{x}.value >= rule.id AND {x}.value < rule.value",
            f"{x}.id BETWEEN rule.id AND rule.value",
            f"{x}.value NOT BETWEEN rule.value AND rule.id",
            f"{x}.id IN (rule.id, 2, NULL)",
            f"{x}.name IN (rule.name, 'p')",
            f"{x}.name NOT IN ('q', rule.name)",
            f"{x}.name LIKE rule.name",
            f"{x}.name NOT LIKE rule.name",
            f"{x}.name RLIKE rule.name",
            f"({x}.id = rule.id OR {x}.name = rule.name)",
            f"({x}.id = rule.id OR rule.value > 2)",
            f"NOT ({x}.id = rule.id AND {x}.value < rule.value)",
            f"{x}.id + rule.id {compared} 3",
            f"{x}.value * 2 {compared} rule.value + rule.id",
            "rule.name IS NOT NULL",
            "rule.id {compared} rule.value".replace("{compared}", compared),
            f"{x}[id = rule.id]",
            f"COUNT({x}) {compared} rule.id",
            f"SUM({x}.id) {compared} rule.value",
        )
    )


def _without_set(rng: random.Random, ties: str | None, depth: int) -> Drawn:
    """A query without a parameter set; with `ties` one that needs no order within an instant."""
    if ties is not None:
        return Drawn(order_free_query(rng, min(depth, 2)), "ts")
    return drawn(rng, rng.choice(_LANGUAGES), depth)


def with_times(rng: random.Random, query: Drawn, rows: list[dict[str, Any]]) -> None:
    """Give rows times between those of events, and keys: of some keys several versions."""
    taken = set()
    times = [row[query.order_by] for row in rows if row.get(query.order_by) is not None] or [None]
    for row in rows:
        bounds = [rng.choice((*times, None, None)) for _ in range(2)]
        if None not in bounds:
            bounds.sort()
        row |= {_VERSION: rng.choice((None, 1, 1, 1, 2)), "since": bounds[0], "until": bounds[1]}
        while (row[_VERSION], row["since"]) in taken:
            row[_VERSION] = (row[_VERSION] or 0) + 1
        taken.add((row[_VERSION], row["since"]))


def rules_for(rng: random.Random, query: Drawn) -> list[dict[str, Any]]:
    """Rows with the values that events have; some come twice."""
    made: list[dict[str, Any]] = []
    wanted = rng.choice((0, 1, 2, 3, 5))
    while len(made) < wanted:
        made += stream_for(rng, query) or [{}]
    rows = [{**event, _NUMBER: number} for number, event in enumerate(made[:wanted])]
    for row in rows:
        for name in row:
            if name != _NUMBER and rng.random() < 0.1:
                row[name] = None
        if row.get("name") is not None and rng.random() < 0.2:
            row["name"] = rng.choice(("_", "p%", "%", "[pq]+"))
    if "VALID" in query.text:
        with_times(rng, query, rows)
    rows += [dict(row) for row in rows if rng.random() < 0.2]
    rng.shuffle(rows)
    return rows


# --- comparing ------------------------------------------------------------------------------------


def by_number(rows: Sequence[Any], number_of: Any) -> dict[int, list[Any]]:
    """Rows of an answer by the number of their row of the set."""
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(number_of(row), []).append(row)
    return found


def told(
    query: CompiledQuery, found: Any, wanted: list[Any], rules: list[dict[str, Any]], events: Events
) -> str:
    """How the rows of an answer differ from the wanted ones, in words; empty: they are the same.

    found: the rows, or the error of the run. wanted: rows, or the one error of the reference.
    """
    failed = bool(wanted) and isinstance(wanted[0], RunError)
    if failed or isinstance(found, TotalError):
        return "" if failed and isinstance(found, TotalError) else f"{found} and not {wanted}"
    plan = query.plan
    names = (
        [name for name in ("nr", "id", "value", "name", "flag") if name in found[0]["rule"]]
        if found
        else []
    )
    given = {row[_NUMBER]: row for row in rows_table(query, rules).to_pylist()}
    for row in found:
        shown, wanted_row = row["rule"], given[row["rule"][_NUMBER]]
        assert all(repr(shown[name]) == repr(_plain(wanted_row[name])) for name in names), row
    answers = by_number(found, lambda row: row["rule"][_NUMBER])
    if plan.answer.totals is not None:
        expected = by_number(wanted, lambda row: row["rule"][_NUMBER])
    else:
        expected = by_number(wanted, lambda match: dict(match.parameters[0][1])[_NUMBER])
    for number in {*answers, *expected}:
        rows, matches = answers.get(number, []), expected.get(number, [])
        if plan.answer.totals is not None:
            rows, matches = _bare(rows), _bare(matches)
            differs = totals_difference(rows, matches)
        else:
            matches = [replace(match, parameters=()) for match in matches]
            rows = sorted(rows, key=lambda row: row["end_pos"])
            if plan.answer.collapsed:
                differs = difference(union_rows(query, rows), matches)
            else:
                differs = difference(answer_of(query, rows, events), matches)
        if differs:
            return f"row {number}: {differs}"
    return ""


def _plain(value: Any) -> Any:
    """A value as rows show it: 0.0 for −0.0."""
    return value + 0.0 if isinstance(value, float) else value


def out_of_order(query: CompiledQuery, found: Any, rules: list[dict[str, Any]]) -> str:
    """Which parts have their rows in a wrong order, in words; empty: none has.

    Rows of a part come by their ends, and those of one end in the order of the set.
    """
    if isinstance(found, TotalError) or not found or _NUMBER not in found[0]["rule"]:
        return ""
    firsts: dict[int, int] = {}
    for place, rule in enumerate(rules):
        firsts.setdefault(rule[_NUMBER], place)
    of_parts: dict[str, list[Any]] = {}
    end = next((name for name in ("end_pos", "span_start") if name in found[0]), None)
    for row in found:
        key = repr([row[name] for name in query.plan.source.partition_by])
        place = firsts[row["rule"][_NUMBER]]
        of_parts.setdefault(key, []).append((0 if end is None else row[end], place))
    return "".join(f"{key}: {of}" for key, of in of_parts.items() if of != sorted(of))


def _bare(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of an answer without the column of the set."""
    return [{name: row[name] for name in row if name != "rule"} for row in rows]


def wanted_of(
    query: Drawn, ties: str | None, events: Events, rules: list[dict[str, Any]]
) -> list[Any] | None:
    """The reference's answer, RunError as its one row; None where it takes too long."""
    answer = evaluate_totals if "SELECT TOTAL" in query.text else evaluate
    try:
        return list(
            answer(
                query.text,
                events,
                order_by=query.order_by,
                ties=ties,
                work_limit=WORK_LIMIT,
                parameters={"rule": rules},
            )
        )
    except RunError as error:
        return [error]
    except WorkLimitError:
        return None


@contextlib.contextmanager
def _small(rng: random.Random) -> Iterator[None]:
    """Few pairs and events are run at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules_run, "_PAIRS", rng.choice((1, 5, 1 << 21)))
        patch.setattr(rules_run, "_EVENTS", rng.choice((1, 4, 1 << 20)))
        if rng.random() < 0.1:
            patch.setattr(Follower, "pays", lambda *_: False)
        yield


def answered(
    one: CompiledQuery, events: Events, rules: pa.Table, rng: random.Random
) -> dict[str, Any]:
    """The rows by a table, by a run that is fed batch by batch, and by `match_arrow`; or the error.
    Compact answers are compared with those of the table."""
    plan, table = one.plan, table_of(one.plan, events)

    def by_batches() -> list[dict[str, Any]]:
        found = read_all(one.run(rule=rules), batches_of(ordered, rng))
        return [row for batch in found for row in batch.to_pylist()]

    def by_arrow() -> list[dict[str, Any]]:
        found = one.match_arrow(batches_of(ordered, rng), rule=rules)
        return [row for batch in found for row in batch.to_pylist()]

    one_part = not plan.source.partition_by or plan.interleaves
    ordered = table if one_part else table_of(plan, in_parts(plan, events))
    answers: dict[str, Any] = {}
    for route, run in (
        ("match_table", lambda: one.match_table(table, rule=rules).to_pylist()),
        ("run", by_batches),
        ("match_arrow", by_arrow),
    ):
        try:
            answers[route] = run()
        except TotalError as error:
            answers[route] = error
    told_of_graphs = answers_differ(one.with_parameters(rule=rules), events, rng)
    assert not told_of_graphs, told_of_graphs
    return answers


@dataclass
class Counts(Tally):
    """What has been compared, in numbers of queries."""

    indexed: int = 0  # an index finds the rows of the set
    followed: int = 0  # rows of the set are followed along the stream
    not_yet: int = 0  # cannot be compiled yet
    totals: int = 0  # have SELECT TOTAL
    timed: int = 0  # have VALID


def check(seed: int, tally: Counts, *, streams: int = 4, by_numba: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    ties = rng.choice((None, None, SIMULTANEOUS))
    plain = _without_set(rng, ties, 1 + seed % 3)
    tally.drawn += 1
    if rng.random() < 0.3:
        asked = asked_of(rng, plain)
        if asked is None:
            return
        # A remainder can turn the last digit of a sum into any number.
        plain = Drawn(asked.text.replace(" % ", " - "), asked.order_by)
    order_by = plain.order_by
    try:
        with interpreted():
            plan = only_query(matcher_of(plain.text, order_by)).plan
        time = order_by if rng.random() < 0.5 else None
        query = replace(plain, text=for_each(rng, plain.text, plan, time))
        if by_numba:
            matcher = celc.compile(query.text, order_by=order_by, ties=ties)
            matchers: Mapping[str, Matcher] = {"chosen": matcher}
        else:
            with interpreted():
                order = None if order_by is None else (order_by,)
                matchers = engines(query.text, Options(order, ties=ties))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        known = {"simultaneous-order"} if ties and re.search(SELECTORS, plain.text) else set()
        if codes - TOO_LARGE - _NOT_YET - _MEANINGLESS - known:
            raise
        tally.too_large += bool(codes & TOO_LARGE)
        tally.not_yet += bool(codes & _NOT_YET)
        return

    def given() -> tuple[Events, list[dict[str, Any]]]:
        events = simultaneous_stream(rng, rng.randint(0, 9)) if ties else stream_for(rng, query)
        if order_by == "clock":
            events.sort(key=lambda event: event["clock"])
        return events, rules_for(rng, query)

    compare(rng, f"seed {seed}", query, ties, matchers, tally, given, streams=streams)


def compare(
    rng: random.Random,
    name: str,
    query: Drawn,
    ties: str | None,
    matchers: Mapping[str, Matcher],
    tally: Counts,
    given: Callable[[], tuple[Events, list[dict[str, Any]]]],
    *,
    streams: int,
) -> None:
    """Compare the answers of one query on some streams and tables of rules, and count them."""
    text = query.text
    for _ in range(streams):
        events, rules = given()
        wanted = wanted_of(query, ties, events, rules)
        if wanted is None:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            table = rows_table(one, rules)
            with cramped(rng), _small(rng), warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                where = f"{name}: {engine} engine, order {query.order_by}, ties {ties}"
                shown = f"{text}{events}\n{rules}"
                try:
                    answers = answered(one, events, table, rng)
                except RunWorkLimitError:
                    continue
                except Exception as problem:
                    raise AssertionError(f"{where}: {problem!r}\n{shown}") from problem
                for route, found in answers.items():
                    differs = told(one, found, wanted, rules, events)
                    if route in ("match_table", "match_arrow"):
                        differs = differs or out_of_order(one, found, rules)
                    assert not differs, f"{where}, {route}: {differs}\n{shown}"
    if text in tally.texts:
        parameters = only_query(next(iter(matchers.values()))).plan.source.parameters
        assert parameters is not None
        tally.indexed += any(concern.ways for concern in parameters.concerns or ())
        tally.followed += parameters.course is not None
        tally.totals += "SELECT TOTAL" in text
        tally.timed += parameters.valid is not None


# --- tests ----------------------------------------------------------------------------------------


def test_random_parameters() -> None:
    """Dozens of queries on some streams and tables, by every engine."""
    tally = Counts()
    for seed in range(8):
        check(seed, tally)
    assert len(tally.texts) >= 5, tally
    assert tally.pairs_with_matches >= 3, tally
    assert tally.indexed >= 1, tally
    assert tally.timed >= 1, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1500, 100))
def test_many_random_parameters(first: int) -> None:
    tally = Counts()
    for seed in range(first, first + 100):
        check(seed, tally, streams=6)
    print(f"random parameters of seeds {first}…: {tally}")
    assert tally.indexed >= 15, tally


@pytest.mark.long
def test_many_random_parameters_by_numba() -> None:
    tally = Counts()
    for seed in range(5000, 5040):
        check(seed, tally, by_numba=True)


def main() -> None:
    """Run seeds by hand; stop at the first difference."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--numba", action="store_true")
    asked = parser.parse_args()
    tally = Counts()
    for seed in range(asked.first, asked.end):
        check(seed, tally, by_numba=asked.numba)
    print(tally, f"indexed {tally.indexed}, followed {tally.followed}, totals {tally.totals}")
    print(f"not yet {tally.not_yet}, timed {tally.timed}")


if __name__ == "__main__":
    main()
