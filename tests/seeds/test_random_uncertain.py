"""Random queries over uncertain time: the compiled answers against sums over all worlds.

Two relations hold besides: an answer with a threshold is the whole answer, filtered, and events
whose times are certain are simultaneous events. By hand:

    python tests/seeds/test_random_uncertain.py 0 500     # seeds 0 to 499, and the counts
"""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from typing import Any

import pytest
from celc_runtime import EventWarning
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.run.walk import in_worlds
from engines import answers, batches_of, in_parts, interpreted, only_query, table_of
from parameters import rows_table
from reference import CelError as Refused
from reference import (
    WorkLimitError,
    difference,
    evaluate,
    evaluate_totals,
    totals_difference,
)
from seeds import compare_seeds
from strategies import Feature, random_query
from test_random import TOO_LARGE, Tally
from test_random_parameters import for_each
from uncertain_answers import on_a_clock, possible_answer, possible_answers, streamed_answer

import celc

_SHAPES = {
    *(Feature.STREAM_ATOM, Feature.AS, Feature.THEN, Feature.REPEAT, Feature.OR, Feature.RENAME),
    *(Feature.PROJECT, Feature.FILTER, Feature.COUNTED, Feature.OPTIONAL, Feature.TYPE_TEST),
    *(Feature.PARTITION_BY, Feature.WITHIN_ATTRIBUTE, Feature.OR_ACROSS),
}
_BY_WORLD = {
    *(Feature.AND, Feature.ALL, Feature.UNLESS, Feature.NOT_BETWEEN, Feature.LOCAL_WINDOW),
}
_ACROSS = {
    *(Feature.CORRELATION, Feature.OUTER, Feature.PREV, Feature.PRIOR, Feature.AGGREGATE),
    *(Feature.DISTANCE, Feature.N_ARY, Feature.LOOK_BACK),
}
_WORLDS = 4_000  # the most steps of the reference for one answer


def uncertain_text(text: str, step: int, bound: str, *, weighted: bool = False) -> str:
    """A query over the declaration of random queries as one over uncertain time."""
    times = f"UNCERTAIN [ts, high] BY {step}" + (" WEIGHTED weights" if weighted else "")
    text = text.replace("CREATE STREAM S {", f"CREATE STREAM S {times} {{")
    more = ", weights: ARRAY<DOUBLE>" if weighted else ""
    return text.replace("ts: LONG", f"ts: LONG, high: LONG{more}") + bound


