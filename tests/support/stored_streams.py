"""The streams of `checkpoints/`: how one is written, read, and gone on with.

    python tests/support/stored_streams.py          # writes those that are missing
    python tests/support/stored_streams.py NAME …   # writes these anew; its README says when to

What is written is the text of a query, the micro-batches of a stream, and the state in their midst
as Spark's store has it, without Spark. So whoever reads it needs nothing of the version that wrote
it.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.plan.schemas import input_schema
from celc_runtime.program import Rows
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from celc_runtime.stream.stored import sections
from celc_runtime.stream.stored.texts import bytes_of, text_of
from engines import interpreted, only_query, table_of
from parameters import rows_table
from places import TESTS
from streams_by_hand import Operator, instant

import celc

FOLDER = TESTS / "checkpoints"

Events = list[dict[str, Any]]
"""Events, or rows of a table of parameters; a TIMESTAMP in milliseconds after 1970."""


@dataclass
class Step:
    """A micro-batch: the watermark that it sees, the events that come, and the rows that come out,
    as texts in alphabetical order."""

    watermark: int
    events: Events
    rows: list[str]


@dataclass
class Bucket:
    """The state of a bucket, as Spark's store has it: place → text; and the times of its timers."""

    timers: list[int]
    pieces: dict[str, str]


@dataclass
class StoredStream:
    """A stream, with the state that its buckets had behind the micro-batches of `before`.

    options: of `StreamOptions`. positions: whether rows have them. rules: the table of a query FOR
    EACH. rest: the rows that come when the stream is finished behind the micro-batches of `then`.
    """

    written_by: str
    query: str
    order_by: list[str] | None
    options: dict[str, Any]
    positions: bool = True
    rules: Events | None = None
    before: list[Step] = field(default_factory=list)
    state: dict[str, Bucket] = field(default_factory=dict)
    then: list[Step] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    def compiled(self) -> CompiledQuery:
        """The query, as the code of today compiles it."""
        with interpreted():
            found = only_query(celc.compile(self.query, order_by=self.order_by, tiebreak="row"))
        return found.with_options(positions=self.positions)

    def table(self, query: CompiledQuery, events: Events) -> pa.Table | None:
        """Events as a table; None where there are none."""
        times = {f.name for f in input_schema(query.plan) if pa.types.is_timestamp(f.type)}
        typed = [
            {name: instant(value) if name in times else value for name, value in event.items()}
            for event in events
        ]
        return table_of(query.plan, typed) if typed else None

    def operator(self, query: CompiledQuery) -> Operator:
        """The operator of the stream, before its first micro-batch."""
        rules = self._rules(query)
        options = StreamOptions(
            **{"tiebreak_types": {"row": "LONG"}, **self.options},
            rules=0 if rules is None else hash_of_rows(rules),
        )
        return Operator(query, options, rng=random.Random(0), rules=rules)

    def restarted(self, query: CompiledQuery) -> Operator:
        """The operator as it is started again from the state."""
        found = self.operator(query)
        found.watermark = self.before[-1].watermark
        for label, bucket in self.state.items():
            pieces = {int(place): bytes_of(text) for place, text in bucket.pieces.items()}
            found.headers[int(label)] = pieces.pop(-1)
            found.segments[int(label)] = pieces
            if bucket.timers:
                found.timers[int(label)] = {*bucket.timers}
        return found

    def told(self, query: CompiledQuery, operator: Operator, steps: Iterable[Step]) -> list[Any]:
        """The rows of each micro-batch, and those of the end of the stream."""
        found = [
            texts_of(operator.advance(self.table(query, step.events), step.watermark))
            for step in steps
        ]
        return [*found, texts_of(operator.finish())]

    def whole_answer(self, query: CompiledQuery) -> list[str]:
        """The rows of a table with all events of the stream."""
        events = [event for step in [*self.before, *self.then] for event in step.events]
        rules = {}
        if query.plan.source.parameters is not None and self.rules is not None:
            rules = {query.plan.source.parameters.name: rows_table(query, self.rules)}
        table = self.table(query, events)
        assert table is not None
        found = query.with_options(at_end="closed").match_table(table, **rules)
        return texts_of(found.to_pylist())

    def _rules(self, query: CompiledQuery) -> Rows | None:
        parameters = query.plan.source.parameters
        if parameters is None or self.rules is None:
            return None
        return in_one_order(rows_of(query.name, parameters, rows_table(query, self.rules)))


