"""What a query cannot do on a route, and why: one table, which every route reads at its entry.

A route is a way to run a query. A feature is something that a query has; a predicate reads it from
its program. A rule says that a route has no answer for one feature, or for several together, and
what to write instead. The first rule that holds is reported.

The table leaves out what depends on more than the query: on options of the call (`key_ttl`,
`late`), on the events, on the other queries of a file, on the session. This is checked where it is
read. It also leaves out *how* a route runs a query if the answer is the same (whether Spark sorts,
filters or cuts). What the language refuses has an error code of the compiler.
`tests/test_routes_of_plans.py` prints `docs/routes.md` from this table and from the
compiler.

Long: all rules, of which each query is asked in their order.

Rejected: a check in each route, as there were about fifteen. Cases that nobody had thought of were
refused nowhere, and no page could say which routes a query has.
"""

from enum import Enum

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.joins import NotJoined
from celc_runtime.routes import features as has
from celc_runtime.routes.features import MOST_EVENTS, MOST_RECENT, Feature


class Route(Enum):
    """A way to run a query, as users call it."""

    TABLE = "match_table"
    ARROW = "match_arrow"
    PANDAS = "match_pandas"
    COMPACT = "match_compact"
    RUN = "run"
    ALL_TABLE = "match_all_table"
    COUNTS = "celc explain --format html with events"
    SPARK = "match"
    JOINS = "match(plan='joins')"
    ALL = "match_all"
    SQL = "register"
    STREAM = "match_stream"
    UNBOUNDED = "match_stream(allow_unbounded_state=True)"
    AFTER = "after=…"
    UNTIL = "until=…"


@frozen
class Reason:
    """Why a route has no answer."""

    code: str  # a word for it
    why: str
    instead: str  # what to write instead
    error: type[Exception] = EventError  # what the route raises

    def __str__(self) -> str:
        return f"{self.why}: {self.instead}"


@frozen
class Rule:
    """Routes that have no answer for a query with all of these features.

    The texts of the reason name parts of the query in braces (`_words`).
    """

    routes: tuple[Route, ...]
    features: tuple[Feature, ...]
    reason: Reason


_STREAMS = (Route.STREAM, Route.UNBOUNDED)
_ON_SPARK = (Route.SPARK, Route.ALL, Route.SQL, *_STREAMS)

_SLICES = (Route.AFTER, Route.UNTIL)
"""Arguments that other routes take: the rows that become known after a time, or up to one."""

_WITHOUT_AFTER = "leave out `after`: `until` alone reads everything before it"

_GRAPHS = "use match_table or match_arrow"
_AS_TABLE = "use match on the events as a table"


def _refused(
    routes: Route | tuple[Route, ...],
    features: Feature | tuple[Feature, ...],
    code: str,
    why: str,
    instead: str,
    error: type[Exception] = EventError,
) -> Rule:
    return Rule(
        (routes,) if isinstance(routes, Route) else routes,
        (features,) if isinstance(features, Feature) else features,
        Reason(code, why, instead, error),
    )


