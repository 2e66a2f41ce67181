"""What it takes to compile big queries: time, sizes after each stage, or the refusal.

    python benchmarks/compile.py [NAME ...] [--growth] [--record]

Each query must compile, or be refused with a message that says what to change, in less than ten
seconds of CPU time; the exit code is 1 where one takes longer. A name runs the queries that contain
it. `--record` appends the run to benchmarks/records/.

Queries are big in the ways in which people make them big (many events, many alternatives, many
conditions), or take a construction to where it is known to grow exponentially.

`--growth` compiles the families of `benchmarks/families.py` instead, each at sizes that double for
as long as a module takes less than ten seconds. The exponent is that of the last doubling: 1 where
twice the query takes twice the time, 2 where it takes four times as much.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from types import FrameType
from typing import Any

from celc_runtime.plan.strategy import Latest
from common import environment
from families import FAMILIES, QUADRATIC

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver.pipeline import Stages, compile_source
from celc.options import Options
from celc.plan.strategy import EarliestInWindow, InWindow, UnionLists

LIMIT_SECONDS = 10.0
GIVE_UP_SECONDS = 60.0

STOCKS = """CREATE STREAM Stock {
  EVENT BUY { id: INT, name: STRING, volume: INT, price: DOUBLE, stock_time: TIMESTAMP },
  EVENT SELL { id: INT, name: STRING, volume: INT, price: DOUBLE, stock_time: TIMESTAMP }
}
"""
NAMES = (
    "INTC",
    "RIMM",
    "QQQ",
    "IPIX",
    "AMAT",
    "CSCO",
    "YHOO",
    "DELL",
    "ORCL",
    "MSFT",
    "JDSU",
    "SUNW",
)


# --- queries --------------------------------------------------------------------------------------


def letters(names: str) -> str:
    """A stream of event types with one attribute."""
    return "CREATE STREAM S {" + ", ".join(f"EVENT {name} {{ v: INT }}" for name in names) + "}\n"


def stocks(events: int, names: int, prices: bool, clauses: str = "") -> str:
    """The shape of the stock queries of the CORE paper: each event a sale or purchase."""
    steps = []
    for number, name in enumerate(islice(cycle(NAMES[:names]), events), start=1):
        price = f" AND price > {20 + number}.5" if prices else ""
        kind = ("SELL", "BUY")[number % 2]
        steps.append(f"({kind} AS s{number} FILTER s{number}[name = '{name}'{price}])")
    return f"{STOCKS}SELECT * FROM Stock WHERE {' ; '.join(steps)} {clauses}"


def alternatives(count: int) -> str:
    """A sequence whose middle is any of many event types."""
    types = [f"E{number}" for number in range(count)]
    declared = ", ".join(f"EVENT {name} {{ v: INT }}" for name in ["A", "B", *types])
    return f"CREATE STREAM S {{ {declared} }}\nA ; ({' OR '.join(types)}) AS x ; B"


def conditions(count: int, shape: str) -> str:
    """Events of one type, each with a condition of its own."""
    attributes = ", ".join(f"a{number}: INT" for number in range(count))
    atoms = [
        f"(A AS x{number} FILTER {shape.format(label=f'x{number}', number=number)})"
        for number in range(count)
    ]
    return f"CREATE STREAM S {{ EVENT A {{ v: INT, {attributes} }} }}\n{' ; '.join(atoms)}"


def on_one_event(count: int) -> str:
    """One event with many conditions, on an attribute each."""
    attributes = ", ".join(f"a{number}: INT" for number in range(count))
    asked = " AND ".join(f"x.a{number} > {number}" for number in range(count))
    return (
        f"CREATE STREAM S {{ EVENT A {{ {attributes} }}, EVENT B {{}} }}\n"
        f"(A AS x ; B) FILTER {asked}"
    )


def cases(clauses: int, labels: int = 4) -> str:
    """ORs over labels of one sequence: each is worked out by cases."""
    names = [f"x{number}" for number in range(labels)]
    sequence = " ; ".join(f"{'ABCD'[k % 4]} AS {name}" for k, name in enumerate(names))
    asked = " AND ".join(
        "(" + " OR ".join(f"{name}.v > {10 * clause + k}" for k, name in enumerate(names)) + ")"
        for clause in range(clauses)
    )
    return f"{letters('ABCD')}({sequence}) FILTER {asked}"


def outside(conditions_outside: int) -> str:
    """Conditions inside a `+` on labels from outside."""
    asked = " AND ".join(
        f"(x.v > {number} OR y.v = {number})" for number in range(conditions_outside)
    )
    return f"{letters('AB')}A AS x ; ((B AS y) FILTER {asked})+"


def or_of_ands(pairs: int) -> str:
    """A condition whose conjunctive normal form has 2^pairs clauses."""
    attributes = ", ".join(f"a{number}: INT" for number in range(2 * pairs))
    asked = " OR ".join(f"(x.a{2 * k} = 1 AND x.a{2 * k + 1} = 2)" for k in range(pairs))
    return f"CREATE STREAM S {{ EVENT A {{ {attributes} }} }}\nA AS x FILTER {asked}"


def chain(events: int, types: str = "ABCD", conditions_too: bool = False) -> str:
    """A sequence of events, each with a label."""
    return " ; ".join(
        (
            f"({types[k % len(types)]} AS x{k} FILTER x{k}.v > {k})"
            if conditions_too
            else f"{types[k % len(types)]} AS x{k}"
        )
        for k in range(events)
    )


def queries() -> Iterator[tuple[str, str]]:
    """All queries, by name."""
    yield "stocks 24, 12 names", stocks(24, 12, False)
    yield "stocks 24, 3 names + prices", stocks(24, 3, True)
    yield "stocks 24, 12 names + prices", stocks(24, 12, True)
    yield "stocks 24 in a window", stocks(24, 12, False, "WITHIN 30000 [volume]")
    yield "stocks 24, SELECT NXT", stocks(24, 12, False).replace("SELECT *", "SELECT NXT *")
    yield "sales only, 12 names + prices", stocks(24, 12, True).replace("(BUY", "(SELL")
    yield "50 types in OR", alternatives(50)
    yield "500 types in OR", alternatives(500)
    yield "18 conditions, one attribute", conditions(18, "{label}.v > {number}")
    yield "30 conditions, one attribute", conditions(30, "{label}.v > {number}")
    yield "30 conditions, = constants", conditions(30, "{label}.v = {number}")
    yield "12 conditions, an attribute each", conditions(12, "{label}.a{number} > 0")
    yield "30 conditions, an attribute each", conditions(30, "{label}.a{number} > 0")
    yield "30 conditions on one event", on_one_event(30)
    yield "+ five deep", letters("ABCDEF") + "(((((A+ ; B)+ ; C)+ ; D)+ ; E)+ ; F)"
    yield "+ five deep, to the right", letters("ABCDEF") + "A ; (B ; (C ; (D ; (E ; F+)+)+)+)+"
    yield "+ five deep, one type", letters("A") + "(((((A+ ; A)+ ; A)+ ; A)+ ; A)+ ; A)"
    yield "+ five deep, overlapping", letters("ABC") + "(((((A+ ; B)+ ; A)+ ; B)+ ; A)+ ; C)"
    yield "+ five deep, labels", letters("AB") + (
        "((((((A AS a)+ ; (A OR B) AS b)+ ; (A AS c))+ ; (A OR B) AS d)+ ; (A AS e))+ ; B AS f)"
    )
    yield ":+ five deep", letters("ABC") + "(((((A:+ : B):+ : A):+ : B):+ : A):+ : C)"
    yield "15th event from the end", letters("AB") + (
        "SELECT NONE WHERE A : (A OR B):+ : A" + " : (A OR B)" * 14
    )
    yield "5 ORs over 4 labels", cases(5)
    yield "8 ORs over 4 labels", cases(8)
    yield "30 ORs over 4 labels", cases(30)
    yield "5 conditions on a label outside", outside(5)
    yield "20 conditions on labels outside", outside(20)
    yield "2^10 clauses", or_of_ands(10)
    yield "2^25 clauses", or_of_ands(25)
    for strategy in ("NXT", "LAST", "MAX", "STRICT"):
        for events in (8, 24):
            yield f"{strategy}({events} events)", f"{letters('ABCD')}{strategy}({chain(events)})"
    for strategy in ("NXT", "LAST", "MAX"):
        yield f"{strategy}(24 types)", (
            f"{letters('ABCDEFGHIJKLMNOPQRSTUVWX')}"
            f"{strategy}({chain(24, 'ABCDEFGHIJKLMNOPQRSTUVWX')})"
        )
        yield f"{strategy}(8 filtered)", f"{letters('ABCD')}{strategy}({chain(8, 'ABCD', True)})"
        yield f"SELECT {strategy}, 8, window", (
            f"{letters('ABCD')}SELECT {strategy} * WHERE {chain(8)} WITHIN 100 EVENTS"
        )
        yield f"SELECT {strategy}, 24, window", (
            f"{letters('ABCD')}SELECT {strategy} * WHERE {chain(24)} WITHIN 100 EVENTS"
        )
        yield f"{strategy}(A+ ; B+ ; C+)", f"{letters('ABC')}{strategy}(A+ ; B+ ; C+)"
    yield "NXT in MAX in LAST", f"{letters('ABCD')}LAST(MAX(NXT(A+ ; B) ; C+) ; D)"
    yield "NXT(+ five deep)", f"{letters('ABCDEF')}NXT(((((A+ ; B)+ ; C)+ ; D)+ ; E)+ ; F)"
    yield "MAX(+ five deep)", f"{letters('ABCDEF')}MAX(((((A+ ; B)+ ; C)+ ; D)+ ; E)+ ; F)"
    yield "ALL of 6 events", letters("ABCDEF") + " ALL ".join("ABCDEF")
    yield "ALL of 6 sequences", letters("ABCDEF") + " ALL ".join(
        f"({one} ; {other})" for one, other in zip("ABCDEF", "BCDEFA", strict=True)
    )
    yield "ALL of 6 sequences of 4", letters("ABCDEF") + " ALL ".join(
        f"({' ; '.join((2 * 'ABCDEF')[k:k + 4])})" for k in range(6)
    )
    yield "AND of 6 labels", letters("AB") + " AND ".join(
        f"((A AS x OR B AS y)+ FILTER COUNT(x) > {k} AND COUNT(y) > {k})" for k in range(6)
    )
    yield "UNLESS 12 events", letters("ABCD") + f"(A AS a ; B AS b) UNLESS ({chain(12)})"
    yield "UNLESS 40 events", letters("ABCD") + f"(A AS a ; B AS b) UNLESS ({chain(40)})"
    yield "UNLESS, nth from the end", letters("AB") + (
        "(A AS a ; B AS b) UNLESS (A" + " : (A OR B)" * 14 + " : B)"
    )
    yield "! with 24 events", letters("ABCD") + f"A AS a ; !({chain(24)}) ; B AS b"
    yield "COUNT = 1000", letters("AB") + "((A AS x)+ ; B) FILTER COUNT(x) = 1000"
    yield "COUNT = 1000000", letters("AB") + "((A AS x)+ ; B) FILTER COUNT(x) = 1000000"
    yield "COUNTs of 4 labels", letters("ABCD") + (
        "((A AS a OR B AS b OR C AS c OR D AS d)+) FILTER "
        + " AND ".join(f"COUNT({label}) > 8" for label in "abcd")
    )


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one query: sizes, or the code and the first line of the refusal."""

    query: str
    seconds: float
    states: int | None = None
    deterministic: int | None = None
    minimal: int | None = None
    engine: str | None = None
    lines: int | None = None
    refusal: str | None = None


