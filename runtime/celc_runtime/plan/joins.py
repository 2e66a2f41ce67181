"""A query as joins: its SQL in parts, and how they become one statement.

The compiler writes the parts that depend only on the query: the scans of a table `events`, and
their joins. The table `events` itself also depends on the options of a call (the order, the
tiebreak, the column of types). So its text is written here, when somebody asks for the statement.
"""

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan, sql_text

SPARK, DUCKDB = "spark", "duckdb"

_DAY = 86_400_000_000
_TIED = "two events of a partition are equal in the order, so none comes before the other: {}"
_NULL = "the order column {} is NULL; every event needs a place in the order"
_UNTYPED = "the column {} of event types is NULL; every event needs a type"
_VARIABLE = "${"
"""The beginning of a variable of Spark. A text can be written without it, a name cannot."""


class NotJoined(ValueError):
    """A query cannot be run as joins. The message says why."""


@frozen(kw_only=True)
class Joins:
    """A query as joins. The statement is `scans`, then `numbered` or `plain`, then `found`."""

    scans: str = ""  # the tables of events, and SELECT without its columns
    numbered: str = ""  # the columns of matches with positions
    plain: str = ""  # the columns of matches without positions
    found: str = ""  # FROM, with its joins and conditions
    place: str = ""  # the column of `events` with the position, or with what orders the events
    time: str = ""  # the column of `events` with the first order column
    measure: str = ""  # the column of `events` with the time as a whole number, for windows
    keys: tuple[str, ...] = ()  # the columns of `events` with the keys of PARTITION BY
    unit: str = ""  # as `Window.unit`, of the windows on the first order column; empty: none
    attributes: tuple[str, ...] = ()  # the attributes that these windows name
    counts: bool = False  # whether the joins need positions even if the output has none
    decided_by_clock: bool = False
    """Whether a table `clock` has the time that decides matches with an absence at their end."""
    decided_by_ends: bool = False
    """Whether a table `part_ends` has the places that do, for each partition."""
    latest: str = ""  # the column of these tables
    reads: tuple[tuple[str, str], ...] = ()  # the attributes in the text, with their types
    bands: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """For each condition `ABS(x.a - y.b) < c` on floating numbers that joins two events: the types
    of both, the earlier event first. If either can be the earlier one, both ways."""
    untied: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """The `bands` whose events no equality joins."""
    why_not: str = ""  # why the query cannot be run as joins; then everything else is empty


NO_JOINS = Joins(why_not="its module was compiled without them")


def why_not_joined(plan: Plan, joins: Joins, dialect: str = SPARK) -> str:
    """Why a query, with its options, cannot be run as joins; empty if it can."""
    if joins.why_not:
        return joins.why_not
    if plan.answer.match_id is not None:
        return "match_id is computed in Python"
    if not plan.source.order_by:
        return (
            "it has no order column, and a table of SQL has no order of its own: compile it with "
            "--order-by, or use with_options(order_by=…)"
        )
    first = plan.source.order_by[0]
    for name in joins.attributes:
        if name != first:
            return f"its order is {first!r}, and a window is measured on {name!r}"
    if joins.unit and plan.source.type_of(first) in ("FLOAT", "DOUBLE"):
        return f"a window is measured on {first!r}, whose values are floating numbers"
    names = [plan.source.type_name, *(name for name, _ in joins.reads), *plan.source.partition_by]
    for name in [*names, *_order_names(plan)]:
        if dialect == SPARK and _VARIABLE in name:
            return f"Spark puts variables in the place of '{_VARIABLE}' in the name {name!r}"
    if plan.source.chosen_keys and dialect != SPARK:
        return (
            "it has a key that is chosen by the type of an event, whose SQL is there for Spark "
            "alone"
        )
    if plan.source.rest:
        return "a statement cannot tell which event types EVENT OTHER { } stands for"
    if plan.source.derived and dialect != SPARK:
        return "it computes values of single events, whose SQL is there for Spark alone"
    return ""


def joins_text(
    plan: Plan, joins: Joins, table: str, dialect: str = SPARK, *, typed: bool = True
) -> str:
    """The whole statement for a table of events; raises NotJoined.

    table: what follows FROM. typed: whether it has the column of event types even if the query does
    not need it.
    """
    if why := why_not_joined(plan, joins, dialect):
        raise NotJoined(f"query {plan.name!r} cannot be run as joins: {why}")
    table = _with_derived(plan, table, typed=typed)
    numbered = plan.answer.positions or joins.counts
    shown = joins.numbered if plan.answer.positions else joins.plain
    head = [
        *_events(plan, joins, table, dialect, numbered=numbered, typed=typed),
        "-- fails where the order of events is not certain",
        *_order_check(plan, table, dialect, typed=typed),
        *_clocks(plan, joins, dialect),
    ]
    return "\n".join(["WITH", *head, joins.scans, shown, joins.found])