RULES = (
    # The column that identifies a match.
    *(
        _refused(
            tuple(Route),
            (has.MATCH_ID, kind),
            f"match-id-{kind.name.lower()}",
            f"SELECT {kind.name} has one row for many matches, and match_id tells one",
            "leave out match_id",
        )
        for kind in (has.TOTAL, has.COLLAPSED)
    ),
    _refused(
        Route.COMPACT,
        has.MATCH_ID,
        "match-id-compact",
        "a graph stands for many matches, and match_id tells one",
        "use match_table or match_arrow, or leave out match_id",
    ),
    # Queries over queries, and tables of parameters.
    _refused(
        _STREAMS,
        (has.READS, has.FOR_EACH),
        "reader-for-each-on-a-stream",
        "it is FOR EACH {set} over the rows of {reads}; a stream pairs events with rows of {set} "
        "before it spreads them, and the rows of {reads} are made after that",
        "write the rows of {read} to a table (match_stream, a stream of its own), and read this "
        "table as a stream in a file of its own: {declared}",
    ),
    _refused(
        _STREAMS,
        has.READS_APART,
        "reader-on-a-stream",
        "it reads the rows of {reads}, and one operator of a stream cannot run them together, "
        "because {apart}",
        "name columns in PARTITION BY that the DataFrame has, or write the rows of {read} to a "
        "table (match_stream, a stream of its own), and read this table as a stream in a file of "
        "its own: {declared}",
    ),
    _refused(
        _STREAMS,
        has.READS_WHAT_WAITS,
        "reader-of-what-waits",
        "it reads rows of {reads} that become known at no time after their end, because an absence "
        "at their end is in EVENTS, or LONGEST or DISJOINT compares the matches of a window of "
        "EVENTS or of another attribute",
        "give the query that is read a window, or an absence, of time on the order column",
    ),
    # The page of an automaton.
    _refused(
        Route.COUNTS,
        has.FOR_EACH,
        "for-each-counts",
        "it is FOR EACH row of a set, and each row has transitions of its own",
        "leave out the events, or write the values of one row into the query",
        ValueError,
    ),
    _refused(
        Route.COUNTS,
        has.READS,
        "reader-counts",
        "it reads the rows of {reads}",
        "leave out the events, or look at one of these queries with --query",
        ValueError,
    ),
    _refused(
        Route.COUNTS,
        has.SIMULTANEOUS,
        "simultaneous-counts",
        "simultaneous events take transitions together, and no counts are made of them",
        "leave out the events, or --ties",
        ValueError,
    ),
    # Compact answers.
    *(
        _refused(
            Route.COMPACT,
            kind,
            f"compact-{kind.name.lower()}",
            f"SELECT {kind.name} has one row for many matches already",
            _GRAPHS,
        )
        for kind in (has.TOTAL, has.COLLAPSED)
    ),
    _refused(
        Route.COMPACT,
        has.PER_START,
        "compact-per-start",
        "SELECT {choice} compares matches that end at different events",
        _GRAPHS,
    ),
    _refused(
        Route.COMPACT,
        has.RATE,
        "compact-limit-per",
        "LIMIT … PER counts the rows of several ends, and a graph has those of one",
        _GRAPHS,
    ),
    _refused(
        Route.COMPACT,
        has.ABSENCE_AFTER,
        "compact-absence",
        "whether a match with an absence at its end counts is known only after that end",
        _GRAPHS,
    ),
    _refused(
        Route.COMPACT,
        has.UNCERTAIN,
        "compact-uncertain",
        "time is uncertain, and a graph has no confidences",
        _GRAPHS,
    ),
    _refused(
        Route.COMPACT,
        has.OWN_AGGREGATE,
        "compact-own-aggregate",
        "{column!r} calls an aggregate or a function that the query's file declares; no table "
        "holds its code",
        _GRAPHS,
    ),
    # Distributed tables.
    _refused(
        _ON_SPARK,
        has.NO_ORDER,
        "no-order",
        "it has no order column, and a distributed table has no order of its own",
        "compile it with --order-by, or use with_options(order_by=…)",
    ),
    _refused(
        Route.PANDAS,
        has.CLOCK_OF_ALL,
        "unknown-clock",
        "whether a match with an absence at its end is decided depends on the greatest {order!r} "
        "of all partitions, which this way does not see",
        "give it with with_options(clock=…), a time or the DataFrame of all events, say that the "
        "input is over with with_options(at_end='closed'), or use match, which finds it",
    ),
    _refused(
        Route.RUN,
        has.CLOCK_BEFORE,
        "clock-of-a-run",
        "matches that end with an absence are compared, which the greatest {order!r} of all "
        "partitions decides, and events that are fed batch by batch show it at the end",
        "give it with with_options(clock=…), say that the input is over with "
        "with_options(at_end='closed'), or use match_table or match_arrow, which find it",
    ),
    _refused(Route.JOINS, has.NO_JOINS, "no-joins", "{joins}", "leave out plan='joins'", NotJoined),
    # Streams.
    _refused(
        _STREAMS,
        has.ORDER_IS_KEY,
        "partition-of-a-moment",
        "{order!r} is in PARTITION BY, so that each moment is a partition of its own, and a stream "
        "would keep one for every moment",
        "order by another column, or leave it out of PARTITION BY",
    ),
    _refused(
        _STREAMS,
        has.UNCERTAIN_ABSENCE,
        "uncertain-absence-on-a-stream",
        "time is uncertain, and an event that comes later can be one that must be absent",
        "take the absence out, or use match on the events of closed days",
    ),
    _refused(
        _STREAMS,
        has.UNCERTAIN_ROWS,
        "uncertain-for-each-on-a-stream",
        "time is uncertain, and a row of FOR EACH gets the events that concern it alone, so that "
        "it does not know how far the others have come",
        "use match on the events of closed days",
    ),
    _refused(
        _STREAMS,
        has.UNCERTAIN_TOTAL,
        "uncertain-total-on-a-stream",
        "time is uncertain, and a match that comes later can be one of the same row of TOTAL",
        "write SELECT *, and add up its column `confidence`, or use match on the events of closed "
        "days",
    ),
    _refused(
        _STREAMS,
        has.INTERLEAVES,
        "consume-any-on-a-stream",
        "CONSUME BY ANY with PARTITION BY reads all partitions in one order, and a stream keeps "
        "each by itself",
        "use CONSUME BY PARTITION",
    ),
    _refused(
        _STREAMS,
        has.LONG_WINDOW,
        "long-window-on-a-stream",
        f"a window on a stream can hold {MOST_EVENTS:,} EVENTS at most, and this one holds "
        "{size}",
        "use a window of time",
    ),
    _refused(
        _STREAMS,
        has.CLOSED,
        "closed-stream",
        "it has at_end={at_end!r}, and more events come on a stream",
        "leave it out, and end the stream with celc_runtime.finish",
    ),
    _refused(
        _STREAMS,
        has.OFF_CLOCK,
        "absence-off-the-clock",
        "on a stream an absence at the end is measured on the first order column {order!r}, whose "
        "watermark decides matches, or in EVENTS, and not on another attribute",
        "write FOR with a time",
    ),
    _refused(
        _STREAMS,
        has.COUNTED_CHOICE,
        "counted-absence-and-choice",
        "the events of its partition decide about an absence of EVENTS, and FIRST, LONGEST, "
        "DISJOINT, LIMIT … PER and PER of a duration wait for a time on a stream",
        f"write FOR with a time, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.PER_START, has.LATE, has.NOT_AWAITED),
        "late-choice-and-absence",
        "SELECT {choice} compares the matches of one start, which are decided at different times, "
        "because they end with an absence, and a stream can wait for all of them in a window of "
        "time on the first order column {order!r} alone, without LIMIT … PER, of events that do "
        "not last",
        f"write WITHIN with a time, leave out {{choice}}, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        has.DISJOINT_IN_TIME,
        "disjoint-in-time",
        "SELECT {choice} takes matches in the order of the times at which they start, and an event "
        "that lasts and ends later can have started earlier",
        f"use SELECT FIRST, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        has.RATE_IN_TIME,
        "limit-per-in-time",
        "LIMIT … PER takes the rows of SELECT {choice} in the order of the times at which they "
        "start, and an event that lasts and ends later can have started earlier",
        f"use SELECT FIRST, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.WAITS, has.NO_WINDOW),
        "late-choice-without-window",
        "SELECT {choice} without a window knows its matches only when the stream ends",
        "give it a window (WITHIN), or use SELECT FIRST",
    ),
    _refused(
        _STREAMS,
        (has.WAITS, has.ABSENCE_BEFORE, has.UNTIMED),
        "late-choice-and-absence-before",
        "with SELECT {choice} a stream keeps the events that an absence before a match looks at "
        "where both FOR and WITHIN are times on the first order column {order!r}",
        f"write FOR and WITHIN with times, leave one of the two out, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.WAITS, has.PARTS_IN_TIME),
        "late-choice-and-parts-in-time",
        "matches of events that last are known by their starts with SELECT {choice}, and a stream "
        "does not keep the events before them that FOR and WITHIN[…] look at",
        f"take FOR and WITHIN[…] out, use SELECT FIRST, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.WAITS, has.SEES_ALL),
        "late-choice-and-selector",
        "with SELECT {choice} a stream cannot forget the events that a selector inside the formula "
        "compares",
        f"take that selector out, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.WAITS, has.NOT_DISJOINT, has.LIMIT, has.UNTIMED),
        "late-choice-and-limit",
        "with SELECT {choice} the matches of one end become known at different times, and when all "
        "of them are is known of a window of time on the first order column {order!r} alone, of "
        "events that do not last, so that a stream cannot apply LIMIT {limit}",
        "use a window of time, or SELECT {choice} DISJOINT, or leave out LIMIT",
    ),
    _refused(
        _STREAMS,
        has.LONG_RATE,
        "long-limit-per-on-a-stream",
        f"LIMIT … PER a time keeps the times of its rows for each partition, and a stream at most "
        f"{MOST_RECENT:,}",
        f"use a smaller number, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.RATE_UNITES, has.LATE_APART),
        "limit-per-and-absences",
        "matches with one end are decided at different times, because absences at their end differ "
        "or count from the start, and those that look alike are one row of LIMIT … PER",
        f"select a label for each event of the formula, or {_AS_TABLE}",
    ),
    _refused(
        _STREAMS,
        (has.RATE_OF_CHOSEN, has.LATE_APART),
        "limit-per-and-choice",
        "absences at their end differ or count from the start, so that the matches of one end, "
        "among which SELECT chooses, are decided at different times; where an event undoes the "
        "last of them, the row belongs before rows of LIMIT … PER that a stream has given already",
        f"write one absence with FOR, leave out the selector or LIMIT … PER, or {_AS_TABLE}",
    ),
    _refused(
        Route.STREAM,
        (has.NO_WINDOW, has.MANY_EVENTS),
        "unbounded-state",
        "its state grows with the stream, because it has no window, so a match may begin with any "
        "event",
        "give it a window (WITHIN), or say match_stream(df, allow_unbounded_state=True)",
    ),
    _refused(
        Route.STREAM,
        has.SEES_ALL,
        "unbounded-selector",
        "its state grows with the stream, because a selector inside the formula compares matches "
        "over the whole stream",
        "take that selector out, or say match_stream(df, allow_unbounded_state=True)",
    ),
    _refused(
        _STREAMS,
        has.NO_TIME,
        "no-time-on-a-stream",
        "it orders events by {order!r}, which it declares as {type}",
        "a watermark needs a TIMESTAMP as the first order column",
    ),
    # Rows that become known after a time, or up to one.
    _refused(
        _SLICES,
        has.NO_ORDER,
        "slice-without-order",
        "it has no order column, and after and until are values of one",
        "compile it with --order-by, or use with_options(order_by=…)",
    ),
    _refused(
        _SLICES,
        has.ORDER_IS_NO_LINE,
        "slice-of-texts",
        "its first order column {order!r} is a {type}, and after and until are times or numbers",
        "order it by a TIMESTAMP, a DATE or a number",
    ),
    _refused(
        _SLICES,
        has.UNCERTAIN,
        "slice-of-uncertain-time",
        "time is uncertain, so that no time parts the events of a match from later ones",
        "leave out after and until",
    ),
    _refused(
        _SLICES,
        has.PER_PARTITION,
        "slice-of-partition-totals",
        "PER PARTITION adds up all matches, and a row is known only when the input is over",
        "write PER and a duration, or PER END",
    ),
    _refused(
        _SLICES,
        has.NOT_DECIDED_IN_TIME,
        "slice-of-absences",
        "an absence at its end is in EVENTS or on another attribute than {order!r}, and no time "
        "says when its rows are known",
        "measure the absence on {order!r}",
    ),
    _refused(
        _SLICES,
        has.WAITS_WITHOUT_TIME,
        "slice-without-window",
        "LONGEST without a window on {order!r}, likewise DISJOINT and FIRST with an absence at the "
        "end, knows a row only when the input is over",
        "give it a window of that column (WITHIN)",
    ),
    _refused(
        Route.AFTER,
        has.CONSUMES,
        "after-consume",
        "CONSUME BY depends on events long before the window: each match begins behind the last",
        _WITHOUT_AFTER,
    ),
    _refused(
        Route.AFTER,
        has.NESTED,
        "after-selector",
        "a nested selector depends on events long before the window, because it chooses among the "
        "matches of the whole stream",
        _WITHOUT_AFTER,
    ),
    _refused(
        Route.AFTER,
        has.DISJOINT,
        "after-disjoint",
        "DISJOINT depends on events long before the window: each match begins behind the last",
        _WITHOUT_AFTER,
    ),
    _refused(
        Route.AFTER,
        has.RATE,
        "after-limit-per",
        "LIMIT … PER depends on events long before the window: each row counts those before it",
        _WITHOUT_AFTER,
    ),
    _refused(
        Route.UNTIL,
        (has.RATE, has.LATE),
        "until-limit-per",
        "LIMIT … PER counts rows in the order in which they are known, and with an absence at the "
        "end some before `until` can be decided behind it",
        "leave out LIMIT, or after and until",
    ),
    _refused(
        _SLICES,
        has.ROW_PATTERN,
        "slice-of-row-patterns",
        "MATCH_RECOGNIZE skips past matches from the beginning of each partition on, and its rows "
        "are measures without a time at which they are known",
        "restrict the rows of its input with WHERE, or write the pattern in CEL",
    ),
    # MATCH_RECOGNIZE.
    _refused(
        _STREAMS,
        has.ROWS_HAVE_NO_TIME,
        "row-pattern-by-no-time",
        "a stream has an order by its watermark, which is a time",
        "let ORDER BY begin with a TIMESTAMP or a DATE, ascending",
    ),
    _refused(
        Route.STREAM,
        has.ROWS_WAIT,
        "row-pattern-that-may-wait",
        "a match can wait for ever for later rows, and its partition keeps its rows so long",
        "add WITHIN to PATTERN, as in PATTERN (A B+) WITHIN INTERVAL '1' HOUR, or call "
        "match_stream(df, allow_unbounded_state=True)",
    ),
    _refused(
        (Route.COMPACT, Route.COUNTS),
        has.ROW_PATTERN,
        "row-pattern-measures",
        "a query of MATCH_RECOGNIZE gives the measures of one match for each start, and a graph "
        "stands for many",
        "use match_table or match_arrow",
        AttributeError,
    ),
    _refused(
        Route.JOINS,
        has.ROW_PATTERN,
        "row-pattern-preferred",
        "a query of MATCH_RECOGNIZE has the preferred match of each start, and joins have all",
        "use match_table or match",
        AttributeError,
    ),
)
"""Rules of one route are asked in this order."""
