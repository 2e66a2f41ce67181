"""Random queries with conditions across labels: the compiled answers against the reference's.

As `test_random`, for the parts of the language in which conditions compare labels with each other
(`across`), with what came before (`look back`), or in each round of an iteration (`rounds`), for
aggregates of the file (`aggregates`), and for windows inside a formula (`windows`). One seed, or a
range of them, by hand:

    python tests/seeds/test_random_across.py 17  # seed 17: the query, and what differs
    python tests/seeds/test_random_across.py 0 500  # seeds 0 to 499, and the counts
    python tests/seeds/test_random_across.py 0 500 --language rounds  # … of another language
    python tests/seeds/test_random_across.py 17 --numba  # as users run it

The first difference is shrunk and printed as a case, in the form of the files in
`tests/cases/found`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from celc_runtime import EventWarning
from engines import answer_of, answers, engines, interpreted, only_query
from reference import Match, WorkLimitError, as_expected, check_answer, evaluate
from reference.own_functions import given_functions
from shares import share
from strategies import (
    ACROSS,
    LOCAL_WINDOWS,
    LOOKING_BACK,
    OF_AGGREGATES,
    OF_FUNCTIONS,
    OF_QUANTIFIED,
    OF_ROUNDS,
    OF_TIMES,
    SHORTER,
    Feature,
    declaration_for,
    random_query,
)
from strategies_across import TYPES, wide_stream
from strategies_aggregates import own_declarations
from strategies_keys import real_keys, with_real_keys
from strategies_own_functions import CALLABLES, DECLARATIONS, GIVEN
from strategies_times import START
from streams_by_hand import EVENT_TIME, instant, streamed, timed
from test_random import TOO_LARGE, Tally, cramped

from celc import CelError, Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

WORK_LIMIT = 100_000
MOST_TOO_LARGE = 0.02
"""The share of the drawn queries that may be refused for their size."""

_ON_STREAMS = OF_AGGREGATES - {Feature.WITHIN_ATTRIBUTE, Feature.STREAM_ATOM}
"""Features of queries whose streams are in the order of an attribute that no query names."""

Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Language:
    """A set of features whose queries are compared."""

    features: frozenset[Feature]
    words: frozenset[str]
    """What must have been met in queries that were compared."""


_OPERATORS = frozenset(
    {
        *("NXT(", "LAST(", "MAX(", "STRICT(", " AND ", " ALL ", " UNLESS ", "; !", ":+", "->"),
        *("SELECT NXT", "SELECT LAST", "SELECT MAX", "SELECT STRICT", "SELECT ANY", "PROJECT"),
        *("PARTITION BY", "EVENTS", "[ts]", "CONSUME BY ANY", "CONSUME BY PARTITION", " OR "),
    }
)
_OWN = frozenset(
    {"VARIANCE(", "STDDEV(", "MEDIAN(", "COUNT(DISTINCT ", "own_real(", "PRIOR ", " AS value_"}
)
LANGUAGES = {
    "across": Language(
        ACROSS,
        words=_OPERATORS | {"BETWEEN", "ABS(", " IN (", "FILTER NOT "},
    ),
    "look back": Language(
        LOOKING_BACK,
        words=_OPERATORS | {"PREV(", "(PRIOR ", "SUM(", "AVG(", "COUNT(", "FIRST("},
    ),
    "quantified": Language(
        OF_QUANTIFIED,
        words=_OPERATORS | {"(SOME ", "(EVERY ", "(NOT SOME ", "(NOT EVERY ", "PREV(", "(PRIOR "},
    ),
    "rounds": Language(
        OF_ROUNDS,
        words=frozenset({")+ ;", "):+", "ALL", "BETWEEN", " OR ", "PREV(", "SUM(", "PARTITION BY"}),
    ),
    "times": Language(
        OF_TIMES,
        words=frozenset(
            {" SECONDS", ".at - ", ".took * ", "BETWEEN", "ABS(", " IN (", " IS NULL", "SUM("}
            | {"PREV(", "PARTITION BY took", " AS value_", "PARTITION BY", "-(", "S [clock]]("}
        ),
    ),
    "aggregates": Language(
        OF_AGGREGATES,
        words=_OWN
        | {f"own_{one}(" for one in ("int", "long", "text", "texts", "float", "day", "time")}
        | {"NXT(", " UNLESS ", "; !", " OR ", "PREV(", "SUM(", " AND ", " ALL ", "COUNT("}
        | {"SELECT NXT", "SELECT LAST", "SELECT MAX", "SELECT STRICT", "SELECT ANY"}
        | {"EVENTS", "[ts]", "PARTITION BY", "CONSUME BY ANY", "CONSUME BY PARTITION"},
    ),
    "aggregates of rounds": Language(
        OF_AGGREGATES | {Feature.ROUNDS, Feature.LOCAL_WINDOW, *SHORTER},
        words=_OWN | {")+ ;", "):+", " ALL ", "PREV(", "SUM(", "PARTITION BY", " EVENTS]("},
    ),
    "aggregates for each start": Language(
        OF_AGGREGATES | {Feature.PER_START},
        words=_OWN | {"SELECT FIRST ", "SELECT LONGEST ", "DISJOINT ", "PARTITION BY", "EVENTS"},
    ),
    "functions": Language(
        OF_FUNCTIONS,
        words=frozenset({f"fn_{one}(" for one in ("near", "longer", "ends", "rising", "days")})
        | {"PRIOR ", " AS value_", "NXT(", " UNLESS ", "; !", " OR ", "PARTITION BY", "NOT fn_"}
        | {"SELECT NXT", "SELECT LAST", "SELECT MAX", "SELECT ANY", "CONSUME BY ANY"},
    ),
    "functions of rounds": Language(
        OF_FUNCTIONS | {Feature.ROUNDS, Feature.LOCAL_WINDOW, *SHORTER},
        words=frozenset({"fn_near(", "fn_ends(", ")+ ;", "):+", " EVENTS]("}),
    ),
    "windows": Language(
        LOCAL_WINDOWS,
        words=frozenset({"WITHIN[", " EVENTS](", " [ts]](", "; !", " UNLESS ", ")+"})
        | {"){", "? ;", " IS NOT ", "PREV("},
    ),
}


# --- what is drawn --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A query, and how it is called."""

    text: str
    order_by: str | None


