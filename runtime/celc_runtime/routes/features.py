"""The features of a query that decide which routes it has; each is read from its program."""

from collections.abc import Callable
from typing import Any

from celc_runtime.plan.compact_form import own_aggregate
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.joins import why_not_joined
from celc_runtime.plan.strategy import ByDefinition, Checked, InWorlds
from celc_runtime.program import Program

MOST_EVENTS = 1 << 20
"""The largest window in EVENTS on a stream. When the window is read again, each event in it that
was not kept needs a row."""

MOST_RECENT = 1000
"""The most rows of LIMIT … PER d on a stream, which keeps a time for each of them and partition."""


@frozen
class Feature:
    """Something that a query can have."""

    name: str  # as in the documents
    is_in: Callable[[Any], bool]  # of a program
    of_rows: bool = False  # whether it is one of MATCH_RECOGNIZE


def lists_some(program: Program) -> bool:
    """Whether a walk chooses among the matches of an end."""
    listing, limit = program.listing, program.plan.choice.limit
    return limit is not None or (isinstance(listing, Checked) and bool(listing.selector))


def _has_limit(program: Program) -> bool:
    choice = program.plan.choice.per_start
    return (program.plan.choice.limit if choice is None else choice.limit) is not None


def _is_long(program: Program) -> bool:
    window = program.plan.matching.window
    return window is not None and window.unit == "EVENTS" and window.size > MOST_EVENTS


def _keeps_many(program: Program) -> bool:
    rate = program.plan.choice.rate
    return rate is not None and rate.length is not None and rate.count > MOST_RECENT


def _are_late_apart(program: Program) -> bool:
    deadlines = program.plan.choice.deadlines
    one = len(deadlines) == 1 and not deadlines[0].from_start and program.all_wait
    return bool(deadlines) and not one


def _takes_chosen(program: Program) -> bool:
    """Whether LIMIT … PER takes rows that are chosen among the matches of one end."""
    listing = program.listing
    chooses = isinstance(listing, ByDefinition) and listing.joins_ends
    return program.plan.choice.rate is not None and chooses


def _chooses_counted(program: Program) -> bool:
    plan = program.plan
    totals = plan.answer.totals
    chooses = plan.choice.per_start is not None or plan.choice.rate is not None
    chooses = chooses or (totals is not None and isinstance(totals.per, int))
    return chooses and any(map(plan.counts, plan.choice.deadlines))


def _lacks_time(program: Program) -> bool:
    order = program.plan.source.order_by
    return bool(order) and program.plan.source.type_of(order[0]) != "TIMESTAMP"


def _is_untimed(program: Program) -> bool:
    plan, whole = program.plan, program.plan.whole_window
    is_time = plan.window_attribute in (None, *plan.source.order_by[:1])
    lasts = plan.source.begin is not None
    return whole is None or whole.unit == "EVENTS" or not is_time or lasts


def _asks_others(program: Program) -> bool:
    plan = program.plan
    asks = plan.asks_for_clock and plan.choice.clock is None and bool(plan.source.partition_by)
    return asks or any(map(_asks_others, program.levels))


def _is_clocked(program: Program) -> bool:
    return program.plan.asks_for_clock or any(map(_is_clocked, program.levels))


def why_apart(program: Program) -> str:
    """Why one operator of a stream cannot run a query together with those that it reads; empty if
    it can, or reads none."""
    sources = [one.plan.source for one in _chain(program)]
    if any(source.chosen_keys for source in sources):
        return "a key of PARTITION BY is another attribute for each event type"
    common = set.intersection(*({*source.partition_by} for source in sources))
    if any(len({source.type_of(name) for source in sources}) > 1 for name in common):
        return "its keys are of other types than those of a query that it reads, directly or not"
    if any(source.made.intersection(source.partition_by) for source in sources):
        return "a key of PARTITION BY is computed"
    if any(source.rest for source in sources):
        return "EVENT OTHER stands for other types in queries of other streams"
    return ""


def _chain(program: Program) -> list[Program]:
    found = [program]
    for level in program.levels:
        found += _chain(level)
    return found


def _reads_apart(program: Program) -> bool:
    return bool(program.plan.source.reads) and bool(why_apart(program))


