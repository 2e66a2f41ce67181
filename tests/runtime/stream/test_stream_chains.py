"""The cases of FIRST, of events that last and of LIMIT … PER under readers, as streams by hand.

The query of a case becomes the lower one of a chain. Each reader is held against the table of the
chain, in micro-batches of one to three rows, with a restart after each of them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from cases_io import Case, lasting_in, load_cases
from celc_runtime.chain.streams.operators import Operator, Wanted, operator_of
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.stream.formats import StreamOptions
from engines import interpreted
from module_streams_by_hand import module_streamed
from queries_over_queries import source_table
from streams_by_hand import same_rows

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
    operator = operator_of(programs["above"], Wanted())
    if rng.random() < 0.5:
        operator = Operator(programs, tuple(programs), programs)
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
