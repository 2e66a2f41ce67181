"""The evaluator of definitions, with which proofs begin, gives the answers of the cases."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from decimal import Context, Decimal
from typing import Any

import pytest
from cases_io import Case, case_stems, load_cases

from celc.core import formula as core
from celc.core.formula import DataType
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.driver.proved_answers import ExpectedRows, check_rows_understood
from celc.options import Options
from celc.verify.prove.expressions import parts_of
from celc.verify.prove.streams import Event
from celc.verify.prove.verdict import NotUnderstoodError

_QUICK = ("07-nested-selectors", "20-scopes", "40-first")
_DAY = dt.date(1970, 1, 1)


def _value(value: Any, type_: DataType) -> Any:
    if value is None:
        return None
    if type_ in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ):
        text = value if isinstance(value, str) else value.isoformat()
        time = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        return (time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if type_ is DataType.DATE:
        day = dt.date.fromisoformat(value) if isinstance(value, str) else value
        return (day - _DAY).days
    if isinstance(type_, core.DecimalType):
        return int(Decimal(str(value)).scaleb(type_.scale, Context(prec=60)))
    if type_ is DataType.INTERVAL and isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return value


def _parts(query: core.Query, events: list[dict[str, Any]]) -> dict[Any, list[Event]]:
    """The events of each part, in the form of the evaluator."""
    types = {one.name: one for stream in query.streams for one in stream.event_types}
    found: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        known = types.get(event.get("type", next(iter(types))))
        if known is None:
            continue
        made: Event = {core.TYPE: f"{event.get('stream', known.stream)}>{known.name}"}
        for one in known.attributes:
            made[one.name] = _value(event.get(one.name), one.type)
        found[tuple(made.get(key.name) for key in query.partition_by)].append(made)
    return found


def _difference(case: Case) -> str | None:
    """What the definitions say otherwise than a case; None also where it is not for them."""
    options = Options(case.order_by, ties=case.ties, at_end=case.at_end)  # type: ignore[arg-type]
    (stages,) = compile_source(Source("q.cel", case.query), options).queries
    query = stages.query
    try:
        check_rows_understood(query)
        late = any(isinstance(one, core.AbsenceAfter) for one in parts_of(query.formula))
        together = query.consume_by == "ANY" and query.partition_by
        if together or (late and case.at_end == "open"):
            return None
        shown = {one.label for one in query.output if isinstance(one, core.OutputLabel)}
        found = [
            (start, end, tuple(sorted(pair for pair in mu if pair[0] in shown)))
            for events in _parts(query, case.events).values()
            for start, end, mu in ExpectedRows(query).of(events)
        ]
    except NotUnderstoodError:
        return None
    wanted = [
        (
            row["start"],
            row["end"],
            tuple(sorted((label, p) for label, ps in row["labels"].items() for p in ps)),
        )
        for row in case.expected
    ]
    return None if sorted(found) == sorted(wanted) else f"{case.name}: {sorted(found)}"


@pytest.mark.parametrize(
    "stem",
    [
        stem if stem in _QUICK else pytest.param(stem, marks=pytest.mark.long)
        for stem in case_stems()
    ],
)
def test_the_answers_of_cases(stem: str) -> None:
    step = 5 if stem in _QUICK else 1
    problems = [_difference(case) for case in load_cases(stem)[::step] if not case.functions]
    assert [one for one in problems if one is not None] == []