def _with_derived(plan: Plan, table: str, *, typed: bool) -> str:
    """A table with the columns that are derived, in parentheses where there are some."""
    source = plan.source
    if not source.derived:
        return table
    names = [source.type_name] if source.type_column or typed else []
    names += ["stream"] if source.stream_column else []
    names += [one.name for one in source.input_attributes]
    names += [one for one in source.tiebreak if one not in names]
    # A column of the table that is called like a derived one is none of the query's.
    kept = [_column(name, SPARK) for name in names if name not in source.made]
    if source.type_column and source.type_name != "type":
        # The expressions call the column with the types of events so.
        table = f"(SELECT *, {_column(source.type_name, SPARK)} AS type FROM {table})"
    made = [f"{one.sql} AS {_column(one.name, SPARK)}" for one in source.derived]
    return f"(SELECT {', '.join([*kept, *made])} FROM {table})"


def table_name(name: str, dialect: str) -> str:
    """A table as it is written after FROM; dots separate a catalog, a schema and its name."""
    return ".".join(_column(part, dialect) for part in name.split("."))


def _events(
    plan: Plan, joins: Joins, table: str, dialect: str, *, numbered: bool, typed: bool
) -> list[str]:
    first = plan.source.order_by[0]
    read = [name for name, _ in joins.reads]
    columns = [_read(plan, name, dialect) for name in read]
    if plan.source.type_column or typed:
        renamed = "" if plan.source.type_name == "type" else " AS type"
        columns.insert(0, f"{_column(plan.source.type_name, dialect)}{renamed}")
    if plan.source.stream_column:
        columns.insert(0, "stream")
    keys = zip(joins.keys, plan.source.key_columns, _key_values(plan, dialect), strict=True)
    for name, key, sql in keys:
        if name not in read:
            columns.append(f"{_without_sign(plan, key, sql)} AS {_column(name, dialect)}")
    columns.append(f"{_column(first, dialect)} AS {joins.time}")
    if joins.unit:
        columns.append(f"{_measure(plan, first, dialect)} AS {joins.measure}")
    order = _order(plan, dialect)
    if numbered or (dialect == DUCKDB and len(order) > 1):
        window = f"{_partition(plan, dialect)}ORDER BY {', '.join(_sorted(plan, dialect))}"
        # Spark's ROW_NUMBER has only 32 bits.
        columns.append(f"COUNT(*) OVER ({window} ROWS UNBOUNDED PRECEDING) - 1 AS {joins.place}")
        said = f"{joins.place}: their numbers in the order, from 0"
    else:
        value = order[0] if len(order) == 1 else f"STRUCT({', '.join(order)})"
        columns.append(f"{value} AS {joins.place}")
        said = f"{joins.place}: what puts them in order"
    if joins.unit:
        meant = "in microseconds" if joins.unit == "MICROSECONDS" else "as a whole number"
        said += f"; {joins.measure}: {joins.time} {meant}"
    return [
        f"-- the events; {said}",
        "events AS (",
        "  SELECT",
        *(
            f"    {one}{',' if number < len(columns) else ''}"
            for number, one in enumerate(columns, 1)
        ),
        f"  FROM {table}",
        *_where(plan, dialect, typed=typed),
        "),",
    ]


def _read(plan: Plan, name: str, dialect: str) -> str:
    """An attribute as all routes read it: keys have no −0.0."""
    column = _column(name, dialect)
    if name not in plan.source.key_attributes:
        return column
    found = _without_sign(plan, name, column)
    return column if found == column else f"{found} AS {column}"


def _without_sign(plan: Plan, name: str, sql: str) -> str:
    """The value of a key with 0.0 for −0.0, which equals it."""
    if plan.source.type_of(name) not in ("FLOAT", "DOUBLE"):
        return sql
    return f"CASE WHEN {sql} = 0 THEN 0 ELSE {sql} END"


def _order_check(plan: Plan, table: str, dialect: str, *, typed: bool) -> list[str]:
    """What is NULL is seen by the groups, so that they have nothing but rows to count."""
    shown = ["COUNT(*) AS copies"]
    tests = [("MAX(copies) > 1", _TIED.format(", ".join(_order_names(plan))))]
    groups = [*_key_values(plan, dialect), *_order(plan, dialect)]
    for place, name in reversed([*enumerate(plan.source.order_by, start=1)]):
        unplaced = "unplaced" if len(plan.source.order_by) == 1 else f"unplaced_{place}"
        shown.insert(0, f"{_column(name, dialect)} IS NULL AS {unplaced}")
        tests.insert(0, (f"BOOL_OR({unplaced})", _NULL.format(name)))
    if plan.source.type_column or typed:
        untyped = f"{_column(plan.source.type_name, dialect)} IS NULL"
        shown.insert(0, f"{untyped} AS untyped")
        tests.insert(0, ("BOOL_OR(untyped)", _UNTYPED.format(plan.source.type_name)))
        groups.insert(0, untyped)
    fails = "RAISE_ERROR" if dialect == SPARK else "ERROR"
    where = _where(plan, dialect, typed=typed, with_null=True)
    return [
        "order_check AS (",
        "  SELECT CASE",
        *(f"    WHEN {test} THEN {fails}({_text(why, dialect)})" for test, why in tests),
        "    ELSE TRUE",
        "  END AS passed",
        "  FROM (",
        f"    SELECT {', '.join(shown)}",
        f"    FROM {table}",
        *(f"  {line}" for line in where),
        f"    GROUP BY {', '.join(groups)}",
        "  ) AS places",
        "),",
    ]


