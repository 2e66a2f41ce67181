"""What a checkpoint knows of the queries of an operator, and how it goes on with others.

A unit is recorded with its number, its queries, and the form in which they share events. All of
this stays as it was begun: a query that is taken out of the module leaves its unit, and a new one
begins a unit of its own. So the events in a state are read as they were written, whatever the
module has become, and a new query gets the events that come from then on.

A bucket is changed when it next has work. Until then its header has the units of an earlier module.
So the driver looks at all headers (`recorded_units`) to know which units there are.

Rejected: a query that joins a unit that is there. The unit has left out rows that matter to no
query of it, so that the new one would read some of the earlier events and not others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from celc_runtime.chain.streams.header import ModuleState, UnitState, named
from celc_runtime.chain.streams.units import GoesOn, Shared, Unit, UnitOf, shared_form
from celc_runtime.plan.errors import StateError
from celc_runtime.program import Program
from celc_runtime.stream.stored.identity import OtherQuery, normalised


class Record(NamedTuple):
    """What the header of a bucket says of a unit."""

    queries: dict[str, str]  # the hash of each query's text, by name
    shared: Shared | None


def record_of(unit: Unit, groups: int) -> bytes:
    """The record of a unit; groups: of kept events."""
    queries = {one.name: _digest(one) for one in unit.programs}
    return json.dumps([queries, shared_form(unit, groups)], separators=(",", ":")).encode()


def record_in(state: UnitState) -> Record:
    """The record of a unit in a header, whose checksum has been checked."""
    queries, shared = json.loads(state.record)
    return Record(queries, None if shared is None else _shared(*shared))


class Recorded(NamedTuple):
    """The units of a checkpoint, as its latest module has them."""

    units: dict[int, Record]  # by number
    next_unit: int

    @property
    def queries(self) -> list[str]:
        return names_in(self.units.values())


def recorded_units(states: Iterable[ModuleState]) -> Recorded:
    """The units in the headers of all buckets.

    Queries leave units, and units leave the checkpoint, and none comes back. So what a bucket has
    lost is gone.
    """
    found: dict[int, Record] = {}
    gone: set[int] = set()
    next_unit = 0
    for state in states:
        next_unit = max(next_unit, state.next_unit)
        gone |= {*range(state.next_unit)} - {*state.units}
        for number, unit in state.units.items():
            record = record_in(unit)
            before = found.get(number, record)
            names = [name for name in before.queries if name in record.queries]
            found[number] = record._replace(queries={name: record.queries[name] for name in names})
    left = {number: found[number] for number in sorted(found) if number not in gone}
    return Recorded(left, next_unit)


def going_on(recorded: Recorded, programs: Mapping[str, Program]) -> GoesOn:
    """The units that go on with the queries of a module.

    Raises StateError if the text of a query has changed.
    """
    found = []
    for number, record in recorded.units.items():
        names = tuple(name for name in record.queries if name in programs)
        changed = [one for one in names if record.queries[one] != _digest(programs[one])]
        if changed:
            raise _other_text(changed)
        if names:
            found.append(UnitOf(number, names, record.shared))
    return GoesOn(tuple(found), recorded.next_unit)


def compared(recorded: Recorded, programs: Mapping[str, Program]) -> dict[str, str]:
    """What becomes of each query of a checkpoint, and of a module: "goes on", "changed", "new" or
    "gone", by its name."""
    before = {n: one for record in recorded.units.values() for n, one in record.queries.items()}
    found = {name: "gone" for name in before if name not in programs}
    for name, program in programs.items():
        known = before.get(name)
        same = known == _digest(program)
        found[name] = "new" if known is None else "goes on" if same else "changed"
    return found


class Fitting(NamedTuple):
    """How the units of an operator find their states in a bucket."""

    headers: dict[int, bytes]  # by the number of the unit; no entry: it begins
    left: frozenset[int]  # the units that queries have left since the bucket had work
    dropped: dict[int, bytes]  # headers of units that are gone, by number


def fitting(
    state: ModuleState, records: Mapping[int, bytes], *, changes: bool, remedy: str
) -> Fitting:
    """The states of units in a bucket. records: of the units, by number. changes: whether the
    module may have other queries than the bucket. remedy: if it may not, what to do.

    Raises StateError if the bucket has other queries, or the same with other texts.
    """
    headers, left = {}, set()
    for number, record in records.items():
        if number not in state.units:
            continue
        unit = state.units[number]
        if unit.record != record:
            found, wanted = record_in(unit), record_in(UnitState(record, b""))
            common = [one for one in wanted.queries if one in found.queries]
            changed = [one for one in common if found.queries[one] != wanted.queries[one]]
            fits = len(common) == len(wanted.queries) and found.shared == wanted.shared
            if changed and fits:
                raise _other_text(changed)
            if not fits or not changes:
                raise _other_records(records, state, remedy)
            left.add(number)
        headers[number] = unit.header
    dropped = {n: one.header for n, one in state.units.items() if n not in records}
    begun = [number for number in records if number not in state.units]
    if (dropped or (begun and state.units)) and not changes:
        raise _other_records(records, state, remedy)
    if any(number < state.next_unit for number in begun):
        raise _other_records(records, state, remedy)
    return Fitting(headers, frozenset(left), dropped)


def names_in(recorded: Iterable[Record]) -> list[str]:
    """The queries of some records."""
    return [name for record in recorded for name in record.queries]


def _digest(program: Program) -> str:
    plan = program.plan
    parts: tuple[Any, ...] = (normalised(program.text, program.name), plan.functions)
    return blake2b(repr(parts).encode(), digest_size=6).hexdigest()


def _shared(
    attributes: Sequence[Sequence[str]], types: Sequence[Sequence[str]], window: int, groups: int
) -> Shared:
    columns = tuple((name, type) for name, type in attributes)
    return Shared(columns, tuple((stream, type) for stream, type in types), window, groups)


def _other_text(names: Sequence[str]) -> StateError:
    return OtherQuery(
        f"{named(names)}: the checkpoint holds the state of another query; what differs: the "
        "query's text, or the declarations before it. Run the query that it was begun with, give "
        "the new one another name, so that it begins anew, or begin a new checkpoint"
    )


def _other_records(records: Mapping[int, bytes], state: ModuleState, remedy: str) -> StateError:
    names = names_in(record_in(UnitState(one, b"")) for one in records.values())
    return other_queries(names, state, remedy)


def other_queries(names: Sequence[str], state: ModuleState, remedy: str) -> StateError:
    """The error where a bucket has other queries than those with these names."""
    found = names_in(map(record_in, state.units.values()))
    told = [
        f"{what}: {', '.join(some)}"
        for what, some in (
            ("new are", [name for name in names if name not in found]),
            ("no more there are", [name for name in found if name not in names]),
        )
        if some
    ]
    return OtherQuery(
        f"{named(names)}: the checkpoint has the queries {', '.join(found)}; "
        f"{'; '.join(told) or 'its queries have changed before'}. {remedy}"
    )


GOES_ON = (
    "To go on with other queries, name the checkpoint: match_all_stream(df, checkpoint=path). Then "
    "the others go on, a new query begins with the events that come from then on, and the state "
    "of one that is gone is dropped"
)
"""What to do if a module has other queries than its checkpoint."""

BEGINS_ANEW = "Run the query that it was begun with, or begin a new checkpoint"
"""What to do if a query, with those that it reads, is another than that of its checkpoint."""
