"""What a case says of the rows of an answer, compared with the rows.

A row that is expected says something of some columns. Rows of the answer are given to the rows that
are expected one to one, as many as can be (augmenting paths in a graph of two sides): what is left
over is missing, or too much.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.schemas import NAMES_OF_TYPES

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import available, guess, quote
from celc.interfaces.cli.testing.files import NULL, Row

POSITION = "pos"
"""What a label's events have besides their attributes."""

_PLACES = frozenset(
    ("start_pos", "end_pos", "start_time", "end_time", "decided_time", "match_id", "query")
)
"""Columns that say where a match is, which its labels say as well."""


@frozen
class Columns:
    """The columns of an answer, and which of them are labels: lists of events."""

    schema: pa.Schema
    labels: frozenset[str]

    def wrong(self, row: Row) -> Iterator[Diagnostic]:
        """What is wrong with what is said of a row."""
        for name, value in row.values.items():
            for message, *help in self._wrong(name, value):
                yield error("test-expected", row.span, message, *help)

    def _wrong(self, name: str, value: Any) -> Iterator[tuple[str, ...]]:
        if name not in self.schema.names:
            told = (*guess(name, self.schema.names), *available("its columns", self.schema.names))
            yield f"the answer has no column {quote(name)}", *told
            return
        type = self.schema.field(name).type
        if name in self.labels:
            known = [field.name for field in type.value_type]
            for event in value if isinstance(value, list) else [value]:
                if isinstance(event, dict):
                    for attribute in event.keys() - {*known}:
                        told = (*guess(attribute, known), *available(f"{name} shows", known))
                        yield f"{quote(name)} shows no {quote(attribute)}", *told
                elif isinstance(event, bool) or not isinstance(event, int):
                    yield (
                        f"an event of {quote(name)} is its position, or a table of attributes",
                        f"write {name} = 0, {name} = [0, 2] or {name} = {{ … }}",
                    )
                    return
            # Attributes of events that are said are looked at below.
        try:
            self.typed(name, value)
        except (ValueError, InvalidOperation) as problem:
            yield (f"column {quote(name)}: {problem}",)

    def typed(self, name: str, value: Any) -> Any:
        """What is said of a column, as a value of its type; of a label a list of positions and of
        tables of attributes. Raises ValueError."""
        type = self.schema.field(name).type
        if name not in self.labels or value is None:
            return _typed(value, type)
        events = value if isinstance(value, list) else [value]
        return [one if isinstance(one, int) else _typed(one, type.value_type) for one in events]

    def fits(self, said: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        """Whether a row is as it is said; `said` has values of the columns' types."""
        return all(
            _label_fits(value, row[name]) if name in self.labels else _fits(value, row[name])
            for name, value in said.items()
        )

    def described(self, row: Mapping[str, Any]) -> str:
        """A row of the answer as it can be expected."""
        shown = {}
        for name, value in row.items():
            if name in self.labels:
                if value and POSITION in value[0]:
                    places = [event[POSITION] for event in value]
                    value = places[0] if len(places) == 1 else places
                shown[name] = value
            elif not (self.labels and name in _PLACES):
                shown[name] = value
        return toml_of(shown)


def _typed(value: Any, type: pa.DataType) -> Any:
    """A value of TOML or JSON as a value of a type. Raises ValueError where it is none."""
    if value is None:
        return None
    named = NAMES_OF_TYPES.get(str(type), str(type))
    if pa.types.is_list(type) and isinstance(value, list):
        return [_typed(one, type.value_type) for one in value]
    if pa.types.is_struct(type) and isinstance(value, dict):
        known = {field.name: field.type for field in type}
        for name in value.keys() - known.keys():
            told = "; ".join((*guess(name, known), *available("it has", [*known])))
            raise ValueError(f"there is no {quote(name)}; {told}")
        return {name: _typed(one, known[name]) for name, one in value.items()}
    if pa.types.is_map(type) and isinstance(value, dict):
        return {name: _typed(one, type.item_type) for name, one in value.items()}
    for is_kind, convert in _CONVERSIONS:
        if is_kind(type):
            try:
                return convert(value, type)
            except (TypeError, ValueError, InvalidOperation):
                raise ValueError(f"{toml_value(value)} is no {named}") from None
    raise ValueError(f"{toml_value(value)} is no {named}")


def _number(value: Any, type: pa.DataType) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if pa.types.is_integer(type):
        if not isinstance(value, int):
            raise TypeError
        return value
    return float(value)


def _decimal(value: Any, type: pa.DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return Decimal(str(value))


def _time(value: Any, type: pa.DataType) -> dt.datetime:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.datetime):
        raise TypeError
    if type.tz is None:
        return value.replace(tzinfo=None)
    return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


def _date(value: Any, type: pa.DataType) -> dt.date:
    value = dt.date.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise TypeError
    return value


def _duration(value: Any, type: pa.DataType) -> dt.timedelta:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return dt.timedelta(microseconds=value)


def _exactly(kind: Any) -> Any:
    def check(value: Any, type: pa.DataType) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return check


_CONVERSIONS: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_boolean, _exactly(bool)),
    (lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind), _number),
    (pa.types.is_decimal, _decimal),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _exactly(str)),
    (pa.types.is_timestamp, _time),
    (pa.types.is_date, _date),
    (pa.types.is_duration, _duration),
    (pa.types.is_binary, lambda value, _: bytes.fromhex(value)),
)