def uncertain_stream(
    rng: random.Random, length: int, widest: int, step: int = 1
) -> list[dict[str, Any]]:
    """Events in any order, each at one of at most `widest` + 1 whole times, `step` apart, with a
    weight for each."""
    return [
        {
            "type": rng.choice("AABBC"),
            "id": rng.choice((1, 1, 2)),
            "value": rng.choice((1.0, 2.0, 3.0, 2.5)),
            "name": rng.choice("pqr"),
            "ts": (ts := rng.randint(0, 2 * length)),
            "high": ts + (wide := rng.randint(0, widest)),
            "weights": _weights(rng, wide // step + 1),
        }
        for _ in range(length)
    ]


def _weights(rng: random.Random, points: int) -> list[float]:
    """Weights of which one at least is not 0."""
    weights = [rng.choice((0.0, 0.25, 1.0, 1.0, 2.5, 1e300)) for _ in range(points)]
    weights[rng.randrange(points)] = rng.choice((0.5, 3.0))
    return weights


def check(seed: int, tally: Tally) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    features = _SHAPES | (_ACROSS if rng.random() < 0.6 else set())
    features |= _BY_WORLD if rng.random() < 0.3 else set()
    plain = random_query(rng, features, depth=rng.choice((1, 2, 2, 3)))
    bound = rng.choice(("", "", " WITH CONFIDENCE >= 0.3", " WITH CONFIDENCE > 0.5"))
    step = rng.choice((1, 1, 2))
    text = uncertain_text(plain, step, bound, weighted=rng.random() < 0.5)
    tally.drawn += 1
    try:
        with interpreted():
            query = only_query(celc.compile(text))
        of_stream = on_a_clock(text)
    except celc.CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        if codes <= {"uncertain-label", "uncertain-part", "uncertain-window"}:  # `?` beside `:`
            with pytest.raises(Refused):
                evaluate(text, [])
            return
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    for _ in range(4):
        events = uncertain_stream(rng, rng.randint(2, 6), rng.choice((0, 1, 2, 3, 4)), step)
        try:
            wanted = evaluate(text, events, work_limit=_WORLDS, times=True)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            patch.setattr(in_worlds, "_KEPT", rng.choice((1, 1 << 16)))
            patch.setattr(in_worlds, "_CROWDED", rng.choice((1, 2, 5)))
            patch.setattr(in_worlds, "_TOGETHER", rng.choice((0, 2, 256)))
            patch.setattr(in_worlds, "_MATCHES", rng.choice((1, 3, 1 << 14)))
            patch.setattr(in_worlds, "_EVENTS_OF_MATCHES", rng.choice((1, 8, 1 << 17)))
            found = possible_answers(query, events, rng)
            if why_not(of_stream.program, Route.UNBOUNDED) is None:
                found["stream"] = streamed_answer(of_stream, events, ("ts", "high"), rng)
            for route, answer in found.items():
                told = difference(answer, wanted)
                assert not told, f"seed {seed}: {route}: {told}\n{text}\n{events}"


def check_totals(seed: int, tally: Tally) -> None:
    """Compare the expected numbers of matches of one random query on some streams."""
    rng = random.Random(seed)
    features = _SHAPES | (_ACROSS if rng.random() < 0.4 else set())
    plain = random_query(rng, features | _BY_WORLD, depth=rng.choice((1, 2, 2, 3)))
    lines = [one for one in plain.splitlines() if not one.startswith(("SELECT", "LIMIT"))]
    place = next(n for n, one in enumerate(lines) if one.startswith(("FROM", "WHERE")))
    item = rng.choice(("COUNT(*)", "COUNT(*)", "COALESCE(COUNT(*) / 2, 1)"))
    lines.insert(place, f"SELECT TOTAL {item} AS n")
    lines.append(rng.choice(("", "PER END", "PER PARTITION")))
    lines.append(rng.choice(("", "", "HAVING n > 0.3")))
    text = uncertain_text("\n".join(lines) + "\n", 1, "")
    tally.drawn += 1
    try:
        with interpreted():
            query = only_query(celc.compile(text))
    except celc.CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE | {"uncertain-label", "uncertain-part", "uncertain-window"}, text
        tally.too_large += 1
        return
    for _ in range(4):
        events = uncertain_stream(rng, rng.randint(2, 6), rng.choice((0, 1, 2, 3)))
        try:
            wanted = evaluate_totals(text, events, work_limit=_WORLDS)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        in_order = sorted(events, key=lambda event: event["ts"])
        batches = batches_of(table_of(query.plan, in_parts(query.plan, in_order)), rng)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(in_worlds, "_KEPT", rng.choice((1, 1 << 16)))
            patch.setattr(in_worlds, "_MATCHES", rng.choice((1, 3, 1 << 14)))
            found = {
                "match_table": query.match_table(table_of(query.plan, events)).to_pylist(),
                "match_arrow": [
                    row for batch in query.match_arrow(batches) for row in batch.to_pylist()
                ],
            }
        for route, rows in found.items():
            told = totals_difference(rows, wanted)
            assert not told, f"seed {seed}: {route}: {told}\n{text}\n{events}"


def check_for_each(seed: int, tally: Tally) -> None:
    """Compare the answers of one random query FOR EACH row of a table, row by row."""
    rng = random.Random(seed)
    features = _SHAPES | (_ACROSS if rng.random() < 0.4 else set())
    features |= _BY_WORLD if rng.random() < 0.3 else set()
    plain = random_query(rng, features - {Feature.PREV, Feature.PRIOR}, depth=rng.choice((1, 2, 2)))
    bound = rng.choice(("", "", " WITH CONFIDENCE >= 0.3"))
    tally.drawn += 1
    try:
        with interpreted():
            plan = only_query(celc.compile(uncertain_text(plain, 1, bound))).plan
            text = uncertain_text(for_each(rng, plain, plan), 1, bound)
            query = only_query(celc.compile(text))
    except celc.CelError:
        tally.too_large += 1
        return
    for _ in range(3):
        events = uncertain_stream(rng, rng.randint(2, 5), rng.choice((0, 1, 2, 3)))
        drawn = uncertain_stream(rng, rng.choice((0, 1, 2, 3)), 1)
        rules = [{**row, "nr": number} for number, row in enumerate(drawn)]
        try:
            wanted = [
                evaluate(text, events, work_limit=_WORLDS, times=True, parameters={"rule": [row]})
                for row in rules
            ]
        except WorkLimitError:
            continue
        tally.pairs += len(rules)
        tally.pairs_with_matches += sum(map(bool, wanted))
        table = table_of(query.plan, events)
        found = query.match_table(table, rule=rows_table(query, rules)).to_pylist()
        for row, expected in zip(rules, wanted, strict=True):
            rows = [one for one in found if one["rule"]["nr"] == row["nr"]]
            told = difference(possible_answer(query, rows, events), _without_rows(expected))
            assert not told, f"seed {seed}: {told}\n{text}\n{events}\n{row}"


def _without_rows(matches: Any) -> list[Any]:
    return [replace(match, parameters=()) for match in matches]


def check_relations(seed: int, tally: Tally) -> None:
    """A threshold filters the whole answer; events of certain time are simultaneous events."""
    rng = random.Random(seed)
    plain = random_query(rng, _SHAPES, depth=rng.choice((1, 2)))
    tally.drawn += 1
    try:
        with interpreted():
            every = only_query(celc.compile(uncertain_text(plain, 1, "")))
            likely = only_query(celc.compile(uncertain_text(plain, 1, " WITH CONFIDENCE >= 0.4")))
            certain = only_query(celc.compile(plain, order_by=("ts",), ties="simultaneous"))
    except celc.CelError:
        tally.too_large += 1
        return
    # Too many worlds for a sum.
    events = uncertain_stream(rng, 12, 6)
    (all_of_them,), (some,) = (
        {"match_table": possible_answers(one, events, rng)["match_table"]}.values()
        for one in (every, likely)
    )
    kept = [row for row in all_of_them if row["confidence"] >= 0.4 - 1e-9]
    told = difference(some, kept)
    assert not told, f"seed {seed}: {told}\n{plain}\n{events}"
    points = [{**event, "high": event["ts"]} for event in events]
    possible = possible_answers(every, points, rng)["match_table"]
    assert all(row["confidence"] == 1 for row in possible)
    sure = answers(certain, sorted(points, key=lambda event: event["ts"]), rng)["match_table"]
    by_labels = [
        sorted(repr((row["partition"], row["labels"])) for row in rows) for rows in (possible, sure)
    ]
    assert by_labels[0] == by_labels[1], f"seed {seed}: {plain}\n{points}"
    tally.pairs += 1
    tally.pairs_with_matches += bool(some)


@pytest.mark.parametrize("seeds", [4, pytest.param(24, marks=pytest.mark.long)])
def test_matches_in_possible_worlds(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check(seed, tally)
    assert tally.pairs_with_matches >= 20 * seeds // 24, tally


@pytest.mark.parametrize("seeds", [5, pytest.param(30, marks=pytest.mark.long)])
def test_expected_numbers_of_matches(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check_totals(seed, tally)
    assert tally.pairs_with_matches >= 20 * seeds // 30, tally


@pytest.mark.parametrize("seeds", [5, pytest.param(30, marks=pytest.mark.long)])
def test_for_each_row_of_a_table(seeds: int) -> None:
    tally = Tally()
    for seed in range(seeds):
        check_for_each(seed, tally)
    assert tally.pairs_with_matches >= 15 * seeds // 30, tally


def test_thresholds_and_certain_events() -> None:
    tally = Tally()
    for seed in range(10):
        check_relations(seed, tally)
    assert tally.pairs_with_matches >= 4, tally


if __name__ == "__main__":
    compare_seeds(check)
    compare_seeds(check_totals)
    compare_seeds(check_for_each)
    compare_seeds(check_relations)