def body_of(query: Drawn) -> str:
    """The query without what is declared before it."""
    return query.text[query.text.index("SELECT ") :]


def drawn(rng: random.Random, language: Language, depth: int) -> Drawn:
    """A query over declarations with this or that type of time, a second stream, a column seq."""
    query = random_query(rng, language.features, depth)
    plain = declaration_for(language.features)
    ts = rng.choice(("LONG", "LONG", "INT", "DOUBLE", "FLOAT"))
    declaration = plain.replace("ts: LONG", f"ts: {ts}, seq: LONG")
    body = query.removeprefix(plain)
    if rng.random() < 0.1:
        declaration += declaration.replace("STREAM S", "STREAM T")
        body = body.replace("FROM S\n", rng.choice(("FROM S, T\n", "FROM T, S\n")))
        body = body.replace("S>", rng.choice(("S>", "T>")))
    if Feature.OWN in language.features:
        declaration += own_declarations(rng)
    if Feature.FUNCTIONS in language.features:
        declaration += DECLARATIONS
    return Drawn(with_real_keys(declaration + body), rng.choice((None, None, "seq")))


def stream_for(rng: random.Random, query: Drawn) -> Events:
    """Events for the query; short, because the reference finds all matches before it cuts them."""
    longest = 14 if "\nWITHIN" in query.text else 10
    body = body_of(query)
    events = wide_stream(
        rng,
        rng.choice((rng.randint(0, longest), longest - 1, longest)),
        types=[name for name in TYPES if re.search(rf"\b{name}\b", body)] or list(TYPES),
        nulls=rng.choice((0, 0, 0.1)),
        strangers=rng.choice((0, 0, 0.2)),
        times="took: INTERVAL" in query.text,
    )
    for number, event in enumerate(events):
        event["seq"] = number
        event["clock"] = START + number // 2 * dt.timedelta(seconds=1)
        event["stream"] = rng.choice(("S", "S", "T", "U"))
        if "CREATE STREAM T" not in query.text:
            del event["stream"]
    return real_keys(query.text, events)


# --- comparing ------------------------------------------------------------------------------------


def compiled(query: Drawn, *, by_numba: bool) -> Mapping[str, Matcher]:
    """The query by every engine, interpreted; or by the chosen one, compiled by Numba."""
    if by_numba:
        order = None if query.order_by is None else (query.order_by,)
        source = Source("query.cel", query.text)
        compilation = compile_source(source, Options(order, functions=GIVEN))
        return {"chosen": Matcher(compilation.module_parts("test"))}
    with interpreted():
        order = None if query.order_by is None else (query.order_by,)
        return engines(query.text, Options(order, functions=GIVEN))


