"""The cases of FIRST, of events that last and of LIMIT … PER under readers, and a chain of five
levels, as streams by hand.

The query of a case becomes the lower one of a chain. Each reader is held against the table of the
chain, in micro-batches of one to three rows, with a restart after each of them.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from cases_io import Case, lasting_in, load_cases
from celc_runtime.chain.streams.operators import Group, Wanted, group_of
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream.formats import StreamOptions
from engines import interpreted
from module_streams_by_hand import module_streamed
from queries_over_queries import source_table
from streams_by_hand import instant, same_rows

import celc

_READERS = (
    "SELECT one, two FROM below WHERE below AS one ; FIRST (below AS two)",
    "SELECT one FROM below, {stream} WHERE below AS one : {type}",
    "SELECT one, e FROM below, {stream} WHERE {type} AS e ; below AS one",
    "SELECT one FROM below, {stream} WHERE below AS one ; !{type} FOR 2 MILLISECONDS [{time}]",
    "SELECT one FROM below WHERE (below AS one)+ LIMIT 2 PER 4 MILLISECONDS",
)
_STEMS = ("40-first", "41-lasting", "46-limit-per")


def _chain(case: Case, reader: str) -> str:
    """The query of a case, and a reader of its rows with the same PARTITION BY."""
    text = re.sub(r"(\d+) \[ts\]", r"\1 MILLISECONDS [ts]", case.query)
    text = lasting_in("MILLISECONDS", text) if case.lasts else text.replace("LONG }", "TIMESTAMP }")
    begins = text.rindex("\nSELECT") + 1
    head, below = text[:begins], text[begins:]
    stream = re.findall(r"CREATE STREAM (\w+)", head)[-1]
    type = re.findall(r"EVENT (\w+)", head)[-1]
    above = reader.format(stream=stream, type=type, time=_time(case))
    keys = re.search(r" PARTITION BY \w+", below)
    if keys:
        above = re.sub(r"(?= LIMIT)|$", keys[0], above, count=1)
    return f"{head}QUERY below:\n{below}\nQUERY above:\n{above}\n"


def _time(case: Case) -> str:
    return "end" if case.lasts else "ts"


def _problems(case: Case, reader: str, found: Counter[str]) -> Iterator[str]:
    text, rng = _chain(case, reader), random.Random(f"{case.name} {reader}")
    ties = {"ties": "simultaneous"} if case.ties else {}
    order = None if case.lasts else "ts"
    try:
        with interpreted():
            module = celc.compile(text, order_by=order, **ties)
    except celc.CelError:
        found["refused"] += 1
        return
    columns = {} if ties else {"number": "LONG"}
    tiebreak = None if ties else "number"
    programs = {
        name: query.program.with_options(tiebreak=tiebreak).on_spark
        for name, query in module.queries.items()
    }
    reason = why_not(programs["above"], Route.UNBOUNDED)
    if reason is not None:
        found[reason.code] += 1
        return
    times = ("ts", "start", "end")
    events = [
        {name: _in_microseconds(v) if name in times else v for name, v in event.items()}
        for event in case.in_order
    ]
    table = source_table(module.queries["above"], events)
    table = table.append_column("number", pa.array(range(len(table)), pa.int64()))
    operator = group_of(programs["above"], Wanted())
    if rng.random() < 0.5:
        operator = Group(programs, tuple(programs), programs)
    options = StreamOptions(columns)
    rows = module_streamed(operator, table, rng, time=_time(case), options=options)
    for name in operator.outputs:
        own = rows if operator.columns is None else [r[name] for r in rows if r["query"] == name]
        query, positions = module.queries[name], programs[name].plan.answer.positions
        closed = query.with_options(at_end="closed", positions=positions, tiebreak=tiebreak)
        wanted = closed.match_table(table).to_pylist()
        told = same_rows(own, wanted)
        if told:
            yield f"{case.name} {name}\n{text}\n{told}"
        if name == "above":
            found["rows" if wanted else "no rows"] += 1


def _in_microseconds(value: object) -> object:
    """Of a time in milliseconds; a case can have real times as well."""
    return 1000 * value if isinstance(value, int) else value


_EACH = 9
"""One case in so many is in the suite, under one reader."""


@pytest.mark.filterwarnings("ignore")
def test_some_cases_under_readers() -> None:
    found: Counter[str] = Counter()
    problems: list[str] = []
    for stem in _STEMS:
        for number, case in enumerate(load_cases(stem)[::_EACH]):
            problems += _problems(case, _READERS[number % len(_READERS)], found)
    assert not problems, "\n".join(problems)
    assert found["rows"] >= 8, found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stem", _STEMS)
def test_all_cases_under_readers(stem: str) -> None:
    found: Counter[str] = Counter()
    problems: list[str] = []
    for case in load_cases(stem):
        for reader in _READERS:
            problems += _problems(case, reader, found)
    assert not problems, "\n".join(problems)
    assert found["rows"] >= 40, found


# --- extrema in steps -----------------------------------------------------------------------------

_DOUBLE_TOP = """CREATE STREAM Quotes { EVENT Q { name: STRING, price: DOUBLE, ts: TIMESTAMP } }
QUERY lows:
SELECT b.price AS price FROM Quotes WHERE (Q AS a : Q AS b : Q AS c)
FILTER b.price < a.price AND b.price < c.price PARTITION BY name WITHIN 9 MILLISECONDS [ts]
QUERY peaks:
SELECT b.price AS price FROM Quotes WHERE (Q AS a : Q AS b : Q AS c)
FILTER b.price > a.price AND b.price > c.price PARTITION BY name WITHIN 9 MILLISECONDS [ts]
QUERY up:
SELECT a.price AS low, b.price AS high FROM lows, peaks WHERE (lows AS a ; FIRST (peaks AS b))
FILTER b.price >= 1.2 * a.price PARTITION BY name WITHIN 50 MILLISECONDS [ts]
QUERY cup:
SELECT u.low AS low, u.high AS high FROM up, lows WHERE (up AS u ; FIRST (lows AS c))
FILTER c.price BETWEEN 0.9 * u.low AND 1.1 * u.low PARTITION BY name WITHIN 90 MILLISECONDS [ts]
QUERY second:
SELECT u.low AS low, d.price AS high FROM cup, peaks WHERE (cup AS u ; FIRST (peaks AS d))
FILTER d.price BETWEEN 0.9 * u.high AND 1.1 * u.high PARTITION BY name WITHIN 120 MILLISECONDS [ts]
QUERY double_top:
SELECT u.low AS low, u.high AS high, e.price AS last FROM second, lows
WHERE (second AS u ; FIRST (lows AS e)) FILTER e.price < u.low
PARTITION BY name WITHIN 150 MILLISECONDS [ts]
"""
"""The Double-Top pattern of the Cayuga paper by resubscription: five extrema, of which each level
adds one."""


def _quotes(rng: random.Random) -> pa.Table:
    """Prices of two names that go up and down by legs of four quotes."""
    prices: list[tuple[str, float]] = []
    for name in ("a", "b"):
        corners = [rng.choice((95.0, 98.0, 100.0, 102.0)) if n % 2 else 130.0 for n in range(7)]
        for one, other in itertools.pairwise(corners):
            prices += [(name, one + (other - one) * part / 4) for part in range(4)]
    names = [name for name, _ in prices]
    rng.shuffle(names)
    left = {one: iter([price for name, price in prices if name == one]) for one in ("a", "b")}
    return pa.table(
        {
            "name": names,
            "price": [next(left[name]) for name in names],
            "ts": pa.array([instant(1 + n) for n in range(len(names))], pa.timestamp("us", "UTC")),
        }
    )


def test_double_top_in_steps() -> None:
    with interpreted():
        module = celc.compile(_DOUBLE_TOP, order_by="ts")
    query = module.queries["double_top"]
    closed = query.with_options(at_end="closed", positions=False)
    found = 0
    for seed in range(2):
        rng = random.Random(seed)
        table = _quotes(rng)
        wanted = closed.match_table(table).to_pylist()
        rows = module_streamed(group_of(query.program.on_spark, Wanted()), table, rng, largest=6)
        assert not same_rows(rows, wanted), seed
        found += len(wanted)
    assert found