def texts_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as texts, in alphabetical order; NULLs are left out."""
    return sorted(
        json.dumps(
            {name: value for name, value in row.items() if value is not None},
            ensure_ascii=False,
            default=str,
        )
        for row in rows
    )


def names() -> list[str]:
    """The names of the streams that have been written."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def stored(name: str) -> StoredStream:
    """One that has been written."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for part in ("before", "then"):
        found[part] = [Step(**step) for step in found[part]]
    found["state"] = {label: Bucket(**bucket) for label, bucket in found["state"].items()}
    return StoredStream(**found)


# --- writing --------------------------------------------------------------------------------------

_DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP },
  EVENT B { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP },
  EVENT C { id: INT, k: STRING, v: DOUBLE, n: LONG, time: TIMESTAMP }
}
PARAMETERS rule { id: INT, least: DOUBLE }
"""
_PAIR = "(A AS x ; B AS y) FILTER y.v >= x.v"
_WINDOW = "WITHIN 200 MILLISECONDS"
_SILENT = "A AS x ; !B FOR 150 MILLISECONDS"

_QUERIES = {
    "plain": f"SELECT x[v], y[n] WHERE {_PAIR} {_WINDOW}",
    "keys": f"SELECT x, y WHERE {_PAIR} PARTITION BY k, v {_WINDOW}",
    "keys-consumed": "SELECT MAX * WHERE A+ ; B PARTITION BY k, id WITHIN 9 EVENTS "
    "CONSUME BY PARTITION",
    "keys-forgotten": "SELECT x, y WHERE A AS x ; B AS y PARTITION BY id",
    "keys-in-sections": f"SELECT x[v] WHERE {_SILENT} PARTITION BY k, id",
    "without-positions": f"SELECT x, y WHERE {_PAIR} {_WINDOW}",
    "contexts": "SELECT * WHERE NXT(A ; B+) ; C PARTITION BY k WITHIN 400 MILLISECONDS",
    "window-of-events": "SELECT x, y WHERE A AS x : (B OR C)+ : A AS y PARTITION BY k "
    "WITHIN 6 EVENTS",
    "window-of-numbers": f"SELECT x, y WHERE {_PAIR} PARTITION BY k WITHIN 9 [n]",
    "absence-before": f"SELECT x, y WHERE !C FOR 50 MILLISECONDS ; {_PAIR} PARTITION BY k "
    f"{_WINDOW}",
    "deadlines": f"SELECT x[v] WHERE {_SILENT} PARTITION BY k",
    "deadlines-from-starts": f"SELECT LAST * WHERE A+ ; !B PARTITION BY k {_WINDOW}",
    "totals": "SELECT TOTAL COUNT(*) AS number, SUM(y.n) AS sum, AVG(x.v) AS mean "
    f"WHERE {_PAIR} PARTITION BY k {_WINDOW} PER 300 MILLISECONDS",
    "totals-of-ends": f"SELECT TOTAL COUNT(*) AS number WHERE {_SILENT} PARTITION BY k PER END",
    "totals-of-partitions": "SELECT TOTAL COUNT(*) AS number, SUM(y.n) AS sum, AVG(x.v) AS mean, "
    f"MAX(x.v) AS most WHERE A AS x ; B AS y PARTITION BY k {_WINDOW} PER PARTITION",
    "collapsed": f"SELECT COLLAPSED * WHERE {_PAIR} PARTITION BY k {_WINDOW}",
    "first-disjoint": f"SELECT FIRST DISJOINT x, y WHERE {_PAIR} PARTITION BY k {_WINDOW}",
    "longest": f"SELECT LONGEST x, y WHERE {_PAIR} PARTITION BY k {_WINDOW}",
    "for-each": "SELECT x, y FROM S FOR EACH rule WHERE (A AS x ; B AS y) FILTER x.id = rule.id "
    f"AND y.id = rule.id AND y.v >= rule.least {_WINDOW}",
    "for-each-deadlines": "SELECT x FROM S FOR EACH rule WHERE (A AS x ; !(B AS y FILTER "
    "y.id = x.id) FOR 150 MILLISECONDS) FILTER x.id = rule.id AND x.v >= rule.least",
    "uncertain": "SELECT x, y WHERE A AS x ; B AS y PARTITION BY k WITHIN 100 MILLISECONDS",
    "record-6": f"SELECT x, y WHERE (A AS x ; B AS y) FILTER x.v > 0.7 AND y.v >= x.v "
    f"PARTITION BY k {_WINDOW}",
}
"""Each keeps its state in a way of its own."""

_DELAY = 45
"""Milliseconds between the latest event and the watermark."""