class _TooSlowError(Exception):
    pass


def measured(name: str, text: str, *, growth: bool = False) -> Result:
    """Compile one file, given up after a minute; for `growth` without sizes."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _TooSlowError

    source = Source("query.cel", text)
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, GIVE_UP_SECONDS)
    start = time.process_time()
    try:
        compilation = compile_source(source, Options(order_by=()))
        module = compilation.module_text("celc compile query.cel")
    except CelError as refused:
        seconds = time.process_time() - start
        found = next(item for item in refused.diagnostics if item.severity == "error")
        return Result(name, seconds, refusal=f"{found.code}: {found.message}")
    except _TooSlowError:
        return Result(name, time.process_time() - start, refusal="given up")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    if growth:
        return Result(name, seconds)
    (stages,) = compilation.queries
    return Result(
        name,
        seconds,
        stages.automaton.states,
        stages.full.states,
        stages.minimal.states,
        engine(stages),
        len(module.splitlines()),
    )


def engine(stages: Stages) -> str:
    """The update that the query got, and what chooses among its matches."""
    program = stages.program
    update = "tables" if isinstance(program.update, UnionLists) else "code"
    if program.tables.contexts is not None:
        update += f", {len(program.tables.contexts.following)} contexts"
    match program.listing:
        case InWindow(tables=selection):
            update += f", {selection.tables.states} states per window"
        case EarliestInWindow():
            update += ", earliest first"
        case Latest():
            update += ", latest first"
    return update


def show(result: Result) -> None:
    """One line of the table."""
    late = " LATE" if result.seconds > LIMIT_SECONDS else ""
    said = result.refusal
    if said is None:
        said = (
            f"{result.states:6,} {result.deterministic:6,} {result.minimal:6,} "
            f"{result.lines:6,}  {result.engine}"
        )
    print(f"{result.query:34} {result.seconds:6.2f}{late} {said}", flush=True)


FIRST_SIZE, LAST_SIZE = 125, 16_000


@dataclass(frozen=True, slots=True)
class Growth:
    """The CPU seconds that a family took by size, and the code of what ended it."""

    family: str
    seconds: dict[int, float]
    refusal: str | None = None

    @property
    def exponent(self) -> float | None:
        """That of the last doubling; None where only one size was compiled."""
        *_, before, last = [math.nan, math.nan, *self.seconds.values()]
        return None if math.isnan(before) else math.log2(last / before)


def grown(family: str) -> Growth:
    """Measure a family, at sizes that double until one takes too long or is refused."""
    text = (FAMILIES | QUADRATIC)[family]
    found: dict[int, float] = {}
    size = FIRST_SIZE
    while size <= LAST_SIZE and all(seconds < LIMIT_SECONDS for seconds in found.values()):
        result = measured(family, text(size), growth=True)
        if result.refusal is not None:
            return Growth(family, found, f"{size}: {result.refusal}")
        found[size] = result.seconds
        size *= 2
    return Growth(family, found)


def show_growth(growth: Growth) -> None:
    """One line of the table."""
    seconds = " ".join(f"{value:7.2f}" for value in growth.seconds.values())
    exponent = "" if growth.exponent is None else f"{growth.exponent:4.2f}"
    print(f"{growth.family:32} {exponent:>4} {seconds}  {growth.refusal or ''}", flush=True)


def measure_growth(names: list[str]) -> list[dict[str, Any]]:
    """All families whose names contain one of these, shown as they come."""
    sizes: list[int] = []
    while not sizes or 2 * sizes[-1] <= LAST_SIZE:
        sizes.append(2 * sizes[-1] if sizes else FIRST_SIZE)
    print(f"{'CPU seconds for n =':32} {'exp.':>4} " + " ".join(f"{size:7,}" for size in sizes))
    found = []
    for family in FAMILIES | QUADRATIC:
        if not names or any(part in family for part in names):
            growth = grown(family)
            show_growth(growth)
            found.append(asdict(growth) | {"exponent": growth.exponent})
    return found


def main() -> int:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--growth", action="store_true", help="families of queries, by size")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.growth:
        growth = measure_growth(arguments.names)
        if arguments.record:
            save({"growth": growth})
        return 0
    print(f"{'query':34} {'CPU s':>6} {'states':>6} {'det.':>6} {'min.':>6} {'lines':>6}  engine")
    results = []
    for name, text in queries():
        if not arguments.names or any(part in name for part in arguments.names):
            results.append(measured(name, text))
            show(results[-1])
    if arguments.record:
        found = [
            {key: value for key, value in asdict(result).items() if value is not None}
            for result in results
        ]
        save({"queries": found})
    return int(any(result.seconds > LIMIT_SECONDS for result in results))


def save(found: dict[str, Any]) -> None:
    """Append a run to the records."""
    record: dict[str, Any] = environment("benchmarks/compile.py", 0)
    del record["events"]
    path = Path(__file__).parent / "records" / f"compile-{record['date']}.jsonl"
    with path.open("a") as stream:
        stream.write(json.dumps(record | found) + "\n")


if __name__ == "__main__":
    sys.exit(main())
