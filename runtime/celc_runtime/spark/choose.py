"""Which plan a query gets on a DataFrame, as a list of steps.

========================== =========================================================================
partition by, few events   one task, which sorts and reads all keys one after another
partition by, any window   one shuffle by the key, a sort (by the tasks, or by Spark where a task
                           could not hold its rows), and one pass over each Spark partition
the same, and a hot key    the hot key's events in time ranges, which go through the same shuffle
already spread and sorted  no shuffle and no sort; the order is checked
no key, bounded window     time ranges, each reading its part of the files
everything else            one task
========================== =========================================================================

`Facts` knows the data. Nothing here runs Spark: steps make DataFrames when they are applied.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from celc_runtime.arrow.events.sorting import sort_columns, sort_columns_without_order
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from celc_runtime.run.ranges import (
    Cuts,
    Sample,
    TimeRange,
    cuts_for,
    is_even,
    ranges_of,
    why_not_split,
    worthwhile,
)
from celc_runtime.spark.facts import Facts
from celc_runtime.spark.file_statistics import FilesTell
from celc_runtime.spark.group_cuts import cuts_between_groups
from celc_runtime.spark.hot_keys import HotKey
from celc_runtime.spark.in_numbers import ALL, MATTERING, RowNumbers
from celc_runtime.spark.input.probe import UNKNOWN
from celc_runtime.spark.numbering import Numbering, numbered_columns
from celc_runtime.spark.steps import (
    Step,
    cut_by_key_and_time,
    cut_by_time,
    sorted_by_spark,
    told,
)
from celc_runtime.spark.worker.task_columns import EVENTS_ALONE, TaskColumns
from celc_runtime.spark.worker.task_sort import (
    MOST_ROWS,
    unsorted_columns,
    unsorted_rows,
    why_spark_sorts,
)

_ROWS_PER_RANGE = 1 << 22
"""Rows. A range of fewer rows costs more to find than it saves. Measured on two cores, by the
clock: ten million rows that all reach Python were read 1.2 to 1.6 times as fast in two ranges."""

_FEW_OF_A_KEY = 4
"""Factor of `_ROWS_PER_RANGE` for the events of a key, if Spark leaves out rows that cannot
matter."""
_FILTERED = 2
"""Factor of `_ROWS_PER_RANGE` without keys, if Spark filters rows before anything else. Measured on
two cores, by the clock, with 1 % of the rows relevant: two ranges instead of one made no difference
for 10 million filtered rows, and ran 1.25 times as fast for 20 million. If Spark numbers the rows,
this factor does not apply: 9 million ran 1.4 times as fast, 20 million 1.7 times."""

_NUMBERS = "numbers: Spark numbers the sorted rows, and hands to Python those that can matter"

_PUT_BACK = "counting: the tasks put back rows that only count, by the numbers of those around them"

_TASKS_SORT = "sort: by the tasks, which hold their rows in memory"
_TASKS_NUMBER = (
    "numbers: the tasks number the sorted rows, and keep those that can matter; of the others "
    "their keys and their order are moved alone"
)
_ONE_TASK_SORTS = "sort: by the task, which holds its rows in memory"
_ONE_TASK_NUMBERS = (
    "numbers: the task numbers the sorted rows, and keeps those that can matter; of the others "
    "their order alone reaches Python"
)

_CUT_BY_FILES = "cuts: by the statistics of the files' row groups; the rows between were counted"
_CUT_AT_GROUPS = (
    "cuts: where row groups of the files begin, so that their statistics tell how many rows are "
    "between"
)


class Request(NamedTuple):
    """What the caller wants of a plan."""

    ranges: int | None
    """How many time ranges to cut; None: as many as pay."""
    presorted: bool
    """Whether rows are read as they lie."""
    task: Callable[[TaskColumns, Sequence[TimeRange]], Step]
    """Makes the step in which tasks find the matches of rows with these columns and ranges."""


@frozen
class Chosen:
    """The steps from the rows that are read to what the tasks send, and a warning."""

    steps: Sequence[Step]
    warning: str = ""
    read_twice: float = 0.0
    """The share of the rows that two tasks read."""
    by_spark: bool = False
    """Whether Spark numbers the rows."""

    def numbers(self, facts: Facts) -> RowNumbers:
        """How many rows the plan reads, as far as that has been asked or Spark knows it."""
        sampled = "" if facts.sampled is None else f"about {facts.sampled:,} (by a sample)"
        if facts.counted_by_files is not None:
            read = f"{facts.counted_by_files:,} (by the statistics of the files)"
        else:
            read = "" if facts.is_filtered else sampled
        relevant = UNKNOWN if facts.is_numbered else ALL
        if facts.is_filtered:
            relevant = sampled or UNKNOWN
        hands_all = not facts.is_filtered and not self.by_spark
        twice = f", {self.read_twice:.1%} of them twice" if self.read_twice else ""
        counts_relevant = facts.is_filtered or (hands_all and not facts.is_numbered)
        return RowNumbers(
            read or facts.told_rows,
            relevant,
            f"{ALL if hands_all else MATTERING}{twice}",
            counts_read=hands_all and not twice,
            counts_relevant=counts_relevant and not twice,
        )


def choose(facts: Facts, request: Request) -> Chosen:
    """The plan of a query. Raises EventError where rows that are said to be sorted are not spread
    by their keys."""
    if request.presorted:
        return _presorted(facts, request)
    return _by_key(facts, request) if facts.by_key else _without_key(facts, request)


def _presorted(facts: Facts, request: Request) -> Chosen:
    """The events as they lie."""
    sort, task = ", ".join(sort_columns(facts.plan)), request.task(EVENTS_ALONE, ())
    if not facts.by_key:
        line = (
            "plan: one task, no sort, because presorted=True; it reads the Spark partitions one "
            f"after another and checks that they are sorted by {sort}"
        )
        return Chosen([Step(lambda rows: rows.coalesce(1), line), task])
    line = (
        "plan: no shuffle and no sort, because presorted=True; each task reads its Spark "
        f"partition and checks that it is sorted by {sort}"
    )
    spread = "keys: Spark knows that each is in one Spark partition"
    if not facts.knows_spread:
        _check_spread(facts)
        spread = (
            "keys: Spark does not know that each is in one Spark partition, so they were read once "
            "to see it"
        )
    return Chosen([told(line), told(spread), task])


def _check_spread(facts: Facts) -> None:
    if facts.key_in_parts is None:
        return
    *values, parts = facts.key_in_parts
    shown = _shown(facts.plan.source.key_columns, values)
    raise EventError(
        f"query {facts.plan.name!r}: presorted=True, but the partition {shown} lies in {parts} "
        f"Spark partitions: repartition the DataFrame by {', '.join(facts.plan.source.key_sql)} "
        "and sort it within partitions, or leave out presorted"
    )


def _by_key(facts: Facts, request: Request) -> Chosen:
    """The events of a key in one task, of a hot key in several."""
    plan, names = facts.plan, list(facts.types)
    if request.ranges is None and facts.are_few:
        line = (
            f"plan: one task reads all keys one after another, because {_hardly(facts)} "
            "(ranges=… spreads them all the same)"
        )
        return _in_order(facts, request, (), [told(line)])
    hot, why = _hot_keys(facts, request.ranges)
    keys, sort = ", ".join(plan.source.key_columns), ", ".join(sort_columns_without_order(plan))
    line = (
        f"plan: a shuffle by {keys} and a sort by {sort}; each task reads many keys one after "
        "another (PARTITION BY)"
    )
    steps = [told(line)]
    if not hot:
        steps.append(told(f"hot keys: none is cut into time ranges, because {why}"))
        return _in_order(facts, request, plan.source.key_columns, steps)
    for key in hot:
        shown = _shown(plan.source.key_columns, key.values)
        steps.append(told(f"hot key: {shown} is cut into {_ranges_line(key.ranges)}"))
    columns = TaskColumns(unused_name("range", names))
    if facts.is_numbered:
        columns = numbered_columns([*names, columns.range], columns.range)
        steps += [told(_NUMBERS), *_put_back(facts)]
    steps.append(Step(partial(cut_by_key_and_time, plan, facts.order, facts.keys, hot, columns)))
    steps.append(request.task(columns, [part for key in hot for part in key.ranges]))
    twice = _read_twice([key.ranges for key in hot])
    return Chosen(steps, read_twice=twice, by_spark=facts.is_numbered)


def _without_key(facts: Facts, request: Request) -> Chosen:
    """Time ranges, or one task."""
    plan, cut = facts.plan, _time_ranges(facts, request.ranges)
    if len(cut.ranges) < 2:
        one = told(f"plan: one task reads all events, because {cut.why}")
        return _in_order(facts, request, (), [one], cut.warning)
    reach = f"window on {facts.order.name!r} or of EVENTS"
    if plan.matching.window is None:
        reach = "matches of one event"
    line = (
        f"plan: {_ranges_line(cut.ranges)}; each is read and sorted by one task (no PARTITION BY, "
        f"{reach})"
    )
    columns = numbered_columns(list(facts.types)) if facts.is_numbered else EVENTS_ALONE
    tasks = [request.task(columns, [part]) for part in cut.ranges]
    made = partial(cut_by_time, plan, facts.order, cut.ranges, columns, tasks)
    steps = [told(cut.line), Step(made, line)]
    if facts.is_numbered:
        steps += [told(_NUMBERS), *_put_back(facts)]
    twice = _read_twice([cut.ranges])
    return Chosen(steps, read_twice=twice, by_spark=facts.is_numbered)


def _hardly(facts: Facts) -> str:
    return f"by its size it has hardly more than {facts.size.most_rows:,} events"


def _in_order(
    facts: Facts,
    request: Request,
    keys: Sequence[str],
    steps: Sequence[Step],
    warning: str = "",
) -> Chosen:
    """The rows of each key in one task, or without keys all in one, sorted there or by Spark."""
    plan, names, is_numbered = facts.plan, list(facts.types), facts.is_numbered
    too_many = _why_too_many if keys else _why_too_many_for_one
    why = why_spark_sorts(plan, facts.types) or too_many(facts)
    sort = f"sort: by Spark, because {why}"
    if why and is_numbered:
        columns = numbered_columns(names)
        numbers = Step(lambda rows: Numbering(plan, keys, columns, rows).of(), _NUMBERS)
        made = [told(sort), numbers, *_put_back(facts)]
    elif why:
        columns = EVENTS_ALONE
        made = [Step(partial(sorted_by_spark, plan, keys), sort)]
    else:
        columns = unsorted_columns(plan, names, numbered=is_numbered)
        sort, number = (
            (_TASKS_SORT, _TASKS_NUMBER) if keys else (_ONE_TASK_SORTS, _ONE_TASK_NUMBERS)
        )
        made = [Step(partial(unsorted_rows, plan, keys, columns), sort)]
        if is_numbered:
            made += [told(number), *_put_back(facts)]
    by_spark = bool(why) and is_numbered
    return Chosen([*steps, *made, request.task(columns, ())], warning, by_spark=by_spark)


def _put_back(facts: Facts) -> list[Step]:
    return [] if facts.plan.source.told_apart is None else [told(_PUT_BACK)]


def _shown(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))


def _ranges_line(parts: Sequence[TimeRange]) -> str:
    twice = _read_twice([parts])
    return f"{len(parts)} time ranges, which read {twice:.1%} of the events twice"


def _read_twice(of_keys: Sequence[Sequence[TimeRange]]) -> float:
    """How many of the events in the ranges of some keys two tasks read, as a part of all."""
    own = sum(parts[-1].first_position + parts[-1].rows for parts in of_keys)
    total = sum(part.rows for parts in of_keys for part in parts)
    return (max(1, total) - own) / max(1, own)


def _why_too_many(facts: Facts) -> str:
    """Why a task may get more rows than it can hold."""
    most = facts.counted_by_files or facts.size.most_rows
    if most is not None and most <= MOST_ROWS:
        return ""
    if why := facts.why_not_read_twice:
        return f"{why}, and it is not known how many events a task would get"
    sample = facts.key_sample
    expected = round(sample.estimated / facts.shuffle_tasks + sample.largest * sample.weight)
    return "" if expected <= MOST_ROWS else f"a task would get about {expected:,} events"


def _why_too_many_for_one(facts: Facts) -> str:
    """Why one task may get more rows than it can hold."""
    most = facts.size.most_rows
    if most is None:
        return "it is not known how many events there are"
    return "" if most <= MOST_ROWS else f"by its size it may have {most:,} events"


# --- where streams and keys are cut ---------------------------------------------------------------


class _Cut(NamedTuple):
    """Time ranges, and why there are none; a line that says how they were found, a warning, and
    whether they are even."""

    ranges: Sequence[TimeRange]
    why: str
    line: str = ""
    warning: str = ""
    is_even: bool = True


def _rows_per_range(facts: Facts) -> int:
    """The number of rows from which on a range is worth its cost."""
    if facts.plan.source.key_columns:
        return _ROWS_PER_RANGE * (_FEW_OF_A_KEY if facts.is_filtered or facts.is_numbered else 1)
    return _ROWS_PER_RANGE * (_FILTERED if facts.is_filtered else 1)


def _why_not_cut(facts: Facts) -> str:
    """Why the query cannot be run on parts of the stream, or of a key."""
    return why_not_split(facts.plan) or facts.order.why_not_cut


def _why_not_looked_at(facts: Facts) -> str:
    """Why no job looks for cuts that nobody has asked for: even a sample costs as much as to read
    a column."""
    most = facts.size.most_rows
    if most is None or most >= 2 * _rows_per_range(facts):
        return facts.why_not_read_twice
    return _hardly(facts)


def _hot_keys(facts: Facts, ranges: int | None) -> tuple[list[HotKey], str]:
    """The keys to be cut, and the reason if there are none."""
    if why := _why_not_cut(facts):
        return [], why
    if ranges == 1:
        return [], "ranges=1 was asked for"
    odd = [key for key in facts.keys if not key.fits]
    if odd:
        return [], f"the column {odd[0].name!r} is of type {odd[0].found}"
    tasks = ranges
    if tasks is None:
        if why := _why_not_looked_at(facts):
            return [], f"{why} (ranges=… looks for them all the same)"
        # Their statistics are exact, and take no job. Sizes are not: texts may be long.
        files = facts.files(1)
        if not files.unknown and files.sample.rows < 2 * _rows_per_range(facts):
            return [], f"{files.sample.rows:,} events are too few, by the statistics of the files"
        rows = facts.key_sample.estimated
        if rows < 2 * _rows_per_range(facts):
            return [], f"about {rows:,} events are too few"
        tasks = min(facts.parallelism, rows // _rows_per_range(facts))
    hot = facts.hot_keys(tasks, asked_for=ranges is not None)
    return hot, f"none has more than its share of the work of {tasks} tasks"


def _time_ranges(facts: Facts, asked: int | None) -> _Cut:
    """The ranges of the whole stream."""
    plan = facts.plan
    why = _why_not_cut(facts)
    if plan.interleaves:
        why = "with CONSUME BY ANY a match depends on those of all partitions"
    if why:
        remedy = "" if plan.source.partition_by else "; PARTITION BY would spread it"
        warning = f"query {plan.name!r} is run by one task, because {why}{remedy}"
        return _Cut([], why, warning=warning)
    if asked == 1:
        return _Cut([], "ranges=1 was asked for")
    if asked is None and (why := _why_not_looked_at(facts)):
        return _Cut([], f"{why} (ranges=… cuts it all the same)")
    tasks = facts.parallelism if asked is None else asked
    files = facts.files(tasks)
    unknown = files.unknown
    if not unknown:
        cut = _cut_by_files(facts, files, tasks, asked)
        if cut.line:
            return cut
        unknown = cut.why
    cut = _cut(facts, facts.sample(whole=asked is not None), tasks, asked)
    return cut._replace(line=f"cuts: by a sample, because {unknown}")


def _cut_by_files(facts: Facts, files: FilesTell, tasks: int, asked: int | None) -> _Cut:
    """The ranges by what files tell; no line: a sample has to cut them, for the reason."""
    plan, uncounted = facts.plan, files.uncounted
    wanted = _wanted(facts, files.sample.rows, tasks, asked)
    if wanted < 2:  # also of filtered rows, which are fewer
        return _Cut([], _too_few(files.sample.rows), _CUT_BY_FILES)
    if (known := files.cuts) is not None:
        assert plan.whole_window is not None
        reach = plan.whole_window, wanted, plan.farthest_deadline
        cuts = cuts_between_groups(known, facts.order, *reach)
        if cuts is not None:
            cut = _between(facts, cuts, known.counts(cuts), asked)
            if cut.is_even:
                is_checked = not facts.is_filtered
                ranges = [part._replace(is_checked=is_checked) for part in cut.ranges]
                return _Cut(ranges, cut.why, _CUT_AT_GROUPS)
        uncounted = "not enough row groups begin near the cuts"
    if facts.is_filtered:
        # All other cuts are guesses by statistics, which are those of all rows, filtered or not.
        return _Cut([], f"rows are filtered, and {uncounted}")
    cut = _cut(facts, files.sample, tasks, asked)
    if not cut.is_even:
        return _Cut([], "the files' statistics would cut uneven ranges")
    return cut._replace(line=f"{_CUT_BY_FILES}, because {uncounted}")


def _cut(facts: Facts, sample: Sample, tasks: int, asked: int | None) -> _Cut:
    """The ranges that a sample suggests: `asked` of them, or as many as pay for these tasks."""
    plan, wanted = facts.plan, _wanted(facts, sample.rows, tasks, asked)
    if asked is None and wanted < 2:
        return _Cut([], _too_few(sample.rows))
    assert plan.whole_window is not None
    cuts = cuts_for(sample, facts.order, plan.whole_window, wanted, plan.farthest_deadline)
    return _between(facts, cuts, facts.counted(cuts.borders), asked)


def _between(facts: Facts, cuts: Cuts, counts: Sequence[int], asked: int | None) -> _Cut:
    """The ranges between cuts."""
    window = facts.plan.whole_window
    assert window is not None
    found = (worthwhile if asked is None else ranges_of)(cuts, counts, window)
    why = (
        "the window holds too large a part of the events"
        if cuts.seams
        else f"{facts.order.name!r} has too few values to cut between"
    )
    return _Cut(found, why, is_even=is_even(cuts, counts))


def _wanted(facts: Facts, rows: int, tasks: int, asked: int | None) -> int:
    """The number of ranges: `asked`, or as many as pay for these rows and tasks."""
    return min(tasks, rows // _rows_per_range(facts)) if asked is None else asked


def _too_few(rows: int) -> str:
    return f"about {rows:,} events are too few for more"