def _label_fits(said: Any, events: Sequence[Mapping[str, Any]] | None) -> bool:
    if said is None or events is None:
        return said is None and events is None
    return len(said) == len(events) and all(
        event.get(POSITION) == one if isinstance(one, int) else _fits(one, event)
        for one, event in zip(said, events, strict=True)
    )


def _fits(said: Any, found: Any) -> bool:
    if said is None or found is None:
        return said is None and found is None
    if isinstance(said, dict):
        found = dict(found)  # a MAP is a list of pairs
        return all(name in found and _fits(one, found[name]) for name, one in said.items())
    if isinstance(said, list):
        return len(said) == len(found) and all(map(_fits, said, found))
    if isinstance(said, float) or isinstance(found, float):
        one, other = float(said), float(found)
        return one == other or math.isclose(one, other, rel_tol=1e-9) or (one != one != other)
    return bool(said == found)


def left_over(fitting: Sequence[Sequence[int]], rows: int) -> tuple[list[int], list[int]]:
    """(the expected rows without a partner, the found rows without one), in a largest matching.

    fitting: for each expected row, the found rows that it fits. rows: the number of found rows.
    """
    partner: dict[int, int] = {}

    def find(number: int, seen: set[int]) -> bool:
        for row in fitting[number]:
            if row in seen:
                continue
            seen.add(row)
            if row not in partner or find(partner[row], seen):
                partner[row] = number
                return True
        return False

    # What fits little chooses first, so that paths stay short.
    order = sorted(range(len(fitting)), key=lambda number: len(fitting[number]))
    missing = sorted(number for number in order if not find(number, set()))
    return missing, [row for row in range(rows) if row not in partner]


# --- rows as TOML ---------------------------------------------------------------------------------


def toml_of(row: Mapping[str, Any]) -> str:
    """A row as a table of TOML in one line."""
    if not row:
        return "{}"
    return f"{{ {', '.join(f'{_key(name)} = {toml_value(one)}' for name, one in row.items())} }}"


def _key(name: str) -> str:
    plain = name.replace("_", "a").replace("-", "a")
    return name if plain.isalnum() and plain.isascii() else json.dumps(name)


def toml_value(value: Any) -> str:
    """A value of an answer as TOML."""
    match value:
        case None:
            return f'"{NULL}"'
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if math.isfinite(value):
                return repr(value)
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case dt.datetime():
            return value.isoformat(" ").replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case dt.timedelta():
            return str(value // dt.timedelta(microseconds=1))
        case Decimal():
            return f'"{value:f}"'
        case bytes():
            return f'"{value.hex()}"'
        case dict():
            return toml_of(value)
        case list() if value and all(isinstance(one, tuple) for one in value):
            return toml_of({str(name): one for name, one in value})
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(str(value), ensure_ascii=False)