def _reads_what_waits(program: Program) -> bool:
    """Whether a query that is read has rows that become known at no time after their end, although
    a stream could run it alone."""
    for level in _chain(program)[1:]:
        plan, window = level.plan, level.plan.matching.window
        if plan.choice.waits and window is not None:
            other = plan.window_attribute not in (None, *plan.source.order_by[:1])
            if window.unit == "EVENTS" or other:
                return True
        if any(map(plan.counts, plan.choice.deadlines)):
            return True
    return False


def _consumes(program: Program) -> bool:
    parameters = program.plan.source.parameters
    of_rows = parameters is not None and parameters.consume_by != "NONE"
    return of_rows or program.plan.matching.consume_by != "NONE"


def _waits_without_time(program: Program) -> bool:
    """Whether matches wait for all of their start in no window of the first order column."""
    plan = program.plan
    window = plan.matching.window
    return plan.choice.waits and (
        window is None or plan.measured_on(window) not in plan.source.order_by[:1]
    )


def _has_no_line(program: Program) -> bool:
    order = program.plan.source.order_by
    numbers = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE")
    times = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
    return bool(order) and program.plan.source.type_of(order[0]) not in (*numbers, *times)


def _is_of_partition(program: Program) -> bool:
    totals = program.plan.answer.totals
    return totals is not None and totals.per in ("PARTITION", "RUNNING")


ROW_PATTERN = Feature("MATCH_RECOGNIZE", lambda p: True, of_rows=True)
ROWS_WAIT = Feature("MATCH_RECOGNIZE that may wait", lambda p: p.plan.can_wait, of_rows=True)
ROWS_HAVE_NO_TIME = Feature(
    "MATCH_RECOGNIZE by no time", lambda p: not p.plan.is_timed, of_rows=True
)
"""A query of MATCH_RECOGNIZE has no features but these."""

