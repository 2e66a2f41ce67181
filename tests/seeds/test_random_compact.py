"""Compact answers against lists of matches: what `expand` gives back are the rows of `match_table`.

On the conformance cases, and on random queries of other tests. By hand:

    python tests/seeds/test_random_compact.py 0 200                # seeds 0 to 199, and the counts
    python tests/seeds/test_random_compact.py 17 18 --numba        # seed 17, as users run it
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from cases_io import case_stems, load_cases
from celc_runtime import CompiledQuery, EventWarning, expand
from celc_runtime.arrow.matches import expanding
from celc_runtime.plan.compact_form import has_starts
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.plan.strategy import Keyed
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.run.walk import compact as compact_listings
from celc_runtime.run.walk.compact import are_graphs
from engines import batches_of, engines, in_parts, interpreted, only_query, table_of
from strategies import ACROSS, EVERYTHING, OF_TIMES, SHORTER, Feature
from strategies_across import WIDE_DECLARATION
from strategies_keys import with_real_keys
from test_random import TOO_LARGE, Tally, cramped
from test_random_across import Drawn, Events, Language, drawn, stream_for

import celc
from celc import CelError, Matcher
from celc.options import Options

_LANGUAGES = tuple(
    Language(features, frozenset())
    for features in (
        EVERYTHING | SHORTER,
        EVERYTHING | SHORTER,
        (EVERYTHING | SHORTER) - {Feature.LIMIT},
        ACROSS,
        OF_TIMES | {Feature.NOT_BEFORE, Feature.LOCAL_WINDOW},
    )
)
_MOST_MATCHES = 3_000


_TIED = (
    "(A AS x ; B AS y) FILTER x.K = y.K",
    "(A AS x ; B AS y ; C AS z) FILTER x.K = y.K AND y.K = z.K",
    "(A AS x ; B AS y ; C AS z) FILTER x.K = y.K AND y.L = z.L",
    "((A OR B) AS x ; (B OR C) AS y ; A AS z) FILTER x.K = y.K AND y.L = z.L",
    "((A AS x ; B AS y) FILTER x.K = y.K) ; C+",
    "(((A AS x ; B AS y) FILTER x.K = y.K) OR D AS u)+ ; C AS z",
    "((A AS x ; B AS y) FILTER x.K = y.K)+",
)


def tied(rng: random.Random) -> Drawn:
    """A query whose labels are tied by equalities, most of which are keys."""
    formula = rng.choice(_TIED)
    for name in "KL":
        formula = formula.replace(f".{name}", f".{rng.choice(('id', 'id', 'name', 'number'))}")
    clauses = [
        rng.choice(("", "WITHIN 5 EVENTS", "WITHIN 9 EVENTS", "WITHIN 4 [ts]")),
        rng.choice(("", "", "", "CONSUME BY ANY", "LIMIT 2")),
    ]
    select = rng.choice(("*", "*", "*", "NONE"))
    lines = [f"SELECT {select}", "FROM S", f"WHERE {formula}", *filter(None, clauses)]
    declaration = WIDE_DECLARATION.replace("ts: LONG", "ts: LONG, seq: LONG")
    return Drawn(with_real_keys(declaration + "\n".join(lines)), None)


# --- comparing ------------------------------------------------------------------------------------


def answers_differ(
    one: CompiledQuery,
    events: Sequence[Mapping[str, Any]],
    rng: random.Random,
    tables: tuple[pa.Table, pa.Table] | None = None,
) -> str | None:
    """What tells expanded answers from the matches, by each way on one machine; None where the
    query has no compact answers, or too many matches. tables: the events in place of `events`, and
    in the order of `match_compact_arrow`."""
    plan = one.plan
    if why_not(one.program, Route.COMPACT) is not None:
        return None
    table = table_of(plan, events) if tables is None else tables[0]
    compact = one.match_compact(table)
    wanted = one.match_table(table, max_matches=_MOST_MATCHES)
    if len(wanted) == _MOST_MATCHES:
        return None
    one_part = not plan.source.partition_by or plan.interleaves
    if tables is None:
        ordered = table if one_part else table_of(plan, in_parts(plan, events))
    else:
        ordered = tables[1]
    batches = list(one.match_compact_arrow(batches_of(ordered, rng)))
    streamed = pa.Table.from_batches(batches, compact.schema)
    for route, found in (("match_compact", compact), ("match_compact_arrow", streamed)):
        if wrong := _form_problem(found, one) or _difference(expand(found).read_all(), wanted):
            return f"{route}: {wrong}"
    limit = rng.randint(1, 5)
    first = expand(compact.to_reader(), limit=limit).read_all()
    if len(first) != min(limit, len(wanted)) or _rows(first) - _rows(wanted):
        return f"limit={limit}: {first.to_pylist()}"
    return ""


def _form_problem(compact: pa.Table, one: CompiledQuery) -> str:
    """What the layout of compact answers should not have."""
    ends = Counter()
    for row in compact.to_pylist():
        events, nodes = row["events"], row["nodes"]
        if one.plan.answer.positions:
            ends[tuple(repr(row[name]) for name in _told_apart(one))] += 1
            positions = [event["pos"] for event in events[_starts_in(nodes, one) :]]
            is_last = positions[-1] == row["end_pos"]
            if has_starts(one.plan):  # the last position of an instant
                is_last = positions[-1] <= row["end_pos"]
            if positions != sorted(set(positions)) or not is_last:
                return f"events {positions} of a match that ends at {row['end_pos']}"
        used = {node["event"] for node in nodes}
        if used - {-1} != {*range(len(events))}:
            return f"{len(events)} events, of which the graph has {sorted(used)}"
        referred = {n[side] for n in nodes for side in ("child", "next")} - {-1}
        if referred != {*range(len(nodes) - 1)}:
            return f"{len(nodes)} nodes, of which {sorted(referred)} are referred to"
        for number, node in enumerate(nodes):
            if max(node["child"], node["next"]) >= number:
                return f"node {number} refers to one behind it: {node}"
    return f"two rows of one end: {ends}" if max(ends.values(), default=1) > 1 else ""


def _starts_in(nodes: Sequence[Mapping[str, int]], one: CompiledQuery) -> int:
    """How many events of a row are starts of matches alone."""
    if not has_starts(one.plan):
        return 0
    mark = 2 * len(one.plan.matching.kinds) + 1
    return max(node["event"] for node in nodes if node["mark"] == mark) + 1


def _told_apart(one: CompiledQuery) -> list[str]:
    """The columns in which two compact answers differ; without the whole row of a parameter set
    the events of both are among them."""
    source = one.plan.source
    names = [*source.partition_by, "end_pos"]
    if source.parameters is not None:
        names.append(source.parameters.name)
        if len(source.parameters.shown) < len(source.parameters.attributes):
            names += ["events", "nodes"]
    return names


def _difference(found: pa.Table, wanted: pa.Table) -> str:
    if found.schema != wanted.schema:
        return f"{found.schema} and not {wanted.schema}"
    left, right = _rows(found), _rows(wanted)
    return "" if left == right else f"too much {left - right}, missing {right - left}"


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


@dataclass
class Counts(Tally):
    """What has been compared; refused: streams of queries without compact answers, chosen: of those
    whose graphs are of listed matches, keyed: of those with tables of keys."""

    refused: int = 0
    chosen: int = 0
    keyed: int = 0


def check(seed: int, tally: Counts, *, streams: int = 4, by_numba: bool = False) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    rng = random.Random(seed)
    query = tied(rng) if seed % 6 == 0 else drawn(rng, rng.choice(_LANGUAGES), 2 + seed % 2)
    tally.drawn += 1
    order = None if query.order_by is None else (query.order_by,)
    try:
        if by_numba:
            matchers: Mapping[str, Matcher] = {
                "chosen": celc.compile(query.text, order_by=query.order_by)
            }
        else:
            with interpreted():
                matchers = engines(query.text, Options(order))
    except CelError as problem:
        if {d.code for d in problem.diagnostics if d.severity == "error"} - TOO_LARGE:
            raise
        tally.too_large += 1
        return
    for _ in range(streams):
        events: Events = stream_for(rng, query)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            if rng.random() < 0.2 and one.plan.source.order_by:
                one = one.with_options(positions=False)
            try:
                differs = _answered(one, events, rng)
            except WorkLimitError:
                continue
            if differs is None:
                tally.refused += 1
                continue
            assert not differs, f"seed {seed}: {engine} engine: {differs}\n{query.text}{events}"
            tally.pairs += 1
            tally.pairs_with_matches += len(one.match_table(table_of(one.plan, events))) > 0
            tally.texts.add(query.text)
            tally.chosen += not are_graphs(one.program)
            tally.keyed += isinstance(one.program.update, Keyed)


def _answered(one: CompiledQuery, events: Events, rng: random.Random) -> str | None:
    """`answers_differ` with next to no room in all buffers."""
    with cramped(rng), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        patch.setattr(compact_listings, "_ROOM", rng.choice((1, 3, 1 << 16)))
        patch.setattr(compact_listings, "_FIRES", rng.choice((1, 2, 1 << 12)))
        patch.setattr(expanding, "_MATCHES_PER_BATCH", rng.choice((1, 2, 1 << 16)))
        patch.setattr(expanding, "_ENTRIES_PER_BATCH", rng.choice((1, 4, 1 << 17)))
        patch.setattr(expanding, "_NODES_AT_ONCE", rng.choice((1, 10, 1 << 16)))
        return answers_differ(one, events, rng)


# --- tests ----------------------------------------------------------------------------------------


_REFUSED = {
    *("15-correlation", "16-correlated-selectors", "17-prev-prior", "18-aggregate-filters"),
    *("19-correlated-negation", "20-scopes", "21-prev-in-or", "26-absence-after"),
    *("27-simultaneous", "33-per-start", "34-own-aggregates", "35-boolean-conditions"),
    *("36-nth", "41-lasting", "49-lasting-ends"),
    "43-some-every",
    "46-limit-per",
    "48-joined-texts",
    "52-late-starts",
    "53-instants-per-start",
    "56-lasting-choices",
}
"""Files of cases of which few have a compact answer."""


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("stem", "every"),
    [
        *((stem, 12) for stem in case_stems() if stem not in _REFUSED),
        *(pytest.param(stem, 1, marks=pytest.mark.long) for stem in case_stems()),
    ],
)
def test_cases(stem: str, every: int) -> None:
    """The suite takes one engine for every twelfth case."""
    rng, problems, compared = random.Random(stem), [], 0
    for case in load_cases(stem)[::every]:
        with interpreted():
            options = Options(case.order_by, ties=case.ties, at_end=case.at_end)
            one = only_query(rng.choice([*engines(case.query, options).values()]))
        differs = _answered(one, case.events, rng)
        compared += differs is not None
        problems += [f"{case.name}: {differs}"] if differs else []
    assert not problems, "\n".join(problems)
    assert compared or stem in _REFUSED


@pytest.mark.parametrize("seeds", [7, pytest.param(40, marks=pytest.mark.long)])
def test_random_compact_answers(seeds: int) -> None:
    """Dozens of queries on some streams, by every engine."""
    tally = Counts()
    for seed in range(seeds):
        check(seed, tally, streams=2)
    assert len(tally.texts) >= 16 * seeds // 40, tally
    assert tally.pairs_with_matches >= 40 * seeds // 40, tally
    assert tally.chosen >= 10 * seeds // 40, tally
    assert tally.keyed >= 5 * seeds // 40, tally


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_random_compact_answers(first: int) -> None:
    tally = Counts()
    for seed in range(first, first + 100):
        check(seed, tally, streams=6)
    print(f"random compact answers of seeds {first}…: {tally}")
    assert tally.chosen >= 20, tally


@pytest.mark.long
def test_many_random_compact_answers_by_numba() -> None:
    tally = Counts()
    for seed in range(5000, 5030):
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
    print(tally, f"chosen {tally.chosen}, keyed {tally.keyed}, refused {tally.refused}")


if __name__ == "__main__":
    main()
