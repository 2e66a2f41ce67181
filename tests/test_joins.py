"""Queries that celc can write as joins, run on DuckDB: cases with their answers, and random queries
against the reference.

python tests/test_joins.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from cases_io import Case, load_cases
from celc_runtime.plan.joins import Joins
from celc_runtime.query import CompiledQuery
from engines import Event, answer_of
from joined import SIGNS, compiled, events_table, is_joined, rows_of, signs_events, signs_query
from reference import WorkLimitError, check_answer, difference, evaluate
from seeds import compare_seeds
from strategies import Feature, declaration_for, random_query
from strategies_absences import branching_absence_query, correlated_absence_query
from strategies_across import TYPES, wide_stream
from strategies_keys import real_keys, with_real_keys
from test_random import TOO_LARGE, Tally

from celc import CelError

_JOINED_QUERIES = 364
"""How many queries in all files of cases can be written as joins."""

JOINED = frozenset(
    {
        *(Feature.STREAM_ATOM, Feature.AS, Feature.THEN, Feature.CONTIGUOUS, Feature.RENAME),
        *(Feature.PROJECT, Feature.FILTER, Feature.OR_ACROSS, Feature.CORRELATION, Feature.OUTER),
        *(Feature.ALL, Feature.UNLESS, Feature.NOT_BETWEEN, Feature.LOCAL_WINDOW, Feature.N_ARY),
        *(Feature.SELECT_LABELS, Feature.SELECT_NONE, Feature.SELECT_EXPRESSIONS, Feature.PREV),
        *(Feature.PARTITION_BY, Feature.WITHIN_EVENTS, Feature.WITHIN_ATTRIBUTE, Feature.PRIOR),
        *(Feature.KEYS, Feature.COUNTED, Feature.TYPE_TEST, Feature.DISTANCE, Feature.AGGREGATE),
        *(Feature.LOOK_BACK, Feature.OR, Feature.OPTIONAL, Feature.NOT_BEFORE),
    }
)
"""Features of random queries: those that can be written as joins, and a few that seldom can."""

_WORDS = frozenset(
    {
        *(" ALL ", " UNLESS ", "; !", " : ", "PROJECT", "->", "PARTITION BY", " EVENTS", "[ts]"),
        *(
            "SELECT NONE",
            " AS value_",
            "){",
            "PREV(",
            "ABS(",
            " IN (",
            " OR ",
            "WITHIN[",
            "?",
            " FOR ",
        ),
    }
)
"""Words each of which must be in a query that was compared."""


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """The cases of each query whose events come one after another, in the order of `ts`."""
    found: dict[str, list[Case]] = {}
    for case in load_cases():
        if case.ties is None and case.order_by in (None, ("ts",)):
            found.setdefault(case.query, []).append(case)
    return found


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(slice(None, None, 20), id="some"),
        pytest.param(slice(None), id="all", marks=pytest.mark.long),
    ],
)
def test_joins_find_the_answers_of_the_cases(part: slice, cases: dict[str, list[Case]]) -> None:
    """With positions and without."""
    problems: list[str] = []
    joined_texts = [text for text in [*cases][part] if is_joined(text)]
    assert part.step or len(joined_texts) == _JOINED_QUERIES
    assert len(joined_texts) > 10
    for text in joined_texts:
        made = compiled(text)
        if made is None:
            continue  # its values of single events are written in SQL of Spark alone
        query, joined = made
        for case in cases[text]:
            decided = query.with_options(at_end=case.at_end)
            rows = rows_of(decided, joined, case.events)
            if wrong := difference(answer_of(query, rows, case.events), case.expected):
                problems.append(f"{case.name}: {wrong}")
    assert not problems, "\n".join(problems)


@pytest.mark.each(3)
@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_texts_and_names_stand_in_a_statement_as_they_are(sign: str) -> None:
    """A line end inside a text stays as it is, though the lines of the statement are indented."""
    texts = [f"{sign}a{sign}{sign}b", f"a{sign}"]
    made = compiled(signs_query(texts, sign))
    assert made is not None
    found = rows_of(*made, signs_events(texts, sign))
    assert [row["start_pos"] for row in found] == [0, 2]


_DAY = dt.date(2024, 2, 27)
_NOON = dt.datetime(2024, 2, 28, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("type", "length", "times", "clock"),
    [
        ("DATE", "36 HOURS", [_DAY + dt.timedelta(n) for n in (0, 1, 2, 4)], dt.date(2024, 3, 5)),
        ("TIMESTAMP", "2 DAYS", [_NOON + dt.timedelta(n) for n in (0, 1, 2, 4)], _NOON),
        ("INT", "9", [0, 2**31 - 20, 2**31 - 10, 2**31 - 1], 2**31 - 8),
        ("LONG", "9", [-(2**62), 2**62, 2**62 + 9, 2**63 - 20], 2**63 - 1),
        ("DOUBLE", "1 EVENTS", [-0.5, 0.0, 0.5, 1e300], None),
    ],
    ids=["days", "times", "ints", "longs", "reals"],
)
@pytest.mark.parametrize("window", ["", "WITHIN {} [ts]"], ids=["for", "within"])
def test_when_matches_are_decided(
    type: str, length: str, times: list[Any], clock: Any, window: str
) -> None:
    """The joins find the same rows as the query's own code, up to the greatest values of a type."""
    declared = f"{{ ts: {type} }}"
    measured = length if "EVENTS" in length or "[" in length else f"{length} [ts]"
    absent = "!B" if window and type != "DOUBLE" else f"!B FOR {measured}"
    window = window.format(length) if type != "DOUBLE" else ""
    made = compiled(
        f"CREATE STREAM S {{ EVENT A {declared}, EVENT B {declared} }}\n"
        f"SELECT * FROM S WHERE (A AS x ; {absent}) OR (A AS x ; A AS y)\n{window}\n"
    )
    assert made is not None
    query, joined = made
    events = [{"type": kind, "ts": time} for kind, time in zip("AABA", times, strict=True)]
    clocks = [] if clock is None else [query.with_options(clock=clock)]
    for one in (query, query.with_options(at_end="closed"), *clocks):
        rows = rows_of(one, joined, events)
        wanted = one.match_table(events_table(one, joined, events)).to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, wanted))
        assert rows