READS = Feature("reads other queries", lambda p: bool(p.plan.source.reads))
READS_APART = Feature("reads queries that one operator cannot run with it", _reads_apart)
READS_WHAT_WAITS = Feature("reads a query that waits without a bound", _reads_what_waits)
FOR_EACH = Feature("FOR EACH", lambda p: p.plan.source.parameters is not None)
MATCH_ID = Feature("match_id", lambda p: p.plan.answer.match_id is not None)
TOTAL = Feature("TOTAL", lambda p: p.plan.answer.totals is not None)
COLLAPSED = Feature("COLLAPSED", lambda p: p.plan.answer.collapsed)
PER_START = Feature("FIRST, LONGEST or DISJOINT", lambda p: p.plan.choice.per_start is not None)
CONSUMES = Feature("CONSUME BY", _consumes)
NESTED = Feature(
    "selector inside the formula", lambda p: p.plan.matching.nested_selectors or p.sees_all
)
DISJOINT = Feature(
    "DISJOINT", lambda p: p.plan.choice.per_start is not None and p.plan.choice.per_start.disjoint
)
PER_PARTITION = Feature("TOTAL … PER PARTITION", _is_of_partition)
WAITS_WITHOUT_TIME = Feature(
    "LONGEST or DISJOINT without a window on the first order column", _waits_without_time
)
ORDER_IS_NO_LINE = Feature("a first order column without numbers or times", _has_no_line)
WAITS = Feature("LONGEST or DISJOINT", lambda p: p.plan.choice.waits)
NOT_DISJOINT = Feature(
    "no DISJOINT", lambda p: p.plan.choice.per_start is None or not p.plan.choice.per_start.disjoint
)
DISJOINT_IN_TIME = Feature(
    "DISJOINT of events that last",
    lambda p: p.plan.source.begin is not None
    and p.plan.choice.per_start is not None
    and p.plan.choice.per_start.disjoint,
)
RATE_IN_TIME = Feature(
    "LIMIT … PER of matches of events that last which are known by their starts",
    lambda p: p.plan.source.begin is not None
    and p.plan.choice.waits
    and p.plan.choice.rate is not None,
)
LIMIT = Feature("LIMIT", _has_limit)
UNTIMED = Feature(
    "events that last, or a window or absence before that is no time on the first order column",
    _is_untimed,
)
RATE = Feature("LIMIT … PER", lambda p: p.plan.choice.rate is not None)
RATE_UNITES = Feature(
    "LIMIT … PER of rows without some of their events",
    lambda p: p.plan.choice.rate is not None and p.plan.choice.rate.support is not None,
)
RATE_OF_CHOSEN = Feature(
    "LIMIT … PER of rows that are chosen among the matches of one end", _takes_chosen
)
LONG_RATE = Feature(f"LIMIT … PER of more than {MOST_RECENT:,} rows", _keeps_many)
INTERLEAVES = Feature("CONSUME BY ANY with PARTITION BY", lambda p: p.plan.interleaves)
ORDER_IS_KEY = Feature(
    "PARTITION BY the first order column",
    lambda p: bool({*p.plan.source.order_by[:1]} & {*p.plan.source.key_columns}),
)
NO_WINDOW = Feature("no WITHIN", lambda p: p.plan.matching.window is None)
MANY_EVENTS = Feature("more than one event in a match", lambda p: not p.plan.matching.one_event)
LONG_WINDOW = Feature(f"a window of more than {MOST_EVENTS:,} EVENTS", _is_long)
ABSENCE_BEFORE = Feature("absence before", lambda p: bool(p.plan.matching.reaches))
PARTS_IN_TIME = Feature(
    "WITHIN[…] or FOR inside a formula of events that last",
    lambda p: p.plan.source.begin is not None and bool(p.plan.matching.local_windows),
)
ABSENCE_AFTER = Feature(
    "absence at the end", lambda p: bool(p.plan.choice.deadlines or p.plan.choice.ruled_out)
)
LATE = Feature("matches that end with an absence", lambda p: bool(p.plan.choice.deadlines))
LATE_APART = Feature("absences at the end that differ, or count from the start", _are_late_apart)
OFF_CLOCK = Feature(
    "absence at the end that is measured on another attribute",
    lambda p: any(
        not p.plan.is_on_clock(one) and not p.plan.counts(one) for one in p.plan.choice.deadlines
    ),
)
COUNTED_CHOICE = Feature(
    "absence at the end of EVENTS with FIRST, LONGEST, DISJOINT, LIMIT … PER or PER of a duration",
    _chooses_counted,
)
NOT_DECIDED_IN_TIME = Feature(
    "absence at the end that is no time on the first order column",
    lambda p: not all(map(p.plan.is_on_clock, p.plan.choice.deadlines)),
)
CLOCK_OF_ALL = Feature(
    "PARTITION BY and an absence at the end that no clock decides, of it or a query that it reads",
    _asks_others,
)
CLOCKED = Feature(
    "an absence at the end that a clock decides, of it or a query that it reads", _is_clocked
)
NOT_AWAITED = Feature(
    "a window that is no time on the first order column, LIMIT … PER, or events that last",
    lambda p: _is_untimed(p) or p.plan.choice.rate is not None,
)
CLOCK_BEFORE = Feature(
    "matches that are compared at a time that any partition can show, which is not given",
    lambda p: p.compares_late
    and p.plan.choice.clock is None
    and p.plan.source.parameters is None
    and not p.plan.source.reads,
)
CLOSED = Feature("at_end='closed'", lambda p: p.plan.choice.at_end != "open")
UNCERTAIN = Feature("uncertain time", lambda p: p.plan.source.uncertain is not None)
UNCERTAIN_ABSENCE = Feature(
    "uncertain time and an absence",
    lambda p: isinstance(p.listing, InWorlds) and p.listing.outside,
)
UNCERTAIN_TOTAL = Feature(
    "uncertain time and TOTAL",
    lambda p: p.plan.source.uncertain is not None and p.plan.answer.totals is not None,
)
UNCERTAIN_ROWS = Feature(
    "uncertain time and FOR EACH",
    lambda p: p.plan.source.uncertain is not None and p.plan.source.parameters is not None,
)
SIMULTANEOUS = Feature("ties='simultaneous'", lambda p: p.plan.source.ties is not None)
NO_ORDER = Feature("no order column", lambda p: not p.plan.source.order_by)
NO_TIME = Feature("a first order column that is no TIMESTAMP", _lacks_time)
OWN_AGGREGATE = Feature("own aggregate in SELECT", lambda p: own_aggregate(p.plan) is not None)
SEES_ALL = Feature("selector that compares the whole stream", lambda p: p.sees_all)
NO_JOINS = Feature("what joins cannot say", lambda p: bool(why_not_joined(p.plan, p.joins)))
