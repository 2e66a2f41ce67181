"""Checks one seed: draws a query with three features, and runs it on all routes.

Each route must give the rows of the reference; where the reference has no say or takes too long,
all routes must give the same rows. A difference is shrunk (`shrunk`) to fewer features and events.

Long: drawing, running and shrinking share one description of a case.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from celc_runtime import CompiledQuery, EventError
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.errors import WorkLimitError as RunWorkLimitError
from celc_runtime.routes.rules import Reason, Route
from celc_runtime.routes.why_not import why_not
from engines import Row, engines, interpreted
from match_ids import ids_of, wrong_ids
from reference import CelError as NotMeant
from reference import RunError, WorkLimitError
from smallest_queries import refusals_of_pairs
from streams_by_hand import microseconds, same_rows
from test_random import cramped
from test_random_compact import answers_differ

from celc import CelError, Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options

from .answers import MOST_MATCHES, Question, in_form
from .clauses import CLAUSES
from .conditions import CONDITIONS
from .drafts import Draft, UnfitError, base_of
from .events import Events, events_for, rules_for
from .routes import (
    by_batches,
    by_frame,
    by_stream,
    by_table,
    can_be_a_frame,
    compact_tables,
    given_rules,
    in_one_spelling,
    stream_query,
    table_for,
    without_positions,
)
from .shapes import SHAPES

FEATURES = (*SHAPES, *CONDITIONS, *CLAUSES)
_BY_NAME = {one.name: one for one in FEATURES}
TOGETHER = 3  # features of a query
REFUSALS = refusals_of_pairs()
"""The codes of errors with which a query may be refused. Any other is a mistake of the generator,
or of celc."""
STREAMS = 6  # streams of events for each query


@dataclass
class Tally:
    """What was drawn and compared."""

    drawn: int = 0  # texts
    queries: int = 0  # texts that the compiler took
    pairs: int = 0  # of a text and a stream
    pairs_with_rows: int = 0
    too_long: int = 0  # pairs with too many matches, or too much work, for the reference
    not_judged: int = 0  # pairs with several right answers: routes are compared with each other
    refused: Counter[str] = field(default_factory=Counter)  # texts by the code of the error
    routes: Counter[str] = field(default_factory=Counter)  # runs by route
    features: Counter[str] = field(default_factory=Counter)  # texts by feature

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def __str__(self) -> str:
        return (
            f"{self.drawn:,} drawn, {self.queries:,} queries, {self.pairs:,} pairs "
            f"({self.pairs_with_rows:,} with rows, {self.too_long:,} too long for the reference, "
            f"{self.not_judged:,} between routes only)\nrefused: {dict(self.refused.most_common())}"
            f"\nroutes: {dict(self.routes.most_common())}"
        )


@dataclass(frozen=True)
class Drawn:
    """A query and the names of its features."""

    draft: Draft
    features: tuple[str, ...]


def drawn(seed: int) -> Drawn:
    """A query with three features that fit together."""
    rng = random.Random(seed)
    while True:
        chosen = rng.sample(FEATURES, TOGETHER, counts=[one.weight for one in FEATURES])
        names = tuple(one.name for one in chosen)
        if len({*names}) < TOGETHER:
            continue
        try:
            return built(seed, names)
        except UnfitError:
            continue


def built(seed: int, names: Sequence[str]) -> Drawn:
    """The query with these features, which are applied by their stages. What one of them draws does
    not depend on the others."""
    draft = base_of(random.Random(f"{seed} base"))
    chosen = sorted((_BY_NAME[name] for name in names), key=lambda one: one.stage)
    for feature in chosen:
        draft.rng = random.Random(f"{seed} {feature.name}")
        feature.apply(draft)
    return Drawn(draft, tuple(one.name for one in chosen))


class DifferenceError(AssertionError):
    """Two routes, or a route and the reference, gave different answers; `case` says to what."""

    def __init__(self, told: str, case: _Case) -> None:
        super().__init__(told)
        self.case = case


@dataclass
class _Case:
    """What is run: the compiled queries of one text on one stream."""

    seed: int
    number: int  # of the stream
    one: Drawn
    text: str
    events: Events
    rules: list[Row]  # the table of parameters of FOR EACH
    every_route: bool = False  # whether it runs on all routes, and not on some by chance

    def takes(self, rng: random.Random, share: float) -> bool:
        """Whether this case takes a route that `share` of the cases take."""
        return rng.random() < share or self.every_route

    def rng(self) -> random.Random:
        """The generator that draws batches and micro-batches."""
        return random.Random(f"{self.seed} routes {self.number}")

    def differs(self, route: str, told: object) -> DifferenceError:
        """The error with everything that is needed to see this difference again."""
        options = self.one.draft.options()
        body = self.text[self.text.rindex("}\n", 0, self.text.index("QUERY ")) + 2 :]
        read = {*re.findall(r"\w+", body), "type", "stream", "ts", "since", "row"}
        events = [{name: event[name] for name in event if name in read} for event in self.events]
        for event in events:
            for name in event.keys() & {"ts", "high", "since"}:
                event[name] = microseconds(event[name]) // 1000
        lines = "".join(f"  {event}\n" for event in events)
        return DifferenceError(
            f"seed {self.seed} ({', '.join(self.one.features)}), {route}, {options}:\n{told}\n"
            f"{body}{lines}{self.rules or ''}",
            self,
        )


@contextmanager
def _quiet(rng: random.Random) -> Iterator[None]:
    """Without warnings; in half of the cases with limits that are small (`cramped`)."""
    with warnings.catch_warnings():
        # Random events lack values, random queries are costly, and sums leave their type.
        warnings.simplefilter("ignore")
        if rng.random() < 0.5:
            yield
            return
        with cramped(rng):
            yield


def check(seed: int, tally: Tally, *, streams: int = STREAMS, by_numba: bool = False) -> None:
    """Compare the answers of one random query on some streams."""
    check_drawn(seed, drawn(seed), tally, streams=streams, by_numba=by_numba)


def check_drawn(
    seed: int,
    one: Drawn,
    tally: Tally,
    *,
    streams: int,
    by_numba: bool = False,
    every_route: bool = False,
) -> bool:
    """Compare the answers of a query on some streams. Returns False if the compiler refuses it with
    a code of REFUSALS."""
    tally.drawn += 1
    matchers = _engines(seed, one, tally, by_numba=by_numba)
    if matchers is None:
        return False
    tally.queries += 1
    tally.features.update(one.features)
    for number in range(streams):
        case = replace(_case(seed, number, one), every_route=every_route)
        tally.pairs += 1
        for name in one.draft.asked:
            compare(case, name, matchers, case.rng(), tally)
        if number == 0 and len(next(iter(matchers.values())).queries) > 1:
            _compare_together(case, matchers, tally)
    return True


def _case(seed: int, number: int, one: Drawn) -> _Case:
    rng = random.Random(f"{seed} stream {number}")
    events = events_for(one.draft, rng)
    rules = rules_for(rng) if one.draft.for_each else []
    return _Case(seed, number, one, one.draft.text(), events, rules)


def compiled(seed: int, one: Drawn, *, by_numba: bool = False) -> Matcher | None:
    """The file as a caller compiles it, interpreted or by Numba; None where it is refused."""
    found = _engines(seed | 1, one, Tally(), by_numba=by_numba)
    return None if found is None else next(iter(found.values()))


def _engines(
    seed: int, one: Drawn, tally: Tally, *, by_numba: bool = False
) -> dict[str, Matcher] | None:
    """The compiled file by the name of its engine; None if it is refused.

    An even seed has every engine that can run it, and an odd one that of the compiler's choice,
    both as plain Python; with `by_numba` that choice as machine code.
    """
    options, text = Options(**one.draft.options()), one.draft.text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if by_numba:
                return {"numba": _chosen(text, options)}
            with interpreted():
                if seed % 2:
                    return {"chosen": _chosen(text, options)}
                return engines(text, options)
        except CelError as problem:
            codes = {d.code for d in problem.diagnostics if d.severity == "error"}
            told = f"{codes} of {one.features} is not in docs/routes.md:\n{text}"
            assert codes & REFUSALS, told
            tally.refused[min(codes & REFUSALS)] += 1
            return None


def _chosen(text: str, options: Options) -> Matcher:
    """The file with the update that the compiler chooses."""
    return Matcher(compile_source(Source("query.cel", text), options).module_parts("crossing"))


def asked_query(one: Drawn, matcher: Matcher, name: str) -> CompiledQuery:
    """A query of the file; with ids of matches if the draft has them and its rows are matches."""
    query = matcher.queries[name]
    if "match_id" in one.draft.traits and query.plan.is_of_matches:
        query = query.with_options(match_id=True)
    return query


def shrunk(problem: DifferenceError) -> DifferenceError:
    """The same difference in a smaller case: one feature, event or rule after another is left out
    as long as a difference stays."""
    case = problem.case
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(case):
            found = _difference(smaller)
            if found is not None:
                problem, case, is_smaller = found, smaller, True
                break
    return problem


def _smaller(case: _Case) -> Iterator[_Case]:
    for left in case.one.features:
        names = [name for name in case.one.features if name != left]
        try:
            one = built(case.seed, names)
        except UnfitError:
            continue
        # A stream of events belongs to what is declared.
        events = case.events
        if "T" not in one.draft.streams:
            events = [{name: e[name] for name in e if name != "stream"} for e in events]
        yield replace(case, one=one, text=one.draft.text(), events=events)
    for left_out in range(len(case.events)):
        yield replace(case, events=case.events[:left_out] + case.events[left_out + 1 :])
    for left_out in range(len(case.rules)):
        yield replace(case, rules=case.rules[:left_out] + case.rules[left_out + 1 :])


def _difference(case: _Case) -> DifferenceError | None:
    """The first difference of a case, over several draws of batches; None: there is none."""
    for seed in (0, 1):
        matchers = _engines(seed, case.one, Tally())
        if matchers is None:
            return None
        for number in range(6):
            try:
                for name in case.one.draft.asked:
                    compare(case, name, matchers, random.Random(number), Tally())
            except DifferenceError as problem:
                return problem
    return None


def compare(
    case: _Case, name: str, matchers: dict[str, Matcher], rng: random.Random, tally: Tally
) -> None:
    """Compare the answers of all routes of one query on one stream. Raises DifferenceError."""
    question = Question(case.one.draft, case.text, name)
    wanted: list[Any] | None
    try:
        wanted = question.wanted(case.events, case.rules, case.one.draft.at_end)
    except WorkLimitError:
        tally.too_long += 1
        wanted = None
    except NotMeant as problem:
        raise case.differs("reference", f"refuses {name}: {problem}") from None
    if wanted is not None and len(wanted) > MOST_MATCHES:
        tally.too_long += 1
        return
    tally.pairs_with_rows += bool(wanted)
    if question.is_open:
        tally.not_judged += 1
        wanted = None
    first: list[Row] | None = None
    for engine, matcher in matchers.items():
        plain, query = matcher.queries[name], asked_query(case.one, matcher, name)
        if question.is_open:
            first = None  # each may choose others below
        with _quiet(rng):
            for route, rows in _answers(case, query, rng):
                tally.routes[route] += 1
                where = f"query {name}, {engine}, {route}"
                told = _told(case, question, query, rows, wanted, first)
                if told:
                    raise case.differs(where, told)
                first = first or (rows if isinstance(rows, list) else None)
            _compare_compact(case, plain, engine, rng, tally)
            if case.one.draft.order_by and rng.random() < 0.2:
                _compare_without_positions(case, query, engine, tally)
            if case.one.draft.order_by and case.takes(rng, 0.5):
                _compare_stream(case, question, query, engine, rng, tally)


def _answers(
    case: _Case, query: CompiledQuery, rng: random.Random
) -> Iterator[tuple[str, list[Row] | TotalError]]:
    """The answers of the routes on one machine: (route, its rows, or the error of its totals)."""
    routes: list[tuple[str, Callable[[], list[Row]]]] = [
        ("match_table", lambda: by_table(query, case.events, case.rules)),
        ("match_arrow", lambda: by_batches(query, case.events, case.rules, rng)),
    ]
    if rng.random() < 0.1 and can_be_a_frame(query, case.events):
        routes.append(("match_pandas", lambda: by_frame(query, case.events, case.rules)))
    if rng.random() < 0.2 and case.one.draft.order_by and not case.one.draft.uncertain:
        changed = query.with_options(at_end=case.one.draft.at_end)
        routes.append(("with_options", lambda: by_table(changed, case.events, case.rules)))
    for route, run in routes:
        try:
            yield route, run()
        except TotalError as error:
            yield route, error
        except RunWorkLimitError:
            continue
        except Exception as problem:
            raise case.differs(f"query {query.name}, {route}", repr(problem)) from problem


def _told(
    case: _Case,
    question: Question,
    query: CompiledQuery,
    rows: list[Row] | TotalError,
    wanted: list[Any] | None,
    first: list[Row] | None,
) -> str:
    """What is wrong with the rows of one route, in words; empty if they are right.

    wanted: the answer of the reference, or None; `first`, the rows of another route, counts then.
    """
    failed = bool(wanted) and isinstance(wanted[0], RunError)  # type: ignore[index]
    if failed or isinstance(rows, TotalError):
        return "" if failed and isinstance(rows, TotalError) else f"{rows} and not {wanted}"
    if wanted is None:
        return "" if first is None else same_rows(in_one_spelling(rows), in_one_spelling(first))
    try:
        told = question.told(in_form(query, rows, case.events), wanted)
        return told or _told_of_ids(question, query, rows, case.events, first)
    except (AssertionError, LookupError) as problem:
        return repr(problem)


def _told_of_ids(
    question: Question,
    query: CompiledQuery,
    rows: list[Row],
    events: Events,
    first: list[Row] | None,
) -> str:
    """What is wrong with the ids of rows; `first`: rows of another route."""
    if query.plan.answer.match_id is None:
        return ""
    # The events of a query over queries are rows.
    told = "" if query.plan.source.reads else wrong_ids(query, rows, events)
    is_choice = question.per_end is not None
    if not told and first is not None and not is_choice and ids_of(rows) != ids_of(first):
        told = f"ids {ids_of(rows)} and not {ids_of(first)}"
    return told


def _compare_compact(
    case: _Case, query: CompiledQuery, engine: str, rng: random.Random, tally: Tally
) -> None:
    """`match_compact`, expanded, gives the rows of `match_table`."""
    if not case.takes(rng, 0.5):
        return
    if (reason := why_not(query.program, Route.COMPACT)) is not None:
        tally.routes[f"no match_compact: {reason.code}"] += 1
        return
    try:
        bound = query.with_parameters(**given_rules(query, case.rules))
        told = answers_differ(bound, case.events, rng, compact_tables(query, case.events))
    except RunWorkLimitError:
        return
    except Exception as problem:
        raise case.differs(f"{engine}, match_compact", repr(problem)) from problem
    tally.routes["match_compact" if told is not None else "too many for match_compact"] += 1
    if told:
        raise case.differs(f"{engine}, match_compact", told)


def _compare_without_positions(
    case: _Case, query: CompiledQuery, engine: str, tally: Tally
) -> None:
    """The same rows, and no positions in them."""
    try:
        rows = by_table(query, case.events, case.rules)
        changed = query.with_options(positions=False)
        bare = by_table(changed, case.events, case.rules)
    except (RunWorkLimitError, TotalError):
        return
    except EventError as problem:
        tally.routes["not without positions"] += "positions" in str(problem)
        return
    tally.routes["without positions"] += 1
    shown = [without_positions(row, changed.output_schema.names) for row in rows]
    told = same_rows(in_one_spelling(bare), in_one_spelling(shown))
    if told:
        raise case.differs(f"query {query.name}, {engine}, without positions", told)


def _compare_stream(
    case: _Case,
    question: Question,
    query: CompiledQuery,
    engine: str,
    rng: random.Random,
    tally: Tally,
) -> None:
    """A stream gives the rows of a batch that is over."""
    streaming = stream_query(query)
    if isinstance(streaming, Reason):
        tally.routes[f"no stream: {streaming.code}"] += 1
        return
    late = rng.random() < 0.3 and bool(streaming.plan.source.tiebreak) and not case.rules
    late = late and query.plan.source.parameters is None and not query.plan.source.reads
    route = "stream with late events" if late else "stream"
    where = f"{engine}, {route}"
    tally.routes[route] += 1
    try:
        rows, events = by_stream(streaming, case.events, case.rules, rng, late=late)
        closed = streaming.with_options(at_end="closed")
        if query.plan.source.parameters is not None or question.is_open:
            told = same_rows(
                in_one_spelling(rows), in_one_spelling(by_table(closed, events, case.rules))
            )
        else:
            wanted = question.wanted(events, case.rules, "closed")
            if not question.is_total:
                rows.sort(key=lambda row: row["end_pos"])
            told = question.told(in_form(streaming, rows, events), wanted)
            if streaming.plan.answer.match_id is not None and not told:
                of_table = by_table(closed, events, case.rules)
                told = _told_of_ids(question, streaming, rows, events, of_table)
    except (WorkLimitError, RunWorkLimitError, RunError, TotalError):
        return
    except Exception as problem:
        raise case.differs(where, repr(problem)) from problem
    if told:
        dropped = [event["row"] for event in case.events if event not in events]
        raise case.differs(f"{where}, dropped {dropped}", told)


def _compare_together(case: _Case, matchers: dict[str, Matcher], tally: Tally) -> None:
    """`match_all_table` against each query alone."""
    for matcher in matchers.values():
        if any(why_not(query.program, Route.ALL_TABLE) for query in matcher.queries.values()):
            return
        tables = [table_for(query, case.events) for query in matcher.queries.values()]
        table = tables[0]
        for other in tables[1:]:
            for name in other.column_names:
                if name not in table.column_names:
                    table = table.append_column(name, other.column(name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            queries = matcher.queries.values()
            given = {k: v for one in queries for k, v in given_rules(one, case.rules).items()}
            together = matcher.match_all_table(table, **given)
            for name, query in matcher.queries.items():
                tally.routes["match_all"] += 1
                alone = query.match_table(table, **given_rules(query, case.rules)).to_pylist()
                told = same_rows(together[name].to_pylist(), alone)
                if told:
                    raise case.differs(f"match_all, {name}", told)