def _query(rng: random.Random, features: frozenset[Feature], seed: int) -> str:
    if rng.random() >= 0.7:
        features -= {Feature.ALL, Feature.LOOK_BACK}
    text = random_query(rng, features, 2 + seed % 2)
    ts = rng.choice(("LONG", "LONG", "INT"))
    plain = declaration_for(features)
    return plain.replace("ts: LONG", f"ts: {ts}") + text.removeprefix(plain)


def _late_query(rng: random.Random, seed: int) -> str:
    """A random query; most of them have an absence at the end."""
    kind = rng.randrange(4)
    if kind < 2:
        return _query(rng, JOINED | {Feature.NOT_AFTER}, seed)
    text = (correlated_absence_query, branching_absence_query)[kind - 2](rng)
    plain = re.sub("^SELECT .* FROM", "SELECT * FROM", text, flags=re.MULTILINE)
    return re.sub("^(LIMIT 1|PER PARTITION)$", "", plain, flags=re.MULTILINE)


def trials(
    seed: int, tally: Tally
) -> Iterator[tuple[str, tuple[CompiledQuery, Joins], list[Event], list[dict[str, Any]]]]:
    """A random query with its joins, some streams, and the answers of the reference.

    Nothing if the query cannot be written as joins. Counts in `tally` what is drawn.
    """
    rng = random.Random(seed)
    late = seed % 3 == 2
    text = with_real_keys(_late_query(rng, seed) if late else _query(rng, JOINED, seed))
    tally.drawn += 1
    try:
        made = compiled(text)
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    if made is None:
        return
    at_end = rng.choice(("open", "open", "closed")) if late else "open"
    made = made[0].with_options(at_end=at_end), made[1]
    for _ in range(3):
        types = [name for name in TYPES if f" {name}" in text[text.index("SELECT") :]] or TYPES
        longest = 14 if "\nWITHIN" in text else 10
        events = wide_stream(
            rng,
            rng.choice((rng.randint(0, longest), longest)),
            types=types,
            nulls=rng.choice((0, 0, 0.1)),
            strangers=rng.choice((0, 0, 0.2)),
        )
        events = real_keys(text, events)
        try:
            wanted = evaluate(text, events, order_by="ts", work_limit=100_000, at_end=at_end)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(text)
        tally.with_features |= {word for word in _WORDS if word in text}
        yield text, made, events, wanted


def check(seed: int, tally: Tally) -> None:
    """Compare a random query on some streams, if it can be written as joins."""
    for text, made, events, wanted in trials(seed, tally):
        try:
            check_answer(text, wanted, answer_of(made[0], rows_of(*made, events), events))
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}\n{text}\n{events}") from None


def _compare(seeds: Iterable[int]) -> Tally:
    tally = Tally()
    for seed in seeds:
        check(seed, tally)
    return tally


@pytest.mark.parametrize("seeds", [20, pytest.param(60, marks=pytest.mark.long)])
def test_random_queries(seeds: int) -> None:
    tally = _compare(range(seeds))
    assert len(tally.texts) >= seeds // 4, tally
    assert tally.pairs_with_matches >= seeds // 5, tally


@pytest.mark.long
def test_more_random_queries() -> None:
    tally = _compare(range(1000, 2000))
    assert len(tally.texts) >= 300, tally
    assert tally.pairs_with_matches >= 300, tally
    assert tally.with_features == _WORDS


if __name__ == "__main__":
    compare_seeds(check)