def wanted_of(query: Drawn, events: Events) -> list[Match] | None:
    """The reference's answer; None where it takes too long."""
    try:
        with given_functions(CALLABLES):
            return evaluate(query.text, events, order_by=query.order_by, work_limit=WORK_LIMIT)
    except WorkLimitError:
        return None


def difference_in(
    query: Drawn,
    matchers: Mapping[str, Matcher],
    events: Events,
    wanted: list[Match],
    rng: random.Random,
) -> str:
    """What tells the answer of some engine and route from the wanted one; empty if nothing."""
    for engine, matcher in matchers.items():
        with cramped(rng), warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            # Of numbers that leave their type, in modules that run as plain Python.
            warnings.simplefilter("ignore", RuntimeWarning)
            for route, answer in answers(only_query(matcher), events, rng).items():
                try:
                    check_answer(query.text, wanted, answer)
                except AssertionError as problem:
                    return f"{engine} engine, {route}, order {query.order_by}: {problem}"
    return ""


def check(
    rng: random.Random,
    tally: Tally,
    language: Language,
    *,
    depth: int,
    streams: int,
    by_numba: bool = False,
) -> None:
    """Compare the answers of one random query on some streams, and count them."""
    query = drawn(rng, language, depth)
    tally.drawn += 1
    try:
        matchers = compiled(query, by_numba=by_numba)
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {query.text}"
        tally.too_large += 1
        return
    for _ in range(streams):
        events = stream_for(rng, query)
        wanted = wanted_of(query, events)
        if wanted is None:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.matches += len(wanted)
        tally.texts.add(query.text)
        told = difference_in(query, matchers, events, wanted, rng)
        if told:
            raise DifferenceError(query, events, told)
    if query.text in tally.texts:
        tally.with_features |= {word for word in language.words if word in body_of(query)}


def check_as_stream(seed: int, tally: Tally) -> None:
    """Compare what streams of some micro-batches answer to a random query with aggregates."""
    rng = random.Random(seed)
    features = _ON_STREAMS | {Feature.FUNCTIONS} if seed % 4 == 1 else _ON_STREAMS
    query = drawn(rng, Language(features, frozenset()), 2 + seed % 2)
    text = timed(query.text)
    tally.drawn += 1
    if "CONSUME BY ANY" in text and "PARTITION BY" in text:
        return  # needs one order of all partitions, which a stream does not have
    try:
        with interpreted():
            matchers = engines(text, Options((EVENT_TIME,), functions=GIVEN))
    except CelError as problem:
        codes = {d.code for d in problem.diagnostics if d.severity == "error"}
        assert codes <= TOO_LARGE, f"{codes}: {text}"
        tally.too_large += 1
        return
    for _ in range(3):
        events = stream_for(rng, query)
        for number, event in enumerate(events):
            event[EVENT_TIME] = instant(1 + number)
        try:
            with given_functions(CALLABLES):
                wanted = evaluate(text, events, order_by=EVENT_TIME, work_limit=WORK_LIMIT)
        except WorkLimitError:
            continue
        tally.pairs += 1
        tally.pairs_with_matches += bool(wanted)
        tally.texts.add(text)
        for engine, matcher in matchers.items():
            one = only_query(matcher)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EventWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                answer = answer_of(one, streamed(one, events, rng), events)
            try:
                check_answer(text, wanted, answer)
            except AssertionError as problem:
                told = f"seed {seed}: {engine} engine, as a stream: {problem}\n{text}{events}"
                raise AssertionError(told) from None


class DifferenceError(AssertionError):
    """An answer that differs from the reference's."""

    def __init__(self, query: Drawn, events: Events, told: str) -> None:
        super().__init__(f"{told}\n{query.text}{events}")
        self.query = query
        self.events = events
        self.told = told


def assert_enough(tally: Tally, *, queries: int, pairs: int) -> None:
    """That so much has been compared, and next to nothing is too large."""
    assert len(tally.texts) >= queries, tally
    assert tally.pairs >= pairs, tally
    assert tally.pairs_with_matches >= pairs // 6, tally
    assert tally.too_large <= max(2, MOST_TOO_LARGE * tally.drawn), tally


