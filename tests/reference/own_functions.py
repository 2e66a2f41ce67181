"""The meaning of functions of one's own: a function of Python, called with arrays.

Of the positions of a label those count where none of its arguments is NULL. Python's own numbers
are in the lists that become arrays, so a function that wraps around means something else here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .nodes import OwnFunction
from .own_aggregates import in_kind
from .values import CelError, Datum, Kind, microseconds

Functions = Mapping[str, Callable[..., Any]]

_given: ContextVar[Functions] = ContextVar("functions of one's own")

_ARRAYS = {
    Kind.BOOLEAN: np.bool_,
    Kind.INT: np.int32,
    Kind.LONG: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
    Kind.TIMESTAMP: np.int64,
}


@contextmanager
def given_functions(functions: Functions) -> Iterator[None]:
    """What texts declare with FUNCTION is evaluated by these inside."""
    token = _given.set(functions)
    try:
        yield
    finally:
        _given.reset(token)


def own_call(
    own: OwnFunction, rows: Mapping[str, Sequence[tuple[Datum, ...]]], order: Sequence[str]
) -> Datum:
    """The value of a call. `rows`: for each label its arguments at each position; `order`: the
    label of each argument of the call."""
    kept = {
        label: [row for row in of_label if all(datum.value is not None for datum in row)]
        for label, of_label in rows.items()
    }
    taken = dict.fromkeys(rows, 0)
    arrays = []
    for label, kind in zip(order, own.parameters, strict=True):
        number = taken[label]
        taken[label] += 1
        data = [in_kind(row[number], kind) for row in kept[label]]
        values = [microseconds(one) if kind is Kind.TIMESTAMP else one.value for one in data]
        arrays.append(np.array(values, _ARRAYS[kind]))
    with np.errstate(all="ignore"):
        found = _given.get()[own.name](*arrays)
    is_truth = isinstance(found, bool | np.bool_)
    if is_truth != (own.kind is Kind.BOOLEAN):
        raise CelError(f"{own.name} gives no {own.kind.value}")
    if own.kind in (Kind.DOUBLE, Kind.FLOAT):
        return Datum(own.kind, _ARRAYS[own.kind](found).item())
    return Datum(own.kind, bool(found) if is_truth else int(found))