def _planned(name: str) -> StoredStream:
    """A stream before its first micro-batch."""
    declared = _DECLARED
    order_by: list[str] | None = ["time"]
    if name == "uncertain":
        declared = declared.replace(
            "STREAM S", "STREAM S UNCERTAIN [time, until] BY 1 MILLISECONDS"
        )
        declared = declared.replace("time: TIMESTAMP", "time: TIMESTAMP, until: TIMESTAMP")
        order_by = None
    options: dict[str, Any] = {"buckets": 2 if "PARTITION BY" in _QUERIES[name] else 1}
    if name == "keys-forgotten":
        options["key_ttl"] = 90_000
    if name == "keys-in-sections":
        options["buckets"] = 1
    found = StoredStream(
        f"celc {celc.__version__}",
        declared + _QUERIES[name] + "\n",
        order_by,
        options,
        positions=name != "without-positions" and not name.startswith("for-each"),
    )
    if name.startswith("for-each"):
        rules = (1, 0.5), (2, 0.5), (2, 1.0), (3, 1.0), (3, None)
        found.rules = [{"id": id, "least": least} for id, least in rules]
    return found


def _micro_batches(rng: random.Random, name: str) -> Iterable[Step]:
    """Events of different times, some of them before earlier ones, and the watermarks behind them,
    at which nothing is due."""
    in_rows = name in ("contexts", "window-of-events")  # one event behind another
    keys = [None, "ç"] if in_rows else [None, "a", "b", "ç"]
    keys = [*"abcdefghijkl"] if name == "keys-in-sections" else keys
    values = (-0.0, 0.0, 2.0, None) if name == "keys" else (0.5, 1.0, 2.0, None)
    types = "ABBC" if in_rows else "AAABC" if "deadlines" in name else "AABBC"
    events: Events = []
    for number in range(60 if name != "keys-in-sections" else 120):
        time = 10 * number + 1000
        events.append(
            {
                "type": rng.choice(types),
                "id": rng.choice((1, 2, 3, None)),
                "k": rng.choice(keys),
                "v": rng.choice(values),
                "n": number // 2,
                "time": time,
                **({"until": time + rng.choice((0, 3, 12))} if name == "uncertain" else {}),
                "row": number,
            }
        )
    lag = {event["row"]: event["time"] + rng.choice((0, 0, 0, 30)) for event in events}
    order = sorted(events, key=lambda event: (lag[event["row"]], event["row"]))
    latest = 0
    while order:
        count = rng.randint(2, 5)
        chosen, order = order[:count], order[count:]
        yield Step(max(0, latest - _DELAY), chosen, [])
        latest = max([latest, *(event["time"] for event in chosen)])


def _write(name: str) -> None:
    """Run a stream, take its state in the midst, and go on."""
    found, rng = _planned(name), random.Random(zlib.crc32(name.encode()))
    query, steps = found.compiled(), list(_micro_batches(rng, name))
    operator, half = found.operator(query), len(steps) * 2 // 3
    found.before, found.then = steps[:half], steps[half:]
    with pytest.MonkeyPatch.context() as patch:
        if name == "keys-in-sections":
            patch.setattr(sections, "WHOLE", 2)
            patch.setattr(sections, "_ROWS", 1)
        for step in found.before:
            step.rows = texts_of(operator.advance(found.table(query, step.events), step.watermark))
    for label, header in operator.headers.items():
        pieces = {-1: header, **operator.segments[label]}
        timers = sorted(operator.timers.get(label, ()))
        found.state[str(label)] = Bucket(timers, {str(p): text_of(d) for p, d in pieces.items()})
    *rows, found.rest = found.told(query, operator, found.then)
    for step, of_step in zip(found.then, rows, strict=True):
        step.rows = of_step
    assert not operator.counts["late"]
    told = [row for step in [*found.before, *found.then] for row in step.rows] + found.rest
    if name != "keys-forgotten":  # a table forgets no partition
        assert sorted(told) == found.whole_answer(query), name
    assert sum(len(step.rows) for step in found.then) + len(found.rest) >= 3, name
    (FOLDER / f"{name}.json").write_text(_text(found), encoding="utf-8", newline="\n")


def _text(found: StoredStream) -> str:
    """JSON with a line for each micro-batch and each bucket."""

    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for key, value in asdict(found).items():
        if key in ("before", "then", "rest"):
            value = "".join(f"\n  {line(one)}," for one in value).rstrip(",")
            parts.append(f'"{key}": [{value}\n ]')
        elif key == "state":
            value = "".join(f"\n  {line(label)}: {line(v)}," for label, v in value.items())
            parts.append(f'"{key}": {{{value.rstrip(",")}\n }}')
        else:
            parts.append(f"{line(key)}: {line(value)}")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def main() -> None:
    """Write what is missing, or what is named."""
    parser = argparse.ArgumentParser(description="write streams with their states")
    parser.add_argument("names", nargs="*", metavar="NAME", help="one that is there already")
    asked = parser.parse_args()
    if unknown := {*asked.names} - _QUERIES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(_QUERIES)}")
    for name in asked.names or [name for name in _QUERIES if name not in names()]:
        _write(name)
        print(f"{name} is written")


if __name__ == "__main__":
    main()