_SEEDS = {
    "across": range(126, 130),
    "look back": range(126, 130),
    "quantified": range(130, 133),
    "rounds": range(131, 134),
    "times": range(132, 136),
    "aggregates": range(108, 111),
    "aggregates of rounds": range(104, 106),
    "aggregates for each start": range(114, 117),
    "functions": range(108, 111),
    "functions of rounds": range(100, 103),
    "windows": range(99, 102),
}
_BY_NUMBA = {
    "aggregates": range(900, 902),
    "aggregates of rounds": range(900, 901),
    "functions": range(900, 902),
}
_MORE_SEEDS = {
    "across": range(140),
    "look back": range(140),
    "rounds": range(140),
    "times": range(139),
    "aggregates": range(115),
    "aggregates of rounds": range(108),
    "aggregates for each start": range(124),
    "functions": range(120),
    "functions of rounds": range(110),
    "windows": range(105),
}


def _of_seeds(name: str, seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        _of_seed(name, seed, tally)
    assert_enough(tally, queries=3 * len(seeds) // 4, pairs=7 * len(seeds) // 2)
    return tally


def _of_seed(name: str, seed: int, tally: Tally) -> None:
    check(random.Random(seed), tally, LANGUAGES[name], depth=2 + seed % 3, streams=5)


@pytest.mark.parametrize("name", share(LANGUAGES, 11, first=1))
def test_random_queries_of_seeds(name: str) -> None:
    """Dozens of queries on some streams, by every engine; then queries with what was missing."""
    tally, words = _of_seeds(name, _SEEDS[name]), LANGUAGES[name].words
    for seed in range(_SEEDS[name].stop, _SEEDS[name].stop + 1000):
        missing = words - tally.with_features
        if not missing:
            return
        query = drawn(random.Random(seed), LANGUAGES[name], depth=2 + seed % 3)
        if any(word in body_of(query) for word in missing):
            _of_seed(name, seed, tally)
    pytest.fail(f"never met: {words - tally.with_features}")


@pytest.mark.parametrize("seeds", [2, pytest.param(40, marks=pytest.mark.long)])
def test_random_aggregates_on_streams(seeds: int) -> None:
    """What a stream keeps for later are the attributes that the calls read."""
    tally = Tally()
    for seed in range(seeds):
        check_as_stream(seed, tally)
    assert tally.pairs_with_matches >= seeds // 2, tally


@pytest.mark.long
@pytest.mark.parametrize("name", _BY_NUMBA)
def test_random_aggregates_by_machine_code(name: str) -> None:
    """The functions of aggregates as Numba compiles them. The suite has those of the cases."""
    tally = Tally()
    for seed in _BY_NUMBA[name]:
        depth = 2 + seed % 2
        check(random.Random(seed), tally, LANGUAGES[name], depth=depth, streams=10, by_numba=True)
    assert tally.pairs_with_matches >= 5, tally


@pytest.mark.long
@pytest.mark.parametrize("name", LANGUAGES)
def test_random_queries_of_more_seeds(name: str) -> None:
    _of_seeds(name, _MORE_SEEDS[name])


# --- the long run ---------------------------------------------------------------------------------

_SLICES = range(300_000, 322_000, 1000)
_SLICES_BY_NUMBA = range(400_000, 410_000, 1000)


class LongRun:
    """What the slices of the long run have counted together, for each language."""

    def __init__(self) -> None:
        self.all = {name: Tally() for name in LANGUAGES}
        self.slices: dict[str, list[int]] = {name: [] for name in LANGUAGES}

    def slice(self, name: str, first: int, queries: int, *, by_numba: bool) -> None:
        """Seeds from `first` on until so many queries have been compared on ten streams each."""
        tally, language = Tally(), LANGUAGES[name]
        seed = first
        while len(tally.texts) < queries or tally.pairs < 10 * queries:
            assert seed < first + 1000, f"seeds from {first}: {tally}"
            depth = 2 + seed % 3
            rng = random.Random(seed)
            check(rng, tally, language, depth=depth, streams=10, by_numba=by_numba)
            seed += 1
        self.slices[name].append(first)
        self.all[name].add(tally)
        assert_enough(tally, queries=queries, pairs=10 * queries)


@pytest.fixture(scope="module")
def long_run(request: pytest.FixtureRequest) -> Iterator[LongRun]:
    """Counts what the tests that use it compare, and says it in the end."""
    found = LongRun()
    yield found
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for name, tally in found.all.items():
            slices = ", ".join(f"{first}…" for first in found.slices[name])
            print(f"\n{name}: random queries of seeds {slices}: {tally}")
    for name, tally in found.all.items():
        if found.slices[name] == [*_SLICES, *_SLICES_BY_NUMBA]:
            assert_enough(tally, queries=2_000, pairs=20_000)


@pytest.mark.long
@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("first", _SLICES)
def test_many_random_queries(name: str, first: int, long_run: LongRun) -> None:
    """A hundred queries, a thousand pairs."""
    long_run.slice(name, first, 100, by_numba=False)


@pytest.mark.long
@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("first", _SLICES_BY_NUMBA)
def test_many_random_queries_by_numba(name: str, first: int, long_run: LongRun) -> None:
    """Ten queries, a hundred pairs, with the generated code compiled."""
    long_run.slice(name, first, 10, by_numba=True)


# --- by hand --------------------------------------------------------------------------------------


def differs(query: Drawn, events: Events, *, by_numba: bool = False, cuts: int = 5) -> str:
    """The difference that remains of a failure; empty where there is none, or no answer at all."""
    wanted = wanted_of(query, events)
    if wanted is None:
        return ""
    try:
        matchers = compiled(query, by_numba=by_numba)
    except CelError:
        return ""
    found = (
        difference_in(query, matchers, events, wanted, random.Random(cut)) for cut in range(cuts)
    )
    return next(filter(None, found), "")


def shrink(query: Drawn, events: Events, *, by_numba: bool = False) -> tuple[Drawn, Events]:
    """A shorter stream and query that still differ.

    Events are left out, then clauses of the query, then values of the events, one by one.
    """
    changed = True
    while changed:
        changed = False
        for smaller_query, smaller in _smaller(query, events):
            if differs(smaller_query, smaller, by_numba=by_numba):
                query, events, changed = smaller_query, smaller, True
                break
    return query, events


def _smaller(query: Drawn, events: Events) -> Iterator[tuple[Drawn, Events]]:
    for place in reversed(range(len(events))):
        yield query, events[:place] + events[place + 1 :]
    lines = query.text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        if line.startswith(("PARTITION", "WITHIN", "CONSUME", "LIMIT")):
            yield Drawn("".join(lines[:place] + lines[place + 1 :]), query.order_by), events
        if line.startswith("SELECT") and line != "SELECT *\n":
            text = "".join([*lines[:place], "SELECT *\n", *lines[place + 1 :]])
            yield Drawn(text, query.order_by), events
    body = body_of(query)
    for place, event in enumerate(events):
        for name in event:
            if event[name] is not None and name not in ("type", "ts", "seq", "stream"):
                if name in body:
                    continue
                smaller = {**event, name: None}
                yield query, [*events[:place], smaller, *events[place + 1 :]]


def as_case(query: Drawn, events: Events) -> str:
    """A failure as a line of a file of cases."""
    expected = [as_expected(match) for match in wanted_of(query, events) or []]
    case = {"name": "", "query": query.text, "events": events, "expected": expected}
    return json.dumps(case, ensure_ascii=False, default=str)


def main() -> None:
    """Run seeds; stop at the first difference, and show it shrunk."""
    parser = argparse.ArgumentParser(description="compare random queries of some seeds")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int, nargs="?")
    parser.add_argument("--language", choices=LANGUAGES, default="across")
    parser.add_argument("--numba", action="store_true")
    parser.add_argument("--stream", action="store_true", help="of aggregates, as streams")
    parser.add_argument("--streams", type=int, default=10)
    asked = parser.parse_args()
    language = LANGUAGES[asked.language]
    tally = Tally()
    for seed in range(asked.first, asked.first + 1 if asked.end is None else asked.end):
        depth = 2 + seed % 3
        if asked.stream:
            check_as_stream(seed, tally)
            continue
        if asked.end is None:
            print(drawn(random.Random(seed), language, depth).text)
        try:
            check(
                random.Random(seed),
                tally,
                language,
                depth=depth,
                streams=asked.streams,
                by_numba=asked.numba,
            )
        except DifferenceError as problem:
            query, events = shrink(problem.query, problem.events, by_numba=asked.numba)
            told = differs(query, events, by_numba=asked.numba)
            print(f"seed {seed}: {problem}\n\nshrunk: {told or problem.told}\n{query.text}")
            print(*events, as_case(query, events), sep="\n")
            sys.exit(1)
        except Exception:
            print(f"seed {seed}: {drawn(random.Random(seed), language, depth).text}")
            raise
    print(tally)


if __name__ == "__main__":
    main()
