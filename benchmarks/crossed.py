"""What crossing two features costs: each cell beside the same query without the added word.

    python benchmarks/crossed.py [--events N] [--record]

Events of ten types, each as likely as the others, one a second, with an id from 0 to 99 and a value
from 0 to 1. Every cell names a query, the same query without the feature, and how both are run:
`match_table` unless it says otherwise. Where the added word makes the answer larger (a join's
union, all queries of a file), what it stands beside has as much work, and the cell says so.

A ratio is CPU time of the process with the word through that without, the least of five turns each
(of two where a run takes a second); the first turn, which compiles, is not counted. The goal is 100
for every cell, and a cell above 10 has its reason beside it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from common import calibrate
from rates import run_alone

import celc

GOAL = 100.0
LEAST = 0.2  # s of CPU, for a figure
TYPES = "ABCDEFGHIJ"
_ATTRIBUTES = "id: INT, v: DOUBLE, ts: TIMESTAMP"
_START = 1_767_225_600_000_000
_SECOND = 1_000_000
RULES = pa.table({"id": pa.array(range(0, 100, 10), pa.int32())})


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, by its clauses.

    times: what the stream says of the time of an event. before: declarations and queries before
    it. options: those of the compiler; given: those of the call. route: what runs it.
    """

    where: str
    select: str = "*"
    rest: str = "WITHIN 100 SECONDS"
    streams: str = "S"
    times: str = ""
    before: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    route: str = "match_table"

    def text(self) -> str:
        """All of the file."""
        last = ", last: TIMESTAMP" if self.times else ""
        events = ", ".join(f"EVENT {name} {{ {_ATTRIBUTES}{last} }}" for name in TYPES)
        each = "FOR EACH rule" if "PARAMETERS" in self.before else ""
        return (
            f"CREATE STREAM S {self.times} {{ {events} }}\n{self.before}"
            f"QUERY q: SELECT {self.select} FROM {self.streams} {each}\n"
            f"WHERE {self.where} {self.rest}\n"
        )

    def run(self, events: pa.Table) -> Callable[[], object]:
        """Runs it once, and returns how many rows it has found."""
        order = {} if self.times else {"order_by": "ts"}
        matcher = celc.compile(self.text(), **order | self.options)
        return partial(_ROUTES[self.route], matcher, events, self.given)