def _clocks(plan: Plan, joins: Joins, dialect: str) -> list[str]:
    """The tables that decide matches with an absence at their end."""
    clock, lines = plan.choice.clock, []
    over, nothing = plan.choice.at_end != "open", "CAST(NULL AS BIGINT)"
    all_decided = "no more events come, so that each match is decided"
    if joins.decided_by_clock:
        said = "the latest event; matches with an earlier deadline are decided"
        latest, table = f"MAX({joins.measure})", ["  FROM events"]
        if over:
            said, latest, table = all_decided, nothing, []
        elif clock is not None:
            said = "the clock as it was given; matches with an earlier deadline are decided"
            latest, table = f"CAST({_measured(plan, clock)} AS BIGINT)", []
        lines += [f"-- {said}", "clock AS (", f"  SELECT {latest} AS {joins.latest}", *table, "),"]
    if joins.decided_by_ends:
        said = all_decided if over else "the last event of each partition, which decides matches"
        keys = [_column(name, dialect) for name in joins.keys]
        columns = [*keys, f"{nothing if over else f'MAX({joins.place})'} AS {joins.latest}"]
        lines += [f"-- {said}", "part_ends AS (", f"  SELECT {', '.join(columns)}"]
        lines += ["  FROM events"] if keys or not over else []
        lines += [f"  GROUP BY {', '.join(keys)}"] if keys else []
        lines.append("),")
    return lines


def _measured(plan: Plan, clock: float) -> int:
    """A clock as `measure` has it."""
    first = plan.source.type_of(plan.source.order_by[0])
    return int(clock) * _DAY if first == "DATE" else int(clock)


def _where(plan: Plan, dialect: str, *, typed: bool, with_null: bool = False) -> list[str]:
    """The rows of declared types. Only these are events."""
    if not (plan.source.type_column or typed):
        return []
    types = _column(plan.source.type_name, dialect)
    if plan.source.stream_column:
        known = " OR ".join(
            f"(stream = {_text(stream, dialect)} AND {types} = {_text(name, dialect)})"
            for stream, name in plan.source.declared_types
        )
    else:
        names = ", ".join(_text(name, dialect) for _, name in plan.source.declared_types)
        known = f"{types} IN ({names})"
    return [f"  WHERE {known}" + (f" OR {types} IS NULL" if with_null else "")]


def _measure(plan: Plan, first: str, dialect: str) -> str:
    """The first order column as a whole number."""
    column = _column(first, dialect)
    match plan.source.type_of(first):
        case "TIMESTAMP":
            return f"UNIX_MICROS({column})" if dialect == SPARK else f"EPOCH_US({column})"
        case "DATE" if dialect == SPARK:
            return f"UNIX_DATE({column}) * CAST({_DAY} AS BIGINT)"
        case "DATE":
            return f"({column} - DATE '1970-01-01') * CAST({_DAY} AS BIGINT)"
        case _:
            return f"CAST({column} AS BIGINT)"


def _order_names(plan: Plan) -> list[str]:
    """The columns that order the events of a partition."""
    return [*dict.fromkeys([*plan.source.order_by, *plan.source.tiebreak])]


def _order(plan: Plan, dialect: str) -> list[str]:
    return [_column(name, dialect) for name in _order_names(plan)]


def _sorted(plan: Plan, dialect: str) -> list[str]:
    last = "" if dialect == SPARK else " NULLS FIRST"
    return [f"{one}{last}" for one in _order(plan, dialect)]


def _partition(plan: Plan, dialect: str) -> str:
    keys = _key_values(plan, dialect)
    return f"PARTITION BY {', '.join(keys)} " if keys else ""


def _key_values(plan: Plan, dialect: str) -> list[str]:
    source = plan.source
    chosen = {key.place for key in source.chosen_keys}
    return [
        sql if place in chosen else _column(name, dialect)
        for place, (name, sql) in enumerate(zip(source.partition_by, source.key_sql, strict=True))
    ]


def _column(name: str, dialect: str) -> str:
    mark = "`" if dialect == SPARK else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def _text(text: str, dialect: str) -> str:
    return sql_text(text) if dialect == SPARK else "'" + text.replace("'", "''") + "'"