def _table(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    return len(matcher.queries["q"].match_table(events, **given))


def _arrow(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    return sum(map(len, matcher.queries["q"].match_arrow(events.to_batches(), **given)))


def _pandas(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    return len(matcher.queries["q"].match_pandas(events.to_pandas(), **given))


def _compact(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    found = matcher.queries["q"].match_compact(events, **given)
    return sum(map(len, found)) if not isinstance(found, pa.Table) else len(found)


def _all(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    return sum(map(len, matcher.match_all_table(events, **given).values()))


def _alone(matcher: Any, events: pa.Table, given: dict[str, Any]) -> int:
    return sum(len(query.match_table(events, **given)) for query in matcher.queries.values())


_ROUTES = {
    "match_table": _table,
    "match_arrow": _arrow,
    "match_pandas": _pandas,
    "match_compact": _compact,
    "match_all_table": _all,
    "each alone": _alone,
}


# --- cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """Two queries. share: of the events that a run has. reason: why it is above 10."""

    asked: Asked
    beside: Asked
    share: float = 1.0
    reason: str = ""


BELOW = "QUERY below: SELECT x.id AS id FROM S WHERE (A AS x ; B AS y) WITHIN 20 SECONDS\n"
PARAMETERS = "PARAMETERS rule { id: INT }\n"
TEXTS = """AGGREGATE most(v: STRING): STRING
  STATE top: STRING = NULL
  STEP top = GREATEST(top, v)
  RESULT top
"""
LONGS = TEXTS.replace("STRING", "INT")
CHOICES = ("NXT", "LAST", "MAX", "STRICT", "ANY", "FIRST", "LONGEST", "FIRST DISJOINT")


def cells() -> dict[str, Cell]:
    """All cells, in the order of the features that they cross."""
    return {
        **_late(),
        **_readers(),
        **_simultaneous(),
        **_rows_of_parameters(),
        **_own_aggregates(),
        **_compact_cells(),
        **_uncertain(),
    }


_REASONS = {
    "absence of FOR": "found by the definition: rows of queries can overlap",
    "absence between": "worlds of the events between decide",
    "UNLESS": "worlds of the events between decide",
    "ALL, uncertain": "worlds of the events of both sides decide",
}


def _reason_of(name: str) -> str:
    return next((told for word, told in _REASONS.items() if name.startswith(word)), "")


def _chosen(name: str, beside: Asked, choices: tuple[str, ...]) -> dict[str, Cell]:
    """The query with each choice after SELECT."""
    changed = {choice: _with(beside, select=f"{choice} {beside.select}") for choice in choices}
    return {f"{choice}, {name}": Cell(asked, beside) for choice, asked in changed.items()}


def _with(asked: Asked, **changed: Any) -> Asked:
    given = {name: getattr(asked, name) for name in Asked.__slots__}
    return Asked(**given | changed)


def _late() -> dict[str, Cell]:
    late = Asked("A AS x ; B AS y ; !C FOR 30 SECONDS")
    limited = _with(late, rest=f"{late.rest} LIMIT 2")
    return {
        **_chosen("absence at the end", late, CHOICES),
        "LIMIT, absence at the end": Cell(limited, late),
    }


def _readers() -> dict[str, Cell]:
    reader = Asked("below AS r ; C AS c", streams="below, S", before=BELOW)
    where = {
        "absence of FOR before": "!D FOR 9 SECONDS ; below AS r ; C AS c",
        "absence of FOR after": "below AS r ; C AS c ; !D FOR 9 SECONDS",
        ":": "below AS r : C AS c",
        ":+": "(below:+ AS r) ; C AS c",
    }
    found = {
        f"{name}, reader": Cell(_with(reader, where=formula), reader, reason=_reason_of(name))
        for name, formula in where.items()
    }
    found |= _chosen("reader", reader, CHOICES)
    found["LIMIT, reader"] = Cell(_with(reader, rest=f"{reader.rest} LIMIT 2"), reader)
    every = _with(reader, route="match_all_table")
    alone = _with(reader, route="each alone")
    return found | {"all queries of a file, reader": Cell(every, alone)}


def _simultaneous() -> dict[str, Cell]:
    ties = Asked("A AS x ; B AS y ; C AS z", options={"ties": "simultaneous"})
    return _chosen("simultaneous", ties, ("FIRST", "LONGEST", "FIRST DISJOINT"))


def _rows_of_parameters() -> dict[str, Cell]:
    each = Asked(
        "(A AS x ; B AS y) FILTER y.id = rule.id",
        before=PARAMETERS,
        given={"rule": RULES},
    )
    below = Asked(
        "(below AS r ; C AS c) FILTER c.id = rule.id",
        streams="below, S",
        before=PARAMETERS + BELOW,
        given={"rule": RULES},
    )
    ways = ("match_arrow", "match_pandas", "match_compact")
    found = {f"FOR EACH, {way}": Cell(_with(each, route=way), each) for way in ways}
    every, alone = _with(each, route="match_all_table"), _with(each, route="each alone")
    found["reader, FOR EACH"] = Cell(below, each)
    return found | {"FOR EACH, all queries of a file": Cell(every, alone)}


def _own_aggregates() -> dict[str, Cell]:
    whole = Asked("A AS x ; B+ AS y ; C", "most(y.id) AS m", "WITHIN 30 SECONDS", before=LONGS)
    texts = _with(whole, select="most(CAST(y.id AS STRING)) AS m", before=TEXTS)
    return {"STRING, own aggregate": Cell(texts, whole, 0.2)}


def _compact_cells() -> dict[str, Cell]:
    rising = "(A AS a)+ FILTER a.v > PREV(a.v)"
    narrow = "WITHIN 100 SECONDS"
    plain = Asked("(A AS a)+", rest=narrow, route="match_compact")
    listed = Asked(rising, rest=narrow)
    graphs = _with(listed, route="match_compact")
    total = _with(listed, select="TOTAL COUNT(*) AS n, SUM(a.v) AS s")
    return {
        "neighbours, compact": Cell(graphs, plain),
        "neighbours, COLLAPSED": Cell(
            _with(listed, select="COLLAPSED *"),
            _with(plain, select="COLLAPSED *", route="match_table"),
        ),
        "COUNT(PRIOR …), COLLAPSED": Cell(
            _with(listed, where="(A AS a)+ FILTER COUNT(PRIOR a) < 5", select="COLLAPSED *"),
            _with(plain, select="COLLAPSED *", route="match_table"),
        ),
        "neighbours, TOTAL": Cell(
            total,
            _with(total, where="(A AS a)+"),
            reason="a graph for each end, which totals of plain events need not",
        ),
    }


def _uncertain() -> dict[str, Cell]:
    uncertain = Asked(
        "A AS x ; B AS y", rest="WITHIN 20 SECONDS", times="UNCERTAIN [ts, last] BY 1 SECOND"
    )
    where = {
        "absence between": "A AS x ; !C ; B AS y",
        "UNLESS": "(A AS x ; B AS y) UNLESS C",
        "ALL": "A AS x ALL B AS y",
        "AND": "(A AS x ; B AS y) AND (A AS x ; B AS y)",
        "?": "A AS x ; C? ; B AS y",
        "WITHIN[…]": "WITHIN[9 SECONDS] (A AS x ; B AS y)",
    }
    found = {
        f"{name}, uncertain time": Cell(
            _with(uncertain, where=formula), uncertain, 0.2, _reason_of(name)
        )
        for name, formula in where.items()
    }
    total = _with(uncertain, select="TOTAL COUNT(*) AS n")
    each = _with(
        uncertain,
        where="(A AS x ; B AS y) FILTER y.id = rule.id",
        before=PARAMETERS,
        given={"rule": RULES},
    )
    found["TOTAL COUNT(*), uncertain time"] = Cell(total, uncertain, 0.2)
    found["FOR EACH, uncertain time"] = Cell(each, uncertain, 0.2)
    return found


# --- measuring ------------------------------------------------------------------------------------


def stream(events: int) -> pa.Table:
    """One event a second; `last` is four seconds after it."""
    random = np.random.default_rng(5)
    times = _START + np.arange(events) * _SECOND
    kinds = random.integers(0, len(TYPES), events).astype(np.int32)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array([*TYPES])),
            "id": pa.array(random.integers(0, 100, events), pa.int32()),
            "v": random.random(events),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "last": pa.array(times + 4 * _SECOND, pa.timestamp("us", tz="UTC")),
        }
    )


def _seconds(run: Callable[[], object]) -> float:
    """The CPU seconds of a run: of a short one, the mean of as many as take a fifth of a second,
    since what one before has left in memory makes it two or three times slower."""
    gc.collect()
    start, runs, spent = time.process_time(), 0, 0.0
    while spent < LEAST:
        run()
        runs += 1
        spent = time.process_time() - start
    return spent / runs


def in_turns(asked: Callable[[], object], beside: Callable[[], object]) -> tuple[float, float]:
    """The least CPU seconds of each."""
    first = max(_seconds(asked), _seconds(beside)) and max(_seconds(asked), _seconds(beside))
    turns = [(_seconds(asked), _seconds(beside)) for _ in range(5 if first < 1 else 2)]
    return min(with_it for with_it, _ in turns), min(without for _, without in turns)


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    table, figures = stream(events), {}
    for name, cell in cells().items():
        part = table.slice(0, round(events * cell.share))
        asked, beside = cell.asked.run(part), cell.beside.run(part)
        rows = asked()
        seconds, without = in_turns(asked, beside)
        ratio = seconds / without
        print(f"{name:40} {ratio:7.2f}  {seconds:8.3f} s, {rows:,} rows  {cell.reason}", flush=True)
        figures[name] = {
            "ratio": round(ratio, 3),
            "seconds": round(seconds, 4),
            "rows": rows,
            "events": len(part),
            "reason": cell.reason,
        }
    missed = [name for name, figure in figures.items() if figure["ratio"] > GOAL]
    print(f"above {GOAL:g}: {', '.join(missed) or 'none'}")
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("crossed", __doc__, 100_000, measure)
